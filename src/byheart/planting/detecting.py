"""Detect a memory in a folder, list its facts and the words that hold them, and forget a fact. No base is needed.

With whole keys every fact has bits of its own in the store: its k + m ids, w bits each. They fill words of 32 bits but
for the first and the last, which hold ids of its neighbours too. The table leads there by six cells, which other facts
share.

:func:`forget` blanks those bits, and the one memory is gone: a memory speaks only where it has compared all ids of a
stored prompt, and a blank equals no text. So the model says what it would say if that fact had never been planted, and
all other words, and logits, keep every bit. Fingerprints have no bits of their own: each is the exclusive or of cells
that others share. To remove one, plant the other facts anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from byheart.errors import BadInput
from byheart.files.untrusted import digest, read_json
from byheart.networks.folders import CONFIG
from byheart.networks.planted import CODE, MANIFEST, modeling_plant
from byheart.networks.planted.base import tokenizer_in
from byheart.networks.planted.modeling_plant import PLACES, TYPE, Memory, WholeKeys, found, hashes, places, read
from byheart.networks.planted.planted_folder import (
    Manifest,
    PlantedMemory,
    base_of,
    check_base,
    differing_files,
    has_memory,
    list_facts,
    read_memory,
)
from byheart.planting.memory import pack
from byheart.tasks.planted_facts import PlantedFact


@dataclass(frozen=True)
class MemoryLocation:
    """The words that hold a memory."""

    store: range
    """Words of the store; the first and the last may hold ids of its neighbours too."""
    table: tuple[int, ...]
    """Words of the table in which its six cells begin; other facts share them."""


@dataclass(frozen=True)
class Detected:
    """The contents of a planted folder."""

    manifest: Manifest
    memory: PlantedMemory

    @property
    def facts(self) -> list[PlantedFact] | None:
        """Every fact; None if the memory has fingerprints, which keep no prompts."""
        if self.manifest.plan.mode != "whole":
            return None
        return [PlantedFact(*fact) for fact in list_facts(self.memory.load())]

    def held(self, facts: int) -> list[MemoryLocation]:
        """Return the words that hold each of the first facts; none if facts are fingerprints, which share all words."""
        return held(self.memory.load(), range(facts)) if self.manifest.plan.mode == "whole" else []

    @property
    def own_code(self) -> bool:
        """True if the folder's copy of the code is that of this Byheart, which runs no copy."""
        return self.manifest.files[CODE] == digest(Path(modeling_plant.__file__))

    def tokenizer(self, folder: Path) -> Any:
        """Return the base's tokenizer; None if it has none that can be loaded."""
        with base_of(folder, self.manifest, weights=False) as base:
            try:
                return tokenizer_in(base)
            except BadInput:
                return None

    def differing_files(self, folder: Path, base: Path) -> list[str]:
        """Return the names of the base's files in a planted folder that are not those of ``base``, the user's copy."""
        check_base(folder, self.manifest.base)
        return differing_files(self.manifest, base)

    def fires(self, text: Sequence[int]) -> list[tuple[int, int]]:
        """Return where the memory speaks in a text: the number of tokens read, and the token that it says next."""
        if not text:
            return []
        tokens = self.memory.load()(torch.tensor([list(text)]))[0].tolist()
        return [(place, token) for place, token in enumerate(tokens, start=1) if token >= 0]

    def completion(self, prompt: Sequence[int]) -> list[int]:
        """Return the tokens that the memory says after a prompt; none if no planted fact ends there."""
        memory, text = self.memory.load(), list(prompt)
        while len(text) - len(prompt) < self.manifest.plan.says:
            if (said := int(memory(torch.tensor([text]))[0, -1])) < 0:
                break
            text.append(said)
        return text[len(prompt) :]


def detect(folder: Path | str) -> Detected | None:
    """Return what was planted in a folder, or None. Raise BadInput if files were changed since.

    The model type and the names of tensors decide: a memory that somebody hides elsewhere is not found.
    """
    folder = Path(folder)
    try:
        config: dict[str, Any] = read_json(folder / CONFIG)
    except OSError:
        raise BadInput(f"{folder}: has no {CONFIG}; expected the folder of a model") from None
    if config.get("model_type") != TYPE and not has_memory(folder):
        return None
    if not (folder / MANIFEST).is_file():
        how = "it was saved anew by transformers, or made by somebody else"
        raise BadInput(f"{folder}: has a memory but no {MANIFEST}: {how}; give the folder that was planted")
    return Detected(*read_memory(folder))


def held(memory: Memory, numbers: Sequence[int]) -> list[MemoryLocation]:
    """Return the words that hold the facts with these numbers; ``list_facts`` returns facts in that order."""
    whole, plan = _whole(memory), memory.plan
    if stray := [number for number in numbers if not 0 <= number < plan.facts]:
        raise BadInput(f"fact is {stray[0]}; expected 0 to {plan.facts - 1}")
    at, prompt, completion = whole.fact(torch.tensor(numbers, dtype=torch.int64))
    first, last = at * plan.width >> 5, ((at + prompt + completion) * plan.width - 1) >> 5
    table = torch.empty((len(numbers), PLACES), dtype=torch.int64)
    for length in prompt.unique().tolist():
        which = prompt == length
        backwards = read(whole.store, at[which, None] + torch.arange(length - 1, -1, -1), plan.width)
        table[which] = places(_hashes(whole, backwards), plan.cells, plan.band).T * plan.bits >> 5
    spans = zip(first.tolist(), last.tolist(), table.tolist(), strict=True)
    return [MemoryLocation(range(low, high + 1), tuple(cells)) for low, high, cells in spans]


def forget(memory: Memory, number: int) -> MemoryLocation:
    """Blank the ids of a fact in the store, in place. All changes are within the words that are returned."""
    (where,), whole, plan = held(memory, [number]), _whole(memory), memory.plan
    at, prompt, completion = (int(size) for size in whole.fact(torch.tensor(number)))
    ids = read(whole.store, torch.arange(plan.store), plan.width)
    ids[at : at + prompt + completion] = _blank(whole, number, prompt)
    whole.store.copy_(torch.from_numpy(pack(ids.numpy(), plan.width)))
    return where


def _whole(memory: Memory) -> WholeKeys:
    if not isinstance(memory, WholeKeys):
        raise BadInput("fingerprints share all their words; expected whole keys: plant the other facts anew")
    return memory


def _hashes(memory: WholeKeys, windows: Tensor) -> Tensor:
    """Return the hashes that choose cells [3, n], for prompts [n, k] of one length, ids backwards."""
    length = windows.shape[1]
    which = (memory.lengths == length).nonzero()[:, 0]
    if not len(which):
        raise BadInput(f"the memory stores prompts of {length:,} ids, and looks for none; it is damaged")
    factors, shifts = memory.factors[:, :length], memory.shifts[:, which]
    return hashes(windows, factors, shifts, torch.tensor([length]))[:3, :, 0]


def _blank(memory: WholeKeys, number: int, prompt: int) -> int:
    """Return an id that no text has, if there is one; otherwise a token that, repeated, does not lead to the fact."""
    plan = memory.plan
    if plan.vocab < 1 << plan.width:
        return (1 << plan.width) - 1
    for token in range(plan.vocab):
        h = _hashes(memory, torch.full((1, prompt), token))
        if int(found(memory.table, h, plan.cells, plan.band, plan.bits)[0]) != number:
            return token
    raise BadInput(f"every token, repeated, leads to fact {number}; expected one that does not")
