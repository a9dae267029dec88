"""Folders that hold networks: reading them, and replacing an old one by a new one.

A folder is either complete or absent (:mod:`byheart.files.writing`). Loading executes nothing in it. This module does
not need PyTorch.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.files.replacement import is_leftover
from byheart.files.tensors import read_tensors
from byheart.files.untrusted import MAX_JSON_BYTES, read_bytes, read_json
from byheart.files.writing import new_folder
from byheart.networks.weight_files import INDEX, PART, WHOLE, read_parts

CONFIG, WEIGHTS = "config.json", WHOLE
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
"""Names of the tokenizer's files, as Hugging Face lays them out."""
GENERATION = "generation_config.json"
"""Name of the file with transformers' settings for generating."""
GRID = "grid"
"""Subfolder of an approximation that holds the network with the memorized grid."""
TASK = "task.npz"
"""File with the training data of a network that the lab trained."""
MODELING, CARD = "modeling_byheart.py", "README.md"
"""Files for users without Byheart: the code of a float Transformer, and the model card."""
OURS = {CONFIG, WEIGHTS, INDEX, TASK, *TOKENIZER, GENERATION, MODELING, "certificate.json", GRID, f"{GRID}.npz"}
"""Names that Byheart writes into a network's folder, besides numbered weight files and a card with ``MARK``."""
MARK = "<!-- written by Byheart -->"
"""Comment in every card that Byheart wrote. A card without it belongs to the user."""
MOST_CARD = 1 << 20
"""Largest size of a card, in bytes."""
EXACT = "byheart-exact-1"
"""``format`` of an exact network."""
SOFTMAX = "byheart-softmax-1"
"""``format`` of a one-layer softmax network."""
TRAINED = "byheart-trained-1"
"""``format`` of a trained network."""
FLOAT = "byheart"
"""``model_type`` of a float Transformer that Byheart compiled."""
PLANTED = "byheart-plant"
"""``model_type`` of a model with planted memories."""
FORMATS = (EXACT, SOFTMAX, TRAINED, "gpt2", FLOAT, "llama", "qwen2_moe")
"""Formats that Byheart reads: values of ``format``, or of Hugging Face's ``model_type``, in config.json."""
ABOUT_PLANTED = "byheart detect {0} lists them, byheart recite {0} --prompt '…' asks it, byheart unplant gives the base"
"""The commands for a model with planted memories."""
NAMES = {
    "exact": "an exact network",
    "softmax": "a softmax network",
    "trained": "a trained network",
    "transformer": "a float Transformer",
    "stock": "a stock model",
}
"""Kinds of networks in words."""


def model_type(folder: Path) -> object:
    """Return the ``model_type`` in a folder's config.json; None if there is none, or if it cannot be read."""
    try:
        return read_json(folder / CONFIG).get("model_type")
    except (BadInput, OSError):
        return None


def read_config(folder: Path) -> dict[str, Any]:
    """Return config.json of ``folder``; raise BadInput if it is missing or does not describe a network."""
    path = folder / CONFIG
    try:
        config = read_json(path)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; expected a folder with a network") from None
    except NotADirectoryError:
        made = folder.with_suffix("").name
        advice = f"compile it first: byheart compile {folder} -o {made}"
        raise BadInput(f"{folder}: is a file; expected a folder with a network; {advice}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
    if config.get("model_type") == PLANTED:
        raise BadInput(f"{folder}: is a model with planted memories; {ABOUT_PLANTED.format(folder)}")
    if (name := name_in(config)) not in FORMATS:
        raise BadInput(f"{path}: format {shortened(name)}; expected a network: {', '.join(FORMATS)}")
    if not isinstance(config.get("about", {}), dict):
        raise BadInput(f"{path}: about is {shortened(config['about'])}; expected an object")
    return config


def name_in(config: dict[str, Any]) -> Any:
    """Return the ``format`` of a config.json, or the ``model_type`` if it has none."""
    return config.get("format", config.get("model_type"))


def read_weights(folder: Path, formats: tuple[str, ...], *, takes: int = 4) -> dict[str, NDArray[Any]]:
    """Return the tensors in ``folder``, from one file or several.

    Raise BadInput if they do not fit into memory. A running network takes ``takes`` bytes per byte of the files.
    """
    try:
        if (folder / INDEX).exists():
            return read_parts(folder, formats, takes=takes)
        return read_tensors(folder / WEIGHTS, formats, memory_per_byte=takes)
    except (BadInput, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{WEIGHTS} cannot be read ({reason}); the folder is incomplete, or damaged") from error


def read_beside(folder: Path) -> dict[str, bytes]:
    """Return the contents of the tokenizer's files in ``folder``, by name."""
    paths = (folder / name for name in TOKENIZER if (folder / name).exists())
    return {path.name: bytes(read_bytes(path, max_bytes=MAX_JSON_BYTES)) for path in paths}


def generation_config(*, first: int | None, end: Any, unknown: int | None = None) -> dict[str, bytes]:
    """Return ``generation_config.json``: greedy decoding up to the token ``end``, which also pads shorter texts.

    Generating also ends at the token ``unknown``, for a network that refuses unknown prompts.
    """
    ends = end if unknown is None else [end, unknown]
    config = {"bos_token_id": first, "eos_token_id": ends, "pad_token_id": end, "do_sample": False}
    return {GENERATION: (json.dumps(config, indent=2) + "\n").encode()}


def check_destination(folder: Path) -> None:
    """Raise BadInput if ``folder`` holds anything but a network that Byheart wrote, which may be replaced.

    Byheart writes ``about`` into every config.json, and no files but those in ``OURS``. So someone else's model, or a
    folder to which the user added a file, is never replaced.
    """
    if model_type(folder) == PLANTED:
        raise BadInput(f"{folder}: is a model with planted memories, and would be lost; choose another name")
    if folder.is_dir():
        strange = _strange_file(folder)
        if not any(folder.iterdir()) or (strange is None and _has_about(folder)):
            return
        detail = "" if strange is None else f" (it holds {strange!r})"
    elif not folder.exists() and not folder.is_symlink():
        return
    else:
        detail = ""
    raise BadInput(f"{folder}: exists and is no network that Byheart wrote{detail}; choose another name or remove it")


def _strange_file(folder: Path) -> str | None:
    """Return the name of a file in ``folder`` that Byheart did not write, or None.

    Leftovers of a killed process count as written by Byheart, and links never do.
    """
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            return path.name
        if path.name == GRID and path.is_dir():
            if (strange := _strange_file(path)) is not None:
                return f"{GRID}/{strange}"
        elif not (path.is_file() and _is_ours(path)) and not is_leftover(path):
            return path.name
    return None


def _is_ours(path: Path) -> bool:
    if path.name == CARD:
        try:
            return MARK.encode() in read_bytes(path, max_bytes=MOST_CARD)
        except (BadInput, OSError):
            return False
    return path.name in OURS or PART.fullmatch(path.name) is not None


def _has_about(folder: Path) -> bool:
    try:
        return "about" in read_config(folder)
    except BadInput:
        return False


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield a new folder to write a network into; it replaces ``folder`` at the end, or is removed after an error."""
    with new_folder(folder, check_destination) as new:
        yield new
