"""Chains of folds as one triangle wave.

A fold on the stream Y = T − Z is Y ← Y + relu(2(T − t) − 2Y), which leaves Z ≤ t as it is and mirrors the rest: on
[0, 2t] it is Z ↦ min(Z, 2t − Z). Folds at t, t/2, …, t/2^(k−1) one after the other are one function.

**Theorem.** Let Z be in [0, 2t]. After the fold at t/2^i, Z is △(Z, 2t/2^i), where △(z, P) = min(z mod P, P − z mod P)
is the distance from z to the nearest multiple of P.

*Proof.* For i = 0 this is what a fold is. Let Z_i = △(Z, P) with P = 2t/2^i: it is in [0, P/2], where the next fold, at
P/4, is z ↦ min(z, P/2 − z) = △(z, P/2). Now Z_i is Z or −Z modulo P, so modulo P/2 as well, and △ is even and has the
period P/2: △(Z_i, P/2) = △(Z, P/2). ∎

So a chain costs one remainder and not k additions. Nothing is assumed: the thresholds are read off the weights, and
0 ≤ Z ≤ 2t is looked at for every number of a batch; where one is outside, the folds are done one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from byheart.networks.exact.layers import Block, Residual
from byheart.networks.exact.limbs import Limbs, from_numbers

FEWEST = 4
"""Folds that a wave is made of at least: fewer are done as quickly one by one."""


@dataclass(frozen=True, eq=False)
class Wave:
    """T − Z ↦ T − △(Z, 2t/2^(k−1)) for 0 ≤ Z ≤ 2t, which is what the k blocks of ``folds`` do."""

    top: int
    """T."""
    first: int
    """t, a multiple of 2^(k−1)."""
    folds: Residual

    def __call__(self, batch: Limbs) -> Limbs | None:
        """The batch behind all folds; None if the theorem does not hold for all of it."""
        scale = batch.divisor << batch.exponent
        top, widest = self.top * scale, 2 * self.first * scale
        period = widest >> (len(self.folds.blocks) - 1)
        inside = [top - number for number in batch.numbers(0)]
        if min(inside) < 0 or max(inside) > widest:
            return None
        remainders = [z % period for z in inside]
        return from_numbers([top - min(r, period - r) for r in remainders], batch.exponent, batch.divisor)


Part: TypeAlias = Residual | Wave


def parts(chain: Residual) -> Iterator[Part]:
    """The blocks of ``chain`` in order, runs of folds that are waves as such."""
    rest, blocks = list[Block](), list(chain.blocks)
    while blocks:
        wave = _begins(blocks)
        if wave is None:
            rest.append(blocks.pop(0))
            continue
        if rest:
            yield Residual(tuple(rest), chain.name)
        yield wave
        rest, blocks = [], blocks[len(wave.folds.blocks) :]
    if rest:
        yield Residual(tuple(rest), chain.name)


def _begins(blocks: list[Block]) -> Wave | None:
    """The longest wave that ``blocks`` begin with, if there is one.

    A fold's bias is c = 2(T − t). That of the next one is 2(T − t/2): their difference is t.
    """
    biases = _biases(blocks)
    if len(biases) < FEWEST or biases[0] % 2 or biases[1] <= biases[0]:
        return None
    first = biases[1] - biases[0]
    top = biases[0] // 2 + first
    count = 2
    while count < len(biases) and first % (1 << count) == 0 and biases[count] == 2 * (top - (first >> count)):
        count += 1
    if count < FEWEST or first % (1 << (count - 1)):
        return None
    return Wave(top, first, Residual(tuple(blocks[:count]), "folds"))


def _biases(blocks: list[Block]) -> list[int]:
    """The biases of the first blocks, as many as are folds: Y ← Y + relu(c − 2Y)."""
    result = []
    for block in blocks:
        if block.W_in.tolist() != [[-2]] or block.W_out.tolist() != [[1]]:
            break
        result.append(int(block.b_in[0]))
    return result
