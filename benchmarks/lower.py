"""Compare parameter counts with proved lower bounds: VC dimension, and counting at a network's bits. A few minutes.

    python benchmarks/lower.py counts

Every network is certified. byheart.bounds.vc states the bounds, and for which networks they hold.
"""

import math
from collections.abc import Callable

import numpy as np
from checking import judged
from tables import OUT, parser, table

from byheart.bounds import counting
from byheart.certificates.judges.collapsed import judge_collapsed, tokens_for
from byheart.constructions import build
from byheart.constructions.lower_bound import lower_bound
from byheart.networks.exact.collapse import collapse
from byheart.tasks import random_next_token

CONSTRUCTIONS = ("folding", "vardi-2022", "kajitsuka-sato-2025", "kim-2023", "interpolate", "kajitsuka-sato-2024")
LINEAR = ("interpolate", "kajitsuka-sato-2024")
"""Constructions whose parameters grow linearly in N. They are built for at most ten thousand examples."""


def counts(tiny: bool) -> None:
    """Divide the parameters of every construction by both bounds, on one random task per N."""
    columns = (
        "parameters",
        "no embedding",
        "depth",
        "most bits",
        "counting",
        "÷ counting",
        "VC",
        "÷ VC",
        "shape holds",
    )
    for N in (30, 60) if tiny else (100, 1000, 10_000, 100_000):
        rng = np.random.default_rng(0)
        task = random_next_token(examples=N, length=16, vocab=64, labels=2, rng=rng)
        rows = table(f"N = {N:,}, n = 16, vocabulary 64, C = 2", "construction", *columns, "certified")
        for name in CONSTRUCTIONS:
            if name in LINEAR and N > 10_000:
                continue
            built = build(name, task)
            account, lower = built.account, lower_bound(built.network, task)
            by_bits = counting.needed(N, 2, account.max_bits)
            cells = [account.dense, account.dense - account.embedding, account.depth, account.max_bits, by_bits]
            proved = ("–", "–", "–")
            if lower is not None:
                ratio = f"{account.dense / lower.needed:.1f}" if lower.needed else "–"
                proved = (f"{lower.needed:,}", ratio, f"{lower.capacity:,}")
            row = (*(f"{cell:,}" for cell in cells), f"{account.dense / by_bits:.1f}", *proved, judged(built, task))
            rows.add_row(name, *row)
        OUT.print(rows, "")


def points(tiny: bool) -> None:
    """Divide the parameters for integers below N² by √(2N) and by the VC bound; no attention, no embedding table."""
    title = "Integer keys below N², C = 2"
    rows = table(title, "construction", "N", "parameters", "÷ √(2N)", "VC", "÷ VC", "certified")
    for N in (30, 60) if tiny else (100, 1000, 10_000, 100_000):
        task = random_next_token(examples=N, length=1, vocab=N**2, labels=2, rng=np.random.default_rng(0))
        built = build("vardi-2022", task)
        lower = lower_bound(built.network, task)
        assert lower is not None
        count = built.account.dense
        cells = (f"{N:,}", f"{count:,}", f"{count / math.sqrt(2 * N):.1f}", f"{lower.needed:,}")
        rows.add_row("vardi-2022", *cells, f"{count / lower.needed:.1f}", judged(built, task))
    OUT.print(rows, "")


def collapsed(tiny: bool) -> None:
    """Collapse Transformers on constant sequences to plain ReLU networks, and certify that both are equal."""
    columns = (
        "construction",
        "N",
        "parameters",
        "collapsed",
        "depth",
        "collapsed depth",
        "equal on tokens",
        "certified",
    )
    rows = table("Constant sequences, n = 8, C = 2, as many tokens as sequences", *columns)
    for N in (30,) if tiny else (100, 1000):
        rng = np.random.default_rng(0)
        task = random_next_token(examples=N, length=8, vocab=N, labels=2, shape="constant", rng=rng)
        for name in CONSTRUCTIONS:
            built = build(name, task)
            plain = collapse(built.network)
            verdict = judge_collapsed(built.network, plain, tokens_for(built.network, task))
            sizes = (built.account.dense, plain.account.dense, built.account.depth, plain.account.depth)
            equal = f"{verdict.checked:,}" if verdict.certified else "NOT CERTIFIED"
            rows.add_row(name, f"{N:,}", *(f"{size:,}" for size in sizes), equal, judged(built, task))
    OUT.print(rows, "")


SECTIONS: tuple[Callable[[bool], None], ...] = (counts, points, collapsed)

if __name__ == "__main__":
    chosen = parser(__doc__, SECTIONS).parse_args()
    for section in SECTIONS:
        if not chosen.sections or section.__name__ in chosen.sections:
            section(chosen.tiny)
