"""Folders that hold networks: what kind is in one, how it is read, and how a new one takes its place.

A folder is there whole or not at all (:mod:`byheart.files.writing`). Nothing in it executes on loading. None of this
needs PyTorch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.files.claims import is_leftover
from byheart.files.reading import MOST_JSON, read_bytes, read_json
from byheart.files.tensors import read_tensors
from byheart.files.writing import new_folder
from byheart.networks.generation import GENERATION
from byheart.networks.parts import INDEX, PART, WHOLE, read_parts

CONFIG, WEIGHTS = "config.json", WHOLE
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
"""Files that are kept beside a network, as Hugging Face lays them out."""
GRID = "grid"
"""The folder, in that of an approximation, of the network that has memorized its grid."""
TASK = "task.npz"
"""What a network that the lab trained was asked, in its folder."""
MODELING, CARD = "modeling_byheart.py", "README.md"
"""For others: the code of a float Transformer, and what the network is."""
OURS = {CONFIG, WEIGHTS, INDEX, TASK, *TOKENIZER, GENERATION, MODELING, "certificate.json", GRID, f"{GRID}.npz"}
"""What Byheart itself writes into a network's folder; and parts of large weights, and a card that it has marked."""
MARK = "<!-- written by Byheart -->"
"""Stands in every card that Byheart wrote: without it, a card is somebody's own."""
MOST_CARD = 1 << 20
EXACT = "byheart-exact-1"
"""The ``format`` of an exact network."""
SOFTMAX = "byheart-softmax-1"
"""The ``format`` of a one-layer softmax network."""
TRAINED = "byheart-trained-1"
"""The ``format`` of a network that was trained."""
FLOAT = "byheart"
"""The ``model_type`` of a float Transformer of ours."""
KINDS = {
    EXACT: "exact",
    SOFTMAX: "softmax",
    TRAINED: "trained",
    "gpt2": "trained",
    FLOAT: "transformer",
    "llama": "stock",
    "qwen2_moe": "stock",
}
"""Kinds of networks by what config.json calls them (``format``, or Hugging Face's ``model_type``)."""
NAMES = {
    "exact": "an exact network",
    "softmax": "a softmax network",
    "trained": "a trained network",
    "transformer": "a float Transformer",
    "stock": "a stock model",
}
"""Kinds of networks in words."""


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of ``folder``; BadInput if there is none, or none that describes a network."""
    path = folder / CONFIG
    try:
        config = read_json(path)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; expected a folder with a network") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
    if kind_in(config) is None:
        raise BadInput(f"{path}: format {shortened(_name(config))}; expected a network: {', '.join(KINDS)}")
    if not isinstance(config.get("about", {}), dict):
        raise BadInput(f"{path}: about is {shortened(config['about'])}; expected an object")
    return config


def _name(config: dict[str, Any]) -> Any:
    return config.get("format", config.get("model_type"))


def kind_in(config: dict[str, Any]) -> str | None:
    """The kind of network that a config.json describes, if it is one that we know."""
    name = _name(config)
    return KINDS.get(name) if isinstance(name, str) else None


def read_weights(folder: Path, formats: tuple[str, ...], *, takes: int = 4) -> dict[str, NDArray[Any]]:
    """The tensors in ``folder``, in one file or several; each byte ``takes`` this many once a network runs."""
    try:
        if (folder / INDEX).exists():
            return read_parts(folder, formats, takes=takes)
        return read_tensors(folder / WEIGHTS, formats, takes=takes)
    except (BadInput, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{WEIGHTS} cannot be read ({reason}); the folder is incomplete, or damaged") from error


def read_beside(folder: Path) -> dict[str, bytes]:
    """The files that are kept beside a network, those that there are."""
    there = (folder / name for name in TOKENIZER if (folder / name).exists())
    return {path.name: bytes(read_bytes(path, most=MOST_JSON)) for path in there}


def check_destination(folder: Path) -> None:
    """BadInput if ``folder`` holds anything but a network that Byheart wrote, which may be replaced.

    Byheart writes ``about`` into every config.json, and no files but those of ``OURS``: a model of other people's, or
    a folder where something else was put beside ours, is never replaced.
    """
    if folder.is_dir():
        strange = _strange(folder)
        if not any(folder.iterdir()) or (strange is None and _has_about(folder)):
            return
        beside = "" if strange is None else f" (it holds {strange!r})"
    elif not folder.exists() and not folder.is_symlink():
        return
    else:
        beside = ""
    raise BadInput(f"{folder}: exists and is no network that Byheart wrote{beside}; choose another name or remove it")


def _strange(folder: Path) -> str | None:
    """Something in ``folder`` that is not Byheart's; what writers left behind who are dead by now is."""
    for path in sorted(folder.iterdir()):
        if path.name == GRID and path.is_dir():
            if (strange := _strange(path)) is not None:
                return f"{GRID}/{strange}"
        elif not (path.is_file() and _is_ours(path)) and not is_leftover(path):
            return path.name
    return None


def _is_ours(path: Path) -> bool:
    if path.name == CARD:
        try:
            return MARK.encode() in read_bytes(path, most=MOST_CARD)
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
    """A new folder to write a network into, which takes the place of ``folder``, or goes if there was an error."""
    with new_folder(folder, check_destination) as new:
        yield new
