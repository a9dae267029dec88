"""Functions of one's own for `byheart approximate --function examples/functions.py:NAME`.

A function takes float64 [S, n, d], S sequences of n tokens in [0, 1]^d, and gives float64 [S, n], one number a token.
It must not depend on the order of the other tokens, and the theorem wants it continuous.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def nearest(points: Floats) -> Floats:
    """How far the nearest other token is, in the largest coordinate; 1 for a token that is alone."""
    gaps = np.abs(points[:, :, None] - points[:, None]).max(axis=-1)
    length = points.shape[1]
    gaps[:, np.arange(length), np.arange(length)] = 1.0
    return gaps.min(axis=-1)


def soft_maximum(points: Floats) -> Floats:
    """How much a token has to do with the largest: softmax over the tokens of ten times their first coordinate."""
    raised = np.exp(10 * points[:, :, 0])
    return raised / raised.sum(axis=1, keepdims=True)
