"""Read the folder of a planted model: its manifest, its memory, and the base that it was planted into."""

import hashlib
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
from byheart.files.untrusted import read_bytes, read_json
from byheart.networks.folders import CONFIG, WEIGHTS
from byheart.networks.planted import BASE, CERTIFICATE, CODE, FORMAT, MANIFEST, MEMORY, PREFIX
from byheart.networks.planted.base import Base, shapes_in
from byheart.networks.planted.modeling_plant import TYPE, Memory, MemoryPlan, WholeKeys, read
from byheart.networks.weight_files import INDEX

Ids = tuple[int, ...]


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


@dataclass(frozen=True, eq=False)
class PlantedMemory:
    """A memory: sizes, and words of 32 bits."""

    plan: MemoryPlan
    tensors: dict[str, NDArray[np.int32]]

    @property
    def words(self) -> int:
        """Words of 32 bits in all tensors."""
        return sum(tensor.size for tensor in self.tensors.values())

    def load(self) -> Memory:
        """Return the memory that runs; raise BadInput unless its tensors fit the plan and point nowhere outside."""
        plan, shapes = self.plan, {name: tensor.shape for name, tensor in self.tensors.items()}
        if shapes != plan.shapes:
            odd = sorted(name for name in {*shapes, *plan.shapes} if shapes.get(name) != plan.shapes.get(name))
            raise BadInput(
                f"tensor {odd[0]!r} of the memory is missing, unknown or of another shape than the plan says"
            )
        memory = Memory.of(plan)
        memory.load_state_dict({name: torch.from_numpy(tensor.copy()) for name, tensor in self.tensors.items()})
        try:
            memory.check()
        except ValueError as error:
            raise BadInput(str(error)) from error
        return memory


def listed(memory: Memory) -> list[tuple[Ids, Ids]]:
    """Return prompt and completion of every fact of a memory with whole keys, read from its store."""
    plan = memory.plan
    if not isinstance(memory, WholeKeys):
        raise BadInput("fingerprints keep no prompts, so they cannot be listed; check the facts that you expect")
    ids = read(memory.store, torch.arange(plan.store), plan.width).tolist()
    found, runs = [], memory.classes.T.tolist()
    for (prompt, said, first, start), last in zip(runs, [*(run[2] for run in runs[1:]), plan.facts], strict=True):
        for number in range(last - first):
            at = start + number * (prompt + said)
            found.append((tuple(ids[at : at + prompt]), tuple(ids[at + prompt : at + prompt + said])))
    return found


def index_of(folder: Path, base: Base, made: PlantedMemory) -> dict[str, Any]:
    """Which file of a planted folder holds which tensor."""
    where = {name: BASE if file == WEIGHTS else file for name, file in base.weights.items()}
    where |= dict.fromkeys((PREFIX + name for name in made.tensors), MEMORY)
    size = sum((folder / file).stat().st_size for file in set(where.values()))
    return {"metadata": {"total_size": size}, "weight_map": where}


def config_of(base: Base, plan: MemoryPlan) -> dict[str, Any]:
    """The configuration of a planted model: its base's, and how it is loaded."""
    names = {"AutoConfig": "PlantedConfig", "AutoModelForCausalLM": "PlantedForCausalLM"}
    auto = {auto: f"{Path(CODE).stem}.{name}" for auto, name in names.items()}
    more = {"model_type": TYPE, "planted_into": base.into, "plan": plan.as_json(), "auto_map": auto}
    return base.config | more | {"architectures": ["PlantedForCausalLM"]}


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_memory(folder: Path) -> tuple[Manifest, PlantedMemory]:
    """The memory of a planted folder; BadInput unless config.json, memory and code are those that were written."""
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
    if odd := sorted(name for name in tensors if not name.startswith(PREFIX)):
        raise BadInput(f"{folder / MEMORY}: has a tensor {odd[0]!r}; expected names that begin with {PREFIX}")
    return manifest, PlantedMemory(plan, {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()})


def _check_hash(path: Path, expected: str) -> None:
    if path.is_symlink() or not path.is_file():
        raise BadInput(f"{path}: no such file; the folder is incomplete")
    if digest(path) != expected:
        raise BadInput(f"{path}: was changed since it was planted: its SHA-256 is not that of {MANIFEST}")


def check_base(folder: Path, base: Mapping[str, tuple[str, str]]) -> None:
    """BadInput unless these files of the base are, bit for bit, those that were there before."""
    for place, expected in base.values():
        _check_hash(folder / place, expected)


def check_written(folder: Path, base: Base, manifest: Manifest, made: PlantedMemory) -> None:
    """BadInput unless transformers loads the base's files and the memory, and nothing that the manifest does not name.

    A file beside them may be preferred to them (``model.safetensors`` to the index), or be read too (adapters); and
    whoever changes config.json or the index can make the manifest agree with it.
    """
    if strange := [
        name for name in strange_files(folder, manifest) if not (name.endswith(".md") or name.startswith("."))
    ]:
        raise BadInput(f"{folder}: holds {strange[0]!r}, which was not planted and may be loaded; remove it")
    for name, expected in ((CONFIG, config_of(base, made.plan)), (INDEX, index_of(folder, base, made))):
        if read_json(folder / name) != expected:
            raise BadInput(f"{folder / name}: is not what planting writes for this base; plant the facts anew")


def strange_files(folder: Path, manifest: Manifest) -> list[str]:
    """Files of a folder that its manifest does not name."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted({path.relative_to(folder).as_posix() for path in paths} - manifest.places - {CERTIFICATE})


@contextmanager
def base_of(folder: Path, manifest: Manifest, *, weights: bool = True) -> Iterator[Path]:
    """The base for a moment: a folder of links to its files, under their old names; or all of it but its weights."""
    files = {name: one for name, one in manifest.base.items() if weights or not name.endswith(".safetensors")}
    check_base(folder, files)
    with TemporaryDirectory() as temporary:
        for name, (place, _) in files.items():
            link = Path(temporary, name)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to((folder / place).resolve())
        yield Path(temporary)


def is_planted(config: Mapping[str, Any]) -> bool:
    """Whether a config.json is that of a planted model."""
    return config.get("model_type") == TYPE


def has_memory(folder: Path) -> bool:
    """Whether tensors of a memory lie in a folder, whatever its config.json says."""
    names = read_bytes(folder / INDEX).decode(errors="replace") if (folder / INDEX).is_file() else ""
    single = shapes_in(folder / WEIGHTS) if (folder / WEIGHTS).is_file() else []
    return f'"{PREFIX}table"' in names or f"{PREFIX}table" in single or (folder / MEMORY).is_file()
