"""Make a memory from facts: its plan and its tensors, in either mode. The same facts and seed give the same memory.

*Whole keys*: the table holds the numbers of facts, ⌈log₂N⌉ bits each; the store has all ids, one fact after the other.
*Fingerprints*: the table holds b bits of every prompt's hash, and a second one the completions: token and "last".

The value of a key is the exclusive or of six cells of a table. Every bit of the values is one banded linear system
modulo 2 with the same left-hand side: eliminated once, solved for each bit
(:mod:`byheart.constructions.gadgets.parities`). Cells that no equation determines are drawn, so that any other key
finds bits that look random.

All numbers are drawn from a seed by SHAKE-256, the same on every machine and in every version. So anyone who has the
facts can plant them again, and compare the memory bit for bit.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.planted.modeling_plant import (
    MOST_BITS,
    PRIME,
    WIDEST_BAND,
    MemoryPlan,
    hashes,
    moved,
    places,
    prints,
    words_for,
)
from byheart.networks.planted.planted_folder import PlantedMemory
from byheart.tasks.planted_facts import PlantedFact

DRAWS = 64
"""Number of hashes that are tried before planting gives up."""
TIGHT = 0.985
"""Share of cells that keys take, if there are many keys."""

Integers = NDArray[np.int64]
Tensors = dict[str, NDArray[np.int32]]


def make_memory(facts: Sequence[PlantedFact], vocab: int, *, bits: int | None = None, seed: int = 0) -> PlantedMemory:
    """Make the memory of facts as :func:`~byheart.tasks.planted_facts.different` gives them.

    ``bits`` of a fingerprint; None: whole keys.
    """
    if bits is not None and not 1 <= bits <= MOST_BITS:
        raise BadInput(f"a fingerprint has {bits} bits; expected 1 to {MOST_BITS}")
    for draw in range(DRAWS):
        memory = _attempt(facts, vocab, bits, seed, draw)
        if memory is not None:
            return memory
    raise BadInput(f"no table was found for {len(facts):,} facts in {DRAWS} draws; give another --seed")


def _attempt(facts: Sequence[PlantedFact], vocab: int, bits: int | None, seed: int, draw: int) -> PlantedMemory | None:
    """Return the memory with one hash; None if this hash does not allow it."""
    lengths = np.array(sorted({len(fact.prompt) for fact in facts}))
    count = 3 if bits is None else 5
    tensors: dict[str, Integers] = {
        "lengths": lengths,
        "factors": draw_numbers(seed, draw, "factors", count, int(lengths[-1])),
        "shifts": draw_numbers(seed, draw, "shifts", count, len(lengths)),
    }
    h = _hashes(facts, tensors)
    wide = max(1, (len(facts) - 1).bit_length()) if bits is None else bits
    values = np.arange(len(facts)) if bits is None else prints(torch.from_numpy(h), bits).numpy()
    size = size_for(len(facts), draw)
    cells = solve(h[:3], values, wide, size, _free(seed, draw, "table", wide, size))
    if cells is None:
        return None
    rest = _store(facts, vocab) if bits is None else _answers(facts, vocab, h, seed, draw)
    if rest is None:
        return None
    ends = np.zeros(vocab, np.int64)
    ends[[fact.prompt[-1] for fact in facts]] = 1
    plan = {
        "mode": "whole" if bits is None else "print",
        "vocab": vocab,
        "facts": len(facts),
        "longest": int(lengths[-1]),
        "lengths": len(lengths),
        "says": max(len(fact.completion) for fact in facts),
        "bits": wide,
        "cells": size.cells,
        "band": size.band,
        **{"classes": 0, "store": 0, "answers": 0, "answers_band": 0},
        "seed": seed,
        "draw": draw,
        **rest[0],
    }
    try:
        checked = MemoryPlan.of(plan)
    except ValueError as error:
        raise BadInput(f"these facts cannot be planted: {error}") from error
    packs = {"table": pack(cells, wide), "ends": pack(ends, 1)}
    small = {name: tensor.astype(np.int32) for name, tensor in tensors.items()}
    return PlantedMemory(checked, {**small, **packs, **rest[1]})


def _hashes(facts: Sequence[PlantedFact], tensors: Mapping[str, Integers]) -> Integers:
    """Return the hashes [H, N] of prompts; facts are sorted by the lengths of their prompts."""
    parts, start = [], 0
    sizes = np.array([len(fact.prompt) for fact in facts])
    for which, length in enumerate(tensors["lengths"]):
        stop = int(np.searchsorted(sizes, length, side="right"))
        windows = np.array([fact.prompt[::-1] for fact in facts[start:stop]])
        factors, shifts = tensors["factors"][:, :length], tensors["shifts"][:, which : which + 1]
        arrays = (windows, factors, shifts, length[None])
        parts.append(hashes(*(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays))[:, :, 0].numpy())
        start = stop
    return np.concatenate(parts, axis=1)


def _store(facts: Sequence[PlantedFact], vocab: int) -> tuple[dict[str, int], Tensors]:
    """Return sizes and tensors of whole keys: where facts of each class begin, and the ids of all."""
    runs = classes(facts)
    numbers = np.array([first for _, _, first in runs] + [len(facts)])
    each = np.array([prompt + completion for prompt, completion, _ in runs])
    starts = np.concatenate([[0], np.cumsum(np.diff(numbers) * each)])
    columns = [[prompt for prompt, _, _ in runs], [completion for _, completion, _ in runs], numbers[:-1], starts[:-1]]
    if starts[-1] >= 1 << 31:
        raise BadInput(f"the facts have {starts[-1]:,} tokens; expected less than 2³¹")
    ids = np.fromiter(chain.from_iterable(fact.prompt + fact.completion for fact in facts), np.int64, int(starts[-1]))
    tensors = {"classes": np.array(columns).astype(np.int32), "store": pack(ids, max(1, (vocab - 1).bit_length()))}
    return {"classes": len(runs), "store": int(starts[-1])}, tensors


def _answers(
    facts: Sequence[PlantedFact], vocab: int, h: Integers, seed: int, draw: int
) -> tuple[dict[str, int], Tensors] | None:
    """Return sizes and tensors of fingerprints: the table of completions, by hash and number of tokens said."""
    steps, width = draw_numbers(seed, draw, "steps", 3), max(1, (vocab - 1).bit_length())
    lengths = np.array([len(fact.completion) for fact in facts])
    which = np.repeat(np.arange(len(facts)), lengths)
    done = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    tokens = np.fromiter(chain.from_iterable(fact.completion for fact in facts), np.int64, len(which))
    values = tokens | (done + 1 == lengths[which]).astype(np.int64) << width
    keys = moved(torch.from_numpy(h[:3, which]), torch.from_numpy(steps), torch.from_numpy(done)).numpy()
    size = size_for(len(which), draw)
    cells = solve(keys, values, width + 1, size, _free(seed, draw, "answers", width + 1, size))
    if cells is None:
        return None
    tensors = {"steps": steps.astype(np.int32), "answers": pack(cells, width + 1)}
    return {"answers": size.cells, "answers_band": size.band}, tensors


def classes(facts: Sequence[PlantedFact]) -> list[tuple[int, int, int]]:
    """Return prompt length, completion length and first fact of every run of facts that have equal lengths."""
    sizes = [(len(fact.prompt), len(fact.completion)) for fact in facts]
    starts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(sizes)) if a != b)]
    return [(*sizes[start], start) for start in starts]


@dataclass(frozen=True)
class TableShape:
    """The number of cells, and of the band in which a key's six lie: a power of 2."""

    cells: int
    band: int


def size_for(keys: int, draw: int = 0) -> TableShape:
    """Return the size for ``keys`` keys; it grows a little after every draw that could not be solved.

    Cells near either end lie in few bands, so that a share of a band stays free. The other numbers are measured.

    >>> size_for(100_000), size_for(1)
    (TableShape(cells=101766, band=1024), TableShape(cells=16, band=16))
    """
    band = 16 if keys < 50 else min(WIDEST_BAND, max(64, 1 << (keys // 24).bit_length()))
    room = 16 + 0.4 * band + keys * (0.0095 + 4 / band) if keys >= 50 else band / 2 + keys
    cells = max(keys + room, keys / TIGHT, band) + draw * (8 + keys // 200)
    return TableShape(int(cells), band)


def solve(h: Integers, values: Integers, bits: int, size: TableShape, free: bytes) -> Integers | None:
    """Return the cells for keys with hashes h [3, N] and values [N]; None if this hash does not allow it."""
    from byheart.constructions.gadgets import parities  # imports numba, which readers of a memory do not need

    keys = places(torch.from_numpy(h), size.cells, size.band).numpy().T
    first = h[0] * (size.cells - size.band + 1) >> 31
    order = np.argsort(first, kind="stable")
    system = parities.reduce_band(
        np.ascontiguousarray(keys[order]), first[order] >> 6, size.cells, (size.band + 63) // 64 + 1
    )
    drawn = np.unpackbits(np.frombuffer(free, np.uint8), count=bits * size.cells).reshape(bits, size.cells)
    cells = np.zeros(size.cells, np.int64)
    for bit in range(bits):
        plane = parities.solve(system, (values[order] >> bit & 1).astype(np.uint8), np.ascontiguousarray(drawn[bit]))
        if plane is None:
            return None
        cells |= plane.astype(np.int64) << bit
    return cells


def pack(values: Integers, width: int) -> NDArray[np.int32]:
    """Return values of ``width`` bits in words of 32, without gaps, and one more word of zeros.

    >>> pack(np.array([0, 1, 2, 3]), 2).tolist() == [0b11_10_01_00, 0]
    True
    """
    bits = np.unpackbits(values.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")[:, :width]
    data = np.packbits(bits.ravel(), bitorder="little")
    words = np.zeros(4 * words_for(len(values), width), np.uint8)
    words[: len(data)] = data
    return words.view("<i4").astype(np.int32)


def draw_numbers(seed: int, draw: int, name: str, *shape: int) -> Integers:
    """Draw numbers from 0 to 2³¹ − 2, nearly uniform: 64 bits modulo that prime.

    >>> draw_numbers(0, 0, "factors", 2).tolist() == draw_numbers(0, 0, "factors", 3)[:2].tolist()
    True
    """
    words = np.frombuffer(_stream(seed, draw, name, 8 * int(np.prod(shape))), "<u8")
    return (words % np.uint64(PRIME)).astype(np.int64).reshape(shape)


def _free(seed: int, draw: int, name: str, bits: int, size: TableShape) -> bytes:
    return _stream(seed, draw, f"free {name}", (bits * size.cells + 7) // 8)


def _stream(seed: int, draw: int, name: str, size: int) -> bytes:
    """Return ``size`` bytes that look random."""
    return hashlib.shake_256(f"byheart-plant-1 {seed} {draw} {name}".encode()).digest(size)
