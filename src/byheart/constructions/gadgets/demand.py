"""What a task demands of a Transformer with uniform attention, counted before anything is built."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from byheart.constructions.gadgets import grid
from byheart.constructions.gadgets.distinguish import distinguishing_tokens
from byheart.constructions.gadgets.vectors import VectorFront
from byheart.sizes import Size
from byheart.tasks import SeqToSeq, Task, token_ids
from byheart.tasks.arrays import Ids
from byheart.tasks.distinct import count_tokens

Setting: TypeAlias = Literal["next-token", "seq-to-seq"]

TYPICAL_GRID_BITS = 75
"""Bits of a coordinate on the common grid of standard-normal float64 data."""


@dataclass(frozen=True)
class LookupDemand:
    """The numbers that the size of the network depends on, and nothing else.

    ``questions`` are the different inputs of the label stage: N, or the different tokens summed over the sequences for
    seq-to-seq. A *token* is an id, a vector, or with ``positions`` the pair of it and its position; ``tokens`` counts
    the different ones, ``marked`` those that need a code of their own. ``grid_bits`` is the size of a vector's
    coordinates, unless it is read by a ``front`` that takes all vectors near it for the same.
    """

    setting: Setting
    size: Size
    positions: bool
    questions: int
    tokens: int
    marked: int
    grid_bits: int
    front: VectorFront | None = None

    @property
    def coded(self) -> bool:
        """Whether a token-wise network has to make the codes; plain token ids look them up in the embedding."""
        return self.positions or self.size.dim is not None


def setting_of(task: Task) -> Setting:
    """Which setting of the theory a labelled task belongs to."""
    return "seq-to-seq" if isinstance(task, SeqToSeq) else "next-token"


def positioned_ids(task: Task, positions: bool) -> Ids:
    """Tokens [N, n] as numbers from 0; with ``positions`` the pairs of token and position."""
    ids = token_ids(task)
    if not positions:
        return ids
    n = ids.shape[1]
    return np.unique(ids * n + np.arange(n), return_inverse=True)[1].reshape(ids.shape).astype(np.int64)


def grid_bits(task: Task) -> int:
    """The size of the vectors' coordinates on their common grid; 0 for token ids."""
    return 0 if task.vectors is None else grid.from_floats(task.vectors.reshape(-1, task.vectors.shape[2])).bits


def most_questions(size: Size, setting: Setting, *, positions: bool) -> int:
    """The most different questions that a task of this size can ask; with ``positions`` equal tokens differ by place.

    >>> size = Size(examples=10, length=8, labels=2, vocab=5)
    >>> [most_questions(size, "seq-to-seq", positions=positions) for positions in (False, True)]
    [50, 80]
    """
    different = size.length if positions else min(size.length, size.vocab)
    return size.examples * (different if setting == "seq-to-seq" else 1)


def demand_of(task: Task, *, positions: bool) -> LookupDemand:
    """Count what ``task`` demands."""
    size, ids = task.size, positioned_ids(task, positions)
    questions = len(count_tokens(ids)) if isinstance(task, SeqToSeq) else size.examples
    marked = len(distinguishing_tokens(ids)) if positions or size.dim is not None else 0
    return LookupDemand(setting_of(task), size, positions, questions, int(ids.max()) + 1, marked, grid_bits(task))


def worst_demand(
    size: Size, setting: Setting, *, positions: bool = False, grid_bits: int = TYPICAL_GRID_BITS
) -> LookupDemand:
    """The largest demand that a task of this size can have (its vectors within ``grid_bits``)."""
    tokens = min(size.examples * size.length, size.vocab * (size.length if positions else 1))
    questions, vectors = most_questions(size, setting, positions=positions), size.dim is not None
    marked = max(1, min(size.examples - 1, tokens)) if positions or vectors else 0
    return LookupDemand(setting, size, positions, questions, tokens, marked, grid_bits if vectors else 0)
