"""Every construction on one task: built, counted, saved, reloaded, certified; one row each.

The one place in this room that does work of its own, by the same calls as the commands ``build`` and ``certify``.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from byheart.certificates import certify
from byheart.constructions import Construction, build, known
from byheart.errors import BadInput
from byheart.progress import Report
from byheart.report.lower import Lower, lower_bound
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
    lower: Lower | None = None
    """What is proved to be needed at its depth, where that is known for such networks."""
    note: str = ""


def compare(task: Task, *, seed: int = 0, positions: bool = False, report: Report | None = None) -> list[Compared]:
    """Build every construction for ``task``; smallest first, refusals last."""
    rows = []
    for done, construction in enumerate(known().values()):
        if report is not None:
            report(done, len(known()), construction.name)
        try:
            rows.append(measured(construction, task, construction.settings_with(positions=positions), seed=seed))
        except (BadInput, RuntimeError) as refusal:
            rows.append(Compared(construction.name, _published(construction, task), note=str(refusal)))
    return sorted(rows, key=lambda row: (row.parameters is None, (row.parameters or 0) - (row.embedding or 0)))


def proved_in_words(rows: Sequence[Compared]) -> str | None:
    """What no network of the smallest one's depth can do with fewer parameters; None where nothing is proved."""
    known = [(row.parameters, row.construction, row.lower) for row in rows if row.parameters and row.lower]
    if not known:
        return None
    parameters, name, lower = min(known, key=lambda row: row[:2])
    return lower.in_words(parameters, name)


def _published(construction: Construction, task: Task) -> str:
    return construction.orders.get(task.kind, "–")


def measured(
    construction: Construction,
    task: Task,
    settings: object,
    judged: Mapping[str, str] = MappingProxyType({}),
    *,
    seed: int = 0,
) -> Compared:
    """Build one, save it, certify what was saved; ``judged`` names options of that, and what was chosen for each."""
    built = build(construction, task, seed=seed, settings=settings)
    options: dict[str, Any] = {option: built.chosen[name] for option, name in judged.items()}
    with tempfile.TemporaryDirectory() as folder:
        built.save(Path(folder) / "network")
        start = time.perf_counter()
        certificate = certify(Path(folder) / "network", task, **options)
        seconds = time.perf_counter() - start
    account = built.account
    return Compared(
        construction=built.construction,
        published=_published(construction, task),
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
        lower=lower_bound(built.network, task),
    )
