"""The codes at all places of sequences, layer after layer: the inner loop of the hash. This module imports numba."""

from byheart.networks.exact.kernels import jit


@jit
def look_back(state, earliest, distance, mix, grain):  # type: ignore[no-untyped-def]
    """One layer, in place: add what is found a distance ago, or at the earliest place, times ``mix``; modulo 2^grain.

    Places are gone through from the last one to the first, so that what is found is what was there before.
    """
    half, mask = 1 << (grain - 1), (1 << grain) - 1
    width, carried = mix.shape
    for place in range(len(state) - 1, -1, -1):
        seen = state[max(place - distance, earliest[place])].copy()
        for code in range(width):
            total = state[place, code]
            for k in range(carried):
                total += mix[code, k] * seen[k]
            state[place, code] = ((total + half) & mask) - half
