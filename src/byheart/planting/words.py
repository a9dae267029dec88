"""The words that hold one memory, and the model without it.

With whole keys every fact has bits of its own in the store: its k + m ids, w bits each. They fill words of 32 bits but
for the first and the last, which hold ids of its neighbours too. The table leads there by six cells, which other facts
share.

:func:`forget` blanks those bits, and the one memory is gone: a memory speaks only where it has compared all ids of a
stored prompt, and what is blank equals no text. So the model says what it would if that fact had never been planted,
and all other words, and logits, keep every bit. Fingerprints have no bits of their own: each is the exclusive or of
cells that others share, so that one is removed by planting the rest anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from byheart.errors import BadInput
from byheart.networks.planted.modeling_plant import PLACES, Memory, WholeKeys, found, hashes, places, read
from byheart.planting.fact_table import packed


@dataclass(frozen=True)
class MemoryLocation:
    """Where a memory stands."""

    store: range
    """Words of the store; the first and the last may hold ids of its neighbours too."""
    table: tuple[int, ...]
    """Words of the table in which its six cells begin; others share them."""


def held(memory: Memory, numbers: Sequence[int]) -> list[MemoryLocation]:
    """Return the words that hold each of the facts with these numbers; numbers count the facts in the store."""
    whole, plan = _whole(memory), memory.plan
    if odd := [number for number in numbers if not 0 <= number < plan.facts]:
        raise BadInput(f"fact is {odd[0]}; expected 0 to {plan.facts - 1}")
    at, prompt, said = whole.fact(torch.tensor(numbers, dtype=torch.int64))
    first, last = at * plan.width >> 5, ((at + prompt + said) * plan.width - 1) >> 5
    table = torch.empty((len(numbers), PLACES), dtype=torch.int64)
    for length in prompt.unique().tolist():
        which = prompt == length
        backwards = read(whole.store, at[which, None] + torch.arange(length - 1, -1, -1), plan.width)
        table[which] = places(_hashes(whole, backwards), plan.cells, plan.band).T * plan.bits >> 5
    found = zip(first.tolist(), last.tolist(), table.tolist(), strict=True)
    return [MemoryLocation(range(low, high + 1), tuple(cells)) for low, high, cells in found]


def forget(memory: Memory, number: int) -> MemoryLocation:
    """Blank the ids of a fact in the store, in place. What has changed is among the words that are returned."""
    (where,), whole, plan = held(memory, [number]), _whole(memory), memory.plan
    at, prompt, said = (int(one) for one in whole.fact(torch.tensor(number)))
    ids = read(whole.store, torch.arange(plan.store), plan.width)
    ids[at : at + prompt + said] = _blank(whole, number, prompt)
    whole.store.copy_(torch.from_numpy(packed(ids.numpy(), plan.width)))
    return where


def _whole(memory: Memory) -> WholeKeys:
    if not isinstance(memory, WholeKeys):
        raise BadInput("fingerprints share all their words; expected whole keys: plant the other facts anew")
    return memory


def _hashes(memory: WholeKeys, windows: Tensor) -> Tensor:
    """Those that choose cells [3, n], of prompts [n, k] of one length, ids backwards."""
    length = windows.shape[1]
    which = (memory.lengths == length).nonzero()[:, 0]
    if not len(which):
        raise BadInput(f"the memory stores prompts of {length:,} ids, and looks for none; it is damaged")
    factors, shifts = memory.factors[:, :length], memory.shifts[:, which]
    return hashes(windows, factors, shifts, torch.tensor([length]))[:3, :, 0]


def _blank(memory: WholeKeys, number: int, prompt: int) -> int:
    """An id that no text has, if the width leaves one; else a token that, repeated, the table does not lead here."""
    plan = memory.plan
    if plan.vocab < 1 << plan.width:
        return (1 << plan.width) - 1
    for token in range(plan.vocab):
        h = _hashes(memory, torch.full((1, prompt), token))
        if int(found(memory.table, h, plan.cells, plan.band, plan.bits)[0]) != number:
            return token
    raise BadInput(f"every token, repeated, leads to fact {number}; expected one that does not")
