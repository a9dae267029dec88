"""Check arrays from users, and copy them into read-only memory of our own."""

import operator
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files.memory import allocate

Ids = npt.NDArray[np.int64]
"""Ids, and other numbers that are counted or hashed in machine integers."""
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

LARGEST_COUNT = 2**63 - 1
EXACT_IN_FLOAT64 = 2**53
AXES = {"N": "example", "n": "token", "d": "dimension", "C": "label"}

Shape = tuple[int | str, ...]
"""An expected shape: sizes, and letters of :data:`AXES` for axes of any positive size."""

_PORTION = 1 << 20
_Array = TypeVar("_Array", bound=npt.NDArray[Any])


class BadEntry(BadInput):
    """Bad input at one entry of an array. ``name`` and ``example`` tell readers of files which line is wrong.

    >>> str(BadEntry("tokens", (3, 2), "is -1; expected 0 or more"))
    'tokens[3, 2] is -1; expected 0 or more'
    """

    def __init__(self, name: str, index: tuple[int, ...], problem: str) -> None:
        self.name, self.example = name, index[0]
        super().__init__(f"{name}[{', '.join(map(str, index))}] {problem}")


def check_count(name: str, value: object) -> int:
    """Return ``value`` as an int of at least one.

    >>> check_count("vocab", 0)
    Traceback (most recent call last):
    byheart.errors.BadInput: vocab is 0; expected at least 1
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # anything may come in; what is no integer raises
    except TypeError:
        raise BadInput(f"{name} is {value!r}; expected an integer") from None
    if isinstance(value, bool):
        raise BadInput(f"{name} is {value!r}; expected an integer")
    if number < 1:
        raise BadInput(f"{name} is {number}; expected at least 1")
    if number > LARGEST_COUNT:
        raise BadInput(f"{name} is {number}; expected at most {LARGEST_COUNT}")
    return number


def as_integers(name: str, values: npt.ArrayLike, shape: Shape) -> Ids:
    """Return ``values`` as a read-only int64 array of the given shape.

    >>> as_integers("labels", [[0, 1]], shape=(1, "n"))
    array([[0, 1]])
    """
    array = _shaped(name, values, shape)
    if array.dtype.kind not in "iu":
        raise BadInput(f"{name} has dtype {array.dtype}; expected integers")
    if array.dtype.kind == "u":
        _refuse(name, array, array > LARGEST_COUNT, f"expected at most {LARGEST_COUNT}")
    if array.flags.writeable or not array.flags.owndata or not array.flags.c_contiguous or array.dtype != np.int64:
        array = array.astype(np.int64, order="C")
    return _read_only(array)


def as_unsigned(name: str, values: npt.ArrayLike, shape: Shape) -> Ids:
    """Return ids as :func:`as_integers` does, but keep unsigned ones as they are, without a copy."""
    array = np.asarray(values)
    if array.dtype.kind != "u":
        return as_integers(name, values, shape)
    array = _shaped(name, array, shape)
    return _read_only(array if array.flags.c_contiguous else copy_as(array, array.dtype))


def as_floats(name: str, values: npt.ArrayLike, shape: Shape) -> Floats:
    """Return ``values`` as a read-only float64 array of finite numbers, exactly, and without negative zeros.

    >>> as_floats("vectors", [[[1, -0.0]]], shape=("N", "n", "d"))
    array([[[1., 0.]]])
    """
    array = _shaped(name, values, shape)
    if array.dtype.kind in "iu":
        beyond = (array > EXACT_IN_FLOAT64) | (array < -EXACT_IN_FLOAT64)
        _refuse(name, array, beyond, "expected numbers that float64 holds exactly")
    elif array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise BadInput(f"{name} has dtype {array.dtype}; expected float64, or numbers that it holds exactly")
    _refuse(name, array, ~np.isfinite(array), "expected finite numbers")
    return _read_only(np.add(array, 0.0, dtype=np.float64, order="C"))  # -0.0 + 0.0 is 0.0; nothing else changes


def check_ids(name: str, ids: Ids, limit: object, limit_name: str) -> int:
    """Return the number of possible ids: ``limit``, or one more than the largest id. Refuse ids outside of it.

    >>> check_ids("labels", np.array([0, 4, 2]), None, "label_count")
    5
    >>> check_ids("labels", np.array([0, 4, 2]), 3, "label_count")
    Traceback (most recent call last):
    byheart.tasks.arrays.BadEntry: labels[1] is 4; expected 0 to 2 (label_count = 3)
    """
    if limit is None:
        if ids.min() < 0:
            _refuse(name, ids, ids < 0, "expected 0 or more")
        limit = min(int(ids.max()) + 1, LARGEST_COUNT)
    bound = check_count(limit_name, limit)
    if ids.min() < 0 or ids.max() >= bound:
        _refuse(name, ids, (ids < 0) | (ids >= bound), f"expected 0 to {bound - 1} ({limit_name} = {bound})")
    return bound


def as_distributions(name: str, values: npt.ArrayLike, shape: Shape) -> Floats:
    """Return ``values`` as float64 [N, C] whose rows are probability distributions, up to 1e-9.

    >>> as_distributions("probabilities", [[0.5, 0.25]], shape=(1, "C"))
    Traceback (most recent call last):
    byheart.tasks.arrays.BadEntry: probabilities[0] sums to 0.75; expected 1 (within 1e-9)
    """
    array = as_floats(name, values, shape)
    _refuse(name, array, array < 0, "expected 0 or more")
    sums = array.sum(axis=1)
    wrong = np.abs(sums - 1) > 1e-9
    if wrong.any():
        row = int(wrong.argmax())
        raise BadEntry(name, (row,), f"sums to {sums[row].item()}; expected 1 (within 1e-9)")
    return array


def as_distribution(name: str, values: npt.ArrayLike, size: int) -> Floats:
    """Return ``values`` as one probability distribution, float64 [``size``], up to 1e-9.

    >>> as_distribution("weights", [0.5, 0.75], 2)
    Traceback (most recent call last):
    byheart.errors.BadInput: weights sum to 1.25; expected 1 (within 1e-9)
    """
    array = as_floats(name, values, (size,))
    _refuse(name, array, array < 0, "expected 0 or more")
    if abs(array.sum() - 1) > 1e-9:
        raise BadInput(f"{name} sum to {array.sum().item()}; expected 1 (within 1e-9)")
    return array


def _shaped(name: str, values: npt.ArrayLike, shape: Shape) -> npt.NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise BadInput(f"{name} is ragged; expected rows of equal length") from None
    fits = array.ndim == len(shape) and all(
        isinstance(expected, str) or expected == size for expected, size in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise BadInput(f"{name} has shape {array.shape}; expected [{', '.join(map(str, shape))}]")
    if array.size == 0:
        needed = " and ".join(f"one {AXES[letter]}" for letter in shape if isinstance(letter, str))
        raise BadInput(f"{name} has shape {array.shape}; expected at least {needed}")
    return array


def _refuse(name: str, array: npt.NDArray[Any], bad: npt.NDArray[np.bool_], expected: str) -> None:
    if bad.any():
        index = np.unravel_index(int(bad.argmax()), bad.shape)
        raise BadEntry(name, tuple(map(int, index)), f"is {array[index].item()}; {expected}")


def _read_only(array: _Array) -> _Array:
    array.flags.writeable = False
    return array


def narrow(array: npt.NDArray[Any], most: int) -> npt.NDArray[Any]:
    """Return integers from 0 to ``most`` in the narrowest unsigned type; the same array if it has that type.

    >>> narrow(np.array([3, 255]), 255).dtype, narrow(np.array([3]), 256).dtype
    (dtype('uint8'), dtype('uint16'))
    """
    return copy_as(array, dtype) if (dtype := np.min_scalar_type(most)) != array.dtype else array


def copy_as(array: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Copy an array [N, …] to another type, in memory or on the disk."""
    copy, first = allocate(array.shape, dtype), 0
    for part in chunks(array):
        copy[first : first + len(part)] = part
        first += len(part)
    return copy


def chunks(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield an array [N, …] in parts of about a million numbers, so that temporary arrays stay small."""
    step = max(1, _PORTION // max(1, array[:1].size))
    return (array[first : first + step] for first in range(0, len(array), step))


def take(array: npt.NDArray[Any], index: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ``array[index]`` for an index [K] of any width. numpy would make the whole index 64 bits wide.

    >>> take(np.array([5, 6, 7], np.uint8), np.array([2, 0], np.int32))
    array([7, 5], dtype=uint8)
    """
    values, first = allocate(len(index), array.dtype), 0
    for part in chunks(index):
        values[first : first + len(part)] = array[part]
        first += len(part)
    return values


def count_ids(ids: npt.NDArray[Any], least: int = 0) -> Ids:
    """Count how often each id occurs: int64, at least ``least`` counts.

    >>> count_ids(np.array([2, 0, 2], np.uint8), 4)
    array([1, 0, 2, 0])
    """
    times = np.zeros(max(least, int(ids.max()) + 1 if len(ids) else 0), np.int64)
    for part in chunks(ids):
        times += np.bincount(part, minlength=len(times))
    return times
