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

from byheart.networks.exact.exact_layers import Block, Residual
from byheart.networks.exact.limbs import Limbs, from_numbers

FEWEST = 4
"""Smallest number of folds in a wave; fewer are as fast one by one."""


@dataclass(frozen=True, eq=False)
class Wave:
    """T − Z ↦ T − △(Z, 2t/2^(k−1)) for 0 ≤ Z ≤ 2t, which is what the k blocks of ``folds`` do."""

    top: int
    """The constant T of the stream Y = T − Z."""
    first: int
    """The first threshold t, a multiple of 2^(k−1)."""
    folds: Residual

    def __call__(self, batch: Limbs) -> Limbs | None:
        """Return the batch after all folds, or None unless the theorem's hypothesis holds for every number."""
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
    """Yield the blocks of ``chain`` in order, with a wave for every run of folds that is a wave."""
    blocks, biases = chain.blocks, [_bias(block) for block in chain.blocks]
    done = place = 0
    while place < len(blocks):
        wave = _begins(blocks, biases, place)
        if wave is None:
            place += 1
            continue
        if done < place:
            yield Residual(blocks[done:place], chain.name)
        yield wave
        done = place = place + len(wave.folds.blocks)
    if done < len(blocks):
        yield Residual(blocks[done:], chain.name)


def _begins(blocks: tuple[Block, ...], biases: list[int | None], place: int) -> Wave | None:
    """Return the longest wave that begins at ``place``, or None.

    A fold's bias is c = 2(T − t), and the next fold's bias is 2(T − t/2): their difference is t.
    """
    start, after = biases[place], _at(biases, place + 1)
    if start is None or after is None or start % 2 or after <= start:
        return None
    first = after - start
    top = start // 2 + first
    count = 2
    while first % (1 << count) == 0 and _at(biases, place + count) == 2 * (top - (first >> count)):
        count += 1
    return Wave(top, first, Residual(blocks[place : place + count], "folds")) if count >= FEWEST else None


def _at(biases: list[int | None], place: int) -> int | None:
    return biases[place] if place < len(biases) else None


def _bias(block: Block) -> int | None:
    """Return the bias c of a block that is a fold, Y ← Y + relu(c − 2Y), or None for other blocks."""
    fold = block.W_in.shape == (1, 1) and block.W_in[0, 0] == -2 and block.W_out[0, 0] == 1
    return int(block.b_in[0]) if fold else None
