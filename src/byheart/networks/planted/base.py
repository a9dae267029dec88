"""A causal language model as transformers lays it out, before anything is planted into it: read, and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from reprlib import repr as shortened
from typing import Any

from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from byheart.errors import BadInput
from byheart.files.untrusted import parse_object, read_json, read_part
from byheart.networks.folders import CONFIG, WEIGHTS
from byheart.networks.planted import BEFORE, OURS, modeling_plant
from byheart.networks.planted.modeling_plant import TYPE
from byheart.networks.weight_files import INDEX

LENGTHS = ("max_position_embeddings", "n_positions")
"""What configurations call the most tokens that a model reads."""
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers")
"""And how many layers it has."""
MOST_HEADER = 1 << 27


@dataclass(frozen=True)
class Base:
    """A folder with a causal language model, as transformers lays it out, in safetensors."""

    folder: Path
    config: dict[str, Any]
    weights: dict[str, str]
    """File by tensor."""
    files: tuple[str, ...]
    """All files of the folder, with "/" between parts."""

    @property
    def vocab(self) -> int:
        """How many token ids the model has."""
        text = self.config.get("text_config", self.config)
        found = text.get("vocab_size") if isinstance(text, dict) else None
        if type(found) is not int or not 1 <= found <= 1 << 24:
            raise BadInput(f"{self.folder / CONFIG}: vocab_size is {shortened(found)}; expected a number of tokens")
        return found

    @property
    def into(self) -> str:
        """The ``model_type``."""
        return str(self.config["model_type"])


def reads(config: Mapping[str, Any]) -> int | None:
    """How many tokens a model reads at most, if its config.json says so."""
    return min((size for name in LENGTHS if type(size := config.get(name)) is int and size > 0), default=None)


def end_token(config: Mapping[str, Any]) -> int:
    """Return the token that ends a model's texts; raise BadInput if its config.json has none."""
    ends = config.get("eos_token_id")
    first = ends[0] if isinstance(ends, list) and ends else ends
    if type(first) is not int:
        raise BadInput("the model's config.json has no eos_token_id; expected one for --stop")
    return first


def read_base(folder: Path) -> Base:
    """What is in a model's folder; BadInput if it is no causal language model that can be planted into."""
    try:
        config = read_json(folder / CONFIG)
    except OSError:
        raise BadInput(f"{folder}: has no {CONFIG}; expected the folder of a causal language model") from None
    kind = config.get("model_type")
    if kind == TYPE:
        raise BadInput(f"{folder}: has memories planted already; unplant it first")
    if not isinstance(kind, str):
        raise BadInput(f"{folder / CONFIG}: model_type is {shortened(kind)}; expected that of a causal language model")
    _check_kind(folder, kind, config.get("architectures"))
    files = tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
    taken = sorted(name for name in files if name in OURS or name.startswith(f"{BEFORE}/"))
    if taken:
        raise BadInput(f"{folder}: has a file {taken[0]!r}, whose name is needed; rename it")
    weights = _weights(folder)
    _check_claims(folder, config, weights)
    return Base(folder, config, weights, files)


def _check_kind(folder: Path, kind: str, saved_as: object) -> None:
    """BadInput unless transformers has a causal language model of this type, and the folder was saved as one.

    Of another head it would load what it can, and draw the rest at random. A model without a head may do: if its
    output is its embedding, nothing is missing.
    """
    try:
        causal = modeling_plant.planted_classes(kind)[1].__bases__[1].__name__
    except ValueError as error:
        raise BadInput(f"{folder}: {error}") from error
    first = saved_as[0] if isinstance(saved_as, list) and saved_as else saved_as
    if first is not None and first not in (causal, MODEL_MAPPING_NAMES.get(kind)):
        raise BadInput(f"{folder}: was saved as {repr(first)[:60]}; expected a causal language model, {causal}")


def _check_claims(folder: Path, config: Mapping[str, Any], weights: Mapping[str, str]) -> None:
    """BadInput if a configuration claims more layers, or tokens, than its files can hold: they would all be made."""
    shapes = [shape for file in sorted(set(weights.values())) for shape in shapes_in(folder / file).values()]
    largest = max((size for shape in shapes for size in shape), default=0)
    parts = [config, *(part for part in config.values() if isinstance(part, dict))]
    for name, claim in ((name, claim) for part in parts for name, claim in part.items() if type(claim) is int):
        most = largest if name == "vocab_size" else len(shapes) if name in LAYERS else claim
        if claim > most:
            held = f"the files hold {len(shapes):,} tensors, of {largest:,} rows at most"
            raise BadInput(f"{folder / CONFIG}: {name} is {claim:,}, and {held}; expected the model's own sizes")


def _weights(folder: Path) -> dict[str, str]:
    """Which file holds which tensor."""
    if (folder / WEIGHTS).is_file():
        return dict.fromkeys(shapes_in(folder / WEIGHTS), WEIGHTS)
    if not (folder / INDEX).is_file():
        raise BadInput(f"{folder}: has no {WEIGHTS} and no {INDEX}; expected a model saved in safetensors")
    found = read_json(folder / INDEX).get("weight_map")
    if not isinstance(found, dict) or not found or not all(isinstance(name, str) for name in found.values()):
        raise BadInput(f"{folder / INDEX}: has no weight_map; expected the file of every tensor")
    for name in sorted(set(found.values())):
        if PurePosixPath(name).name != name or not (folder / name).is_file():
            raise BadInput(f"{folder / INDEX}: names {shortened(name)}, which is not in the folder")
    return found


def shapes_in(path: Path) -> dict[str, list[int]]:
    """The shape of every tensor in a safetensors file; only its header is read."""
    length = int.from_bytes(read_part(path, 0, 8), "little")
    if not 0 < length <= MOST_HEADER:
        raise BadInput(f"{path}: no safetensors file")
    header = parse_object(read_part(path, 8, length))
    found: dict[str, list[int]] = {}
    for name, entry in header.items():
        if name != "__metadata__":
            shape = entry.get("shape") if isinstance(entry, dict) else None
            if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
                raise BadInput(f"{path}: {shortened(name)} has the shape {shortened(shape)}; expected sizes")
            found[name] = shape
    return found
