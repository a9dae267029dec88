"""Put many tables behind one front, so that compiling takes time in proportion to the number of questions.

The rows of one table can be numbered only up to a limit; wider rows make a wider band, and the time of solving grows as
N³. Here the last attention layer gives one more hash sum of the window, the *route*. The routes are cut into S
intervals, and all questions of an interval are a *shard*, with a table of its own. Rows, columns and offset come from
the other sums, which are the same for all shards. So front and reading exist once, and only W_out of the table exists S
times (:class:`Mixture`).

There are four stages, each a function of plain data, so that they can run anywhere, in any order, and again:

- :func:`map_piece`: some of the questions → records, sorted by route;
- :func:`cut`: the number of questions per route → the routes where shards begin, so that all are equally full;
- :func:`solve_shard`: the records of one shard → its tensor, and a note about it;
- :func:`join`: the tensors of all shards → the tensors of the network.

A shard's tensor depends on its records as a set, on the recipe and on the shard's number, and on nothing else.

Questions must be different, as those of ``Contexts`` are: a repeated question looks like an equation that depends on
another. A certificate checks that the network answers right, by running the network.

This module imports numba; import it where it is needed.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.layouts import Unsolvable
from byheart.compiler.planes import Equations
from byheart.compiler.rectangular import front as fronts
from byheart.compiler.rectangular import table
from byheart.compiler.rectangular.address import addresses_of, hash_sums
from byheart.compiler.rectangular.dimensions import TableSizes
from byheart.compiler.rectangular.lots import TURNS, cut_at, lot_tensors
from byheart.compiler.rectangular.solve import solve, sort_questions
from byheart.compiler.rectangular.wiring import Wiring
from byheart.progress import Report
from byheart.tasks.contexts import Contexts

Integers = NDArray[np.int64]
PIECE = 1 << 18
"""Default number of questions per piece."""
BYTES = 64
"""Bytes per question of records, while they are sorted and joined."""
FREE_BITS = 3
"""Number of draws of free bits with which a shard is solved before everything is drawn anew."""


@dataclass(frozen=True, eq=False)
class Records:
    """The data of some questions that solving needs, 18 to 22 bytes per question, sorted by route."""

    route: NDArray[np.uint32]
    """[N]: the hash sum that chooses the shard."""
    sums: NDArray[np.uint16]
    """[N, sums]: all other sums of the hash."""
    label: NDArray[np.int32]
    """[N]: the answer to each question."""

    def __len__(self) -> int:
        return len(self.route)

    def between(self, first: int, last: int) -> "Records":
        """Return the records whose routes are from ``first`` on, below ``last``."""
        a, b = np.searchsorted(self.route, (first, last))
        return Records(self.route[a:b], self.sums[a:b], self.label[a:b])

    def arranged(self) -> "Records":
        """Return the records in an order that does not depend on the order of pieces."""
        order = np.lexsort((self.label, *self.sums.T, self.route))
        return Records(self.route[order], self.sums[order], self.label[order])

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all records, in their order."""
        digest = hashlib.sha256()
        for part in (self.route, self.sums, self.label):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()


@dataclass(frozen=True)
class Note:
    """A note about a solved shard, for config.json."""

    shard: int
    questions: int
    turn: int
    """Number of times that its lots are turned."""
    free_bits: int
    """Number of the draw of the bits that no question asks for."""
    records: str
    """SHA-256 of the records."""
    tensor: str
    """SHA-256 of the tensor's bytes."""

    def as_json(self) -> dict[str, Any]:
        """Return the note as a plain object."""
        return asdict(self)


def pieces(questions: int, size: int = PIECE) -> Iterator[slice]:
    """Yield slices that cut the questions into pieces.

    >>> list(pieces(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(first, min(first + size, questions)) for first in range(0, questions, size))


Piece = tuple[NDArray[np.integer], Integers, Integers, Integers]
"""Tokens, where sequences begin among them (and their number), where questions end, and the labels."""


def piece_of(contexts: Contexts, part: slice) -> Piece:
    """Return some questions with the tokens that they look back to: a segment, if they come from a text."""
    ends, labels = contexts.places[part].astype(np.int64), contexts.labels[part].astype(np.int64)
    sees = fronts.sees(contexts.window)
    first, last = max(0, int(ends.min()) + 1 - sees), int(ends.max()) + 1
    a, b = np.searchsorted(contexts.starts, (first, last), side="right")
    # Tokens before ``first`` are out of sight for all of these questions.
    starts = np.unique(np.concatenate([[first], contexts.starts[a:b], [last]])) - first
    return contexts.tokens[first:last].astype(np.int32), starts, ends - first, labels


def map_piece(
    wiring: Wiring, sizes: TableSizes, tokens: NDArray[np.integer], starts: Integers, ends: Integers, labels: Integers
) -> Records:
    """Return the records of questions that end at ``ends`` of ``tokens``; sequences begin at ``starts[:-1]``."""
    sums = hash_sums(wiring, sizes, tokens, starts, ends)
    assert max(sizes.moduli[:-1]) <= 1 << 16, "wider tables have no shards"
    order = np.argsort(sums[:, -1], kind="stable")
    kept = sums[order]
    return Records(kept[:, -1].astype(np.uint32), kept[:, :-1].astype(np.uint16), labels[order].astype(np.int32))


def map_questions(wiring: Wiring, sizes: TableSizes, contexts: Contexts) -> tuple[list[Records], Integers]:
    """Return the records of all questions, piece by piece, and where shards are cut."""
    mapped = [map_piece(wiring, sizes, *piece_of(contexts, part)) for part in pieces(len(contexts))]
    counts = np.sum([count_routes(records, sizes) for records in mapped], axis=0)
    return mapped, cut(counts, sizes.shards)


def count_routes(records: Records, sizes: TableSizes) -> Integers:
    """Return the number of questions per route. The counts of all pieces add up."""
    return np.bincount(records.route, minlength=sizes.routes)


class Piecewise(Protocol):
    """The records of a piece, in memory or on the disk."""

    def between(self, first: int, last: int) -> Records:
        """Return the records whose routes are from ``first`` on, below ``last``."""


def cut(counts: Integers, shards: int) -> Integers:
    """Return the routes where shards begin, and the end: [S + 1].

    Shards are equally full, or equally wide if the fullest shard is less full then.

    Routes that many questions share cannot be divided.

    >>> cut(np.array([1, 1, 4, 1, 1, 0]), 2).tolist(), cut(np.array([5, 0, 0, 0]), 2).tolist()
    ([0, 3, 6], [0, 1, 4])
    """
    below = np.concatenate([[0], np.cumsum(counts)])
    wide = len(counts) * np.arange(1, shards) // shards
    ways = [np.concatenate([[0], way, [len(counts)]]) for way in (cut_at(counts, np.arange(1, shards) / shards), wide)]
    return min(ways, key=lambda cuts: int(np.diff(below[cuts]).max()))


def records_of(mapped: Iterable[Piecewise], cuts: Integers, shard: int) -> Records:
    """Return the records of one shard, piece after piece; :func:`solve_shard` brings them into their order."""
    parts = [piece.between(int(cuts[shard]), int(cuts[shard + 1])) for piece in mapped]
    route, sums, label = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("route", "sums", "label")
    )
    return Records(route, sums, label)


def solve_shard(
    records: Records,
    sizes: TableSizes,
    code: Code,
    draw: Sequence[int],
    shard: int,
    precision: np.dtype[Any],
    *,
    turns: Sequence[int] = range(TURNS),
    free_bits: int = 0,
    report: Report | None = None,
) -> tuple[NDArray[Any], Note]:
    """Return the words of a shard as its tensor [2, 3·columns, rows]. Raise Unsolvable if there is no solution.

    Its lots, if it has any, are turned by the first of ``turns`` that has a solution. ``free_bits`` is the first draw
    of the bits that no question asks for.
    """
    records = records.arranged()
    sums, routes, labels = (part.astype(np.int64) for part in (records.sums, records.route, records.label))
    if sizes.stretches:
        sums = np.column_stack([sums, routes])
    *before, last = turns if sizes.stretches else turns[:1]
    for turn in (*before, last):
        equations = sort_questions(sizes, code, addresses_of(sums, sizes, turn), labels)
        try:
            tensor, bits = _solve_with_free_bits(equations, sizes, draw, shard, precision, free_bits, report)
        except Unsolvable as failure:
            if turn == last or sizes.is_hash_at_fault(failure.dependent):
                raise
            failure.with_traceback(None)  # a traceback would keep the systems of its frames in memory
            continue
        digest = hashlib.sha256(tensor.data).hexdigest()
        return tensor, Note(shard, len(records), turn, bits, records.fingerprint, digest)
    raise AssertionError("the last turn gives or raises")


def _solve_with_free_bits(
    equations: Equations,
    sizes: TableSizes,
    draw: Sequence[int],
    shard: int,
    precision: np.dtype[Any],
    free_bits: int,
    report: Report | None,
) -> tuple[NDArray[Any], int]:
    """Return the tensor, and the number of the draw of free bits that gave it."""
    *before, last = range(free_bits, free_bits + FREE_BITS)
    for number in (*before, last):
        try:
            words = solve(equations, sizes, np.random.default_rng([*draw, number, shard]), report=report)
            return table.as_floats(words, sizes, precision), number
        except Unsolvable as failure:
            if failure.dependent or number == last:
                raise
    raise AssertionError("the last try gives or raises")


def join(
    front: dict[str, NDArray[Any]],
    sizes: TableSizes,
    counts: Integers,
    cuts: Integers,
    solved: Sequence[tuple[NDArray[Any], Note]],
) -> dict[str, NDArray[Any]]:
    """Return all tensors of the network: those of the front and of reading, the router, and every shard's."""
    W, b = table.router(np.arange(sizes.shards + 1) if sizes.stretches else cuts)
    like = front["table.W_in"].dtype
    routed = {"table.W_route": W.astype(like), "table.b_route": b.astype(like)}
    if sizes.stretches:
        routed |= lot_tensors(front, sizes, counts, cuts, [note.turn for _, note in solved])
    return {**front, **routed, **{table.shard_tensor(shard): tensor for shard, (tensor, _) in enumerate(solved)}}
