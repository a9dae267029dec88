"""Measure networks that read vectors as cells: counts that do not depend on the floats, and answers near every token.

    python benchmarks/radius.py cost -o radius.png

runs one section alone, and draws it: two minutes in all.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
from checking import certified
from moving import inside, moved
from pictures import Robust, draw_robustness
from tables import OUT, parser, table

from byheart.certificates.judges.radius import provable_radius
from byheart.constructions import Built, build
from byheart.networks.exact import ExactNetwork
from byheart.networks.exact.evaluate import evaluate
from byheart.tasks import NextToken, SeqToSeq, random_next_token, random_seq_to_seq, separation

CELLS = {"read": "cells"}


def sequences(examples: int, *, labels: int = 10, seq_to_seq: bool = False) -> NextToken | SeqToSeq:
    """Draw random sequences over standard-normal vectors."""
    draw = random_seq_to_seq if seq_to_seq else random_next_token
    return draw(examples=examples, length=8, vocab=100, labels=labels, dim=16, rng=np.random.default_rng(0))


def points(examples: int, dim: int, labels: int = 2) -> NextToken:
    """Draw standard-normal points with random labels."""
    rng = np.random.default_rng(0)
    return random_next_token(examples=examples, length=1, vocab=None, labels=labels, dim=dim, rng=rng)


def floats(options: argparse.Namespace) -> None:
    """Count the parameters for the same sequences over other floats: rotated, scaled, with a coordinate of 1e-200."""
    task = sequences(50 if options.tiny else 1000)
    assert task.vectors is not None
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((16, 16)))[0]
    tiny = task.vectors.copy()
    tiny[tiny == tiny[0, 0, 0]] = 1e-200
    changed = {"as drawn": task.vectors, "rotated": task.vectors @ turn, "times 1e-130": task.vectors * 1e-130}
    changed["one coordinate 1e-200"] = tiny
    names = ("floats", "r/δ", "grid", "cells", "radius/δ", "certified")
    rows = table(f"kajitsuka-sato-2025, next-token, N = {len(task.labels):,}, n = 8, d = 16: parameters", *names)
    for name, vectors in changed.items():
        other = NextToken(vectors=vectors, labels=task.labels, label_count=task.size.labels)
        apart, built = separation(other), build("kajitsuka-sato-2025", other, **CELLS)
        grid = build("kajitsuka-sato-2025", other).account.dense
        certificate, _ = certified(built, other)
        numbers = f"{apart.r / apart.delta:.6f}", f"{grid:,}", f"{built.account.dense:,}", f"{_over(built, other):.2e}"
        rows.add_row(name, *numbers, "yes" if certificate.certified else "NOT CERTIFIED")
    OUT.print(rows)


def _over(built: Built, task: NextToken | SeqToSeq) -> float:
    """Return the network's radius over the task's separation δ."""
    return float(cast(float, built.network.about["radius"])) / separation(task).delta


def near(options: argparse.Namespace) -> None:
    """Count wrong answers on 10,000 random and extreme points of the balls, and a little beyond them.

    Beyond a ball, an answer may still be right: a token outside every cell may be read all the same, and the answer to
    an unknown token is label 0, which may be right by chance.
    """
    count = 200 if options.tiny else 10_000
    N = 20 if options.tiny else 200
    names = ("construction", "read", "radius/δ", "parameters", "provable ÷ stated", "wrong inside", "beyond: × 1.01")
    rows = table(f"{count:,} moved sequences, N = {N}: wrong answers", *names, "× 1.1", "certified in")
    tasks: list[tuple[str, str, NextToken | SeqToSeq]] = [
        ("kajitsuka-sato-2025", "next-token", sequences(N)),
        ("kajitsuka-sato-2025", "seq-to-seq", sequences(N // 2, seq_to_seq=True)),
        ("vardi-2022", "points", points(N, 16)),
    ]
    for construction, kind, task in tasks:
        delta = separation(task).delta
        settings: list[dict[str, Any]] = [{}, CELLS, {**CELLS, "radius": delta / 8}]
        for given in settings:
            built = build(construction, task, **given)
            radius = float(built.network.about.get("radius", 1e-13))
            network = cast(ExactNetwork, built.network)
            certificate, seconds = certified(built, task)
            wrong = [_wrong(network, task, radius * factor, count) for factor in (1.0, 1.01, 1.1)]
            provable = f"{provable_radius(network, task.inputs, radius) / radius:.4f}" if given else "none"
            verdict = f"{seconds:.1f} s" if certificate.certified else "NOT CERTIFIED"
            cells = f"{radius / delta:.2e}", f"{built.account.dense:,}", provable, *(f"{found:,}" for found in wrong)
            read = "cells, --radius δ/8" if "radius" in given else given.get("read", "grid, moved by 1e-13")
            rows.add_row(f"{construction}, {kind}", read, *cells, verdict)
    OUT.print(rows)


def _wrong(network: ExactNetwork, task: NextToken | SeqToSeq, radius: float, count: int) -> int:
    """Count wrong answers to ``count`` sequences, every vector moved within the radius, which is checked exactly."""
    rng = np.random.default_rng(1)
    asked = moved(network, task, radius, count, rng)
    assert asked.vectors is not None
    assert task.vectors is not None
    before = task.vectors[np.random.default_rng(1).integers(len(task.vectors), size=count)]
    assert inside(before, asked.vectors, radius)
    return int((evaluate(network, asked.inputs) != asked.labels).sum())


def cost(options: argparse.Namespace) -> None:
    """Count the parameters against the radius, from the default radius up to half of the separation."""
    N, dim = (30, 4) if options.tiny else (500, 16)
    task = points(N, dim)
    delta = separation(task).delta
    names = ("ρ = 2·radius/δ", "parameters", "depth", "width", "most bits", "cells or balls", "certified in")
    rows = table(f"vardi-2022 --read cells, N = {N}, d = {dim}, C = 2, Nd² = {N * dim**2:,}", *names)
    shares = (None, 1e-6, 1e-4, 3e-4, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.4, 0.6, 0.8, 0.9, 0.98)
    networks = []
    for share in shares[:1] + shares[5::3] if options.tiny else shares:
        given = {} if share is None else {"radius": share * delta / 2}
        built = build("vardi-2022", task, **CELLS, **given)
        certificate, seconds = certified(built, task)
        assert certificate.radius is not None
        robustness, account = 2 * certificate.radius / delta, built.account
        front = "cells" if "cells" in built.chosen else "balls"
        networks.append(Robust(robustness, account.dense, cast(Any, front)))
        numbers = (f"{value:,}" for value in (account.dense, account.depth, account.width, account.max_bits))
        verdict = f"{seconds:.1f} s" if certificate.certified else "NOT CERTIFIED"
        rows.add_row(f"{robustness:.2e}", *numbers, str(built.chosen[front]), verdict)
    OUT.print(rows)
    if options.out is not None:
        draw_robustness(networks, N, dim, options.out)
        OUT.print(f"drew {options.out}")


SECTIONS: tuple[Callable[[argparse.Namespace], None], ...] = (floats, near, cost)

if __name__ == "__main__":
    arguments = parser(__doc__, SECTIONS)
    arguments.add_argument("-o", "--out", type=Path, help="draw the cost of a radius into this file")
    chosen = arguments.parse_args()
    for section in SECTIONS:
        if not chosen.sections or section.__name__ in chosen.sections:
            section(chosen)
