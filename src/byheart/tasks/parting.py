"""Find where texts with a common beginning part."""

from collections.abc import Iterator, Sequence
from functools import cmp_to_key
from itertools import pairwise, product
from typing import Any

import numpy.typing as npt

from byheart.errors import BadInput
from byheart.tasks.arrays import Ids

KEY_BYTES, MIN_KEY_TOKENS = 1 << 24, 256
"""Total bytes of the beginnings by which texts are sorted, and least number of tokens of each."""
PORTION = 1 << 16
"""Number of tokens that are compared at a time."""
Body = npt.NDArray[Any]


def partings(names: Sequence[str], tokens: Body, starts: Ids) -> Iterator[tuple[int, int]]:
    """Yield each text's number with each length after which another text, equal so far, goes on differently.

    In lexicographic order, texts with a common beginning are neighbours. The lengths at which a text parts from texts
    before it are a stack that grows and shrinks on the way. So are the lengths at which it parts from texts after it.
    """
    bodies = [tokens[start:stop] for start, stop in pairwise(starts.tolist())]
    order = _ordered(bodies)
    common = [common_length(bodies[a], bodies[b]) for (a, *_), (b, *_) in pairwise(order)]
    for (a, *_), (b, *_), length in zip(order, order[1:], common, strict=False):
        if length == len(bodies[a]):
            raise BadInput(
                f"{names[a]} is the beginning of {names[b]}, which goes on where it ends; "
                f"expected texts that part before one ends: leave {names[a]} out"
            )
    for texts_on_way, lengths in ((order[1:], common), (order[-2::-1], common[::-1])):
        parted: list[int] = []
        for numbers, length in zip(texts_on_way, lengths, strict=True):
            while parted and parted[-1] >= length:
                parted.pop()
            if length:
                parted.append(length)
            yield from product(numbers, parted)


def _ordered(bodies: Sequence[Body]) -> list[list[int]]:
    """Return the numbers of all texts in lexicographic order, those of equal texts together, increasing.

    Beginnings are sorted as bytes. Only texts with equal beginnings are compared with each other.
    """
    size = max(MIN_KEY_TOKENS, KEY_BYTES // (len(bodies) * bodies[0].itemsize))
    by_beginning: dict[bytes, list[int]] = {}
    for number, body in enumerate(bodies):
        key = body[:size].astype(body.dtype.newbyteorder(">"), copy=False).tobytes()
        by_beginning.setdefault(key, []).append(number)

    def compare(one: int, other: int) -> int:
        a, b = bodies[one], bodies[other]
        shared = common_length(a, b)
        if shared == min(len(a), len(b)):
            return len(a) - len(b)
        return -1 if a[shared] < b[shared] else 1

    ordered: list[list[int]] = []
    for _, numbers in sorted(by_beginning.items()):
        if len(bodies[numbers[0]]) < size:  # that was all of them
            ordered.append(numbers)
            continue
        before = None
        for number in sorted(numbers, key=cmp_to_key(compare)):
            if before is not None and not compare(before, number):
                ordered[-1].append(number)
            else:
                ordered.append([number])
            before = number
    return ordered


def common_length(one: Body, other: Body) -> int:
    """Return the number of tokens at the beginning in which two texts agree.

    >>> import numpy as np
    >>> common_length(np.array([1, 2, 3]), np.array([1, 2, 4, 5])), common_length(np.array([1]), np.array([1, 2]))
    (2, 1)
    """
    shorter = min(len(one), len(other))
    for first in range(0, shorter, PORTION):
        last = min(first + PORTION, shorter)
        differ = one[first:last] != other[first:last]
        if differ.any():
            return first + int(differ.argmax())
    return shorter
