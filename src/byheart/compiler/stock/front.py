"""A hash of the window, from whose digits a question knows where to read (``address``).

Every token has 13 random codes, odd multiples of 2⁻¹⁷ between −½ and ½. Layer after layer looks back by 1, 2, 4, …
tokens and adds four of the codes that it finds there, times odd weights, to all of them; the sums are taken modulo 1.
The sum of four odd numbers is even, so codes stay odd: none is ever 0 or ±½, and no digit below is a tie. All sums are
multiples of 2⁻¹⁷ below 2⁷.

A digit of m values (odd) is the integer next to m·code, from −(m − 1)/2 to (m − 1)/2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit
from byheart.compiler.stock.dimensions import CODES
from byheart.tasks.contexts import Contexts

Integers = NDArray[np.int64]
CARRIED = 4
GRAIN = 17
_LARGEST = 61
_PORTION = 1 << 19


@dataclass(frozen=True, eq=False)
class Hash:
    """Random numbers of one attempt."""

    codes: Integers
    """[vocab, CODES]: in units of 2⁻¹⁷."""
    mixes: Integers
    """[steps, CODES, CARRIED]."""


def draw(vocab: int, steps: int, rng: np.random.Generator) -> Hash:
    """Draw the random numbers of an attempt."""
    mixes = 2 * rng.integers(-(_LARGEST + 1) // 2, (_LARGEST + 1) // 2, size=(steps, CODES, CARRIED)) + 1
    return Hash(draw_codes(vocab, rng), mixes)


def draw_codes(vocab: int, rng: np.random.Generator) -> Integers:
    """Draw the codes of tokens, [vocab, CODES]."""
    codes: Integers = 2 * rng.integers(-(1 << (GRAIN - 2)), 1 << (GRAIN - 2), size=(vocab, CODES)) + 1
    return codes


def hashed(contexts: Contexts, hashing: Hash, distances: list[int], first: int) -> Integers:
    """Return the codes of every question after the last layer, [N, codes], some sequences at a time."""
    starts, places = contexts.starts, contexts.places
    codes = np.empty((len(places), CODES), np.int64)
    left = 0
    while left < len(starts) - 1:
        right = max(left + 1, int(np.searchsorted(starts, starts[left] + _PORTION, side="right")) - 1)
        part = contexts.tokens[starts[left] : starts[right]].astype(np.int32)
        tokens = np.insert(part, starts[left:right] - starts[left], first)
        begins = starts[left:right] - starts[left] + np.arange(right - left)
        some = slice(*np.searchsorted(places, (starts[left], starts[right])))
        asked = places[some] - starts[left] + np.searchsorted(starts, places[some], side="right") - left
        codes[some] = _codes_at(asked, tokens, begins, hashing, distances)
        left = right
    return codes


def _codes_at(
    asked: Integers, tokens: NDArray[np.int32], begins: Integers, hashing: Hash, distances: list[int]
) -> Integers:
    """Return the codes at some places of sequences. Tokens before a sequence are like its first token.

    The first codes, which attention looks back at, are computed at all places; the others only where asked for.
    """
    state: Integers = hashing.codes[:, :CARRIED][tokens]
    others: Integers = hashing.codes[:, CARRIED:][tokens[asked]]
    earliest = np.repeat(begins, np.diff(begins, append=len(tokens)))
    for distance, mix in zip(distances, hashing.mixes, strict=True):
        _hash_places(others, asked, state, earliest, distance, mix[CARRIED:], GRAIN)
        _hash_all(state, earliest, distance, mix[:CARRIED], GRAIN)
    return np.concatenate([state[asked], others], axis=1)


@jit
def _hash_all(state, earliest, distance, mix, grain):  # type: ignore[no-untyped-def]
    """Apply one layer in place: add the codes a distance ago, or at the earliest place, times ``mix``; modulo 2^grain.

    Places are visited from the last one to the first, so that every code read is still the old one.
    """
    for place in range(len(state) - 1, -1, -1):
        _add_carried(state[place], state[max(place - distance, earliest[place])], mix, grain)


@jit
def _hash_places(codes, asked, state, earliest, distance, mix, grain):  # type: ignore[no-untyped-def]
    """Apply the same layer to the codes that no token looks back at, at the places ``asked`` alone."""
    for question in range(len(asked)):
        place = asked[question]
        _add_carried(codes[question], state[max(place - distance, earliest[place])], mix, grain)


@jit
def _add_carried(codes, seen, mix, grain):  # type: ignore[no-untyped-def]
    half, mask = 1 << (grain - 1), (1 << grain) - 1
    found = (seen[0], seen[1], seen[2], seen[3])  # CARRIED, as they were: ``codes`` may be the same
    for code in range(len(codes)):
        total = codes[code]
        for k in range(4):
            total += mix[code, k] * found[k]
        codes[code] = ((total + half) & mask) - half
