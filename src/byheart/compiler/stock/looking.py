"""Looking back by a fixed number of tokens, with nothing but RoPE.

Queries and keys are constant. RoPE turns them by their positions, once by 1 and once by ``SLOW`` radians a token, so
that the score at distance Δ is A·(cos(Δ − k) + cos(SLOW·(Δ − k))): largest at Δ = k. For distances below ``POSITIONS``,
every other score is lower by 2.5·10⁻⁵·A > 3000 (A = 2²⁷); float32 has errors below 100 there. So softmax is exactly
one-hot: e^−104 is 0.

Where the text is too short for that, the first token, a token of its own, is looked at: its key has no part in the
fast turn and 1.99999 in the slow one. That is below the score of Δ = k by 10⁻⁵·A > 1000. Within ``REACH``, the slow
turn takes less than 2.7·10⁻⁵·A off it, and it is above all others, which are below 1.999956·A, by 7·10⁻⁶·A > 900.
"""

import math

from byheart.compiler.stock.units import ONE, Layer

POSITIONS = 1 << 18
SLOW = 1e-5
THETA = 1e10
"""Hugging Face's rope_theta: SLOW = THETA^−½."""
REACH = 512
_SIZE = 2.0**14
_FIRST = 1 - 1e-5


def look_back(layer: Layer, distance: int, first: int | None = None) -> None:
    """The head looks at the token ``distance`` ago; ``first`` is the feature that marks the first token."""
    assert 0 <= distance <= REACH
    for place, speed in enumerate((1.0, SLOW)):
        layer.Q[place] = {ONE: _SIZE * math.cos(distance * speed)}
        layer.Q[place + 2] = {ONE: -_SIZE * math.sin(distance * speed)}
    layer.K[0], layer.K[1] = {ONE: _SIZE}, {ONE: _SIZE}
    if first is not None:
        layer.K[0] = {ONE: _SIZE, first: -_SIZE}
        layer.K[1] = {ONE: _SIZE, first: _FIRST * _SIZE}


def distances(window: int) -> list[int]:
    """How far the layers look back: each doubles what is seen, the last one as far as is left.

    >>> distances(8), distances(6), distances(1)
    ([1, 2, 4], [1, 2, 2], [])
    """
    steps: list[int] = []
    seen = 1
    while seen < window:
        steps.append(min(seen, window - seen))
        seen += steps[-1]
    return steps
