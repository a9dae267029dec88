"""The demand of a task on a network, counted before anything is built: tokens, questions, and the hardest of a size.

**Few tokens tell all sequences apart** (Bondy's theorem). N different multisets of tokens, as count vectors over K
tokens, stay different on some ≤ N − 1 coordinates. The proof is a program (:func:`distinguishing_tokens`).

1. Start with all sequences in one class, and go through the tokens. Keep a token if and only if its counts differ
   within some class, and split the classes by these counts.
2. Every kept token makes at least one more class, and there are at most N classes, so at most N − 1 tokens are kept.
3. A token that was not kept is constant on the classes of its turn, so it is constant on all finer classes.

Tokens that occur in about half of the sequences come first: on random data a few dozen suffice.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from byheart.constructions.gadgets import vectors
from byheart.constructions.gadgets.vectors import VectorFront
from byheart.sizes import Size
from byheart.tasks import NextToken, SeqToSeq, Task, token_ids
from byheart.tasks.arrays import Ids
from byheart.tasks.distinct import TokenCounts, count_tokens, distinct

Setting: TypeAlias = Literal["next-token", "seq-to-seq"]

TYPICAL_GRID_BITS = 75
"""Number of bits of a coordinate on the common grid of standard-normal float64 data."""


@dataclass(frozen=True)
class LookupDemand:
    """The numbers that determine the size of the network.

    ``questions`` is the number of different inputs of the label stage: N, or for seq-to-seq tasks the number of
    different tokens summed over the sequences. A *token* is an id, a vector, or with ``positions`` the pair of either
    and its position. ``tokens`` is the number of different tokens, ``marked`` the number of those that need a code of
    their own. ``grid_bits`` is the number of bits of a vector's coordinates. It does not matter if a ``front`` reads
    all vectors near a token alike.
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
        """True if a token-wise network computes the codes; plain token ids look them up in the embedding."""
        return self.positions or self.size.dim is not None


def setting_of(task: Task) -> Setting:
    """Return the setting of the theory that a labelled task belongs to."""
    return "seq-to-seq" if isinstance(task, SeqToSeq) else "next-token"


def positioned_ids(task: Task, positions: bool) -> Ids:
    """Return tokens [N, n] as numbers from 0; with ``positions`` number the pairs of token and position."""
    ids = token_ids(task)
    if not positions:
        return ids
    n = ids.shape[1]
    return np.unique(ids * n + np.arange(n), return_inverse=True)[1].reshape(ids.shape).astype(np.int64)


def grid_bits(task: Task) -> int:
    """Return the number of bits of the vectors' coordinates on their common grid; 0 for token ids."""
    return 0 if task.vectors is None else vectors.from_floats(task.vectors.reshape(-1, task.vectors.shape[2])).bits


def most_questions(size: Size, setting: Setting, *, positions: bool) -> int:
    """Return the largest number of different questions of a task of this size.

    With ``positions`` equal tokens at different places are different questions.

    >>> size = Size(examples=10, length=8, labels=2, vocab=5)
    >>> [most_questions(size, "seq-to-seq", positions=positions) for positions in (False, True)]
    [50, 80]
    """
    different = size.length if positions else min(size.length, size.vocab)
    return size.examples * (different if setting == "seq-to-seq" else 1)


def demand_of(task: Task, *, positions: bool) -> LookupDemand:
    """Return the demand of ``task``."""
    size, ids = task.size, positioned_ids(task, positions)
    questions = len(count_tokens(ids)) if isinstance(task, SeqToSeq) else size.examples
    marked = len(distinguishing_tokens(ids)) if positions or size.dim is not None else 0
    return LookupDemand(setting_of(task), size, positions, questions, int(ids.max()) + 1, marked, grid_bits(task))


def worst_demand(
    size: Size, setting: Setting, *, positions: bool = False, grid_bits: int = TYPICAL_GRID_BITS
) -> LookupDemand:
    """Return the largest demand of a task of ``size``, with vectors of ``grid_bits`` bits."""
    tokens = min(size.examples * size.length, size.vocab * (size.length if positions else 1))
    questions, vectors = most_questions(size, setting, positions=positions), size.dim is not None
    marked = max(1, min(size.examples - 1, tokens)) if positions or vectors else 0
    return LookupDemand(setting, size, positions, questions, tokens, marked, grid_bits if vectors else 0)


def distinguishing_tokens(ids: Ids) -> Ids:
    """Return tokens whose counts tell apart all rows of ``ids`` [N, n] that differ as multisets.

    There are at most N − 1, and at least one.

    >>> distinguishing_tokens(np.array([[0, 0, 1], [0, 1, 1], [2, 0, 1]])).tolist()
    [0, 2]
    """
    N, n = ids.shape
    pairs = count_tokens(ids)
    token, sequence, count = pairs.token, pairs.sequence, pairs.count
    # Sort the occurrences by token, with the tokens that split best first.
    frequency = np.bincount(token)
    rank = np.lexsort((np.arange(len(frequency)), -np.minimum(frequency, N - frequency)))
    place = np.empty_like(rank)
    place[rank] = np.arange(len(rank))
    order = np.lexsort((sequence, place[token]))
    bounds = np.concatenate([[0], np.cumsum(frequency[rank])])
    kept = _refine(sequence[order], count[order], bounds, N, n)
    return np.sort(rank[kept]) if len(kept) else rank[:1]


def _refine(sequence: Ids, multiplicity: Ids, bounds: Ids, N: int, n: int) -> Ids:
    """Return the indices of the kept tokens; token i has the occurrences bounds[i] to bounds[i + 1]."""
    label = np.zeros(N, dtype=np.int64)
    size = np.zeros(N, dtype=np.int64)
    size[0], classes = N, 1
    kept = []
    for i in range(len(bounds) - 1):
        if classes == N:
            break
        rows = sequence[bounds[i] : bounds[i + 1]]
        group = label[rows] * (n + 1) + multiplicity[bounds[i] : bounds[i + 1]]
        parts, inverse, counts = np.unique(group, return_inverse=True, return_counts=True)
        parent = parts // (n + 1)
        # A part that is its whole class splits nothing. If the parts use up a class, one of them keeps its label.
        covered = np.bincount(parent, weights=counts, minlength=1)[parent].astype(np.int64)
        last = np.append(parent[1:] != parent[:-1], True)
        fresh = ~(last & (covered == size[parent]))
        if not fresh.any():
            continue
        kept.append(i)
        names = np.where(fresh, classes + np.cumsum(fresh) - 1, parent)
        np.subtract.at(size, parent[fresh], counts[fresh])
        size[names[fresh]] = counts[fresh]
        classes += int(fresh.sum())
        label[rows] = names[inverse]
    return np.array(kept, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class TaskQuestions:
    """K questions of a task with T different tokens (with positions: pairs of token and position), numbered from 0.

    ``ids`` [N, n] are the task's tokens, and ``first`` [T] is the place of each token's first occurrence. ``token``,
    ``sequence``, ``labels`` and ``places``, all [K], belong to the questions. A place is n · sequence + position.
    """

    task: NextToken | SeqToSeq
    ids: Ids
    first: Ids
    token: Ids
    sequence: Ids
    labels: Ids
    places: Ids

    def begin(self, count: int) -> "TaskQuestions":
        """Return the first ``count`` questions and their sequences; questions are in the order of the sequences."""
        sequences = int(self.sequence[:count].max(initial=-1)) + 1
        asked = (self.token[:count], self.sequence[:count], self.labels[:count], self.places[:count])
        return TaskQuestions(self.task, self.ids[:sequences], self.first, *asked)


def collect_questions(task: NextToken | SeqToSeq, *, positions: bool) -> TaskQuestions:
    """Collect a task's questions: each sequence's last token, or, in seq-to-seq, each sequence's different tokens.

    >>> asked = collect_questions(SeqToSeq(tokens=[[5, 2, 5]], labels=[[1, 0, 1]]), positions=False)
    >>> asked.token.tolist(), asked.places.tolist(), asked.labels.tolist()
    ([0, 1], [0, 1], [1, 0])
    """
    ids = positioned_ids(task, positions)
    N, n = ids.shape
    first = _first(ids.ravel())
    if isinstance(task, NextToken):
        return TaskQuestions(task, ids, first, ids[:, -1], np.arange(N), task.labels, np.arange(n - 1, N * n, n))
    places = np.unique(ids + len(first) * np.arange(N)[:, None], return_index=True)[1]
    return TaskQuestions(task, ids, first, ids.ravel()[places], places // n, task.labels.ravel()[places], places)


def _first(ids: Ids) -> Ids:
    """Return the place of the first occurrence of each of the numbers 0, 1, …."""
    places = distinct(ids[:, None]).first
    first = np.empty_like(places)
    first[ids[places]] = places
    return first


def select_keys(keys: Ids, labels: Ids) -> Ids | None:
    """Return the indices of the different keys, or None if one key has two labels."""
    order = np.lexsort((labels, keys))
    same = keys[order][1:] == keys[order][:-1]
    if (same & (labels[order][1:] != labels[order][:-1])).any():
        return None
    return np.asarray(order[np.append(True, ~same)], np.int64)


def pad_keys(keys: Ids, labels: Ids, count: int) -> tuple[Ids, Ids]:
    """Add unused keys with label 0 until there are ``count``, as planned: questions with one label may share a key."""
    missing = count - len(keys)
    spare = np.setdiff1d(np.arange(count + 1), keys)[:missing]
    return np.concatenate([keys, spare]), np.concatenate([labels, np.zeros(missing, dtype=np.int64)])


@dataclass(frozen=True, eq=False)
class Different:
    """The K different tokens of a task, and the tokens that must not be confused."""

    ids: Ids
    """Number of the token at each place, int64 [N, n]."""
    first: Ids
    """Place of each token's first occurrence, int64 [K]; a place is n · sequence + position."""
    marked: Ids
    """Numbers of the tokens that need a code of their own."""
    pairs: TokenCounts | None
    """Different (sequence, token) pairs, which must stay different; None for next-token tasks."""

    def apart(self, hashes: Ids) -> bool:
        """Return True if ``hashes`` [K] tell the tokens apart.

        No other token may have a marked token's hash, and with ``pairs`` no sequence may have two tokens of one hash.
        """
        _, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        if (counts[inverse[self.marked]] > 1).any():
            return False
        return self.pairs is None or len(count_tokens(hashes[self.pairs.arranged])) == len(self.pairs)


def different_tokens(task: NextToken | SeqToSeq, *, positions: bool) -> Different:
    """Return the different tokens of ``task``; with ``positions``, its pairs of token and position."""
    ids = positioned_ids(task, positions)
    pairs = count_tokens(ids) if isinstance(task, SeqToSeq) else None
    return Different(ids, np.unique(ids, return_index=True)[1], distinguishing_tokens(ids), pairs)
