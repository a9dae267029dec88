"""Facts into a memory: its plan and its tensors, in either mode. The same facts and seed give the same memory.

*Whole keys*: the table holds the numbers of facts, ⌈log₂N⌉ bits each; the store has all ids, one fact after the other.
*Fingerprints*: the table holds b bits of every prompt's hash, and a second one the completions: token and "last".
"""

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.planted.modeling_plant import MOST_BITS, MemoryPlan, hashes, moved, prints
from byheart.networks.planted.planted_folder import PlantedMemory
from byheart.planting.fact_table import TableShape, packed, size_for, solved
from byheart.planting.hashing import drawn, stream
from byheart.tasks.planted_facts import PlantedFact

DRAWS = 64
"""Hashes that are tried before it is given up."""

Tensors = dict[str, NDArray[np.int32]]


def made(facts: Sequence[PlantedFact], vocab: int, *, bits: int | None = None, seed: int = 0) -> PlantedMemory:
    """The memory of facts as :func:`~byheart.tasks.planted_facts.different` gives them.

    ``bits`` of a fingerprint; None: whole keys.
    """
    if bits is not None and not 1 <= bits <= MOST_BITS:
        raise BadInput(f"a fingerprint has {bits} bits; expected 1 to {MOST_BITS}")
    for draw in range(DRAWS):
        found = _tried(facts, vocab, bits, seed, draw)
        if found is not None:
            return found
    raise BadInput(f"no table was found for {len(facts):,} facts in {DRAWS} draws; give another --seed")


def _tried(facts: Sequence[PlantedFact], vocab: int, bits: int | None, seed: int, draw: int) -> PlantedMemory | None:
    """The memory with one hash, if that allows it."""
    lengths = np.array(sorted({len(fact.prompt) for fact in facts}))
    count = 3 if bits is None else 5
    tensors: dict[str, NDArray[np.int64]] = {
        "lengths": lengths,
        "factors": drawn(seed, draw, "factors", count, int(lengths[-1])),
        "shifts": drawn(seed, draw, "shifts", count, len(lengths)),
    }
    h = _hashes(facts, tensors)
    said = max(len(fact.completion) for fact in facts)
    wide = max(1, (len(facts) - 1).bit_length()) if bits is None else bits
    values = np.arange(len(facts)) if bits is None else prints(torch.from_numpy(h), bits).numpy()
    size = size_for(len(facts), draw)
    cells = solved(h[:3], values, wide, size, _free(seed, draw, "table", wide, size))
    if cells is None:
        return None
    sizes = {"bits": wide, "cells": size.cells, "band": size.band}
    packs = {"table": packed(cells, wide), "ends": _ends(facts, vocab)}
    more = _store(facts, vocab) if bits is None else _answers(facts, vocab, h, seed, draw)
    if more is None:
        return None
    plan = {
        **{"mode": "whole" if bits is None else "print", "vocab": vocab, "facts": len(facts)},
        **{"longest": int(lengths[-1]), "lengths": len(lengths), "says": said, "seed": seed, "draw": draw},
        **{"classes": 0, "store": 0, "answers": 0, "answers_band": 0},
        **sizes,
        **more[0],
    }
    try:
        checked = MemoryPlan.of(plan)
    except ValueError as error:
        raise BadInput(f"these facts cannot be planted: {error}") from error
    return PlantedMemory(checked, {**{name: one.astype(np.int32) for name, one in tensors.items()}, **packs, **more[1]})


def _hashes(facts: Sequence[PlantedFact], tensors: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """[H, N], facts being sorted by the lengths of their prompts."""
    parts, start = [], 0
    sizes = np.array([len(fact.prompt) for fact in facts])
    for which, length in enumerate(tensors["lengths"]):
        stop = int(np.searchsorted(sizes, length, side="right"))
        windows = np.array([fact.prompt[::-1] for fact in facts[start:stop]])
        factors, shifts = tensors["factors"][:, :length], tensors["shifts"][:, which : which + 1]
        given = (torch.from_numpy(np.ascontiguousarray(one)) for one in (windows, factors, shifts, length[None]))
        parts.append(hashes(*given)[:, :, 0].numpy())
        start = stop
    return np.concatenate(parts, axis=1)


def _ends(facts: Sequence[PlantedFact], vocab: int) -> NDArray[np.int32]:
    bits = np.zeros(vocab, np.int64)
    bits[[fact.prompt[-1] for fact in facts]] = 1
    return packed(bits, 1)


def _store(facts: Sequence[PlantedFact], vocab: int) -> tuple[dict[str, int], Tensors]:
    """Whole keys: where facts of each class begin, and the ids of all."""
    runs = classes(facts)
    numbers = np.array([first for _, _, first in runs] + [len(facts)])
    each = np.array([prompt + said for prompt, said, _ in runs])
    starts = np.concatenate([[0], np.cumsum(np.diff(numbers) * each)])
    columns = [[prompt for prompt, _, _ in runs], [said for _, said, _ in runs], numbers[:-1], starts[:-1]]
    if starts[-1] >= 1 << 31:
        raise BadInput(f"the facts have {starts[-1]:,} tokens; expected less than 2³¹")
    ids = np.fromiter(chain.from_iterable(fact.prompt + fact.completion for fact in facts), np.int64, int(starts[-1]))
    width = max(1, (vocab - 1).bit_length())
    tensors = {"classes": np.array(columns).astype(np.int32), "store": packed(ids, width)}
    return {"classes": len(runs), "store": int(starts[-1])}, tensors


def _answers(
    facts: Sequence[PlantedFact], vocab: int, h: NDArray[np.int64], seed: int, draw: int
) -> tuple[dict[str, int], Tensors] | None:
    """Fingerprints: the table of completions, under a prompt's hashes and how much was said."""
    steps, width = drawn(seed, draw, "steps", 3), max(1, (vocab - 1).bit_length())
    lengths = np.array([len(fact.completion) for fact in facts])
    which = np.repeat(np.arange(len(facts)), lengths)
    said = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    tokens = np.fromiter(chain.from_iterable(fact.completion for fact in facts), np.int64, len(which))
    values = tokens | (said + 1 == lengths[which]).astype(np.int64) << width
    keys = moved(torch.from_numpy(h[:3, which]), torch.from_numpy(steps), torch.from_numpy(said)).numpy()
    size = size_for(len(which), draw)
    cells = solved(keys, values, width + 1, size, _free(seed, draw, "answers", width + 1, size))
    if cells is None:
        return None
    tensors = {"steps": steps.astype(np.int32), "answers": packed(cells, width + 1)}
    return {"answers": size.cells, "answers_band": size.band}, tensors


def _free(seed: int, draw: int, name: str, bits: int, size: TableShape) -> bytes:
    return stream(seed, draw, f"free {name}", (bits * size.cells + 7) // 8)


def classes(facts: Sequence[PlantedFact]) -> list[tuple[int, int, int]]:
    """Prompt length, completion length and first fact of every run of facts that are alike in both."""
    sizes = [(len(fact.prompt), len(fact.completion)) for fact in facts]
    starts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(sizes)) if a != b)]
    return [(*sizes[start], start) for start in starts]
