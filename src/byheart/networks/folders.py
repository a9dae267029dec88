"""Folders that hold networks: what kind is in one, and how a new one takes its place, whole or not at all.

Neither needs PyTorch.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from byheart.errors import BadInput

Kind = Literal["exact", "softmax", "float", "llama"]
EXACT = "byheart-exact-1"
"""The ``format`` of an exact network."""
SOFTMAX = "byheart-softmax-1"
"""The ``format`` of a one-layer softmax network."""
FLOAT = "byheart"
"""The ``model_type`` of a float Transformer of ours."""
_NAMES = {"exact": "exact network", "softmax": "softmax network", "float": "float Transformer", "llama": "Llama"}


def kind_of(folder: Path) -> Kind | None:
    """What a folder holds, whole or damaged, going by its config.json alone; None if that says nothing we know."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(config, dict):
        return None
    kinds: dict[str, Kind] = {EXACT: "exact", SOFTMAX: "softmax", FLOAT: "float", "llama": "llama"}
    name = config.get("format", config.get("model_type"))
    return kinds.get(name) if isinstance(name, str) else None


def check_destination(folder: Path, kind: Kind) -> None:
    """BadInput if ``folder`` holds anything but a network of this kind, which may be replaced."""
    if folder.exists() and kind_of(folder) != kind and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder}: exists and holds no {_NAMES[kind]}; choose another name or remove it")


@contextmanager
def replacing(folder: Path, kind: Kind) -> Iterator[Path]:
    """A new folder to write into, which takes the place of ``folder`` at the end, or goes if there was an error."""
    check_destination(folder, kind)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written ({error.strerror})") from error
    aside = new.with_name(new.name + "-old")
    try:
        yield new
        new.chmod(0o755)
        if folder.exists():
            os.replace(folder, aside)
        try:
            os.replace(new, folder)
        except OSError:
            if aside.exists():
                os.replace(aside, folder)
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)
