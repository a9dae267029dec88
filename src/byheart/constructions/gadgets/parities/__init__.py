"""Linear systems modulo 2, bit-packed: those with a band, and dense ones. Solving imports numba."""
