"""The grid: cells of [0, 1]^d, the feed-forward layer that finds a token's cell, and all sequences of cells.

**Letters.** g cells per coordinate, ρ = 2^−k the ramps' share of a cell's width. Coordinate x has the cell number
g + ⌊g·x⌋, a positive integer from g to 2g − 1 (x = 1 belongs to the last cell).

**The layer.** With y = 2^k·g·x, two ReLUs at each inner boundary j = 1 … g − 1 make one step,

    relu(y − 2^k·j + 1) − relu(y − 2^k·j)  =  0 for g·x ≤ j − ρ,  1 for g·x ≥ j,  a ramp between.

The ramp lies *below* the boundary, so that the boundary itself, which ⌊·⌋ counts to the upper cell, is right. All
weights are integers. The layer is exact everywhere except on the ramps, which are a share below ρ of [0, 1] in every
coordinate; beyond [0, 1] it answers the first and the last cell.
"""

from itertools import combinations_with_replacement, product
from math import comb

import numpy as np

from byheart.networks.exact import Affine, FeedForward, integers
from byheart.tasks.arrays import Floats


def quantise(cells: int, dim: int, ramp_bits: int) -> FeedForward:
    """Return the layer that maps each of ``dim`` coordinates to its cell number, with ramps of 2^−``ramp_bits`` cells.

    >>> from byheart.networks.exact import ExactNetwork
    >>> from byheart.networks.exact.evaluate import evaluate
    >>> network = ExactNetwork((quantise(4, 1, 10),), inputs="vectors", outputs="every", length=3)
    >>> evaluate(network, np.array([[[0.0], [0.7], [1.0]], [[0.25], [0.25 - 2**-12], [0.25 - 2**-13]]])).tolist()
    [[4, 6, 7], [5, 4, Fraction(9, 2)]]
    """
    if cells == 1:
        always = Affine(integers([[0] * dim] * dim), integers([1] * dim), relu=False, role="only_cell")
        return FeedForward((always,), name="quantise")
    steps = 2 * (cells - 1)
    slopes, biases = np.zeros((dim * steps, dim), object), np.zeros(dim * steps, object)
    sums = np.zeros((dim, dim * steps), object)
    for axis in range(dim):
        for j in range(1, cells):
            row = axis * steps + 2 * (j - 1)
            slopes[row : row + 2, axis] = cells << ramp_bits
            biases[row], biases[row + 1] = 1 - (j << ramp_bits), -(j << ramp_bits)
            sums[axis, row], sums[axis, row + 1] = 1, -1
    ramps = Affine(integers(slopes), integers(biases), role="ramps")
    cell = Affine(integers(sums), integers([cells] * dim), relu=False, role="cell")
    return FeedForward((ramps, cell), name="quantise")


def numbers(points: Floats, cells: int) -> Floats:
    """Return the cell numbers of ``points``, as :func:`quantise` gives them off the ramps.

    >>> numbers(np.array([0.0, 0.24, 0.25, 1.0]), 4).tolist()
    [4.0, 4.0, 5.0, 7.0]
    """
    return cells + np.minimum(np.floor(points * cells), cells - 1.0)


def centres(numbers: Floats, cells: int) -> Floats:
    """Return the centres of the cells with these numbers.

    >>> centres(np.array([4.0, 7.0]), 4).tolist()
    [0.125, 0.875]
    """
    return (numbers - cells + 0.5) / cells


def grid_size(cells: int, length: int, dim: int) -> int:
    """Count the multisets of ``length`` cells out of ``cells``^``dim``.

    >>> grid_size(4, 3, 1), grid_size(4, 2, 2)
    (20, 136)
    """
    return comb(cells**dim + length - 1, length)


def grid(cells: int, length: int, dim: int) -> Floats:
    """Return all multisets of cells, each once, as sequences of cell numbers: [M, n, d].

    >>> grid(2, 2, 1)[:, :, 0].tolist()
    [[2.0, 2.0], [2.0, 3.0], [3.0, 3.0]]
    """
    table = np.array(list(product(range(cells, 2 * cells), repeat=dim)), np.float64)
    chosen = list(combinations_with_replacement(range(len(table)), length))
    return np.asarray(table[np.array(chosen)], np.float64)
