"""On which shelf questions are, and how many each bit plane is asked: inner loops. This module imports numba.

A *shelf* is a block, a class (a table of the block) and an offset. How shelves are numbered says ``Shelving``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit


class Shelving(NamedTuple):
    """What the last three codes of a question mean."""

    blocks: int
    below: int
    above: int
    """Codes that are less are of class 1, those that are more of class 2, all others of class 0."""
    grain: int
    """Codes are in units of 2^−grain."""
    bits: NDArray[np.int64]
    """Of a word, by class."""
    steps: NDArray[np.int64]
    """From one offset to the next, by class."""


@jit
def shelf(codes, how):  # type: ignore[no-untyped-def]
    """Block, class and offset, from the last three codes of one question."""
    kind = 1 if codes[2] < how.below else 2 if codes[2] > how.above else 0
    word, step, half = how.bits[kind], how.steps[kind], 1 << (how.grain - 1)
    block = ((codes[0] * how.blocks + half) >> how.grain) + how.blocks // 2
    offset = step * ((codes[1] * (word // step) + half) >> how.grain) + word // 2
    return block, kind, offset - word if offset == word else offset


@jit
def shelved(codes, how):  # type: ignore[no-untyped-def]
    """The shelves of all questions [N, 3], from their last three codes [N, 3]."""
    found = np.empty((len(codes), 3), np.int64)
    for question in range(len(codes)):
        found[question] = shelf(codes[question], how)
    return found


@jit
def ask(asked, codes, lengths, how):  # type: ignore[no-untyped-def]
    """Add 1 to ``asked`` [blocks, tables, planes] wherever a question reads, whose code word has so many bits."""
    ends = np.zeros((how.blocks, asked.shape[1], asked.shape[2] + 1), np.int64)
    for question in range(len(codes)):
        _read(ends, shelf(codes[question], how), lengths[question], how.bits, 1)
    _add_up(asked, ends)


@jit
def move(asked, before, after, lengths, how):  # type: ignore[no-untyped-def]
    """Change ``asked`` as questions go from the shelves of some codes to those of others."""
    ends = np.zeros((how.blocks, asked.shape[1], asked.shape[2] + 1), np.int64)
    for question in range(len(before)):
        old, new = shelf(before[question], how), shelf(after[question], how)
        if old != new:
            _read(ends, old, lengths[question], how.bits, -1)
            _read(ends, new, lengths[question], how.bits, 1)
    _add_up(asked, ends)


@jit
def _read(ends, place, length, bits, sign):  # type: ignore[no-untyped-def]
    """Where the planes begin and end that one question reads: those below its offset, then those at the top."""
    block, kind, offset = place
    own = ends[block, kind]
    own[max(0, offset - length)] += sign
    own[offset] -= sign
    if offset < length:
        own[offset - length + bits[kind]] += sign
        own[bits[kind]] -= sign


@jit
def _add_up(asked, ends):  # type: ignore[no-untyped-def]
    for block in range(asked.shape[0]):
        for kind in range(asked.shape[1]):
            total = 0
            for plane in range(asked.shape[2]):
                total += ends[block, kind, plane]
                asked[block, kind, plane] += total
