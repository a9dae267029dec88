"""Run the stages of compiling into shards on any executor, and keep solved shards.

*Map*: a task for each piece of the questions. *Solve*: a task for each shard, with the memory that it takes. *Join*:
here. The stages are those of :mod:`.shards`, and functions of plain data; so the network is the same, byte for byte,
whatever the executor, and in whatever order tasks end.

With a :class:`.shelf.Shelf` a shard that is solved is kept, and records lie on the disk. They are never taken from an
earlier session: mapping takes a tenth of the time, and solving trusts what they say.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.layouts import Unsolvable
from byheart.compiler.rectangular import shards
from byheart.compiler.rectangular.dimensions import TableSizes
from byheart.compiler.rectangular.shards import Note, Piecewise, Records
from byheart.compiler.rectangular.shelf import Shelf
from byheart.compiler.rectangular.wiring import Wiring
from byheart.executors import Executor, Job, Workplace, run_jobs
from byheart.progress import Report
from byheart.tasks.contexts import Contexts
from byheart.versions import installed_version

FORMAT = "byheart-shard-2"
"""Part of the name of every kept shard."""
PYTHON = 1 << 28
"""Bytes of memory that a worker takes before it does anything."""
Solved = tuple[NDArray[Any], Note]


@dataclass(frozen=True)
class NetworkDraft:
    """The network without its tables, which all tasks share."""

    wiring: Wiring
    sizes: TableSizes
    code: Code
    recipe: dict[str, Any]
    draw: tuple[int, ...]
    free_bits: int = 0


def solve_shards(
    front: NetworkDraft,
    contexts: Contexts,
    workplace: Workplace,
    shelf: Shelf | None = None,
    report: Report | None = None,
) -> tuple[dict[str, NDArray[Any]], list[Note]]:
    """Return all tensors of the network, and a note about each shard. Raise Unsolvable if a shard has no solution.

    If several shards have none, the failure of the lowest number is raised, whichever ended first: the next recipe
    follows from it.
    """
    if shelf is not None:
        shelf.check()
        shelf.found = 0
    with workplace.open(front) as executor:
        mapped, counts = _mapped(front, contexts, executor, workplace, shelf, report)
        cuts = shards.cut(counts, front.sizes.shards)
        solved = _Solving(front, mapped, cuts, shelf, report).by(executor, workplace)
    if shelf is not None:
        shelf.clear_records()
    ordered = [solved[shard] for shard in range(front.sizes.shards)]
    return shards.join(front.wiring.tensors, front.sizes, counts, cuts, ordered), [note for _, note in ordered]


def _mapped(
    front: NetworkDraft,
    contexts: Contexts,
    executor: Executor,
    workplace: Workplace,
    shelf: Shelf | None,
    report: Report | None,
) -> tuple[list[Piecewise], NDArray[np.int64]]:
    """Return the records of all pieces, in their order, and the number of questions per route."""
    parts = list(shards.pieces(len(contexts)))
    tasks = (
        Job(f"piece {number}", map_piece, (number, shards.piece_of(contexts, part)), memory=PYTHON)
        for number, part in enumerate(parts)
    )
    mapped: dict[int, Piecewise] = {}
    counts = np.zeros(front.sizes.routes, np.int64)
    for _, (number, records) in run_jobs(executor, tasks, peaks=workplace.peaks):
        counts += shards.count_routes(records, front.sizes)
        mapped[number] = records if shelf is None else shelf.records(records, number)
        if report is not None:
            report(0, front.sizes.shards, f"piece {len(mapped):,} of {len(parts):,}")
    return [mapped[number] for number in sorted(mapped)], counts


class _Solving:
    """The shards of a network: kept ones, shards to be solved, and failures."""

    def __init__(
        self,
        front: NetworkDraft,
        mapped: list[Piecewise],
        cuts: NDArray[np.int64],
        shelf: Shelf | None,
        report: Report | None,
    ) -> None:
        self.front, self.mapped, self.cuts, self.shelf, self.report = front, mapped, cuts, shelf, report
        self.solved: dict[int, Solved] = {}
        self.names: dict[int, str] = {}
        self.failures: dict[int, Unsolvable] = {}

    def by(self, executor: Executor, workplace: Workplace) -> dict[int, Solved]:
        """Solve every shard; raise the failure of the lowest number, if there is one."""
        for _, (shard, result) in run_jobs(executor, self.tasks(), peaks=workplace.peaks):
            if isinstance(result, Unsolvable):
                self.failures[shard] = result
                continue
            if self.shelf is not None:
                self.shelf.keep(self.names[shard], *result)
            self.take(shard, result)
        if self.failures:
            raise self.failures[min(self.failures)]
        return self.solved

    def take(self, shard: int, result: Solved) -> None:
        """Add a solved shard."""
        self.solved[shard] = result
        if self.report is not None:
            self.report(len(self.solved), self.front.sizes.shards)

    def tasks(self) -> Iterator[Job]:
        """Yield jobs for the shards that are not kept, in order, until one fails: all shards before it come first."""
        for shard in range(self.front.sizes.shards):
            if self.failures:
                return
            records = shards.records_of(self.mapped, self.cuts, shard)
            self.names[shard] = _name(self.front, shard, records)
            kept = self.shelf and self.shelf.find(self.names[shard], self.front, shard, records)
            if kept:
                self.take(shard, kept)
                continue
            memory = self.front.sizes.solving_memory(len(records)) + shards.BYTES * len(records) + PYTHON
            yield Job(f"shard {shard}", solve_shard, (shard, records), memory=memory)


def map_piece(front: NetworkDraft, number: int, piece: shards.Piece, *, report: Report | None) -> tuple[int, Records]:
    """Return a piece's number and its records: a job of the executor."""
    return number, shards.map_piece(front.wiring, front.sizes, *piece)


def solve_shard(
    front: NetworkDraft, shard: int, records: Records, *, report: Report | None
) -> tuple[int, Solved | Unsolvable]:
    """Return a shard's number with its tensor and note, or with the failure: a job of the executor."""
    options = (front.sizes, front.code, front.draw, shard, front.wiring.precision)
    try:
        return shard, shards.solve_shard(records, *options, free_bits=front.free_bits, report=report)
    except Unsolvable as failure:
        return shard, failure.with_traceback(None)  # a traceback would keep all arrays of its frames in memory


def _name(front: NetworkDraft, shard: int, records: Records) -> str:
    """Return a name made from all that a shard's tensor depends on."""
    sources = [FORMAT, installed_version("byheart") or "", front.recipe, front.free_bits, shard, records.fingerprint]
    return f"shard-{hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()}"
