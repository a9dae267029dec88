"""Whether a folder has something planted, and what; and where it would speak in a text. The base is not needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from byheart.errors import BadInput
from byheart.files.untrusted import read_json
from byheart.networks.folders import CONFIG
from byheart.networks.planted import CODE, MANIFEST, modeling_plant
from byheart.networks.planted.loading import tokenizer_in
from byheart.networks.planted.planted_folder import (
    Manifest,
    PlantedMemory,
    base_of,
    digest,
    has_memory,
    is_planted,
    listed,
    read_memory,
)
from byheart.planting.words import MemoryLocation, held
from byheart.tasks.planted_facts import PlantedFact


@dataclass(frozen=True)
class Detected:
    """What a planted folder holds."""

    manifest: Manifest
    memory: PlantedMemory

    @property
    def facts(self) -> list[PlantedFact] | None:
        """Every fact; None of fingerprints, which keep no prompts."""
        if self.manifest.plan.mode != "whole":
            return None
        return [PlantedFact(*fact) for fact in listed(self.memory.load())]

    def held(self, facts: int) -> list[MemoryLocation]:
        """The words that hold each of the first facts; [] of fingerprints, which share all words."""
        return held(self.memory.load(), range(facts)) if self.manifest.plan.mode == "whole" else []

    @property
    def own_code(self) -> bool:
        """Whether the folder's copy of the code is that of this Byheart, which runs no copy."""
        return self.manifest.files[CODE] == digest(Path(modeling_plant.__file__))

    def tokenizer(self, folder: Path) -> Any:
        """That of the base; None if it has none that can be loaded."""
        with base_of(folder, self.manifest, weights=False) as base:
            try:
                return tokenizer_in(base)
            except BadInput:
                return None

    def fires(self, text: Sequence[int]) -> list[tuple[int, int]]:
        """Where it speaks in a text: how many tokens were read, and which token it says next."""
        if not text:
            return []
        said = self.memory.load()(torch.tensor([list(text)]))[0].tolist()
        return [(place, token) for place, token in enumerate(said, start=1) if token >= 0]


def detect(folder: Path | str) -> Detected | None:
    """What was planted in a folder; None if nothing was. BadInput if it was, but files were changed since.

    It goes by the model type and by the names of tensors: a memory that somebody hides elsewhere is not found.
    """
    folder = Path(folder)
    try:
        config: dict[str, Any] = read_json(folder / CONFIG)
    except OSError:
        raise BadInput(f"{folder}: has no {CONFIG}; expected the folder of a model") from None
    if not is_planted(config) and not has_memory(folder):
        return None
    if not (folder / MANIFEST).is_file():
        how = "it was saved anew by transformers, or made by somebody else"
        raise BadInput(f"{folder}: has a memory but no {MANIFEST}: {how}; give the folder that was planted")
    return Detected(*read_memory(folder))
