"""Which token asks in which sequence: a labelled task as its different questions, one by one."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.gadgets.demand import positioned_ids
from byheart.tasks import NextToken, SeqToSeq


@dataclass(frozen=True, eq=False)
class Asking:
    """K questions of a task whose tokens are ``ids`` [N, n], numbers from 0; with positions, of tokens at places.

    ``token`` [K] asks, ``sequence`` [K] is where it stands, ``labels`` [K] is what it asks for.
    """

    task: NextToken | SeqToSeq
    ids: NDArray[np.int64]
    places: NDArray[np.int64]
    """Where a question is asked first: n · sequence + position [K]."""

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def token(self) -> NDArray[np.int64]:
        """Who asks."""
        token: NDArray[np.int64] = self.ids.ravel()[self.places]
        return token

    @cached_property
    def sequence(self) -> NDArray[np.int64]:
        """In which sequence."""
        sequence: NDArray[np.int64] = self.places // self.ids.shape[1]
        return sequence

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """For which label."""
        return self.task.labels.ravel()[self.sequence if isinstance(self.task, NextToken) else self.places]

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """For every different token, asking or not, the first place where it stands [T]."""
        return np.unique(self.ids, return_index=True)[1].astype(np.int64)


def asking(task: NextToken | SeqToSeq, *, positions: bool) -> Asking:
    """Next-token: every sequence asks at its last token. Seq-to-seq: every different token of every sequence asks.

    >>> asked = asking(SeqToSeq(tokens=[[5, 2, 5]], labels=[[1, 0, 1]]), positions=False)
    >>> asked.token.tolist(), asked.places.tolist(), asked.labels.tolist()
    ([0, 1], [1, 0], [0, 1])
    """
    ids = positioned_ids(task, positions)
    N, n = ids.shape
    if isinstance(task, NextToken):
        return Asking(task, ids, np.arange(n - 1, N * n, n))
    pairs = ids + (int(ids.max()) + 1) * np.arange(N)[:, None]
    return Asking(task, ids, np.unique(pairs, return_index=True)[1])
