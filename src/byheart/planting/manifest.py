"""The manifest of a planted folder: its plan, and the SHA-256 of every file. It is hostile until it is checked."""

from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shortened

from byheart.errors import BadInput
from byheart.files.decoding import decode
from byheart.files.untrusted import read_json
from byheart.networks.folders import CONFIG, WEIGHTS
from byheart.planting.layout import CODE, FORMAT, INDEX, MANIFEST, MEMORY
from byheart.planting.modeling_plant import MemoryPlan


@dataclass(frozen=True)
class Manifest:
    """What a planted folder says of itself, checked as far as that goes without the files."""

    plan: MemoryPlan
    facts: str
    words: int
    files: dict[str, str]
    """SHA-256 of what planting has made, by name."""
    base: dict[str, tuple[str, str]]
    """Name in the planted folder and SHA-256 of the base's files, by the names that they had."""

    @property
    def places(self) -> set[str]:
        """All files of the folder that the manifest names."""
        return {MANIFEST, *self.files, *(place for place, _ in self.base.values())}


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a planted folder; BadInput if there is none, or it makes no sense."""
    path = folder / MANIFEST
    try:
        given = read_json(path)
    except OSError:
        raise BadInput(f"{folder}: has no {MANIFEST}; expected a folder that byheart plant wrote") from None
    if given.get("format") != FORMAT or given.keys() != {"format", "facts", "words", "plan", "files", "base"}:
        raise BadInput(f"{path}: no manifest of this version; expected format {FORMAT!r} and what belongs to it")
    files = decode(dict[str, str], given["files"], f"{path}: files")
    if files.keys() != {MEMORY, CODE, CONFIG, INDEX}:
        raise BadInput(f"{path}: files is {shortened(files)}; expected hashes of {MEMORY}, {CODE}, {CONFIG}, {INDEX}")
    base = decode(dict[str, dict[str, str]], given["base"], f"{path}: base")
    if not all(entry.keys() == {"as", "sha256"} for entry in base.values()):
        raise BadInput(f"{path}: base is {shortened(base)}; expected the place and the hash of every file")
    found = {name: (entry["as"], entry["sha256"]) for name, entry in base.items()}
    for name in {*found, *(place for place, _ in found.values())}:
        _check_inside(path, name)
    if CONFIG not in found or not {WEIGHTS, INDEX} & found.keys():
        raise BadInput(f"{path}: base lacks {CONFIG} or the weights; expected every file of the base")
    if len({place for place, _ in found.values()} | set(files)) != len(found) + len(files):
        raise BadInput(f"{path}: two files have one place; expected different ones")
    facts, words = decode(str, given["facts"], f"{path}: facts"), decode(int, given["words"], f"{path}: words")
    return Manifest(plan_in(path, given["plan"]), facts, words, files, found)


def _check_inside(path: Path, name: str) -> None:
    """BadInput unless a name leads to a file in the folder."""
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name:
        raise BadInput(f"{path}: names {shortened(name)}; expected a file inside the folder")


def plan_in(path: Path, given: object) -> MemoryPlan:
    """The plan that a file holds."""
    try:
        return MemoryPlan.of(given)
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error
