"""Write the folder of a planted model (:mod:`byheart.networks.planted`), and give the base back."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from byheart.errors import BadInput
from byheart.files.tensors import write_tensors
from byheart.files.writing import check_apart, new_folder
from byheart.networks.folders import CONFIG, WEIGHTS
from byheart.networks.planted import BASE, BEFORE, CERTIFICATE, CODE, FORMAT, MANIFEST, MEMORY, PREFIX, modeling_plant
from byheart.networks.planted.base import Base
from byheart.networks.planted.planted_folder import (
    PlantedMemory,
    check_base,
    config_of,
    digest,
    index_of,
    read_manifest,
    strange_files,
)
from byheart.networks.weight_files import INDEX

PORTION = 1 << 24


def write(made: PlantedMemory, base: Base, folder: Path, facts: str) -> None:
    """All files but the certificate, into ``folder``, which is new. ``facts`` is the fingerprint of what is planted."""
    (folder / BEFORE).mkdir()
    copied: dict[str, Any] = {}
    for name in base.files:
        place = BASE if name == WEIGHTS else f"{BEFORE}/{name}" if name in (CONFIG, INDEX, CERTIFICATE) else name
        copied[name] = {"as": place, "sha256": copy(base.folder / name, folder / place)}
    write_tensors(folder / MEMORY, {PREFIX + name: tensor for name, tensor in made.tensors.items()}, {"format": "pt"})
    write_json(folder / INDEX, index_of(folder, base, made))
    write_json(folder / CONFIG, config_of(base, made.plan))
    shutil.copyfile(modeling_plant.__file__, folder / CODE)
    ours = {name: digest(folder / name) for name in (MEMORY, CODE, CONFIG, INDEX)}
    plan = made.plan.as_json()
    manifest = {"format": FORMAT, "facts": facts, "words": made.words, "plan": plan, "files": ours, "base": copied}
    write_json(folder / MANIFEST, manifest)


def write_json(path: Path, value: object) -> None:
    """A JSON file."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def copy(source: Path, place: Path) -> str:
    """Copy a file, and hash what was copied."""
    place.parent.mkdir(parents=True, exist_ok=True)
    found = hashlib.sha256()
    with source.open("rb") as old, place.open("xb") as new:
        while portion := old.read(PORTION):
            found.update(portion)
            new.write(portion)
    return found.hexdigest()


def check_planted_place(folder: Path) -> None:
    """BadInput if ``folder`` holds anything but a planted model that Byheart wrote, which may be replaced."""
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_dir() and not any(folder.iterdir()):
        return
    try:
        manifest = read_manifest(folder)
    except BadInput:
        raise BadInput(f"{folder}: exists and is no planted model; choose another name or remove it") from None
    if strange := strange_files(folder, manifest):
        raise BadInput(f"{folder}: exists and holds {strange[0]!r}, which was not planted; choose another name")


def check_base_place(folder: Path) -> None:
    """BadInput if ``folder`` is there already: what is given back replaces nothing."""
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise BadInput(f"{folder}: exists; choose another name or remove it")


@contextmanager
def replacing(folder: Path, base: Path) -> Iterator[Path]:
    """A new folder for a planted model, which takes the place of ``folder``, or goes if there was an error."""
    check_apart(folder, base)
    with new_folder(folder, check_planted_place) as new:
        yield new


def unplant(folder: Path | str, out: Path | str) -> int:
    """Give the base back, file by file, under their old names: how many. BadInput if a hash is another.

    What ``save_pretrained`` has written anew has other files: only their tensors are the base's.
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
