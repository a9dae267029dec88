"""A float Transformer on disk: a folder with ``config.json`` and ``model.safetensors``, as Hugging Face lays it out.

``config.json`` holds the spec of the network, what Hugging Face wants to know, and ``about``: any JSON that belongs to
the network (texts, prompts, settings). ``model.safetensors`` holds every tensor in its own format.

A folder is written beside its destination and renamed, so it is there whole or not at all. Nothing in it executes on
loading, and what does not fit together is refused.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from byheart.errors import BadInput
from byheart.networks.folders import FLOAT, replacing
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.spec import Attention, Spec

CONFIG, WEIGHTS = "config.json", "model.safetensors"
PRECISIONS = ("float32", "float64")

Tensors = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True, eq=False)
class Loaded:
    """What a folder holds."""

    module: Transformer
    spec: Spec
    about: dict[str, Any]


def as_module(spec: Spec, tensors: Tensors) -> Transformer:
    """The network with these tensors, ready to run.

    >>> spec = Spec(2, 2, 1, 1, "float32", embeds=(0,), unembeds=(0,), sublayers=())
    >>> tensors = {"embedding.W_E": [[1], [2]], "unembedding.W_U": [[1], [-1]], "unembedding.b_U": [0, 3]}
    >>> module = as_module(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
    >>> module(torch.tensor([[0, 1]])).tolist()
    [[[1.0, 2.0], [2.0, 1.0]]]
    """
    return Transformer(spec).load(_as_stored(spec, tensors)).eval()


def save(
    folder: Path, spec: Spec, tensors: Tensors, about: dict[str, Any], *, also: Callable[[Path], None] | None = None
) -> None:
    """Write a network to ``folder``: new, empty, or one that holds such a network, which is replaced.

    ``about`` is free, but for "end": the id of the token that ends a text. ``also`` is given the folder before it gets
    its name, to write more into it: the ``save`` of a tokenizer.
    """
    stored = _as_stored(spec, tensors)
    Transformer(spec).load(stored)  # what could not be loaded is not written
    config = {
        "model_type": FLOAT,
        "architectures": ["ByheartForCausalLM"],
        "dtype": spec.precision,
        "vocab_size": spec.vocab,
        **({} if about.get("end") is None else {"eos_token_id": about["end"], "pad_token_id": about["end"]}),
        "about": about,
        "spec": spec.as_json(),
    }
    text = json.dumps(config, indent=1, ensure_ascii=False) + "\n"
    with replacing(Path(folder), "float") as new:
        (new / CONFIG).write_text(text, encoding="utf-8")
        save_file(stored, new / WEIGHTS, metadata={"format": "pt"})  # transformers asks for this mark
        if also is not None:
            also(new)


def load(folder: Path) -> Loaded:
    """The network in ``folder``; BadInput, with the file named, if anything is missing or does not fit."""
    folder = Path(folder)
    config = _read_config(folder)
    path = folder / WEIGHTS
    try:
        spec = _checked(Spec.from_json(config["spec"]))
    except KeyError:
        raise BadInput(f"{folder / CONFIG}: no 'spec'; expected the description of a network") from None
    except BadInput as error:
        raise BadInput(f"{folder / CONFIG}: {error}") from error
    about = config.get("about", {})
    if not isinstance(about, dict):
        raise BadInput(f"{folder / CONFIG}: about is {about!r}; expected an object")
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); the folder is incomplete") from error
    try:
        # Before a network of that size is made: a damaged config.json may ask for any.
        _compare(spec, tensors)
        return Loaded(Transformer(spec).load(tensors).eval(), spec, about)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def fingerprint(spec: Spec, network: Tensors | Transformer) -> str:
    """SHA-256 over the spec and all tensors: the same for a network, its tensors, and its reloaded copy."""
    stored = network.state_dict() if isinstance(network, Transformer) else _as_stored(spec, network)
    digest = hashlib.sha256(json.dumps(spec.as_json(), sort_keys=True).encode())
    for name in spec.shapes():
        digest.update(stored[name].cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _as_stored(spec: Spec, tensors: Tensors) -> dict[str, torch.Tensor]:
    """The tensors as PyTorch's, each in the format that the spec names for it."""
    stored = {name: torch.from_numpy(np.ascontiguousarray(tensor)) for name, tensor in tensors.items()}
    for name in set(spec.bfloat16) & set(stored):
        short = stored[name].to(torch.bfloat16)
        if not torch.equal(short.to(stored[name].dtype), stored[name]):
            raise BadInput(f"{name} has entries that bfloat16 cannot hold; expected 8 bits and an exponent")
        stored[name] = short
    return stored


def _compare(spec: Spec, tensors: Mapping[str, torch.Tensor]) -> None:
    for name, shape in spec.shapes().items():
        if name not in tensors:
            raise BadInput(f"{name} is missing; config.json describes it")
        if tuple(tensors[name].shape) != shape:
            raise BadInput(f"{name} is {list(tensors[name].shape)}; config.json describes {list(shape)}")


def _checked(spec: Spec) -> Spec:
    """The spec, if a network can be made of it."""
    if spec.precision not in PRECISIONS:
        raise BadInput(f"precision is {spec.precision!r}; expected one of {', '.join(PRECISIONS)}")
    sizes: dict[str, object] = {name: getattr(spec, name) for name in ("vocab", "labels", "window", "stream")}
    parts = {"embeds": spec.embeds, "unembeds": spec.unembeds}
    for layer in spec.sublayers:
        numbers = ("window", "dilation", "heads", "d_head") if isinstance(layer, Attention) else ("units", "groups")
        sizes |= {f"{layer.name}: {name}": getattr(layer, name) for name in numbers}
        kinds = ("reads", "writes") if isinstance(layer, Attention) else ("reads", "writes", "up_reads")
        parts |= {f"{layer.name}: {name}": getattr(layer, name) for name in kinds}
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise BadInput(f"{name} is {size!r}; expected a whole number from 1 on")
    for name, features in parts.items():
        if features and not 0 <= min(features) <= max(features) < spec.stream:
            raise BadInput(f"{name} has features {min(features)} to {max(features)}; expected 0 to {spec.stream - 1}")
    return spec


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        config = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; expected a folder with a network") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not valid JSON ({error})") from error
    if isinstance(config, dict) and config.get("model_type") == FLOAT:
        return config
    exact = isinstance(config, dict) and str(config.get("format")).startswith("byheart-exact")
    found = "this is an exact network" if exact else "this is something else"
    raise BadInput(f"{path}: expected a float Transformer (model_type {FLOAT!r}); {found}")
