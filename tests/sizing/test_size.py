"""How large must it be: what is planned is what is built, what is proved is what counting says, shares add up."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import byheart
from byheart.bounds.counting import needed
from byheart.compiler import CompilerSettings
from byheart.compiler.rectangular.attempt import planned_spec
from byheart.errors import BadInput
from byheart.sizing import Sizing, draw_sizes
from byheart.sizing.data import PIECE, read
from byheart.sizing.needs import RATES, Need, Room, ShareOfModel
from byheart.tasks import NextToken, random_next_token, save

TEXT = (Path(__file__).parents[2] / "LICENSE").read_text(encoding="utf-8")
DOCS = Path(__file__).parents[2] / "docs"


def of(found: Sizing, what: str) -> Need:
    (need,) = [need for need in found.needs if need.what.startswith(what)]
    return need


def random_task(examples: int = 2000) -> NextToken:
    rng = np.random.default_rng(1)
    return random_next_token(examples=examples, length=8, vocab=64, labels=64, rng=rng)


@pytest.mark.parametrize("data", [TEXT[:2000], random_task(), random_task(20)], ids=["text", "task", "tiny"])
def test_what_is_planned_is_what_is_compiled(data: str | NextToken) -> None:
    need = of(byheart.size(data), "compiled, rectangular")
    words = int(re.findall(r"\d+", need.source)[0])
    built = byheart.compile(data, words=words)
    assert need.kind == "fitted", "not proved: solving may need a larger table"
    assert need.parameters == need.low <= built.account.dense <= (need.high or 0)
    if built.chosen["attempts"] <= 2:
        assert built.account.dense == need.parameters


@pytest.mark.parametrize(("layout", "name"), [("uniform", "Llama"), ("experts", "Qwen2-MoE")])
def test_stock_models_are_planned_too(layout: Literal["uniform", "experts"], name: str) -> None:
    pytest.importorskip("transformers")
    data = random_task(300)
    need = of(byheart.size(data), f"compiled, stock {name}")
    assert need.parameters == byheart.compile(data, layout=layout).account.dense
    assert need.bytes == 4 * (need.parameters or 0)


def test_the_exact_one_is_enough() -> None:
    """The plan is for the hardest task of the size: that of the text takes no more."""
    found = byheart.size(TEXT[:400])
    need = of(found, "exact")
    assert (need.kind, need.says, need.bytes) == ("proved", "enough", None)
    contexts = found.data.contexts
    windows = contexts.windows(slice(None)) + 1
    task = NextToken(tokens=windows, labels=contexts.labels, label_count=257, vocab=258)
    built = byheart.build(need.what.rpartition(", ")[2], task)
    assert byheart.certify(built, task).certified
    assert built.account.dense <= (need.parameters or 0)


def test_counting_by_hand() -> None:
    """Four questions, two of them answered 0, one 1, one 2: 3⁴ labellings, 12 orders."""
    task = NextToken(tokens=[[0], [1], [2], [3]], labels=[0, 0, 1, 2])
    found = byheart.size(task, bits=[1])
    assert of(found, "every labelling").parameters == math.ceil(math.log2(81)) == needed(4, 3, 1)
    assert of(found, "these answers").parameters == math.ceil(math.log2(12))
    assert [entropy.bits for entropy in found.data.entropies[:2]] == [6.0, 0.0]
    assert found.data.size.length == 1


def test_trained_rates_and_their_intervals() -> None:
    found = byheart.size(TEXT)
    data = found.data
    assert data.fewest.compressor
    assert data.fewest.bits < data.bits
    for rate in RATES:
        (need,) = [need for need in found.needs if need.source.startswith(rate.name)]
        assert need.kind == "measured"
        assert need.parameters == math.ceil(data.bits / rate.bits)
        assert need.low == math.ceil(data.fewest.bits / (rate.high or rate.bits))
        assert need.high == math.ceil(data.bits / (rate.low or rate.bits))
        assert need.low <= need.parameters <= need.high


def test_our_rates_are_those_that_the_pages_name() -> None:
    largest, ladder = RATES[-2:]
    assert f"{ladder.bits} ({ladder.low} to {ladder.high}) bits per parameter" in (DOCS / "lab.md").read_text("utf-8")
    (row,) = re.findall(r"^\| trained GPT, 37,855 .*$", (DOCS / "numbers.md").read_text("utf-8"), re.MULTILINE)
    assert row.split(" | ")[3] == f"{largest.bits:.1f}"


def test_kinds_are_the_four_and_every_number_has_a_source() -> None:
    found = byheart.size(TEXT[:500], parameters=5)
    assert found.room is not None
    assert {need.kind for need in found.needs} == {"proved", "fitted", "measured"}
    assert all(need.source for need in found.needs)
    assert all(held.source for held in found.room.held)


def test_room_by_hand() -> None:
    """1,000 random bytes are 8,000 bits or so: 8,000 parameters have room; 100 have not, by far."""
    data = random_task(1000)
    large, small = (byheart.size(data, parameters=P, bits=[8]).room for P in (8000, 100))
    assert large is not None
    assert small is not None
    assert (large.bits, large.held[0].share) == (8, 6000 / 64_000)
    assert large.held[0].source == "it holds every labelling of at most 10,666 questions"
    assert large.verdict.startswith("It has room: the data take ")
    assert small.verdict.startswith("It is too small at trained rates, by a factor of 16 to 3")
    between = Room("m", 1, 1, (ShareOfModel("x", "measured", 1.0, "", 0.5, 2.0),))
    assert between.verdict == "It may be too small: the data take 50 % to 200 % of its capacity at trained rates."


def test_large_texts_are_sampled(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 16, 20 * PIECE, dtype=np.uint8).tobytes()
    files = [tmp_path / name for name in "abc"]
    for file, part in zip(files, (whole[:100], whole[100 : 3 * PIECE], whole[3 * PIECE :]), strict=True):
        file.write_bytes(part)
    data = read(files, sample=4 * PIECE)
    assert (data.bytes, data.looked_at, data.times) == (20 * PIECE, 4 * PIECE, 5.0)
    assert data.bits == pytest.approx(4 * 20 * PIECE, rel=1e-3)
    assert data.size.examples == pytest.approx(20 * PIECE, rel=1e-3)
    assert sum(data.occurrences) == pytest.approx(data.size.examples, rel=1e-5)
    exact = read(files[:1], sample=4 * PIECE)
    assert (exact.looked_at, exact.times, exact.places) == (None, 1.0, 100)


@pytest.mark.parametrize("words", [24, 31])
def test_a_plan_for_a_hundred_million_questions(words: int) -> None:
    """Shards by the hundred: what they are chosen by must still be exact, and the count grows with the questions."""
    repeated = np.random.default_rng(0).integers(0, 256, 300, dtype=np.uint8).tobytes()
    data = read(repeated + b"a" + repeated + b"b", sample=1 << 20)
    assert data.size.length == 512
    times, settings = 10**8 / len(data.contexts), CompilerSettings(words=words)
    small, large = (planned_spec(data.contexts, settings, times=t) for t in (times / 10, times))
    counts = [sum(math.prod(spec.shapes()[name]) for name in spec.experts) for spec in (small, large)]
    assert counts[1] == pytest.approx(10 * counts[0], rel=0.02)
    assert words * counts[1] > times * data.bits
    assert len(large.experts) > 100


def test_folders_of_texts(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / ".hidden").write_text("not this")
    (tmp_path / "empty").write_text("")
    with pytest.raises(BadInput, match="holds no texts; expected at least one file that is not empty"):
        byheart.size(tmp_path)
    (tmp_path / "one").write_text("It was the best of times")
    (tmp_path / "below" / "two").write_text("Call me Ishmael")
    assert byheart.size(tmp_path).data.bytes == 24 + 15
    assert byheart.size(tmp_path).data.name == "2 texts"


def test_given_in_other_ways(tmp_path: Path) -> None:
    task = random_task(50)
    save(task, tmp_path / "t.npz")
    assert byheart.size(tmp_path / "t.npz").needs == byheart.size(task).needs
    assert byheart.size({"a": "one", "b": b"two"}).data.places == 6
    with pytest.raises(BadInput, match="2 files, a task among them; expected texts, or one task"):
        byheart.size([tmp_path / "t.npz", tmp_path / "u.txt"])
    with pytest.raises(BadInput, match="model and parameters are both given"):
        byheart.size("a", model=tmp_path, parameters=1)
    with pytest.raises(BadInput, match=r"bits is \[0\]"):
        byheart.size("a", bits=[0])
    with pytest.raises(BadInput, match="sample is 0"):
        byheart.size("a", sample=0)


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = byheart.size(TEXT[:300], parameters=10_000)
    draw_sizes(found, tmp_path / "size.svg")
    assert (tmp_path / "size.svg").stat().st_size > 10_000
    draw_sizes(replace(found, room=None), tmp_path / "plain.png")
    one = byheart.size(NextToken(tokens=[[0], [1]], labels=[0, 0]))
    assert one.data.bits == 0
    draw_sizes(one, tmp_path / "nothing.png")


def test_facts_are_measured_by_their_completions():
    """ab → xy and cd → z: x, y, end, z and end are asked for; five questions, as of the same facts in ids."""
    found = byheart.size(byheart.Facts([("ab", "xy"), ("cd", "z")])).data
    assert (found.facts, found.bytes, found.size.examples, found.places) == (2, None, 5, 5)
    ids = byheart.size(byheart.Facts([([1, 2], [8, 9]), ([3, 4], [7])])).data
    assert (ids.facts, ids.size.examples, ids.bits) == (2, 5, found.bits)


def test_ids_of_31_bits_take_no_table():
    """One line of a file names the largest id that there is: nothing is as long as that."""
    found = byheart.size(byheart.Facts([([1, 2], [2**31 - 3]), ([2**31 - 3], [5])]))
    assert sorted(found.data.occurrences) == [1, 1, 2]
    reasons = {need.what: need.reason for need in found.needs if need.what.startswith("compiled")}
    assert len(reasons) == 3
    assert all("2,147,483,647 labels; expected at most 4,194,304" in reason for reason in reasons.values())
