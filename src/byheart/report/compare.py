"""Every construction on one task: built, counted, saved, reloaded, certified; one row each.

Networks from elsewhere, trained ones say, may stand beside them; they need not be right everywhere, and what is
certified of them is how many answers are. The one place in this room that does work of its own, by the same calls as
the commands ``build`` and ``certify``.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from byheart.certificates import Certificate, certify
from byheart.constructions import Construction, build, known
from byheart.errors import BadInput
from byheart.networks import Network
from byheart.progress import Report
from byheart.report.lower import Lower, lower_bound
from byheart.tasks import Task


@dataclass(frozen=True)
class Compared:
    """One construction on the task; where it refused, ``note`` says why and the numbers are missing."""

    construction: str
    """Its name; of a network that was given, its folder."""
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
    """Every answer of what was built is proved to be right; of a network that was given, every answer is decided."""
    checked: int | None = None
    right: int | None = None
    """Answers that are proved to be right."""
    certify_seconds: float | None = None
    lower: Lower | None = None
    """What is proved to be needed at its depth, where that is known for such networks."""
    note: str = ""

    @property
    def given(self) -> bool:
        """Whether it is a network that was given, not one that was built here."""
        return self.parameters is not None and self.build_seconds is None


def compare(
    task: Task,
    *,
    networks: Mapping[str, Network] = MappingProxyType({}),
    seed: int = 0,
    positions: bool = False,
    report: Report | None = None,
) -> list[Compared]:
    """Build every construction for ``task``, and count what the ``networks`` hold; smallest first, refusals last."""
    rows, total = [], len(known()) + len(networks)
    for done, (name, network) in enumerate(networks.items()):
        if report is not None:
            report(done, total, name)
        try:
            rows.append(counted(name, network, task))
        except BadInput as refusal:
            rows.append(Compared(name, note=f"{name}: {refusal}"))
    for done, construction in enumerate(known().values(), start=len(networks)):
        if report is not None:
            report(done, total, construction.name)
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
    published, spent = _published(construction, task), (built.seconds, seconds)
    return _row(built.construction, built.network, task, certificate, spent, published)


def counted(name: str, network: Network, task: Task) -> Compared:
    """Certify how many answers of a network are right."""
    start = time.perf_counter()
    certificate = certify(network, task, count=True)
    return _row(name, network, task, certificate, (None, time.perf_counter() - start))


def _row(
    name: str,
    network: Network,
    task: Task,
    certificate: Certificate,
    seconds: tuple[float | None, float],
    published: str = "–",
) -> Compared:
    """What there is to say of a network; what others need is said beside those that memorize the whole task only."""
    account = network.account
    return Compared(
        construction=name,
        published=published,
        parameters=account.dense,
        embedding=account.embedding,
        nonzero=account.nonzero,
        max_bits=account.max_bits,
        total_bits=account.total_bits,
        depth=account.depth,
        width=account.width,
        build_seconds=seconds[0],
        certified=certificate.certified,
        checked=certificate.checked,
        right=certificate.right,
        certify_seconds=seconds[1],
        lower=lower_bound(network, task) if certificate.right == certificate.checked else None,
    )
