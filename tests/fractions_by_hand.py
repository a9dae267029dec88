"""Linear algebra in fractions, as a textbook has it: what the package's own is held against."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np


def rank_by_fractions(matrix: np.ndarray | Sequence[Sequence[float]]) -> int:
    """Gauss elimination over the rationals."""
    numbers = matrix.tolist() if isinstance(matrix, np.ndarray) else matrix  # numpy's integers would overflow
    rows, rank = [[Fraction(x) for x in row] for row in numbers], 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank
