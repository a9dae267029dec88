"""The codes at all places of sequences, layer after layer: the inner loops of the hash. This module imports numba."""

from byheart.compiled import jit


@jit
def look_back(state, earliest, distance, mix, grain):  # type: ignore[no-untyped-def]
    """One layer, in place: add what is found a distance ago, or at the earliest place, times ``mix``; modulo 2^grain.

    Places are gone through from the last one to the first, so that what is found is what was there before.
    """
    for place in range(len(state) - 1, -1, -1):
        _add(state[place], state[max(place - distance, earliest[place])], mix, grain)


@jit
def ask_back(codes, asked, state, earliest, distance, mix, grain):  # type: ignore[no-untyped-def]
    """The same layer for other codes, which nobody looks back at: those of the places ``asked`` alone."""
    for question in range(len(asked)):
        place = asked[question]
        _add(codes[question], state[max(place - distance, earliest[place])], mix, grain)


@jit
def _add(codes, seen, mix, grain):  # type: ignore[no-untyped-def]
    half, mask = 1 << (grain - 1), (1 << grain) - 1
    found = (seen[0], seen[1], seen[2], seen[3])  # CARRIED, as they were: ``codes`` may be the same
    for code in range(len(codes)):
        total = codes[code]
        for k in range(4):
            total += mix[code, k] * found[k]
        codes[code] = ((total + half) & mask) - half
