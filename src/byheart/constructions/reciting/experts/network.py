"""The layers of a network of experts: hash, digits and columns, the table, reading."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting.codes import Code
from byheart.constructions.reciting.experts.address import stride_of
from byheart.constructions.reciting.experts.features import PRESET, Features
from byheart.constructions.reciting.experts.reading import reading
from byheart.constructions.reciting.experts.sizes import CODES, Sizes
from byheart.constructions.reciting.experts.spread import TEMPORARY, finish_squares, spread
from byheart.constructions.reciting.uniform.address import GRAIN, Hash
from byheart.constructions.reciting.uniform.looking import look_back
from byheart.constructions.reciting.uniform.network import hash_layer
from byheart.constructions.reciting.uniform.stock import HEAD, ROUND, Layer, ones, write_lines

HUGE = 2.0**52
"""Of ``ONE``, whose square is the sum of all squares (see :mod:`..uniform.stock`): others are below 2³⁹. A word of
W_down, 2⁻⁷⁵, is still a normal number after RMSNorm has divided by the root of the mean, at most 2⁵⁰."""
_MOST_UNITS = 64


def layers(
    sizes: Sizes, at: Features, code: Code, hashing: Hash, distances: list[int], *, marked: bool
) -> tuple[list[Layer], int]:
    """The whole network, and which layer is the table's: that has attention only, here. Finds ``at.columns``.

    ``marked``: there is a first token that stands for what is missing.
    """
    first = at.first if marked else None
    chain = [hash_layer(at.codes, distance, mix, first) for distance, mix in zip(distances, hashing.mixes, strict=True)]
    before, powers = spread(sizes, at, stride_of(code))
    table = Layer()
    finish_squares(table, at)
    rest = [*before, table, *reading(at, sizes.units, powers, code.longest)]
    for layer in rest:
        look_back(layer, 0)
    return chain + rest, len(chain) + len(before)


def embedding(
    sizes: Sizes, at: Features, code: Code, hashing: Hash, labels: int, first: int | None
) -> NDArray[np.float64]:
    """[vocab, width]: codes on the way in, and the lines of ``codes`` on the way out, for Y from −2^(L−1) on."""
    table = np.zeros((len(hashing.codes), sizes.width))
    table[:, : ones(sizes.width)] = HUGE
    table[:, at.x[:PRESET]] = -ROUND * TEMPORARY
    table[:, at.codes] = hashing.codes * 2.0**-GRAIN
    write_lines(table, code, labels, at.answer, at.bias)
    if first is not None:
        table[first, at.first] = 1.0
    return table


@lru_cache
def shape(width: int, steps: int) -> tuple[int, int]:
    """How many units the dense layers have, and how many layers there are, for the fewest parameters."""
    found = []
    for units in range(CODES + 1, _MOST_UNITS):
        sizes, at = Sizes(width, (1, 1), (3, 1), 4, 1, units, 0), Features(width)
        before, powers = spread(sizes, at, 1)
        count = steps + len(before) + 1 + len(reading(at, units, powers, 1))
        found.append(((count - 1) * (3 * units + 4 * HEAD + 2), units, count))
    return min(found)[1:]
