"""Causal language models as transformers lays them out: a base before planting, read, checked and loaded.

Transformers loads them quietly, without progress bars and without code from their folders.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from reprlib import repr as shortened
from typing import Any

import torch
from torch import Tensor
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from byheart.errors import BadInput
from byheart.files.patience import Patience
from byheart.files.tokenizer_growth import check_growth
from byheart.files.untrusted import parse_object, read_json, read_part
from byheart.networks.folders import CONFIG, TOKENIZER, WEIGHTS
from byheart.networks.planted import BEFORE, OURS, modeling_plant
from byheart.networks.planted.modeling_plant import TYPE, PlantedConfig, PlantedForCausalLM
from byheart.networks.weight_files import INDEX

LENGTHS = ("max_position_embeddings", "n_positions")
"""Keys of configurations for the largest number of tokens that a model reads."""
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers")
"""Keys of configurations for the number of layers."""
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tokenizer_config.json")
"""Files by which a folder has a tokenizer."""
KERNELS = (None, "eager", "sdpa", "batched_mm", "grouped_mm")
"""Implementations that torch has. Another name may be that of a repository, whose code transformers would run."""
ADAPTER = "adapter_config.json"
"""File by which transformers loads an adapter into the model, if the package peft is installed."""
ELSEWHERE = ("configuration_files", "transformers_weights", "fast_tokenizer_files")
"""Keys of configurations that name files which transformers reads in place of those that are checked."""
LARGEST_SETTING = 1 << 24
"""Largest integer in a configuration. Real ones are smaller: 10,485,760 positions, vocabularies of 256,000 tokens."""
MOST_BESIDE = 1 << 27
"""Bytes of tensors that a model may compute when it is loaded (masks, positions), beside as many as its files have.

GPT-Neo's masks take 96 MiB, with files of 5 GiB. Rotary positions take a few KiB, however long the texts."""
MOST_HEADER = 1 << 27
"""Largest number of bytes of the header of a safetensors file."""


@dataclass(frozen=True)
class Base:
    """A folder with a causal language model, as transformers lays it out, in safetensors."""

    folder: Path
    config: dict[str, Any]
    weights: dict[str, str]
    """The file of each tensor."""
    files: tuple[str, ...]
    """All files of the folder, with "/" between parts."""

    @property
    def vocab(self) -> int:
        """Number of token ids of the model."""
        text = self.config.get("text_config", self.config)
        size = text.get("vocab_size") if isinstance(text, dict) else None
        if type(size) is not int or not 1 <= size <= 1 << 24:
            raise BadInput(f"{self.folder / CONFIG}: vocab_size is {shortened(size)}; expected a number of tokens")
        return size

    @property
    def into(self) -> str:
        """The ``model_type``."""
        return str(self.config["model_type"])


def longest_text(config: Mapping[str, Any]) -> int | None:
    """Return how many tokens a model reads at most, if its config.json says so."""
    return min((size for name in LENGTHS if type(size := config.get(name)) is int and size > 0), default=None)


def end_token(config: Mapping[str, Any]) -> int:
    """Return the token that ends a model's texts; raise BadInput if its config.json has none."""
    ends = config.get("eos_token_id")
    first = ends[0] if isinstance(ends, list) and ends else ends
    if type(first) is not int:
        raise BadInput("the model's config.json has no eos_token_id; expected one for --stop")
    return first


def read_base(folder: Path) -> Base:
    """Read a model's folder; BadInput if it is no causal language model that can be planted into."""
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
    _check_no_code(folder, files)
    taken = sorted(name for name in files if name in OURS or name.startswith(f"{BEFORE}/"))
    if taken:
        raise BadInput(f"{folder}: has a file {taken[0]!r}, whose name is needed; rename it")
    weights = _weights(folder)
    _check_claims(folder, config, weights)
    _check_settings(folder, config)
    return Base(folder, config, weights, files)


def _check_kind(folder: Path, kind: str, saved_as: object) -> None:
    """Raise BadInput unless transformers has a causal language model of this type, and the folder was saved as one.

    If the folder has another head, transformers would load what it can, and draw the rest at random. A model without a
    head may do: if its output is its embedding, nothing is missing.
    """
    try:
        causal = modeling_plant.planted_classes(kind)[1].__bases__[1].__name__
    except ValueError as error:
        raise BadInput(f"{folder}: {error}") from error
    first = saved_as[0] if isinstance(saved_as, list) and saved_as else saved_as
    if first is not None and first not in (causal, MODEL_MAPPING_NAMES.get(kind)):
        raise BadInput(f"{folder}: was saved as {repr(first)[:60]}; expected a causal language model, {causal}")


def _check_no_code(folder: Path, files: tuple[str, ...]) -> None:
    """Raise BadInput if a folder has code, or names some: with the code of the memory it would run too."""
    expected = "which would run with the code of the memory; remove it from your copy of the base"
    if code := [name for name in files if name.endswith(".py")]:
        raise BadInput(f"{folder / code[0]}: is code, {expected}")
    if TOKENIZER[1] in files and "auto_map" in read_json(folder / TOKENIZER[1]):
        raise BadInput(f"{folder / TOKENIZER[1]}: auto_map names code, {expected}")


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every key of a configuration with its value, nested keys too, and items of lists with the list's key."""
    left: list[tuple[str, Any]] = list(config.items())
    while left:
        name, value = left.pop()
        yield name, value
        left += value.items() if isinstance(value, dict) else ()
        left += [(name, item) for item in value] if isinstance(value, list) else ()


def _check_settings(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise BadInput if a folder makes transformers run code or read files from elsewhere; or has a huge number.

    Sizes of what is computed, such as tables of positions, are in no file: :func:`_check_allocations` finds the rest.
    """
    if (folder / ADAPTER).exists():
        raise BadInput(f"{folder / ADAPTER}: would add an adapter to the model; merge the adapter, and remove the file")
    for name, value in _settings(config):
        _check_name(folder / CONFIG, name)
        if name.endswith(("_implementation", "_implementation_internal")) and value not in KERNELS:
            raise BadInput(f"{folder / CONFIG}: {name} is {shortened(value)}; expected eager or sdpa")
        if type(value) is int and value > LARGEST_SETTING:
            raise BadInput(f"{folder / CONFIG}: {name} is {value:,}; expected at most {LARGEST_SETTING:,}")


def _check_name(path: Path, name: str) -> None:
    """Raise BadInput if a key of a configuration names other files."""
    if name in ELSEWHERE:
        raise BadInput(f"{path}: {name} names other files for transformers; expected those of the usual names alone")


def _check_claims(folder: Path, config: Mapping[str, Any], weights: Mapping[str, str]) -> None:
    """Raise BadInput if a configuration claims more layers, tokens or experts than its files hold: all would be made.

    Experts may be tensors of their own, or rows of one.
    """
    shapes = [shape for file in sorted(set(weights.values())) for shape in shapes_in(folder / file).values()]
    largest = max((size for shape in shapes for size in shape), default=0)
    for name, claim in ((name, value) for name, value in _settings(config) if type(value) is int):
        most = largest if name == "vocab_size" else len(shapes) if name in LAYERS else claim
        most = max(largest, len(shapes)) if "expert" in name else most
        if claim > most:
            size = f"the files hold {len(shapes):,} tensors, of {largest:,} rows at most"
            raise BadInput(f"{folder / CONFIG}: {name} is {claim:,}, and {size}; expected the model's own sizes")


def _weights(folder: Path) -> dict[str, str]:
    """Return the file of each tensor."""
    if (folder / WEIGHTS).is_file():
        return dict.fromkeys(shapes_in(folder / WEIGHTS), WEIGHTS)
    if not (folder / INDEX).is_file():
        raise BadInput(f"{folder}: has no {WEIGHTS} and no {INDEX}; expected a model saved in safetensors")
    files = read_json(folder / INDEX).get("weight_map")
    if not isinstance(files, dict) or not files or not all(isinstance(name, str) for name in files.values()):
        raise BadInput(f"{folder / INDEX}: has no weight_map; expected the file of every tensor")
    for name in sorted(set(files.values())):
        if PurePosixPath(name).name != name or not (folder / name).is_file():
            raise BadInput(f"{folder / INDEX}: names {shortened(name)}, which is not in the folder")
    return files


def shapes_in(path: Path) -> dict[str, list[int]]:
    """Return the shape of every tensor in a safetensors file; only its header is read."""
    length = int.from_bytes(read_part(path, 0, 8), "little")
    if not 0 < length <= MOST_HEADER:
        raise BadInput(f"{path}: no safetensors file")
    shapes: dict[str, list[int]] = {}
    for name, entry in parse_object(read_part(path, 8, length)).items():
        if name != "__metadata__":
            shape = entry.get("shape") if isinstance(entry, dict) else None
            if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
                raise BadInput(f"{path}: {shortened(name)} has the shape {shortened(shape)}; expected sizes")
            shapes[name] = shape
    return shapes


@contextmanager
def quiet() -> Iterator[None]:
    """Let transformers report errors only."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def load_base(folder: Path) -> Any:
    """Load a causal language model that transformers knows."""
    from transformers import AutoConfig, AutoModelForCausalLM

    return _load(AutoConfig, AutoModelForCausalLM, folder)


def load_planted(folder: Path) -> Any:
    """Load a planted model; it is run by our own code, not by the folder's."""
    return _load(PlantedConfig, PlantedForCausalLM, folder)


def _load(auto_config: Any, auto: Any, folder: Path) -> Any:
    config = {**read_json(folder / CONFIG), "plan": None}  # the plan of a memory has limits of its own
    _check_claims(folder, config, _weights(folder))
    _check_settings(folder, config)
    try:
        with quiet():
            _check_allocations(folder, config, auto_config.from_pretrained(folder))
            options = {"use_safetensors": True, "trust_remote_code": False, "output_loading_info": True}
            model, info = auto.from_pretrained(folder, **options)
    except BadInput:
        raise
    except Exception as error:  # transformers raises what it likes
        raise BadInput(f"{folder}: cannot be loaded by transformers ({_reason(error)})") from error
    if lacking := sorted(info["missing_keys"]):
        raise BadInput(f"the model lacks the tensor {lacking[0]}, which would be drawn at random; expected all tensors")
    return model.eval()


def _check_allocations(folder: Path, config: Mapping[str, Any], loaded: Any) -> None:
    """Raise BadInput if a configuration makes transformers allocate much more than the weights in the files.

    The model is made on torch's device "meta", where tensors have shapes and no memory. So every table and mask counts
    at its own size. A weight takes at least one bit of a file; computed tensors may take as much as the files, and
    ``MOST_BESIDE``.
    """
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(loaded, trust_remote_code=False)
    held = sum((folder / file).stat().st_size for file in set(_weights(folder).values()))
    kinds: tuple[tuple[Any, int], ...] = (
        ({name: (tensor, tensor.numel() // 8) for name, tensor in empty.named_parameters()}, held),
        ({name: (tensor, tensor.nbytes) for name, tensor in empty.named_buffers()}, held + MOST_BESIDE),
    )
    for tensors, most in kinds:
        if sum(size for _, size in tensors.values()) > most:
            name, (tensor, _) = max(tensors.items(), key=lambda entry: entry[1][1])
            key = next((key for key, value in _settings(config) if value == max(tensor.shape)), "a setting")
            what = f"{key} makes {name} {list(tensor.shape)}"
            raise BadInput(
                f"{folder / CONFIG}: {what}, and the files have {held:,} bytes; expected the model's own sizes"
            )


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def logits_of(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the logits of a user's model; BadInput if it was loaded, but cannot be run."""
    try:
        return model(ids, attention_mask=mask).logits  # type: ignore[no-any-return]
    except Exception as error:  # transformers raises what it likes
        how = f"cannot be run by transformers ({_reason(error)})"
        raise BadInput(f"the base {how}; expected a model that works") from error


def tokenizer_in(folder: Path) -> Any:
    """Return the tokenizer of a model's folder; BadInput if it has none. No code of the folder is run."""
    from transformers import AutoTokenizer

    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise BadInput(f"{folder}: has no tokenizer; put its tokenizer.json there, or give token ids with --ids")
    if (settings := folder / TOKENIZER[1]).is_file():
        for name in read_json(settings):
            _check_name(settings, name)
    if (file := folder / "tokenizer.json").is_file():
        try:
            check_growth(read_json(file))
        except BadInput as error:
            raise BadInput(f"{folder}: its tokenizer cannot be loaded ({error}); give token ids with --ids") from error
    try:
        with quiet():
            tokenizer, patience = AutoTokenizer.from_pretrained(folder), Patience()
    except Exception as error:  # transformers raises what it likes
        how = f"its tokenizer cannot be loaded ({_reason(error)})"
        raise BadInput(f"{folder}: {how}; give token ids with --ids") from error
    encode = tokenizer.encode
    tokenizer.encode = lambda text, **options: patience.wait(lambda: encode(text, **options), len(text))
    return tokenizer
