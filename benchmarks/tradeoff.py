"""Width, depth, bits and parameters: constant width at growing N, yang-2026 at many shapes, and all of it on one task.

    python benchmarks/tradeoff.py all_shapes --examples 10000 --plot tradeoff.png

runs one section alone, and draws it. All sections take ten minutes, most of them for N = 100,000.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from checking import judged
from tables import OUT, parser, table

from byheart.constructions import build
from byheart.constructions.theorem import flags
from byheart.report.tradeoff import draw_trade_off, orders, trade_off
from byheart.tasks import NextToken, SeqToSeq, random_next_token, random_seq_to_seq


def points(examples: int) -> NextToken:
    """Integer keys below N², one bit each."""
    return random_next_token(examples=examples, length=1, vocab=examples**2, labels=2, rng=np.random.default_rng(0))


def sequences(examples: int, length: int) -> NextToken:
    """Random sequences, one bit each."""
    return random_next_token(examples=examples, length=length, vocab=1000, labels=2, rng=np.random.default_rng(0))


def labelled(tokens: int) -> SeqToSeq:
    """Random sequences of ten tokens, one bit for every token."""
    rng = np.random.default_rng(0)
    return random_seq_to_seq(examples=tokens // 10, length=10, vocab=1000, labels=2, rng=rng)


def constant_width(options: argparse.Namespace) -> None:
    """Constant width: depth and parameters over √(K log₂K), K questions."""
    rows = table(
        "Constant width (--width constant), C = 2, token ids",
        *("theorem", "questions", "width", "depth", "÷ √(K log₂K)", "most bits", "parameters", "÷ √(K log₂K)"),
        "certified",
    )
    most = 100 if options.tiny else options.most
    cases: tuple[tuple[str, Callable[[int], Any], int], ...] = (
        ("vardi-2022", points, most),
        ("kajitsuka-sato-2025", lambda N: sequences(N, 32), most),
        ("kajitsuka-sato-2025", labelled, most),
        ("kim-2023", labelled, most // 10),
    )
    for name, make, largest in cases:
        for K in (10**power for power in range(2, len(str(largest)))):
            task = make(K)
            built = build(name, task, width="constant")
            account, unit = built.account, math.sqrt(K * math.log2(K))
            parameters = account.dense - account.embedding
            rows.add_row(
                f"{name}, {task.kind}", f"{K:,}", str(account.width), f"{account.depth:,}",
                f"{account.depth / unit:.2f}", f"{account.max_bits:,}", f"{parameters:,}", f"{parameters / unit:.1f}",
                judged(built, task),
            )  # fmt: skip
    OUT.print(rows, "")


def shapes(options: argparse.Namespace) -> None:
    """yang-2026: w²L² over N log₂N from narrow and deep to wide and shallow."""
    N = 100 if options.tiny else options.examples
    task = points(N)
    rows = table(
        f"Any width and depth (yang-2026), N = {N:,} points, C = 2",
        *("settings", "width", "depth", "w²L²", "÷ N log₂N", "most bits", "parameters", "certified"),
    )
    widths = ({"width": width} for width in (4, 5, 8, 14, 26, 50, 98, 200))
    depths = ({"depth": depth} for depth in (300, 100, 30, 10, 5))
    for given in ({}, *widths, *depths):
        built = build("yang-2026", task, **given)
        account = built.account
        product = (account.width * account.depth) ** 2
        rows.add_row(
            flags(given) or "balanced", str(account.width),
            f"{account.depth:,}", f"{product:,}", f"{product / (N * math.log2(N)):.1f}", f"{account.max_bits:,}",
            f"{account.dense:,}", judged(built, task),
        )  # fmt: skip
    OUT.print(rows, "")


def all_shapes(options: argparse.Namespace) -> None:
    """All constructions of Õ(√N) on one task, from wide to deep."""
    N = 60 if options.tiny else options.examples
    task = sequences(N, 2)
    low, high = orders(task)
    rows = table(
        f"Width × depth × bits × parameters: N = {N:,} sequences of 2 tokens, ω = 1,000, C = 2",
        *("construction", "width", "depth", "w²L²", "÷ N log(r/δ)", "most bits", "parameters", "certified"),
    )
    found = trade_off(task)
    for shaped in found:
        rows.add_row(
            f"{shaped.row.construction} {shaped.flags}", f"{shaped.width:,}", f"{shaped.depth:,}",
            f"{shaped.width_depth:.2e}", f"{shaped.width_depth / high:,.1f}", f"{shaped.row.max_bits:,}",
            f"{shaped.parameters:,}", f"{shaped.row.checked:,}" if shaped.row.certified else "NO",
        )  # fmt: skip
    OUT.print(rows, f"Yang & Yang 2026, order only: w²L² = Ω({low:,.0f}) is needed, O({high:,.0f}) suffices.", "")
    if options.plot is not None:
        draw_trade_off(found, task, options.plot)
        OUT.print(f"drew {options.plot}")


SECTIONS: tuple[Callable[[argparse.Namespace], None], ...] = (constant_width, shapes, all_shapes)

if __name__ == "__main__":
    arguments = parser(__doc__, SECTIONS)
    arguments.add_argument("--examples", type=int, default=10_000, help="N of all but the first section")
    arguments.add_argument("--most", type=int, default=100_000, help="the largest number of questions of the first")
    arguments.add_argument("--plot", type=Path, help="draw all shapes into this file")
    chosen = arguments.parse_args()
    for section in SECTIONS:
        if not chosen.sections or section.__name__ in chosen.sections:
            section(chosen)
