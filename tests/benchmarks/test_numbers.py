"""The numbers of docs/numbers.md: what the program finds quickly is found again, and ratios are those of their rows.

Times, what took minutes, and what was trained are not.
"""

import math
import re
from pathlib import Path

import bench
import contextual
import numpy as np
import pytest
import reciting
import tradeoff
from scipy.optimize import curve_fit

from byheart.bounds import vc
from byheart.bounds.dana_2025 import capacity
from byheart.bounds.madden_2024 import needed as needed_by_distributions
from byheart.constructions import Built, build, find
from byheart.constructions.kim_2023 import KimSettings
from byheart.sizes import Size
from byheart.tasks.random_tasks import random_next_token

PAGE = (Path(__file__).parents[2] / "docs" / "numbers.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())


def table(head: str) -> dict[str, list[str]]:
    """The cells of the table whose first line starts with ``head``, by the first cell of their row."""
    lines = PAGE[PAGE.index(f"| {head}") :].partition("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


def beside(built: Built) -> int:
    """The parameters without the embedding table."""
    return built.account.dense - built.account.embedding


FOLDING = table("folding, n = 16")
EXAMPLES = [1000, 10_000, 100_000, 1_000_000]


@pytest.mark.parametrize("index", [0, 1, 2])
def test_folding_networks(index: int) -> None:
    rng = np.random.default_rng(0)
    task = random_next_token(examples=EXAMPLES[index], length=16, vocab=64, labels=2, rng=rng)
    in_all, _, least = FOLDING["in all; with `--fewest in-all`"][index].partition("; ")
    built = build("folding", task)
    assert f"{beside(built):,}" == FOLDING["C = 2: parameters without embedding, built and certified"][index]
    assert f"{built.account.dense:,}" == in_all
    if least:
        assert f"{build('folding', task, fewest='in-all').account.dense:,}" == least


def test_folding_bounds_and_plans() -> None:
    beside_all = FOLDING["C = 2: parameters without embedding, built and certified"]
    ratios = [f"{number(cell) / math.sqrt(N):.1f}" for cell, N in zip(beside_all, EXAMPLES, strict=True)]
    assert ratios == FOLDING["÷ √(N log₂C)"]
    assert [f"{vc.needed(N, 2):,}" for N in EXAMPLES] == FOLDING["needed in all, proved"]
    plans = [find("folding").plan(Size(N, 16, 256, 64), "next-token", find("folding").settings()) for N in EXAMPLES]
    assert [f"{p.dense - p.embedding:,}" for p in plans] == FOLDING["C = 256: parameters without embedding, planned"]


def test_ten_million_labels() -> None:
    found = re.search(r"with ([\d,]+) parameters in all, ([\d.]+)·√\(N log₂C\)", TEXT)
    rest = re.search(r"Beside a table of ([\d,]+) they are ([\d,]+), ([\d.]+)·√\(N log₂C\)", TEXT)
    assert found is not None
    assert rest is not None
    in_all, table_, without = number(found[1]), number(rest[1]), number(rest[2])
    assert in_all == table_ + without
    assert [f"{count / math.sqrt(10**7):.2f}" for count in (in_all, without)] == [found[2], rest[3]]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_constant_width(place: int) -> None:
    rows, K = table("constant width (4"), 10 ** (place + 2)
    makers = {
        "`kajitsuka-sato-2025`, next-token, n = 32: depth, parameters": ("kajitsuka-sato-2025", tradeoff.sequences),
        "seq-to-seq, n = 10, K = nN": ("kajitsuka-sato-2025", lambda K, _: tradeoff.labelled(K)),
        "`vardi-2022`": ("vardi-2022", lambda K, _: tradeoff.points(K)),
    }
    for row, (name, make) in makers.items():
        built = build(name, make(K, 32), width="constant")
        assert f"{built.account.depth:,}, {beside(built):,}" == rows[row][place], row
    depth = number(rows["`kajitsuka-sato-2025`, next-token, n = 32: depth, parameters"][place].partition(", ")[0])
    assert f"{depth / math.sqrt(K * math.log2(K)):.2f}" == rows["depth ÷ √(K log₂K), next-token"][place]


@pytest.mark.parametrize(("index", "examples"), [(0, 1000), (1, 3000), (2, 10_000)])
def test_label_engine(index: int, examples: int) -> None:
    rows = table("label engine")
    parameters = build("vardi-2022", bench.points(examples)).account.dense
    assert f"{parameters:,}" == rows["parameters"][index]
    assert f"{parameters / math.sqrt(examples * math.log2(examples)):.1f}" == rows["÷ √(N log₂N)"][index]


def test_length_is_almost_free() -> None:
    found = [beside(build("kajitsuka-sato-2025", bench.sequences(1000, n))) for n in (8, 32, 128, 512)]
    assert [f"{count:,}" for count in found] == table("next-token, N = 1,000")["parameters without embedding"]


KIM = table("kim-2023, seq-to-seq")
LENGTHS, SEQUENCES = {"n = 4": 4, "8": 8, "16": 16, "32": 32, "64": 64}, [50, 100, 200, 500, 1000, 2000]


@pytest.mark.parametrize("row", LENGTHS)
def test_hardmax_attention(row: str) -> None:
    """The three smallest of each length; hashed or not, as the page has it."""
    for N, cell in zip(SEQUENCES[:3], KIM[row], strict=False):
        task = contextual.random_task(N, LENGTHS[row], 1000)
        counts = {f"{beside(build('kim-2023', task, settings=KimSettings(ids=ids))):,}" for ids in ("digits", "hashed")}
        assert cell in counts


def test_hardmax_attention_fits() -> None:
    """The fit of the counts in the table: they are no sample, so that residuals are what there is to tell."""
    found = [(n, N, number(KIM[row][i])) for row, n in LENGTHS.items() for i, N in enumerate(SEQUENCES)]
    n, N, counts = np.array(found).T
    told = re.search(r"α = ([\d.]+) and β = ([\d.]+), .*? by more than ([\d.]+) %.*?α = ([\d.]+), β = ([\d.]+), up to ([\d.]+) %", TEXT)  # fmt: skip  # noqa: E501
    assert told is not None
    again = []
    for x in (n * N * np.log2(n * N), n * N):
        model = lambda x, a, alpha, b, beta: np.exp(a) * n**alpha + np.exp(b) * x**beta  # noqa: E731
        start = (np.log(50.0), 1.0, np.log(10.0), 0.5)
        theta, _ = curve_fit(model, x, counts, start, sigma=counts, maxfev=20_000, ftol=1e-14, xtol=1e-14)
        again += [f"{theta[1]:.3f}", f"{theta[3]:.3f}", f"{100 * np.abs(model(x, *theta) / counts - 1).max():.1f}"]
    assert again == list(told.groups())


def test_hidden_units_of_a_softmax_head() -> None:
    rows = table("kajitsuka-sato-2024, seq-to-seq, N = 50")
    for cell, n in zip(rows["hidden units (the theorem allows 2nN)"], (2, 4, 6, 8, 16, 32), strict=True):
        units = build("kajitsuka-sato-2024", contextual.hard_task(50, n, 128), scale="gentle").account.width
        assert cell == f"{units:,} of {2 * n * 50:,}"


def test_attention_alone() -> None:
    for cells in [cells for first, cells in table("one attention layer").items() if "context" in first]:
        head_dim, promised, parameters = int(cells[0]), number(cells[1]), number(cells[3])
        assert promised == 20 * (min(32, head_dim) - 1) + 1
        assert parameters == 20 * (2 * 64 * head_dim + 64 * 1 + 1)
    lines = PAGE[PAGE.index("| attention only (`dana-2025`)") :].partition("\n\n")[0].splitlines()[2:]
    for line in lines:
        vocab, n, d, H, associations, parameters = (number(cell) for cell in line.strip("|").split("|")[1:])
        assert associations <= capacity(int(H), int(d), int(d))
        assert parameters == d * (n + 2 * vocab + 4 * d * H)
    rank_one = re.search(r"the first row takes ([\d,]+) parameters, \(2d_h − 2\)·H·d = ([\d,]+) fewer", TEXT)
    assert rank_one is not None
    assert (number(rank_one[1]), number(rank_one[2])) == (10 * (2 + 100 + 2 * 11 * 20), 18 * 20 * 10)
    guessed = re.search(
        r"all ([\d,]+) pairs of 50 tokens, 210 are held, (\d+) right .*? and (\d+) .*? of (\.\d+)\.", TEXT
    )
    assert guessed is not None
    assert int(guessed[2]) == 210 + math.ceil((2500 - 210) / 50)
    assert f"{int(guessed[3]) / number(guessed[1]):.4f}"[1:] == guessed[4]
    told = re.search(r"takes ([\d,]+) parameters, where any model needs ([\d,]+)", TEXT)
    assert told is not None
    assert number(told[2]) == needed_by_distributions(1000, 500)


def test_reciting() -> None:
    """Bits per parameter are N times the entropy of the labels, nearly 8 bits; three are compiled again."""
    rows = {first: cells for first, cells in _reciting() if cells[1][0].isdigit()}
    for first, cells in rows.items():
        N = {"10⁵": 10**5, "10⁶": 10**6}[first[1]]
        assert float(cells[2]) == pytest.approx((8 * N - 184) / number(cells[1]), abs=0.0501), first
    for precision, words in (("float32", 24), ("float64", 53), ("bfloat16", 15)):
        name = f"{precision}{' table' * (precision == 'bfloat16')}, {words}-bit words"
        assert f"{reciting.compiled_task(10**5, precision, words).account.dense:,}" == rows[name, "10⁵"][1]
    for first, cells in table("argparse.py and inspect.py (Python 3.11)").items():
        if "words" in first:
            assert float(cells[4]) == pytest.approx(number(cells[3]) / number(cells[2]), abs=0.051)
    for first, cells in table("one by one, tokens per second").items():
        if "words" in first or "bytes" in first:
            assert round(number(cells[1]) / number(cells[0])) == int(cells[2])


def _reciting() -> list[tuple[tuple[str, str], list[str]]]:
    lines = PAGE[PAGE.index("| reciting, random labels") :].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [((first, rest[0]), rest) for first, *rest in cells if rest[0] in ("10⁵", "10⁶") and "trained" not in first]
