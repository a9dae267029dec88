"""The compiled inner loops of :mod:`.exact.limbs`, where their exactness is argued."""

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit

LIMB = 24
MASK = (1 << LIMB) - 1
UNRESOLVED = 1 << 13
"""Number of products below 2⁴⁹ that may be added up before carries are resolved: 2⁶² in all."""


@jit
def resolve(block: NDArray[np.int64]) -> None:
    """Carry, lowest limb first, so that all limbs but the highest are in [0, 2²⁴)."""
    for k in range(block.shape[0] - 1):
        for b in range(block.shape[1]):
            carry = block[k, b] >> LIMB
            block[k, b] -= carry << LIMB
            block[k + 1, b] += carry


@jit
def relu_(block: NDArray[np.int64]) -> None:
    """Zero every column whose value is negative."""
    top = block.shape[0] - 1
    for k in range(top + 1):
        for b in range(block.shape[1]):
            block[k, b] = block[k, b] if block[top, b] >= 0 else 0


@jit
def used_limbs(block: NDArray[np.int64]) -> int:
    """Return the number of limbs needed, at least one, after joining a top limb of 0 or −1 everywhere to the next.

    A limb never becomes −2²⁴ by this: |value| < 2^(24·limbs) holds strictly, and :func:`shift_right` relies on it.
    """
    used: int = block.shape[0]
    while used > 1:
        top, below = block[used - 1], block[used - 2]
        for b in range(top.shape[0]):
            if (top[b] != 0 and top[b] != -1) or (top[b] == -1 and below[b] == 0):
                return used
        for b in range(top.shape[0]):
            below[b] += top[b] << LIMB
        used -= 1
    return used


@jit
def trailing_zeros(limbs: NDArray[np.int32], start: NDArray[np.int64], length: NDArray[np.int64], limit: int) -> int:
    """Return the largest r ≤ limit such that 2^r divides every entry of the batch."""
    result = limit
    for unit in range(len(start)):
        for k in range(length[unit]):
            if k * LIMB >= result:
                break
            union = np.int32(0)
            row = limbs[start[unit] + k]
            for b in range(row.shape[0]):
                union |= row[b]
            if union != 0:
                zeros = 0
                while (union >> zeros) & 1 == 0:
                    zeros += 1
                result = min(result, k * LIMB + zeros)
                break
    return result


@jit
def shift_right(limbs: NDArray[np.int32], start: NDArray[np.int64], length: NDArray[np.int64], places: int) -> None:
    """Divide every entry by 2^places (it is divisible), in place; lengths shrink accordingly.

    An entry of l limbs that is not 0 is not divisible by 2^(24·l), so there is always a limb left for it.
    """
    whole, part = places // LIMB, places % LIMB
    for unit in range(len(start)):
        first, count = start[unit], length[unit]
        for k in range(count):
            source = k + whole
            for b in range(limbs.shape[1]):
                value = np.int64(0)
                if source < count - 1:
                    value = (np.int64(limbs[first + source, b]) >> part) | (
                        (np.int64(limbs[first + source + 1, b]) << (LIMB - part)) & MASK
                    )
                elif source == count - 1:
                    value = np.int64(limbs[first + source, b]) >> part
                limbs[first + k, b] = value
        length[unit] = max(1, count - whole)


@jit
def accumulate(block, terms, column, digit_pointer, digit, limbs, start, length):  # type: ignore[no-untyped-def]
    """Add W_ij · z_j for the weights ``terms[0]`` to ``terms[1]`` of one row to ``block``."""
    unresolved = 2
    for entry in range(terms[0], terms[1]):
        j = column[entry]
        places, count = digit_pointer[entry + 1] - digit_pointer[entry], length[j]
        unresolved += min(places, count)
        if unresolved >= UNRESOLVED:
            resolve(block)
            unresolved = 2 + min(places, count)
        for p in range(places):
            # A term alone may add more products to a limb than it holds; each place adds one.
            if p >= UNRESOLVED // 2 and p % (UNRESOLVED // 2) == 0:
                resolve(block)
            factor = np.int64(digit[digit_pointer[entry] + p])
            if factor == 0:
                continue
            for k in range(count):
                source = limbs[start[j] + k]
                target = block[p + k]
                for b in range(source.shape[0]):
                    target[b] += factor * source[b]


@jit
def limbs_needed(row, outs, row_pointer, column, weight_bits, bias_bits, length, exponent):  # type: ignore[no-untyped-def]
    """Bound the limbs of a sum by its largest term times its number of terms, for ``outs`` rows from ``row`` on."""
    bounds = np.empty(outs, dtype=np.int64)
    for i in range(outs):
        largest = bias_bits[row + i] + exponent if bias_bits[row + i] else 0
        for entry in range(row_pointer[row + i], row_pointer[row + i + 1]):
            largest = max(largest, weight_bits[entry] + LIMB * length[column[entry]])
        terms = row_pointer[row + i + 1] - row_pointer[row + i] + 1
        while terms > 0:
            terms >>= 1
            largest += 1
        bounds[i] = largest // LIMB + 2
    return bounds


@jit
def run(  # type: ignore[no-untyped-def]
    outs, relu, shift, row_pointer, column,
    weight_bits, weight_pointer, weight_digit,
    bias_bits, bias_pointer, bias_digit,
    limbs, start, length, exponent,
):  # fmt: skip
    """Run all layers of a program on one batch; return limbs, start, length and exponent of the result."""
    batch = limbs.shape[1]
    row = 0
    for layer in range(len(outs)):
        bounds = limbs_needed(row, outs[layer], row_pointer, column, weight_bits, bias_bits, length, exponent)
        new_limbs = np.empty((bounds.sum(), batch), dtype=np.int32)
        new_start = np.empty(outs[layer], dtype=np.int64)
        new_length = np.empty(outs[layer], dtype=np.int64)
        filled = 0
        for i in range(outs[layer]):
            block = np.zeros((bounds[i], batch), dtype=np.int64)
            for p in range(bias_pointer[row + i], bias_pointer[row + i + 1]):
                # The bias is an integer; numerators are integers times 2^exponent.
                k = p - bias_pointer[row + i] + exponent // LIMB
                for b in range(batch):
                    block[k, b] += np.int64(bias_digit[p]) << (exponent % LIMB)
            accumulate(
                block, (row_pointer[row + i], row_pointer[row + i + 1]), column, weight_pointer, weight_digit,
                limbs, start, length,
            )  # fmt: skip
            resolve(block)
            if relu[row + i]:
                relu_(block)
            used = used_limbs(block)
            new_start[i], new_length[i] = filled, used
            for k in range(used):
                for b in range(batch):
                    new_limbs[filled + k, b] = block[k, b]
            filled += used
        row += outs[layer]
        limbs, start, length = new_limbs, new_start, new_length
        exponent += shift[layer]
        if exponent > 0:
            zeros = trailing_zeros(limbs, start, length, exponent)
            if zeros > 0:
                shift_right(limbs, start, length, zeros)
                exponent -= zeros
    return limbs, start, length, exponent
