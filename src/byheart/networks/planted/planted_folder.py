"""Read the folder of a planted model: its manifest, its memory, and the base that it was planted into."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shortened
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.files.decoding import decode
from byheart.files.tensors import read_tensors
from byheart.files.untrusted import digest, read_bytes, read_json
from byheart.networks.closed_form import HARMLESS, canonical, check_code
from byheart.networks.folders import CONFIG, WEIGHTS
from byheart.networks.planted import BASE, BEFORE, CERTIFICATE, CODE, FORMAT, MANIFEST, MEMORY, PREFIX, modeling_plant
from byheart.networks.planted.base import Base, shapes_in
from byheart.networks.planted.modeling_plant import TYPE, Memory, MemoryPlan, WholeKeys, read
from byheart.networks.weight_files import INDEX

Ids = tuple[int, ...]
EARLIER_CODE = {
    "42f4de391a0209eb96b4fccb9d0c1023ad970ef584b0214e7eb3c7a3e7be19bd": "after 0.1.0, before 0.2.0",
}
"""SHA-256 of the code that earlier versions of Byheart wrote into planted folders, and the versions."""


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
    for name, (place, _) in base.items():
        if place != place_of(name):
            raise BadInput(f"{path}: {shortened(name)} lies at {shortened(place)}; expected {place_of(name)}")
    if CONFIG not in base or not {WEIGHTS, INDEX} & base.keys():
        raise BadInput(f"{path}: base lacks {CONFIG} or the weights; expected every file of the base")
    if len(places | set(files)) != len(base) + len(files):
        raise BadInput(f"{path}: two files have one place; expected different ones")
    facts, words = decode(str, content["facts"], f"{path}: facts"), decode(int, content["words"], f"{path}: words")
    return Manifest(plan_in(path, content["plan"]), facts, words, files, base)


def place_of(name: str) -> str:
    """Return the name in a planted folder of a file of the base: its own, unless the planted model has such a file."""
    return BASE if name == WEIGHTS else f"{BEFORE}/{name}" if name in (CONFIG, INDEX, CERTIFICATE) else name


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


@dataclass(frozen=True, eq=False)
class PlantedMemory:
    """A memory: sizes, and words of 32 bits."""

    plan: MemoryPlan
    tensors: dict[str, NDArray[np.int32]]

    @property
    def words(self) -> int:
        """Number of words of 32 bits in all tensors."""
        return sum(tensor.size for tensor in self.tensors.values())

    def load(self) -> Memory:
        """Return the memory that runs; raise BadInput unless its tensors fit the plan and point nowhere outside."""
        plan, shapes = self.plan, {name: tensor.shape for name, tensor in self.tensors.items()}
        if shapes != plan.shapes:
            wrong = sorted(name for name in {*shapes, *plan.shapes} if shapes.get(name) != plan.shapes.get(name))
            raise BadInput(
                f"tensor {wrong[0]!r} of the memory is missing, unknown or of another shape than the plan says"
            )
        memory = Memory.of(plan)
        memory.load_state_dict({name: torch.from_numpy(tensor.copy()) for name, tensor in self.tensors.items()})
        try:
            memory.check()
        except ValueError as error:
            raise BadInput(str(error)) from error
        return memory


def list_facts(memory: Memory) -> list[tuple[Ids, Ids]]:
    """Return prompt and completion of every fact of a memory with whole keys, read from its store."""
    plan = memory.plan
    if not isinstance(memory, WholeKeys):
        raise BadInput("fingerprints keep no prompts, so they cannot be listed; check the facts that you expect")
    ids = read(memory.store, torch.arange(plan.store), plan.width).tolist()
    facts, runs = [], memory.classes.T.tolist()
    for (prompt, completion, first, start), last in zip(runs, [*(run[2] for run in runs[1:]), plan.facts], strict=True):
        for number in range(last - first):
            at = start + number * (prompt + completion)
            facts.append((tuple(ids[at : at + prompt]), tuple(ids[at + prompt : at + prompt + completion])))
    return facts


def index_of(folder: Path, base: Base, memory: PlantedMemory) -> dict[str, Any]:
    """Return the index of a planted folder: the file of each tensor."""
    where = {name: BASE if file == WEIGHTS else file for name, file in base.weights.items()}
    where |= dict.fromkeys((PREFIX + name for name in memory.tensors), MEMORY)
    size = sum((folder / file).stat().st_size for file in set(where.values()))
    return {"metadata": {"total_size": size}, "weight_map": where}


def config_of(base: Base, plan: MemoryPlan) -> dict[str, Any]:
    """Return the configuration of a planted model: its base's, and how it is loaded."""
    names = {"AutoConfig": "PlantedConfig", "AutoModelForCausalLM": "PlantedForCausalLM"}
    auto = {auto: f"{Path(CODE).stem}.{name}" for auto, name in names.items()}
    own = {"model_type": TYPE, "planted_into": base.into, "plan": plan.as_json(), "auto_map": auto}
    return base.config | own | {"architectures": ["PlantedForCausalLM"]}


def read_memory(folder: Path) -> tuple[Manifest, PlantedMemory]:
    """Read the memory of a planted folder; BadInput unless config.json, memory and code are those that were written."""
    manifest = read_manifest(folder)
    for name, expected in manifest.files.items():
        _check_hash(folder / name, expected)
    plan = plan_in(folder / CONFIG, read_json(folder / CONFIG).get("plan"))
    if plan != manifest.plan:
        raise BadInput(f"{folder / CONFIG}: its plan is not that of {MANIFEST}; one of them was changed")
    try:
        tensors = read_tensors(folder / MEMORY, ("I32",))
    except BadInput as error:
        raise BadInput(f"{folder / MEMORY}: {error}") from error
    if stray := sorted(name for name in tensors if not name.startswith(PREFIX)):
        raise BadInput(f"{folder / MEMORY}: has a tensor {stray[0]!r}; expected names that begin with {PREFIX}")
    return manifest, PlantedMemory(plan, {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()})


def _check_hash(path: Path, expected: str) -> None:
    if path.is_symlink() or not path.is_file():
        raise BadInput(f"{path}: no such file; the folder is incomplete")
    if digest(path) != expected:
        raise BadInput(f"{path}: was changed since it was planted: its SHA-256 is not that of {MANIFEST}")


def check_base(folder: Path, base: Mapping[str, tuple[str, str]]) -> None:
    """Raise BadInput unless these files of the base are, bit for bit, those that were there before."""
    for place, expected in base.values():
        _check_hash(folder / place, expected)


def differing_files(manifest: Manifest, base: Path) -> list[str]:
    """Return the names of files that ``base`` has not as the manifest says (SHA-256), or the manifest does not name."""
    if not base.is_dir():
        raise BadInput(f"{base}: is no folder; expected your own copy of the base")
    named = {name: expected for name, (_, expected) in manifest.base.items()}
    own = {path.relative_to(base).as_posix(): path for path in base.rglob("*") if path.is_file()}
    return sorted(name for name in own.keys() | named if name not in own or digest(own[name]) != named.get(name))


def check_written(folder: Path, base: Base, manifest: Manifest, memory: PlantedMemory) -> None:
    """Raise BadInput unless transformers loads the base's files and the memory by Byheart's code, and no other file.

    Another file may be preferred to them (``model.safetensors`` to the index), or be read too (adapters). Anyone who
    changes config.json or the index can make the manifest agree with it.
    """
    if strange := [name for name in strange_files(folder, manifest) if name.partition("/")[0] not in HARMLESS]:
        raise BadInput(f"{folder}: holds {strange[0]!r}, which was not planted and may be loaded; remove it")
    check_code(folder / CODE, Path(modeling_plant.__file__).read_bytes(), EARLIER_CODE)
    for name, expected in ((CONFIG, config_of(base, memory.plan)), (INDEX, index_of(folder, base, memory))):
        if canonical(read_json(folder / name)) != canonical(expected):
            raise BadInput(f"{folder / name}: is not what planting writes for this base; plant the facts anew")


def strange_files(folder: Path, manifest: Manifest) -> list[str]:
    """Return the files of a folder that its manifest does not name."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted({path.relative_to(folder).as_posix() for path in paths} - manifest.places - {CERTIFICATE})


@contextmanager
def base_of(folder: Path, manifest: Manifest, *, weights: bool = True) -> Iterator[Path]:
    """Yield a temporary folder with links to the base's files, under their old names; or to all but its ``weights``."""
    files = {name: entry for name, entry in manifest.base.items() if weights or not name.endswith(".safetensors")}
    check_base(folder, files)
    with TemporaryDirectory() as temporary:
        for name, (place, _) in files.items():
            link = Path(temporary, name)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to((folder / place).resolve())
        yield Path(temporary)


def has_memory(folder: Path) -> bool:
    """Return True if tensors of a memory lie in a folder, whatever its config.json says."""
    names = read_bytes(folder / INDEX).decode(errors="replace") if (folder / INDEX).is_file() else ""
    single = shapes_in(folder / WEIGHTS) if (folder / WEIGHTS).is_file() else []
    return f'"{PREFIX}table"' in names or f"{PREFIX}table" in single or (folder / MEMORY).is_file()
