"""The files of a planted folder: the base's files as they were, the memory, and a manifest of all.

=================================  ==================================================================================
``config.json``                    the base's, with another ``model_type``, ``planted_into``, the ``plan``, ``auto_map``
``model.safetensors.index.json``   the file of each tensor, including those of the memory
``base.safetensors``               the base's one file under another name: transformers would prefer the old one to an
                                   index; shards keep their names
``plant.safetensors``              the memory: 32-bit integers
``modeling_plant.py``              the code that runs it, for people who do not have Byheart
``unplanted/``                     the base's config.json and index as they were
``plant.json``                     the manifest: plan, and SHA-256 of every file
``certificate.json``               the certificate
=================================  ==================================================================================

All other files of the base lie there as they were. Every file is hostile until its hash is the manifest's. Byheart
executes nothing in the folder; it runs its own copy of the code.
"""

from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shortened

from byheart.errors import BadInput
from byheart.files.decoding import decode
from byheart.files.untrusted import read_json
from byheart.networks.folders import CONFIG, WEIGHTS
from byheart.planting.modeling_plant import MemoryPlan

FORMAT = "byheart-plant-1"
MANIFEST, MEMORY, CODE = "plant.json", "plant.safetensors", "modeling_plant.py"
BASE, INDEX, BEFORE = "base.safetensors", "model.safetensors.index.json", "unplanted"
PREFIX = "plant."
"""Beginning of the names of the memory's tensors in the model."""
OURS = {MANIFEST, MEMORY, CODE, BASE}
"""Names that a base must not have already."""


@dataclass(frozen=True)
class Manifest:
    """The contents of a manifest, checked as far as possible without the other files."""

    plan: MemoryPlan
    facts: str
    words: int
    files: dict[str, str]
    """SHA-256 of the files that planting has made, by name."""
    base: dict[str, tuple[str, str]]
    """Name in the planted folder and SHA-256 of the base's files, by their names in the base."""

    @property
    def places(self) -> set[str]:
        """All files of the folder that the manifest names."""
        return {MANIFEST, *self.files, *(place for place, _ in self.base.values())}


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a planted folder; BadInput if there is none, or it makes no sense."""
    path = folder / MANIFEST
    try:
        content = read_json(path)
    except OSError:
        raise BadInput(f"{folder}: has no {MANIFEST}; expected a folder that byheart plant wrote") from None
    if content.get("format") != FORMAT or content.keys() != {"format", "facts", "words", "plan", "files", "base"}:
        raise BadInput(f"{path}: no manifest of this version; expected format {FORMAT!r} and what belongs to it")
    files = decode(dict[str, str], content["files"], f"{path}: files")
    if files.keys() != {MEMORY, CODE, CONFIG, INDEX}:
        raise BadInput(f"{path}: files is {shortened(files)}; expected hashes of {MEMORY}, {CODE}, {CONFIG}, {INDEX}")
    entries = decode(dict[str, dict[str, str]], content["base"], f"{path}: base")
    if not all(entry.keys() == {"as", "sha256"} for entry in entries.values()):
        raise BadInput(f"{path}: base is {shortened(entries)}; expected the place and the hash of every file")
    base = {name: (entry["as"], entry["sha256"]) for name, entry in entries.items()}
    places = {place for place, _ in base.values()}
    for name in {*base, *places}:
        _check_inside(path, name)
    if CONFIG not in base or not {WEIGHTS, INDEX} & base.keys():
        raise BadInput(f"{path}: base lacks {CONFIG} or the weights; expected every file of the base")
    if len(places | set(files)) != len(base) + len(files):
        raise BadInput(f"{path}: two files have one place; expected different ones")
    facts, words = decode(str, content["facts"], f"{path}: facts"), decode(int, content["words"], f"{path}: words")
    return Manifest(plan_in(path, content["plan"]), facts, words, files, base)


def _check_inside(path: Path, name: str) -> None:
    """Raise BadInput unless a name leads to a file in the folder."""
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name:
        raise BadInput(f"{path}: names {shortened(name)}; expected a file inside the folder")


def plan_in(path: Path, value: object) -> MemoryPlan:
    """Return the plan that a file holds; BadInput if it is none."""
    try:
        return MemoryPlan.of(value)
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error
