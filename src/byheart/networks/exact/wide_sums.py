"""Σ_k a_k·relu(x_k) for large weights and small inputs: as one product of float64 matrices, without rounding.

Two layers, x = W u + b with the ReLU and then a few sums A relu(x) + c, where u is small and W has numbers of thousands
of bits. Written in 24-bit limbs, W has far more of them than u: limb by limb, x would be as large as all of W. Instead:

1. **Which units are on** is decided by the leading bits. Let w_kj = ⌊W_kj / 2^s⌋; then x_k / 2^s − Σ_j w_kj u_j is
   Σ_j ε_j u_j with 0 ≤ ε_j < 1, less than E = Σ_j |u_j| in absolute value. s is so large that Σ_j |w_kj u_j| ≤ 2⁵²:
   float64 makes no error. A sum of E or more is a unit that is on (x_k ≥ 0), one of −E or less is a unit that is off;
   if any is between, the layers are evaluated in the ordinary way.
2. **The sums** are Σ_kj (a_k·[k is on]·u_j)·W_kj: for each limb of W one product with small integers. As long as
   Σ_k |a_k|·E ≤ 2²⁹, every partial sum is below 2²⁹·2²⁴ = 2⁵³, so float64 is exact in any order.

The bias is a weight of the input 2^exponent, which all numerators of a batch are multiplied by.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from byheart.networks.exact.exact_layers import Affine, FeedForward, Integers
from byheart.networks.exact.kernels import LIMB, relu_, resolve
from byheart.networks.exact.limbs import LimbProgram, Limbs, digits, from_blocks

_EXACT = 53
"""Number of bits up to which float64 holds every integer."""
_FEWEST_UNITS, _MOST_SUMS, _FEWEST_BITS = 8, 2, 4 * LIMB
"""Limits between which products of matrices are faster: units, sums of them, and bits of the weights."""
_MOST = 1 << 25
"""Largest number of entries of a matrix, 256 MiB: one weight may have millions of limbs if all others have one."""


def pays(layer: FeedForward) -> bool:
    """Return True if the first two layers of ``layer`` are such sums, and large enough."""
    if len(layer.layers) < 2 or not layer.layers[0].relu:
        return False
    first, second = layer.layers[:2]
    bits, bias_bits = (max(int(w).bit_length() for w in tensor.ravel()) for tensor in (first.W, first.b))
    entries, limbs = first.W.size + first.b.size, max(bits, bias_bits) // LIMB + 1
    is_small = entries * max(limbs, Words.block) <= _MOST
    return bits >= _FEWEST_BITS and is_small and len(first.W) >= _FEWEST_UNITS and len(second.W) <= _MOST_SUMS


@dataclass(frozen=True, eq=False)
class Words:
    """Layers of which the first two are products of float64 matrices, if exact for a batch; else ``program`` runs."""

    layers: tuple[Affine, ...]
    divisor: int
    program: LimbProgram
    block: ClassVar = 1024
    """Number of vectors per run; more than for limbs, as products of matrices gain from it."""
    _leading: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def __call__(self, batch: Limbs) -> Limbs:
        """Run the layers on a batch."""
        sums = self._sums(batch) if (batch.length == 1).all() and batch.exponent < LIMB else None
        if sums is None:
            return self.program(batch)
        return self._rest(sums) if len(self.layers) > 2 else sums

    @cached_property
    def _rest(self) -> LimbProgram:
        return LimbProgram(self.layers[2:], self.divisor)

    @cached_property
    def _weights(self) -> Integers:
        """W and the bias side by side, [units, inputs + 1]; the bias is multiplied by the divisor of the batch."""
        first = self.layers[0]
        return np.concatenate([first.W, first.b[:, None] * self.divisor], axis=1)

    @cached_property
    def _limbs(self) -> NDArray[np.float64]:
        """Limbs of all weights, with their signs: [units · (inputs + 1), limbs]."""
        columns = [digits(int(weight)) for weight in self._weights.ravel()]
        result = np.zeros((len(columns), max(map(len, columns))))
        for row, entries in zip(result, columns, strict=True):
            row[: len(entries)] = entries
        return result

    def _sums(self, batch: Limbs) -> Limbs | None:
        """Return A relu(W u + b) + c, or None unless the bounds of the module's docstring hold."""
        first, second = self.layers[:2]
        inputs = np.concatenate([batch.limbs[batch.start], np.full((1, batch.batch), 1 << batch.exponent)])
        largest = int(np.abs(inputs.astype(np.int64)).sum(axis=0).max(initial=0))
        factors = [sum(abs(int(a)) for a in row) for row in second.W]
        if max(factors) * largest > 1 << (_EXACT - LIMB):
            return None
        u = inputs.T.astype(np.float64)
        on = self._on(u, largest)
        if on is None:
            return None
        exponent = batch.exponent + first.shift
        blocks = [self._sum(row, c, on, u, exponent) for row, c in zip(second.W, second.b, strict=True)]
        if second.relu:
            for block in blocks:
                relu_(block)
        return from_blocks(blocks, exponent + second.shift, self.divisor)

    def _on(self, u: NDArray[np.float64], largest: int) -> NDArray[np.bool_] | None:
        """Return flags [B, units] of the units that are on, or None if leading bits do not decide all of them."""
        sums = u @ self._leading_bits(_EXACT - 1 - largest.bit_length()).T
        on: NDArray[np.bool_] = sums >= largest
        return on if (on | (sums <= -largest)).all() else None

    def _leading_bits(self, bits: int) -> NDArray[np.float64]:
        """Return the weights [units, inputs + 1] cut to the leading ``bits`` of each unit's largest weight."""
        if bits not in self._leading:
            shifts = [max(0, max(abs(w).bit_length() for w in row) - bits) for row in self._weights.tolist()]
            rows = zip(self._weights.tolist(), shifts, strict=True)
            self._leading[bits] = np.array([[float(w >> shift) for w in row] for row, shift in rows])
        return self._leading[bits]

    def _sum(
        self, row: Integers, c: int, on: NDArray[np.bool_], u: NDArray[np.float64], exponent: int
    ) -> NDArray[np.int64]:
        """Return Σ_k a_k relu(x_k) + c for one row a of A, as carried limbs [·, B]."""
        factors = on * row.astype(np.float64)
        coefficients = (factors[:, :, None] * u[:, None, :]).reshape(len(u), -1)
        products = coefficients @ self._limbs
        bias = digits(int(c) * self.divisor << exponent)
        block = np.zeros((max(products.shape[1] + 2, len(bias)) + 1, len(u)), dtype=np.int64)
        block[: products.shape[1]] = products.T
        block[: len(bias)] += bias[:, None]
        resolve(block)
        return block
