"""The table of a memory: cells such that the exclusive or of a key's six is its value.

Every bit of the values is one banded linear system modulo 2 with the same left-hand side: eliminated once, solved for
each bit (:mod:`byheart.constructions.gadgets.parities`). Cells that no equation determines are drawn, so that a
key that is none finds bits that look random.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.networks.planted.modeling_plant import WIDEST_BAND, places, words_for

Integers = NDArray[np.int64]
TIGHT = 0.985
"""The share of cells that keys take, with many keys."""


@dataclass(frozen=True)
class TableShape:
    """Cells, and the band in which a key's six lie: a power of 2."""

    cells: int
    band: int


def size_for(keys: int, draw: int = 0) -> TableShape:
    """The size for so many keys; a little more room after every draw that could not be solved.

    Cells near either end lie in few bands, so that a share of a band stays free; the rest was found by trying.

    >>> size_for(100_000), size_for(1)
    (TableShape(cells=101766, band=1024), TableShape(cells=16, band=16))
    """
    band = 16 if keys < 50 else min(WIDEST_BAND, max(64, 1 << (keys // 24).bit_length()))
    room = 16 + 0.4 * band + keys * (0.0095 + 4 / band) if keys >= 50 else band / 2 + keys
    cells = max(keys + room, keys / TIGHT, band) + draw * (8 + keys // 200)
    return TableShape(int(cells), band)


def solved(h: Integers, values: Integers, bits: int, size: TableShape, free: bytes) -> Integers | None:
    """The cells, for keys with hashes h [3, N] and values [N]; None if this hash does not allow it."""
    from byheart.constructions.gadgets import parities  # not needed by those who only read a memory

    cells = places(torch.from_numpy(h), size.cells, size.band).numpy().T
    first = h[0] * (size.cells - size.band + 1) >> 31
    order = np.argsort(first, kind="stable")
    system = parities.reduce_band(
        np.ascontiguousarray(cells[order]), first[order] >> 6, size.cells, (size.band + 63) // 64 + 1
    )
    drawn = np.unpackbits(np.frombuffer(free, np.uint8), count=bits * size.cells).reshape(bits, size.cells)
    found = np.zeros(size.cells, np.int64)
    for bit in range(bits):
        plane = parities.solve(system, (values[order] >> bit & 1).astype(np.uint8), np.ascontiguousarray(drawn[bit]))
        if plane is None:
            return None
        found |= plane.astype(np.int64) << bit
    return found


def packed(values: Integers, width: int) -> NDArray[np.int32]:
    """Values of ``width`` bits in words of 32, without gaps, and a word of zeros more.

    >>> packed(np.array([0, 1, 2, 3]), 2).tolist() == [0b11_10_01_00, 0]
    True
    """
    bits = np.unpackbits(values.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")[:, :width]
    data = np.packbits(bits.ravel(), bitorder="little")
    words = np.zeros(4 * words_for(len(values), width), np.uint8)
    words[: len(data)] = data
    return words.view("<i4").astype(np.int32)
