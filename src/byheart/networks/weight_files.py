"""Weights in several files, ``model-00001-of-00003.safetensors`` and so on, with an index, as Hugging Face writes them.

Weights that are too large for one file are written like this; each expert of a large mixture gets a file of its own.

``model.safetensors.index.json`` names the file of every tensor. The index may come from anybody: it must name only
files of this form, numbered without gaps, and every tensor must be in the file that the index names.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.files.tensors import read_tensors
from byheart.files.untrusted import read_json

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PART = re.compile(r"model-[0-9]{5}-of-[0-9]{5}\.safetensors")
LARGEST = 2 * 10**9
"""Largest number of bytes of tensors in one file."""


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=_Sized)


def write_weights(
    folder: Path,
    weights: Mapping[str, T],
    save: Callable[[dict[str, T], Path], object],
    largest: int | None = None,
    alone: Collection[str] = (),
) -> None:
    """Write all tensors with ``save``: into one file, or into several and an index if they exceed ``largest`` bytes.

    Each tensor named in ``alone`` gets a file of its own, after all others.
    """
    shelves = list(_shelves(weights, LARGEST if largest is None else largest, alone))
    if len(shelves) == 1:
        save(shelves[0], folder / WHOLE)
        return
    places: dict[str, str] = {}
    for number, shelf in enumerate(shelves, start=1):
        part = _part(number, len(shelves))
        save(shelf, folder / part)
        places |= dict.fromkeys(shelf, part)
    total = sum(tensor.nbytes for tensor in weights.values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (folder / INDEX).write_text(json.dumps(index, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _shelves(weights: Mapping[str, T], largest: int, alone: Collection[str] = ()) -> Iterator[dict[str, T]]:
    """Yield the tensors of each file, in order: at most ``largest`` bytes, unless a single tensor is larger.

    >>> import numpy as np
    >>> sizes = {"a": np.zeros(2, np.uint8), "b": np.zeros(3, np.uint8), "c": np.zeros(9, np.uint8)}
    >>> [list(shelf) for shelf in _shelves(sizes, 5)], [list(shelf) for shelf in _shelves(sizes, 20, {"a"})]
    ([['a', 'b'], ['c']], [['b', 'c'], ['a']])
    """
    shelf: dict[str, T] = {}
    for name, tensor in weights.items():
        if name in alone:
            continue
        if shelf and sum(other.nbytes for other in shelf.values()) + tensor.nbytes > largest:
            yield shelf
            shelf = {}
        shelf[name] = tensor
    if shelf or not alone:
        yield shelf
    yield from ({name: tensor} for name, tensor in weights.items() if name in alone)


def weight_files(folder: Path) -> list[Path]:
    """Return the files that hold the weights in ``folder``, those that its index names if it has one."""
    names = [INDEX, *sorted({*_places(folder).values()})] if (folder / INDEX).exists() else [WHOLE]
    return [folder / name for name in names]


def read_parts(folder: Path, formats: tuple[str, ...], *, takes: int) -> dict[str, NDArray[Any]]:
    """Return all tensors that the index in ``folder`` names; raise BadInput unless files and index agree exactly."""
    if (folder / WHOLE).exists():
        raise BadInput(f"there is {WHOLE} and {INDEX}; expected one of them")
    expected: dict[str, set[str]] = {}
    for tensor, name in _places(folder).items():
        expected.setdefault(name, set()).add(tensor)
    if missing := [name for name in expected if not (folder / name).is_file()]:
        raise BadInput(f"{missing[0]} is missing, or is no file; expected all {len(expected)} that {INDEX} names")
    check_memory(takes * sum((folder / name).stat().st_size for name in expected), str(folder))
    weights: dict[str, NDArray[Any]] = {}
    for name, tensors in expected.items():
        part = read_tensors(folder / name, formats, memory_per_byte=takes)
        if wrong := sorted(tensors ^ set(part)):
            raise BadInput(f"{name} has or lacks {wrong[:3]}; expected the tensors that {INDEX} says")
        weights |= part
    return weights


def _places(folder: Path) -> dict[str, str]:
    """Return the file of every tensor; raise BadInput unless the files are numbered without gaps."""
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise BadInput(f"{INDEX} has no weight_map; expected a file for every tensor")
    named = sorted({str(place) for place in places.values()})
    if named != [_part(number, len(named)) for number in range(1, len(named) + 1)]:
        raise BadInput(f"{INDEX} names {shortened(named)}; expected {_part(1, len(named))} and so on")
    return places


def _part(number: int, count: int) -> str:
    return f"model-{number:05}-of-{count:05}.safetensors"
