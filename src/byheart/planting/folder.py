"""Write, read and check the folder of a planted model (:mod:`byheart.planting.manifest`), and give its base back."""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from byheart.certificates.certificate import FILE as CERTIFICATE
from byheart.errors import BadInput
from byheart.files.tensors import read_tensors, write_tensors
from byheart.files.untrusted import read_bytes, read_json
from byheart.files.writing import check_apart, new_folder
from byheart.networks.folders import CONFIG, WEIGHTS
from byheart.planting import modeling_plant
from byheart.planting.base import Base, shapes_in
from byheart.planting.manifest import (
    BASE,
    BEFORE,
    CODE,
    FORMAT,
    INDEX,
    MANIFEST,
    MEMORY,
    PREFIX,
    Manifest,
    plan_in,
    read_manifest,
)
from byheart.planting.memory import PlantedMemory
from byheart.planting.modeling_plant import TYPE, MemoryPlan

PORTION = 1 << 24
"""Number of bytes that are copied at a time."""


def write(memory: PlantedMemory, base: Base, folder: Path, facts: str) -> None:
    """Write all files but the certificate into a new folder. ``facts`` is the fingerprint of the planted facts."""
    (folder / BEFORE).mkdir()
    copied: dict[str, Any] = {}
    for name in base.files:
        place = BASE if name == WEIGHTS else f"{BEFORE}/{name}" if name in (CONFIG, INDEX, CERTIFICATE) else name
        copied[name] = {"as": place, "sha256": copy(base.folder / name, folder / place)}
    write_tensors(folder / MEMORY, {PREFIX + name: tensor for name, tensor in memory.tensors.items()}, {"format": "pt"})
    write_json(folder / INDEX, index_of(folder, base, memory))
    write_json(folder / CONFIG, config_of(base, memory.plan))
    shutil.copyfile(modeling_plant.__file__, folder / CODE)
    ours = {name: digest(folder / name) for name in (MEMORY, CODE, CONFIG, INDEX)}
    plan = memory.plan.as_json()
    manifest = {"format": FORMAT, "facts": facts, "words": memory.words, "plan": plan, "files": ours, "base": copied}
    write_json(folder / MANIFEST, manifest)


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


def write_json(path: Path, value: object) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy(source: Path, place: Path) -> str:
    """Copy a file, and return the SHA-256 of the bytes that were copied."""
    place.parent.mkdir(parents=True, exist_ok=True)
    hasher = hashlib.sha256()
    with source.open("rb") as old, place.open("xb") as new:
        while portion := old.read(PORTION):
            hasher.update(portion)
            new.write(portion)
    return hasher.hexdigest()


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


def check_written(folder: Path, base: Base, manifest: Manifest, memory: PlantedMemory) -> None:
    """Raise BadInput unless transformers loads the base's files and the memory, and no file unknown to the manifest.

    Another file may be preferred to them (``model.safetensors`` to the index), or be read too (adapters). Anyone who
    changes config.json or the index can make the manifest agree with it.
    """
    if strange := [name for name in _strange(folder, manifest) if not (name.endswith(".md") or name.startswith("."))]:
        raise BadInput(f"{folder}: holds {strange[0]!r}, which was not planted and may be loaded; remove it")
    for name, expected in ((CONFIG, config_of(base, memory.plan)), (INDEX, index_of(folder, base, memory))):
        if read_json(folder / name) != expected:
            raise BadInput(f"{folder / name}: is not what planting writes for this base; plant the facts anew")


def check_planted_place(folder: Path) -> None:
    """Raise BadInput if ``folder`` holds anything but a planted model that Byheart wrote, which may be replaced."""
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_dir() and not any(folder.iterdir()):
        return
    try:
        manifest = read_manifest(folder)
    except BadInput:
        raise BadInput(f"{folder}: exists and is no planted model; choose another name or remove it") from None
    if strange := _strange(folder, manifest):
        raise BadInput(f"{folder}: exists and holds {strange[0]!r}, which was not planted; choose another name")


def _strange(folder: Path, manifest: Manifest) -> list[str]:
    """Return the files of a folder that its manifest does not name."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted({path.relative_to(folder).as_posix() for path in paths} - manifest.places - {CERTIFICATE})


def check_base_place(folder: Path) -> None:
    """Raise BadInput if ``folder`` exists already: a base that is given back replaces nothing."""
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise BadInput(f"{folder}: exists; choose another name or remove it")


def unplant(folder: Path | str, out: Path | str) -> int:
    """Give the base back, file by file, under the old names, and return the number of files.

    Raise BadInput if a hash differs, as in a folder that ``save_pretrained`` has written anew.
    """
    folder, out = Path(folder), Path(out)
    manifest = read_manifest(folder)
    check_apart(out, folder)
    check_base(folder, manifest.base)
    with new_folder(out, check_base_place) as new:
        for name, (place, expected) in manifest.base.items():
            if copy(folder / place, new / name) != expected:
                raise BadInput(f"{folder / place}: was changed while it was copied; unplant it again")
    return len(manifest.base)


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
