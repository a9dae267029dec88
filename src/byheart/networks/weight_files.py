"""Weights in several files: what is too large for one lies in ``model-00001-of-00003.safetensors``, … and an index.

So do the experts of a large mixture, each by itself.

As Hugging Face lays it out: ``model.safetensors.index.json`` says of every tensor in which file it is. The index may be
anybody's: it must name files of this form only, and all of them, and every tensor must lie in the one that it says.
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
"""Bytes of tensors in one file."""


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
    """``save`` all tensors in one file of ``folder``; in several, with an index, if they have more bytes than that.

    Each of those that are to be ``alone`` has a file of its own, after all others.
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
    """Tensors in their order, as many together as ``largest`` allows; one that is larger, alone.

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
    """The files that hold the weights in ``folder``, as far as they are there."""
    named = [folder / WHOLE, folder / INDEX, *sorted(folder.glob("model-*.safetensors"))]
    return [path for path in named if path.exists()]


def read_parts(folder: Path, formats: tuple[str, ...], *, takes: int) -> dict[str, NDArray[Any]]:
    """All tensors that the index in ``folder`` names; BadInput if anything is missing, doubled or not named."""
    if (folder / WHOLE).exists():
        raise BadInput(f"there is {WHOLE} and {INDEX}; expected one of them")
    held: dict[str, set[str]] = {}
    for tensor, name in _places(folder).items():
        held.setdefault(name, set()).add(tensor)
    if missing := [name for name in held if not (folder / name).is_file()]:
        raise BadInput(f"{missing[0]} is missing, or is no file; expected all {len(held)} that {INDEX} names")
    check_memory(takes * sum((folder / name).stat().st_size for name in held), str(folder))
    weights: dict[str, NDArray[Any]] = {}
    for name, said in held.items():
        found = read_tensors(folder / name, formats, memory_per_byte=takes)
        if odd := sorted(said ^ set(found)):
            raise BadInput(f"{name} has or lacks {odd[:3]}; expected the tensors that {INDEX} says")
        weights |= found
    return weights


def _places(folder: Path) -> dict[str, str]:
    """In which file every tensor is; BadInput unless the files are all parts of one whole."""
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise BadInput(f"{INDEX} has no weight_map; expected a file for every tensor")
    named = sorted({str(place) for place in places.values()})
    if named != [_part(number, len(named)) for number in range(1, len(named) + 1)]:
        raise BadInput(f"{INDEX} names {shortened(named)}; expected {_part(1, len(named))} and so on")
    return places


def _part(number: int, count: int) -> str:
    return f"model-{number:05}-of-{count:05}.safetensors"
