"""Every construction on one task: built, counted, saved, reloaded, certified; one row each."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from byheart import networks
from byheart.bounds import BOUNDS
from byheart.certificates import certify
from byheart.constructions import CONSTRUCTIONS, build
from byheart.errors import BadInput
from byheart.tasks import Task


@dataclass(frozen=True)
class Compared:
    """One construction on the task; where it refused, ``note`` says why and the numbers are missing."""

    construction: str
    published: str = "–"
    """The order that the construction's paper states for such tasks."""
    parameters: int | None = None
    embedding: int | None = None
    nonzero: int | None = None
    max_bits: int | None = None
    total_bits: int | None = None
    depth: int | None = None
    width: int | None = None
    build_seconds: float | None = None
    certified: bool | None = None
    checked: int | None = None
    certify_seconds: float | None = None
    note: str = ""


def compare(
    task: Task, *, seed: int = 0, positions: bool = False, report: Callable[[str], None] | None = None
) -> list[Compared]:
    """Build every construction for ``task``; smallest first, refusals last. ``report`` hears what is being done."""
    rows = []
    for name in CONSTRUCTIONS:
        if report is not None:
            report(name)
        try:
            rows.append(_one(name, task, seed, positions))
        except (BadInput, RuntimeError) as refusal:
            rows.append(Compared(name, published(name, task.kind), note=str(refusal)))
    return sorted(rows, key=lambda row: (row.parameters is None, (row.parameters or 0) - (row.embedding or 0)))


_IN_SHORT = {
    "interpolate": "naive: 3 a label",
    "folding": "ours",
    "vardi-2022": "Õ(√N)",
    "dana-2025": "O(d(n + ω + N))",
}
"""What is nobody's theorem, and orders whose expression is long (:mod:`byheart.bounds` has them in full)."""


def published(construction: str, setting: str) -> str:
    """What the paper of a construction says about a setting: the order, or "–" if it says nothing.

    >>> published("kim-2023", "seq-to-seq"), published("kim-2023", "next-token"), published("folding", "next-token")
    ('Õ(d + n + √(nN))', '–', 'ours')
    """
    if construction in _IN_SHORT:
        return _IN_SHORT[construction]
    said = (
        b.expression for b in BOUNDS if b.name.startswith(construction) and (b.side, b.setting) == ("upper", setting)
    )
    return next(said, "–")


def _one(name: str, task: Task, seed: int, positions: bool) -> Compared:
    built = build(name, task, seed=seed, settings=CONSTRUCTIONS[name].settings_with(positions=positions))
    with tempfile.TemporaryDirectory() as folder:
        networks.save(built.network, Path(folder) / "network")
        start = time.perf_counter()
        certificate = certify(Path(folder) / "network", task)
        seconds = time.perf_counter() - start
    account = built.account
    return Compared(
        construction=name,
        published=published(name, task.kind),
        parameters=account.dense,
        embedding=account.embedding,
        nonzero=account.nonzero,
        max_bits=account.max_bits,
        total_bits=account.total_bits,
        depth=account.depth,
        width=account.width,
        build_seconds=built.seconds,
        certified=certificate.certified,
        checked=certificate.checked,
        certify_seconds=seconds,
    )
