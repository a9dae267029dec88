"""Sequences cut into stretches, each of which can be asked alone.

A stretch is read from as far before its first place as the network sees: what came earlier cannot change its answers.
Whoever asks it, and however long it is, the answers are the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.networks.transformer.evaluate import Ids

TOKENS, SEEN = 1 << 17, 8
"""Tokens of a stretch; at least so many times as the network sees, so that little is read twice."""


@dataclass(frozen=True)
class Stretch:
    """Some tokens, where sequences begin in them, and where to ask."""

    tokens: NDArray[np.integer]
    starts: Ids
    places: Ids


def stretches(tokens: NDArray[np.integer], starts: Ids, places: Ids, sees: int, size: int) -> Iterator[Stretch]:
    """All ``places``, which increase, in stretches of ``size`` tokens; each begins as early as the network sees.

    >>> tokens, starts, places = np.arange(10), np.array([0, 4, 10]), np.array([1, 5, 9])
    >>> for one in stretches(tokens, starts, places, sees=2, size=8):
    ...     print(one.tokens, one.starts, one.places)
    [0 1 2 3 4 5 6 7] [0 4 8] [1 5]
    [7 8 9] [0 3] [2]
    """
    for left in range(0, len(tokens), size):
        right = min(left + size, len(tokens))
        a, b = np.searchsorted(places, np.array((left, right), places.dtype))  # of its type: all would be copied
        if a == b:
            continue
        begin = int(starts[np.searchsorted(starts, left, side="right") - 1])
        begin = max(begin, left + 1 - sees)
        inside = starts[np.searchsorted(starts, begin, side="right") : np.searchsorted(starts, right)]
        yield Stretch(tokens[begin:right], np.concatenate([[begin], inside, [right]]) - begin, places[a:b] - begin)
