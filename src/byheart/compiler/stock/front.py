"""Hash the window of a question, by layers that look back; the digits of the hash say where to read (:mod:`.address`).

Every token has 13 random codes, odd multiples of 2⁻¹⁷ between −½ and ½. Layer after layer looks back by 1, 2, 4, …
tokens, multiplies four of the codes there by odd weights, and adds them to all codes. The sums are taken modulo 1.
The sum of four odd numbers is even, so codes stay odd: none is ever 0 or ±½, and no digit below is a tie. All sums are
multiples of 2⁻¹⁷ below 2⁷.

A digit of m values (odd) is the integer next to m·code, from −(m − 1)/2 to (m − 1)/2.

**Looking back** needs nothing but RoPE. Queries and keys are constant. RoPE turns them by their positions, once by 1
and once by ``SLOW`` radians per token, so that the score at distance Δ is A·(cos(Δ − k) + cos(SLOW·(Δ − k))). It is
largest at Δ = k. For distances below ``POSITIONS``, every other score is lower by 2.5·10⁻⁵·A > 3000 (A = 2²⁷), while
float32 has errors below 100 there. So softmax is exactly one-hot: e^−104 is 0.

If the text is too short, the first token, a token of its own, is looked at. Its key has no part in the fast turn and
1.99999 in the slow one. That is below the score of Δ = k by 10⁻⁵·A > 1000. Within ``REACH``, the slow turn takes less
than 2.7·10⁻⁵·A off it, so it exceeds all other scores, which are below 1.999956·A, by 7·10⁻⁶·A > 900.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit
from byheart.compiler.stock.dimensions import CODES
from byheart.compiler.stock.units import ONE, StockLayer
from byheart.tasks.contexts import Contexts

Integers = NDArray[np.int64]
CARRIED = 4
"""Number of codes that attention carries."""
GRAIN = 17
"""Codes are multiples of 2^−GRAIN, and integers in that unit here."""
POSITIONS = 1 << 18
"""Bound on distances between tokens."""
SLOW = 1e-5
THETA = 1e10
"""Hugging Face's rope_theta: SLOW = THETA^−½."""
REACH = 512
"""Largest distance that a layer looks back."""
_LARGEST = 61
_PORTION = 1 << 19
_SIZE = 2.0**14
_FIRST = 1 - 1e-5


class Tokens:
    """The tokens of a stock model: those of the questions, and perhaps one more for a token that is missing.

    Before the start of a text tokens are missing. The end token stands for them; if there is none, one more token does.
    """

    def __init__(self, contexts: Contexts) -> None:
        sequence = np.searchsorted(contexts.starts, contexts.places, side="right") - 1
        is_missing = bool((contexts.places - contexts.starts[sequence] + 1 < contexts.window).any())
        self.end = contexts.end
        self.count = max(contexts.vocab, contexts.label_count)
        self.first = contexts.end
        """The token that stands for missing ones; None if none is missing."""
        if is_missing and self.first is None:
            self.first, self.count = self.count, self.count + 1


@dataclass(frozen=True, eq=False)
class Hash:
    """Random numbers of one attempt."""

    codes: Integers
    """[vocab, CODES]: codes of all tokens."""
    mixes: Integers
    """[steps, CODES, CARRIED]: weights of each layer."""


def draw(vocab: int, steps: int, rng: np.random.Generator) -> Hash:
    """Draw the random numbers of an attempt."""
    mixes = 2 * rng.integers(-(_LARGEST + 1) // 2, (_LARGEST + 1) // 2, size=(steps, CODES, CARRIED)) + 1
    return Hash(draw_codes(vocab, rng), mixes)


def draw_codes(vocab: int, rng: np.random.Generator) -> Integers:
    """Draw the codes of tokens, [vocab, CODES]."""
    codes: Integers = 2 * rng.integers(-(1 << (GRAIN - 2)), 1 << (GRAIN - 2), size=(vocab, CODES)) + 1
    return codes


def distances(window: int) -> list[int]:
    """Return how far each layer looks back: each doubles what is seen, and the last one covers the rest.

    >>> distances(8), distances(6), distances(1)
    ([1, 2, 4], [1, 2, 2], [])
    """
    steps: list[int] = []
    seen = 1
    while seen < window:
        steps.append(min(seen, window - seen))
        seen += steps[-1]
    return steps


def look_back(layer: StockLayer, distance: int, first: int | None = None) -> None:
    """Let the head look at the token ``distance`` ago; ``first`` is the feature that marks the first token."""
    assert 0 <= distance <= REACH
    for place, speed in enumerate((1.0, SLOW)):
        layer.Q[place] = {ONE: _SIZE * math.cos(distance * speed)}
        layer.Q[place + 2] = {ONE: -_SIZE * math.sin(distance * speed)}
    layer.K[0], layer.K[1] = {ONE: _SIZE}, {ONE: _SIZE}
    if first is not None:
        layer.K[0] = {ONE: _SIZE, first: -_SIZE}
        layer.K[1] = {ONE: _SIZE, first: _FIRST * _SIZE}


def hash_layer(codes: list[int], distance: int, mix: Integers, first: int | None) -> StockLayer:
    """Return the layer that adds the codes of the token ``distance`` ago, modulo 1."""
    layer = StockLayer()
    look_back(layer, distance, first)
    for carried in range(CARRIED):
        layer.carry({codes[carried]: 1}, dict(zip(codes, mix[:, carried].tolist(), strict=True)))
    layer.rounded({code: {code: 1} for code in codes}, {code: {code: -1} for code in codes})
    return layer


def hashed(contexts: Contexts, hashing: Hash) -> Integers:
    """Return the codes of every question after the last layer, [N, codes], some sequences at a time."""
    starts, places = contexts.starts, contexts.places
    first, looks = Tokens(contexts).first or 0, distances(contexts.window)
    codes = np.empty((len(places), CODES), np.int64)
    left = 0
    while left < len(starts) - 1:
        right = max(left + 1, int(np.searchsorted(starts, starts[left] + _PORTION, side="right")) - 1)
        part = contexts.tokens[starts[left] : starts[right]].astype(np.int32)
        tokens = np.insert(part, starts[left:right] - starts[left], first)
        begins = starts[left:right] - starts[left] + np.arange(right - left)
        span = slice(*np.searchsorted(places, (starts[left], starts[right])))
        ends = places[span] - starts[left] + np.searchsorted(starts, places[span], side="right") - left
        codes[span] = _codes_at(ends, tokens, begins, hashing, looks)
        left = right
    return codes


def _codes_at(
    ends: Integers, tokens: NDArray[np.int32], begins: Integers, hashing: Hash, distances: list[int]
) -> Integers:
    """Return the codes at the places ``ends``. Tokens before a sequence are like its first token.

    The first codes, which attention looks back at, are computed at all places; the other codes at ``ends`` only.
    """
    state: Integers = hashing.codes[:, :CARRIED][tokens]
    rest: Integers = hashing.codes[:, CARRIED:][tokens[ends]]
    earliest = np.repeat(begins, np.diff(begins, append=len(tokens)))
    for distance, mix in zip(distances, hashing.mixes, strict=True):
        _hash_places(rest, ends, state, earliest, distance, mix[CARRIED:], GRAIN)
        _hash_all(state, earliest, distance, mix[:CARRIED], GRAIN)
    return np.concatenate([state[ends], rest], axis=1)


@jit
def _hash_all(state, earliest, distance, mix, grain):  # type: ignore[no-untyped-def]
    """Apply one layer in place: add the codes a distance ago, or at the earliest place, times ``mix``; modulo 2^grain.

    Places are visited from the last one to the first, so that every code read is still the old one.
    """
    for place in range(len(state) - 1, -1, -1):
        _add_carried(state[place], state[max(place - distance, earliest[place])], mix, grain)


@jit
def _hash_places(codes, ends, state, earliest, distance, mix, grain):  # type: ignore[no-untyped-def]
    """Apply the same layer, at the places ``ends``, to the codes that no token looks back at."""
    for question in range(len(ends)):
        place = ends[question]
        _add_carried(codes[question], state[max(place - distance, earliest[place])], mix, grain)


@jit
def _add_carried(codes, seen, mix, grain):  # type: ignore[no-untyped-def]
    half, mask = 1 << (grain - 1), (1 << grain) - 1
    carried = (seen[0], seen[1], seen[2], seen[3])  # CARRIED, as they were: ``codes`` may be the same
    for code in range(len(codes)):
        total = codes[code]
        for k in range(4):
            total += mix[code, k] * carried[k]
        codes[code] = ((total + half) & mask) - half
