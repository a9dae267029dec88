"""Compiled loops for drawing: the digit that every question reads, and the sums of its codes.

This module imports numba; import it where it is needed.
"""

import numpy as np

from byheart.compiled import jit

_BLOCK = 512
"""Number of questions that pass a stage together, so that one instruction handles several of them."""


@jit
def shifts(sums, offset, bits, folds, thresholds, steps, shift, readers, limit):  # type: ignore[no-untyped-def]
    """Write the network's shifts, in digits, into ``shift`` [K], and each digit's number of questions into ``readers``.

    The loop computes the layers on machine integers; the folds, which halve the range ``folds`` times, are one triangle
    wave. It stops and returns False at the first digit that more than ``limit`` questions read.
    """
    half = 1 << (bits - folds)
    level, total = np.empty(_BLOCK, dtype=np.int64), np.empty(_BLOCK, dtype=np.int64)
    for begin in range(0, len(sums), _BLOCK):
        count = min(_BLOCK, len(sums) - begin)
        for i in range(count):
            folded = (sums[begin + i] + offset) & (2 * half - 1)
            level[i], total[i] = min(folded, 2 * half - 1 - folded), 0
        for stage in range(len(thresholds)):
            # No branch: its direction would be as good as random.
            threshold, step = thresholds[stage], steps[stage]
            for i in range(count):
                total[i] += step if level[i] >= threshold else 0
                level[i] = 2 * threshold - 1 - level[i] if level[i] >= threshold else level[i]
        for i in range(count):
            shift[begin + i] = total[i]
            readers[total[i]] += 1
            if readers[total[i]] > limit:
                return False
    return True


@jit
def code_sums(ids, codes):  # type: ignore[no-untyped-def]
    """Sum the codes of the tokens of every sequence [N, D]."""
    result = np.zeros((ids.shape[0], codes.shape[1]), dtype=np.int64)
    for sequence in range(ids.shape[0]):
        for position in range(ids.shape[1]):
            token = ids[sequence, position]
            for column in range(codes.shape[1]):
                result[sequence, column] += codes[token, column]
    return result
