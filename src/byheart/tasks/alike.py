"""Which places of sequences have equal contexts: compared exactly, by doubling.

As in the construction of suffix arrays, equal contexts get equal numbers, and the number of the last 2w tokens at a
place follows from the numbers of the last w tokens there and w places earlier.
"""

import numpy as np
import numpy.typing as npt

from byheart.tasks.checks import Ids
from byheart.tasks.tokenizers import Tokens

MISSING = -1
"""Stands for what lies before the start of a sequence."""


class Alike:
    """Which places of sequences have equal contexts, while the window grows.

    The number of a context is one of the places that have it. Contexts that have become unlike all others stay so, and
    are not looked at again.
    """

    def __init__(self, tokens: Tokens, starts: Ids) -> None:
        self.width = 1
        self._numbers = np.arange(len(tokens), dtype=np.int32)
        self._offsets = self._numbers - np.repeat(starts[:-1], np.diff(starts)).astype(np.int32)
        self._shared = np.arange(len(tokens))
        """int64: the places whose contexts others have too, increasing."""
        self._regroup(tokens.astype(np.int64))

    def widen(self, by: int) -> None:
        """Go on to contexts that are ``by`` tokens longer, ``by`` at most ``width``."""
        missing = self._offsets[self._shared] < by
        earlier = self._numbers[np.maximum(self._shared - by, 0)]
        earlier[missing] = MISSING
        # Numbers are below T < 2^31, so that pairs differ where their parts do, and fit into 63 bits.
        self._regroup(self._numbers[self._shared] * np.int64(len(self._numbers) + 1) + earlier)
        self.width += by

    def first_among(self, asked: Ids) -> Ids:
        """For each of the places ``asked``, increasing, the first of them that has its context: int64 [k]."""
        numbers = self._numbers[asked]
        first = np.empty_like(self._numbers)
        first[numbers[::-1]] = asked[::-1]  # of several that go to one entry, the last one stays
        return first[numbers].astype(np.int64)

    def conflict(self, kept: npt.NDArray[np.bool_], answers: Tokens) -> tuple[int, int] | None:
        """The first kept place with another answer than the first one that has its context, after that one."""
        asked = self._shared[kept[self._shared]]
        first = self.first_among(asked)
        wrong = answers[asked] != answers[first]
        if not wrong.any():
            return None
        second = int(wrong.argmax())
        return int(first[second]), int(asked[second])

    def _regroup(self, keys: Ids) -> None:
        """Number the shared places by ``keys``, one for each of them, equal where contexts are."""
        order = np.argsort(keys)
        keys = keys[order]
        new = np.ones(len(keys) + 1, np.bool_)
        new[1:-1] = keys[1:] != keys[:-1]
        arranged = self._shared[order]
        self._numbers[arranged] = arranged[new[:-1]][np.cumsum(new[:-1]) - 1]
        is_shared = np.zeros(len(self._numbers), np.bool_)
        is_shared[arranged[~(new[:-1] & new[1:])]] = True
        self._shared = np.flatnonzero(is_shared)
