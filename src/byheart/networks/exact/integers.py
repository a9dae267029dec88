"""Arrays of integers of any size: what the weights of an exact network are.

They are numpy object arrays of Python ints: indexable, printable, exact, and small (a network has thousands of weights,
not billions). Nothing computes with them entry by entry on data: evaluation turns them into limbs first.
"""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput

Integers: TypeAlias = NDArray[np.object_]
"""An object array whose every entry is a Python ``int``."""


def integers(values: Iterable[object] | NDArray[np.generic], shape: tuple[int, ...] | None = None) -> Integers:
    """Return ``values`` as exact integers, refusing anything that is not one.

    >>> integers([[1, 2**100], [0, -3]]).shape
    (2, 2)
    >>> integers([0.5])
    Traceback (most recent call last):
    byheart.errors.BadInput: entry 0 of an exact matrix is 0.5 (float); expected an integer
    """
    array = values.astype(object) if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    flat = array.ravel()
    for position, value in enumerate(flat):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise BadInput(
                f"entry {position} of an exact matrix is {value!r} ({type(value).__name__}); expected an integer"
            )
        flat[position] = int(value)
    result = flat.reshape(array.shape if shape is None else shape)
    result.flags.writeable = False
    return result
