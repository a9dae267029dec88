"""Big integers by the batch: one number is a column of 24-bit limbs, one layer is a few passes over whole columns.

A batch of B vectors is a matrix ``limbs[row, b]`` of int32. Unit j of the vectors owns the rows ``start[j]`` to
``start[j] + length[j]``, lowest limb first; all its limbs are in [0, 2²⁴) except the highest, which carries the sign
(and stays above −2²⁴, so that a number of l limbs is smaller than 2^(24·l)).
The value is Σ_k limb_k 2^(24k), divided by ``divisor · 2^exponent``, which all entries of a batch share.

**Why the result is exact.** A product of a weight digit and a limb is below 2⁴⁹ in absolute value and is added up in
int64, with carries resolved before 2¹³ of them have been added, so no accumulator overflows. How many limbs a result
needs is computed from the *actual* lengths of the inputs: |W z + b| < (terms + 1) · 2^(largest term's bits). Rows are
then trimmed to the limbs that are really used, so that numbers that shrink get cheaper. Divisions are only ever by
powers of two and only carried out when every entry is divisible; otherwise the exponent grows.

The inner loops run along the batch and are compiled by numba (vectorised by LLVM): no library call per entry.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from byheart.networks.exact.exact_layers import Affine, Block, Integers, identity, integers, linear
from byheart.networks.exact.kernels import LIMB, MASK, resolve, run, shift_right, trailing_zeros, used_limbs

_PLACES = np.array([1, 1 << 8, 1 << 16], dtype=np.int32)
"""Place values of the three octets of a limb."""


@dataclass(frozen=True, eq=False)
class Limbs:
    """A batch of exact vectors; see the module's docstring for the layout."""

    limbs: NDArray[np.int32]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    exponent: int = 0
    divisor: int = 1

    @property
    def width(self) -> int:
        """Number of units of a vector."""
        return len(self.start)

    @property
    def batch(self) -> int:
        """Number B of vectors in the batch."""
        return int(self.limbs.shape[1])

    def columns(self, index: NDArray[np.int64] | slice) -> "Limbs":
        """Return the vectors at ``index``, in that order."""
        return Limbs(np.ascontiguousarray(self.limbs[:, index]), self.start, self.length, self.exponent, self.divisor)

    def numerators(self) -> Integers:
        """Return the exact integers [B, width]; divided by ``divisor · 2^exponent`` they are the values."""
        result = np.empty((self.batch, self.width), dtype=object)
        for unit in range(self.width):
            result[:, unit] = self.numbers(unit)
        return result

    def numbers(self, unit: int) -> list[int]:
        """Return the numerators of one unit, [B]."""
        start, length = self.start[unit], self.length[unit]
        return _join(self.limbs[start : start + length])


def _join(limbs: NDArray[np.int32]) -> list[int]:
    """Return columns of limbs [L, B] as Python ints."""
    if len(limbs) <= 2:
        weights = np.int64(1) << (LIMB * np.arange(len(limbs), dtype=np.int64))
        return (weights @ limbs.astype(np.int64)).tolist() if len(limbs) else [0] * limbs.shape[1]
    low, top = limbs[:-1], limbs[-1]
    octets = np.ascontiguousarray(low.T).astype("<u4").view(np.uint8).reshape(low.shape[1], -1, 4)[:, :, :3]
    blocks = np.ascontiguousarray(octets).reshape(low.shape[1], -1)
    shift = LIMB * len(low)
    return [int.from_bytes(b.tobytes(), "little") + (int(t) << shift) for b, t in zip(blocks, top, strict=True)]


def digits(value: int) -> NDArray[np.int32]:
    """Return the base-2²⁴ digits of |value|, lowest first, each with the sign of ``value``.

    >>> digits(-(1 + (5 << 24))).tolist()
    [-1, -5]
    """
    magnitude = abs(value)
    count = -(-magnitude.bit_length() // LIMB)
    result = np.frombuffer(magnitude.to_bytes(3 * count, "little"), dtype=np.uint8).reshape(count, 3) @ _PLACES
    return (-result if value < 0 else result).astype(np.int32)


def from_integers(values: Integers) -> Limbs:
    """Return exact integers [B, width] as a batch.

    >>> from_integers(integers([[1, -(2**60)], [7, 3]])).numerators().tolist()
    [[1, -1152921504606846976], [7, 3]]
    """
    rows = [_split(values[:, unit].tolist()) for unit in range(values.shape[1])]
    length = np.array([len(limbs) for limbs in rows], dtype=np.int64)
    return Limbs(np.concatenate(rows), np.cumsum(length) - length, length)


def from_numbers(numerators: list[int], exponent: int, divisor: int) -> Limbs:
    """Return a batch of vectors of one unit from their numerators over ``divisor · 2^exponent``."""
    limbs = _split(numerators)
    return Limbs(limbs, np.zeros(1, dtype=np.int64), np.array([len(limbs)], dtype=np.int64), exponent, divisor)


def _split(values: list[int]) -> NDArray[np.int32]:
    """Return Python ints as columns of limbs [L, B]."""
    length = max((value.bit_length() for value in values), default=0) // LIMB + 1
    octets = b"".join(value.to_bytes(3 * length, "little", signed=True) for value in values)
    limbs = np.frombuffer(octets, dtype=np.uint8).reshape(len(values), length, 3) @ _PLACES
    limbs[:, -1] -= (limbs[:, -1] >> (LIMB - 1)) << LIMB
    return np.ascontiguousarray(limbs.T)


def from_blocks(blocks: list[NDArray[np.int64]], exponent: int, divisor: int) -> Limbs:
    """Return a batch from the carried limbs [·, B] of its units: trimmed, and halved while all numerators are even."""
    used = [block[: used_limbs(block)].astype(np.int32) for block in blocks]
    length = np.array([len(limbs) for limbs in used], dtype=np.int64)
    limbs, start = np.concatenate(used), np.cumsum(length) - length
    zeros = trailing_zeros(limbs, start, length, exponent)
    if zeros > 0:
        shift_right(limbs, start, length, zeros)
    return Limbs(limbs, start, length, exponent - zeros, divisor)


def from_int64(values: NDArray[np.int64]) -> Limbs:
    """Return machine integers [B, width] as a batch, without a Python loop over B."""
    batch, width = values.shape
    block = np.empty((width, 3, batch), dtype=np.int32)
    for limb in range(3):
        block[:, limb] = (values.T >> (LIMB * limb)) & (MASK if limb < 2 else -1)
    starts = 3 * np.arange(width, dtype=np.int64)
    return Limbs(block.reshape(3 * width, batch), starts, np.full(width, 3, dtype=np.int64))


def from_floats(values: NDArray[np.float64]) -> Limbs:
    """Return floats [B, width] as a batch of dyadic rationals.

    >>> batch = from_floats(np.array([[0.75, -2.0]]))
    >>> batch.numerators().tolist(), batch.exponent
    ([[3, -8]], 2)
    """
    fraction, power = np.frexp(values.T)
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    nonzero = mantissa != 0
    low_bit = np.where(nonzero, mantissa & -mantissa, 1)
    trailing = np.frexp(low_bit.astype(np.float64))[1].astype(np.int64) - 1
    mantissa >>= trailing
    place = power.astype(np.int64) - 53 + trailing
    finest = int(place[nonzero].min()) if nonzero.any() else 0
    # A grid coarser than the integers (all values multiples of 2) is still written over 2^0.
    finest = min(finest, 0)
    place = np.where(nonzero, place - finest, 0)
    width, batch = mantissa.shape
    length = int(place.max(initial=0)) // LIMB + 5
    block = np.zeros((width, length, batch), dtype=np.int64)
    sign, magnitude = np.sign(mantissa), np.abs(mantissa)
    rows, columns = np.ogrid[:width, :batch]
    for limb in range(3):
        digit = (magnitude >> (LIMB * limb)) & MASK
        block[rows, place // LIMB + limb, columns] += sign * (digit << (place % LIMB))
    for unit in range(width):
        resolve(block[unit])
    starts = length * np.arange(width, dtype=np.int64)
    limbs = block.astype(np.int32).reshape(width * length, batch)
    return Limbs(limbs, starts, np.full(width, length, dtype=np.int64), exponent=-finest)


def over(batch: Limbs, exponent: int, divisor: int) -> Limbs:
    """Return the same values over the larger denominator ``divisor · 2^exponent``."""
    factor = (divisor // batch.divisor) << (exponent - batch.exponent)
    if factor == 1:
        return batch
    numerators = Limbs(batch.limbs, batch.start, batch.length)
    scaled = LimbProgram((linear(identity(batch.width, factor)),))(numerators)
    return Limbs(scaled.limbs, scaled.start, scaled.length, exponent, divisor)


def stack(first: Limbs, second: Limbs) -> Limbs:
    """Return the units of both batches side by side, over one denominator."""
    exponent, divisor = max(first.exponent, second.exponent), math.lcm(first.divisor, second.divisor)
    first, second = over(first, exponent, divisor), over(second, exponent, divisor)
    return Limbs(
        np.concatenate([first.limbs, second.limbs]),
        np.concatenate([first.start, second.start + len(first.limbs)]),
        np.concatenate([first.length, second.length]),
        exponent,
        divisor,
    )


def concatenate(batches: list[Limbs]) -> Limbs:
    """Return the vectors of all batches in order, over one denominator."""
    exponent = max(batch.exponent for batch in batches)
    divisor = math.lcm(*(batch.divisor for batch in batches))
    batches = [over(batch, exponent, divisor) for batch in batches]
    length = np.max([batch.length for batch in batches], axis=0)
    start = np.cumsum(length) - length
    blocks = []
    for batch in batches:
        block = np.zeros((int(length.sum()), batch.batch), dtype=np.int64)
        for unit in range(batch.width):
            source = slice(batch.start[unit], batch.start[unit] + batch.length[unit])
            target = block[start[unit] : start[unit] + length[unit]]
            target[: batch.length[unit]] = batch.limbs[source]
            resolve(target)
        blocks.append(block.astype(np.int32))
    return Limbs(np.concatenate(blocks, axis=1), start, length, exponent, divisor)


def total(batch: Limbs, group: int) -> Limbs:
    """Return the sums of consecutive groups of ``group`` vectors: B vectors in, B / group vectors out."""
    length = batch.length + 2
    start = np.cumsum(length) - length
    block = np.zeros((int(length.sum()), batch.batch // group), dtype=np.int64)
    for unit in range(batch.width):
        source = batch.limbs[batch.start[unit] : batch.start[unit] + batch.length[unit]]
        target = block[start[unit] : start[unit] + length[unit]]
        target[: len(source)] = source.reshape(len(source), -1, group).sum(axis=2, dtype=np.int64)
        resolve(target)
    return Limbs(block.astype(np.int32), start, length, batch.exponent, batch.divisor)


def residual_steps(block: Block) -> list[Affine]:
    """Return Z ↦ Z + W_out relu(W_in Z + b_in) as two affine maps, with the stream beside the hidden units."""
    d_model = block.W_in.shape[1]
    W = np.concatenate([block.W_in, identity(d_model)])
    b = np.concatenate([block.b_in, np.zeros(d_model, dtype=object)])
    hidden = Affine(integers(W), integers(b), relu=False)
    return [hidden, linear(np.concatenate([block.W_out, identity(d_model)], axis=1))]


@dataclass(frozen=True, eq=False)
class LimbProgram:
    """A chain of affine maps with the weights' digits laid out for the kernel (non-zero entries only).

    ``rectified`` overrides the number of leading units that go through the ReLU, layer by layer.
    """

    layers: tuple[Affine, ...]
    divisor: int = 1
    rectified: tuple[int, ...] | None = None
    block: ClassVar = 256
    """Number of vectors per run, which fits into the processor's caches."""

    @cached_property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Arguments of ``run``: outs, relu by row, shift, row pointers, columns, layouts of weights and of biases."""
        row_pointer, column, weights, biases = [0], [], [], []
        for layer in self.layers:
            for row, bias in zip(layer.W, layer.b, strict=True):
                nonzero = np.flatnonzero(row)
                column.extend(nonzero.tolist())
                weights.extend(row[nonzero].tolist())
                row_pointer.append(len(column))
                # Values are kept multiplied by the divisor that the batch carries; so are the biases.
                biases.append(int(bias) * self.divisor)
        return (
            np.array([layer.W.shape[0] for layer in self.layers], dtype=np.int64),
            self._relu(),
            np.array([layer.shift for layer in self.layers], dtype=np.int64),
            np.array(row_pointer, dtype=np.int64),
            np.array(column, dtype=np.int64),
            *_layout(weights),
            *_layout(biases),
        )

    def _relu(self) -> NDArray[np.bool_]:
        """Return for every row of all layers whether it goes through the ReLU."""
        widths = [layer.W.shape[0] for layer in self.layers]
        counts = self.rectified or [w if layer.relu else 0 for w, layer in zip(widths, self.layers, strict=True)]
        return np.concatenate([np.arange(w) < count for w, count in zip(widths, counts, strict=True)])

    @property
    def largest_bits(self) -> int:
        """Number of bits of the largest weight; 0 if all are 0."""
        return max((abs(int(w)).bit_length() for layer in self.layers for w in layer.W.ravel()), default=0)

    def __call__(self, batch: Limbs) -> Limbs:
        """Run the chain on a batch."""
        arguments = (*self.arrays, batch.limbs, batch.start, batch.length, batch.exponent)
        limbs, start, length, exponent = run(*arguments)
        return Limbs(limbs, start, length, int(exponent), batch.divisor)


def _layout(values: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Return numbers of bits, digit pointers and concatenated digits of ``values``."""
    columns = [digits(value) for value in values]
    pointer = np.concatenate([[0], np.cumsum([len(c) for c in columns])]).astype(np.int64)
    flat = np.concatenate([*columns, np.zeros(0, dtype=np.int32)]).astype(np.int32)
    return np.array([abs(value).bit_length() for value in values], dtype=np.int64), pointer, flat
