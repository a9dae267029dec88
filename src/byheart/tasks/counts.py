"""How often every token occurs in every sequence: a sequence as the multiset that a network without positions sees."""

from dataclasses import dataclass

import numpy as np

from byheart.tasks.checks import Ids


@dataclass(frozen=True, eq=False)
class Counts:
    """The different (sequence, token) pairs, sequence by sequence, tokens increasing; computed on demand."""

    arranged: Ids
    """int64 [N, n]: every sequence sorted, so that equal tokens are next to each other."""
    begin: Ids
    """int64 [M]: where each pair's tokens begin, counted through all of ``arranged``."""

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def token(self) -> Ids:
        """int64 [M]: the token of each pair."""
        return self.arranged.ravel()[self.begin]

    @property
    def sequence(self) -> Ids:
        """int64 [M]: the sequence of each pair."""
        return self.begin // int(self.arranged.shape[1])

    @property
    def count(self) -> Ids:
        """int64 [M]: how often the token occurs in the sequence."""
        return np.diff(np.append(self.begin, self.arranged.size))


def counted(ids: Ids) -> Counts:
    """Count the tokens of every sequence of ``ids`` [N, n].

    >>> pairs = counted(np.array([[7, 5, 7], [5, 5, 5]]))
    >>> len(pairs), pairs.sequence.tolist(), pairs.token.tolist(), pairs.count.tolist()
    (3, [0, 0, 1], [5, 7, 5], [1, 2, 3])
    """
    arranged = np.sort(ids, axis=1)
    flat = arranged.ravel()
    begins = np.append(True, flat[1:] != flat[:-1])
    begins[:: ids.shape[1]] = True
    return Counts(arranged, np.flatnonzero(begins))
