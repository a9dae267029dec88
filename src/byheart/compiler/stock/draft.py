"""The layers of a stock model: hash, digits and columns, the tables, reading."""

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.stock.address import stride_of
from byheart.compiler.stock.dimensions import StockSizes
from byheart.compiler.stock.front import CARRIED, GRAIN, Hash
from byheart.compiler.stock.looking import look_back
from byheart.compiler.stock.read import reading
from byheart.compiler.stock.spread import TEMPORARY, spread
from byheart.compiler.stock.stream_map import PRESET, Features
from byheart.compiler.stock.units import HUGE, ROUND, Layer, ones, write_lines


def layers(
    sizes: StockSizes,
    at: Features,
    code: Code,
    hashing: Hash,
    distances: list[int],
    tables: list[Layer],
    *,
    marked: bool,
) -> tuple[list[Layer], int]:
    """The whole network, and where its ``tables`` begin: these have attention only, here. Finds ``at.columns``.

    ``marked``: there is a first token that stands for what is missing.
    """
    first = at.first if marked else None
    chain = [
        _hash_layer(at.codes, distance, mix, first) for distance, mix in zip(distances, hashing.mixes, strict=True)
    ]
    before, powers = spread(sizes, at, stride_of(code))
    rest = [*before, *tables, *reading(at, sizes.units, powers, code.longest, layered=sizes.layered)]
    for layer in rest:
        look_back(layer, 0)
    return chain + rest, len(chain) + len(before)


def around(sizes: StockSizes, steps: int) -> int:
    """How many layers there are besides the tables."""
    at = Features(sizes.width)
    before, powers = spread(sizes, at, 1)
    return steps + len(before) + len(reading(at, sizes.units, powers, 1, layered=sizes.layered))


def _hash_layer(codes: list[int], distance: int, mix: NDArray[np.int64], first: int | None) -> Layer:
    """Add what is found a distance ago to the codes, modulo 1."""
    layer = Layer()
    look_back(layer, distance, first)
    for carried in range(CARRIED):
        layer.carry({codes[carried]: 1}, dict(zip(codes, mix[:, carried].tolist(), strict=True)))
    layer.rounded({code: {code: 1} for code in codes}, {code: {code: -1} for code in codes})
    return layer


def embedding(
    sizes: StockSizes, at: Features, code: Code, hashing: Hash, labels: int, first: int | None
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
