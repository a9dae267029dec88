"""Measure contextual mappings: the figures of kim-2023 and kajitsuka-sato-2024 in docs/numbers.md (`make bench`).

    python benchmarks/contextual.py precision --plot precision.png

runs one section alone, and draws it.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from checking import certified
from pictures import NeededBits, draw_precision
from scipy.optimize import curve_fit
from tables import OUT, parser, table

from byheart.constructions import build, kajitsuka_sato_2024, kim_2023
from byheart.constructions.gadgets.confused import confused_by, random_heads
from byheart.networks.exact import Integers, integers
from byheart.tasks import SeqToSeq, random_seq_to_seq

Floats = npt.NDArray[np.float64]
LENGTHS = (4, 8, 16, 32, 64)
EXAMPLES = (50, 100, 200, 500, 1000, 2000)


def random_task(examples: int, length: int, vocab: int, labels: int = 10) -> SeqToSeq:
    """Draw a random seq-to-seq task over token ids."""
    rng = np.random.default_rng(0)
    return random_seq_to_seq(examples=examples, length=length, vocab=vocab, labels=labels, rng=rng)


def kim(options: argparse.Namespace) -> None:
    """Build and certify for every n and N, and fit the parameters by a·n^α + b·(nN)^β."""
    lengths, examples = ((4, 8, 16), (5, 10, 20)) if options.tiny else (LENGTHS, EXAMPLES)
    for ids in ("digits", "hashed"):
        names = [f"N = {N:,}" for N in examples]
        rows = table(f"kim-2023, {ids}: parameters without embedding table, C = 10, ω = 1,000", "n", *names, "slowest")
        found: list[tuple[int, int, int]] = []
        for n in lengths:
            cells, slowest = [], 0.0
            for N in examples:
                task = random_task(N, n, 1000)
                built = build("kim-2023", task, settings=kim_2023.KimSettings(ids=ids))
                certificate, seconds = certified(built, task, threads=2)
                parameters = built.account.dense - built.account.embedding
                found.append((n, N, parameters))
                cells.append(f"{parameters:,}" if certificate.certified else "NOT CERTIFIED")
                slowest = max(slowest, built.seconds + seconds)
            rows.add_row(str(n), *cells, f"{slowest:.1f} s")
        OUT.print(rows)
        for name, second in (("nN", lambda n, N: n * N), ("nN·log₂(nN)", lambda n, N: n * N * np.log2(n * N))):
            OUT.print(f"fitted, {ids}: " + _two_powers(found, second, name))
        OUT.print()


def _two_powers(found: list[tuple[int, int, int]], second: Callable[..., Floats], name: str) -> str:
    """Fit a·n^α + b·x^β by least squares of relative errors, and say how far off it is."""
    n, N, p = (np.array(column, dtype=float) for column in zip(*found, strict=True))
    x = second(n, N)

    def model(x: Floats, *theta: float) -> Floats:
        return np.exp(theta[0]) * n ** theta[1] + np.exp(theta[2]) * x ** theta[3]

    start = (np.log(50.0), 1.0, np.log(10.0), 0.5)
    theta, _ = curve_fit(model, x, p, start, sigma=p, maxfev=20_000, ftol=1e-14, xtol=1e-14)
    alpha, beta = (f"{theta[i]:.3f}" for i in (1, 3))
    worst = float(np.abs(model(x, *theta) / p - 1).max())
    a, b = np.exp(theta[0]), np.exp(theta[2])
    return f"{a:.1f}·n^α + {b:.2f}·({name})^β with α = {alpha}, β = {beta}; largest relative error {worst:.1%}"


def hard_task(examples: int, length: int, vocab: int) -> SeqToSeq:
    """Return sequences that share the n − 1 largest tokens; only the smallest differs, which softmax hardly sees."""
    rng = np.random.default_rng(0)
    largest = np.arange(vocab - length + 1, vocab)
    smallest = np.linspace(0, vocab - length, examples).astype(np.int64)
    tokens = np.concatenate([np.tile(largest, (examples, 1)), smallest[:, None]], axis=1)
    return SeqToSeq(tokens=tokens, labels=rng.integers(10, size=tokens.shape), label_count=10, vocab=vocab)


def precision(options: argparse.Namespace) -> None:
    """Count the bits that tell the context ids of kajitsuka-sato-2024 apart, against n and against ω."""
    N = 5 if options.tiny else 50
    rows = table(
        f"kajitsuka-sato-2024, seq-to-seq, N = {N}, C = 10: bits that tell context ids apart",
        *("sequences", "n", "ω", "units", "2nN", "gentle", "paper", "certified, with bits", "in"),
    )
    needed: list[NeededBits] = []
    sizes = [(n, 128) for n in (2, 3, 4, 6, 8, 12, 16, 32)] + [(6, 64), (6, 256), (6, 512)]
    for n, vocab in [(2, 16), (3, 16), (3, 32)] if options.tiny else sizes:
        for kind, task in (("random", random_task(N, n, vocab)), ("hard", hard_task(N, n, vocab))):
            bits, verdicts, seconds = [], [], 0.0
            for scale in ("gentle", "paper"):
                settings = kajitsuka_sato_2024.RankSettings(scale=scale, precision=1 << 17)
                built = build("kajitsuka-sato-2024", task, settings=settings)
                certificate, spent = certified(built, task)
                needed.append(NeededBits(scale, kind, n, vocab, int(str(built.chosen["id_bits"]))))
                bits.append(needed[-1].bits)
                verdicts.append(certificate.method.split(", ")[-1] if certificate.certified else "NOT CERTIFIED")
                seconds += spent
            numbers = (n, vocab, built.account.width, 2 * n * N, *bits)
            rows.add_row(kind, *(f"{value:,}" for value in numbers), ", ".join(verdicts), f"{seconds:.1f} s")
    OUT.print(rows)
    if options.plot is not None:
        draw_precision(needed, options.plot)
        OUT.print(f"drew {options.plot}")


def hardmax(options: argparse.Namespace) -> None:
    """Find two sequences that all of H hardmax heads confuse, in exact arithmetic, and one softmax head does not."""
    rows = table(
        "kajitsuka-sato-2024: two sequences of n different tokens, all but two shared, and H random hardmax heads",
        *("H", "d", "n", "tokens that differ", "heads that confuse them", "in", "softmax averages apart by"),
    )
    rng = np.random.default_rng(0)
    for H, d, n in ((2, 2, 4), (3, 1, 5)) if options.tiny else ((1, 1, 4), (8, 4, 4), (64, 16, 8), (512, 64, 32)):
        heads = random_heads(H, d, rng)
        base, step = (integers(rng.integers(1, 10, d).tolist()) for _ in range(2))
        began = time.perf_counter()
        first, second = confused_by(heads, n, base, step)
        seconds = time.perf_counter() - began
        differ = len({tuple(token) for token in first.tolist()} - {tuple(token) for token in second.tolist()})
        rows.add_row(*map(str, (H, d, n, differ, H)), f"{seconds:.2f} s", f"{_apart(first, second, step):.2g}")
    OUT.print(rows)


def _apart(first: Integers, second: Integers, step: Integers) -> float:
    """Return the distance, in steps, of a softmax head's two averages if the scores of neighbours differ by 1."""
    means = []
    for tokens in (first, second):
        places = np.array([(token - first[0]) @ step / (step @ step) for token in tokens], np.float64)
        weights = np.exp(places - places.max())
        means.append(float(weights @ places / weights.sum()))
    return abs(means[0] - means[1])


SECTIONS: tuple[Callable[[argparse.Namespace], None], ...] = (kim, precision, hardmax)

if __name__ == "__main__":
    arguments = parser(__doc__, SECTIONS)
    arguments.add_argument("--plot", type=Path, help="draw the precision against n and ω into this file")
    chosen = arguments.parse_args()
    for section in SECTIONS:
        if not chosen.sections or section.__name__ in chosen.sections:
            section(chosen)
