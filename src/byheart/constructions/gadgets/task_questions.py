"""Which token asks in which sequence: a labelled task as its different questions, one by one."""

from dataclasses import dataclass

import numpy as np

from byheart.constructions.gadgets.demand import positioned_ids
from byheart.tasks import NextToken, SeqToSeq
from byheart.tasks.arrays import Ids
from byheart.tasks.distinct import distinct


@dataclass(frozen=True, eq=False)
class TaskQuestions:
    """K questions of a task with T different tokens (tokens at places, with positions), numbered from 0.

    ``ids`` [N, n] are its tokens, and ``first`` [T] is where each of them stands first. A question is the ``token`` [K]
    that asks, the ``sequence`` [K] where it stands, the label that it asks for [K], and the place where it does [K]. A
    place is n · sequence + position.
    """

    task: NextToken | SeqToSeq
    ids: Ids
    first: Ids
    token: Ids
    sequence: Ids
    labels: Ids
    places: Ids

    def begin(self, count: int) -> "TaskQuestions":
        """The first ``count`` questions, with the sequences that they stand in: questions come in their order."""
        sequences = int(self.sequence[:count].max(initial=-1)) + 1
        asked = (self.token[:count], self.sequence[:count], self.labels[:count], self.places[:count])
        return TaskQuestions(self.task, self.ids[:sequences], self.first, *asked)


def collect_questions(task: NextToken | SeqToSeq, *, positions: bool) -> TaskQuestions:
    """Next-token: every sequence asks at its last token. Seq-to-seq: every different token of every sequence asks.

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
    """Where each of the numbers 0, 1, … stands first."""
    places = distinct(ids[:, None]).first
    first = np.empty_like(places)
    first[ids[places]] = places
    return first


def select_keys(keys: Ids, labels: Ids) -> Ids | None:
    """Indices of the different keys, or None if one key asks for two labels."""
    order = np.lexsort((labels, keys))
    same = keys[order][1:] == keys[order][:-1]
    if (same & (labels[order][1:] != labels[order][:-1])).any():
        return None
    return np.asarray(order[np.append(True, ~same)], np.int64)


def pad_keys(keys: Ids, labels: Ids, count: int) -> tuple[Ids, Ids]:
    """As many keys as were planned for: where questions with one label share a key, unused keys get label 0."""
    missing = count - len(keys)
    spare = np.setdiff1d(np.arange(count + 1), keys)[:missing]
    return np.concatenate([keys, spare]), np.concatenate([labels, np.zeros(missing, dtype=np.int64)])
