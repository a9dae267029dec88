"""A network on disk: a folder with ``config.json`` and ``model.safetensors``; nothing in it executes on loading.

``config.json`` lists the layers: what they are, what they are called, and the shapes of their tensors. The integers of
all tensors stand one after the other in ``model.safetensors`` as two arrays: ``lengths`` (int32: how many bytes the
magnitude takes, negative for negative numbers, 0 for 0) and ``magnitudes`` (uint8, little-endian). Small integers stay
small, and a 4,000-bit weight costs 500 bytes.

A folder is written beside its destination and renamed, so it is there whole or not at all. Loading checks every length.
"""

import hashlib
import json
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from byheart.errors import BadInput
from byheart.networks.exact.integers import Integers, integers
from byheart.networks.exact.layers import (
    Affine,
    Block,
    Embedding,
    ExactNetwork,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Layer,
    Positions,
    Residual,
    SoftmaxAttention,
    UniformAttention,
)
from byheart.networks.folders import EXACT, replacing

FORMAT = EXACT
_KINDS: dict[str, type[Layer]] = {
    kind.__name__: kind
    for kind in (
        *(Embedding, Positions, FeedForward, Residual),
        *(UniformAttention, HardmaxAttention, SoftmaxAttention, Flatten),
    )
}
_OPTIONS: dict[type[Layer], tuple[str, ...]] = {SoftmaxAttention: ("score_shift", "shift")}
"""What layers have beside their tensors, as integers; it is written down where it is not 0."""
_CAUSAL = "CausalHardmaxAttention"
"""A kind of its own, so that what does not know it refuses it."""


def pack(tensors: list[Integers]) -> dict[str, NDArray[np.generic]]:
    """All integers of ``tensors`` as the two arrays that are stored.

    >>> {name: array.tolist() for name, array in pack([integers([0, -258])]).items()}
    {'lengths': [0, -2], 'magnitudes': [2, 1]}
    """
    lengths, chunks = [], []
    for tensor in tensors:
        for value in tensor.ravel().tolist():
            magnitude = abs(value)
            size = (magnitude.bit_length() + 7) // 8
            lengths.append(-size if value < 0 else size)
            chunks.append(magnitude.to_bytes(size, "little"))
    return {
        "lengths": np.array(lengths, dtype=np.int32),
        "magnitudes": np.frombuffer(b"".join(chunks), dtype=np.uint8).copy(),
    }


def unpack(arrays: dict[str, NDArray[Any]], shapes: list[tuple[int, ...]]) -> list[Integers]:
    """The tensors of the given shapes back from the stored arrays; BadInput when they do not fit together."""
    for name, kind in (("lengths", np.int32), ("magnitudes", np.uint8)):
        found = arrays[name].dtype if name in arrays else "missing"
        if found != np.dtype(kind):
            raise BadInput(f"model.safetensors: the array {name!r} is {found}; expected {np.dtype(kind)}")
    lengths, magnitudes = arrays["lengths"], arrays["magnitudes"].tobytes()
    wanted = sum(prod(shape) for shape in shapes)
    if len(lengths) != wanted:
        raise BadInput(f"model.safetensors holds {len(lengths)} integers; config.json describes {wanted}")
    ends = np.cumsum(np.abs(lengths.astype(np.int64)))
    total = int(np.abs(lengths.astype(np.int64)).sum())
    if len(magnitudes) != total:
        raise BadInput(f"model.safetensors holds {len(magnitudes)} bytes of integers; its lengths add up to {total}")
    values, begin = [], 0
    for length, end in zip(lengths.tolist(), ends.tolist(), strict=True):
        magnitude = int.from_bytes(magnitudes[begin:end], "little")
        values.append(-magnitude if length < 0 else magnitude)
        begin = end
    tensors, begin = [], 0
    for shape in shapes:
        end = begin + prod(shape)
        tensors.append(integers(values[begin:end], shape))
        begin = end
    return tensors


def save(network: ExactNetwork, folder: Path, about: dict[str, object] | None = None) -> None:
    """Write ``network`` to ``folder`` (new, or one that holds a network); ``about`` is kept in config.json."""
    with replacing(Path(folder), "exact") as new:
        save_file(pack([tensor for _, tensor in network.tensors()]), new / "model.safetensors")
        text = json.dumps({"format": FORMAT, "about": about or {}, "network": _describe(network)}, indent=1)
        (new / "config.json").write_text(text + "\n", encoding="utf-8")


def load(folder: Path) -> ExactNetwork:
    """The network in ``folder``; BadInput, with the file named, if anything is missing or does not fit."""
    folder = Path(folder)
    config = _read_config(folder)
    try:
        arrays = load_file(folder / "model.safetensors")
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{folder / 'model.safetensors'}: cannot be read ({error}); the folder is incomplete") from error
    try:
        description = config["network"]
        shapes = [tuple(int(s) for s in shape) for shape in _shapes(description)]
        if any(size < 0 for shape in shapes for size in shape):
            raise BadInput("config.json: a negative shape")
        return _rebuild(description, iter(unpack(arrays, shapes)))
    except BadInput as error:
        raise BadInput(f"{folder}: {error}") from error
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise BadInput(f"{folder / 'config.json'}: not a network description ({error!r})") from error


def about(folder: Path) -> dict[str, Any]:
    """What was kept beside the network when it was saved: construction, settings, task."""
    return dict(_read_config(Path(folder)).get("about", {}))


def fingerprint(network: ExactNetwork) -> str:
    """SHA-256 over the layers' description and all integers: the same for a network and for its reloaded copy."""
    digest = hashlib.sha256(json.dumps(_describe(network), sort_keys=True).encode())
    for array in pack([tensor for _, tensor in network.tensors()]).values():
        digest.update(array.tobytes())
    return digest.hexdigest()


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; expected a network folder") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: cannot be read ({error})") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        found = config.get("format") if isinstance(config, dict) else config
        raise BadInput(f"{path}: format is {found!r}; expected {FORMAT!r}")
    return config


def _describe(network: ExactNetwork) -> dict[str, Any]:
    layers = []
    for layer in network.layers:
        causal = isinstance(layer, HardmaxAttention) and layer.causal
        entry: dict[str, Any] = {"kind": _CAUSAL if causal else type(layer).__name__, "name": layer.name}
        if isinstance(layer, FeedForward):
            entry["residual"] = layer.residual
            entry["layers"] = [
                {"role": a.role, "shape": list(a.W.shape), "shift": a.shift, "relu": a.relu} for a in layer.layers
            ]
        elif isinstance(layer, Residual):
            entry["blocks"] = [{"role": block.role, "shape": list(block.W_in.shape)} for block in layer.blocks]
        else:
            entry["shapes"] = {key: list(value.shape) for key, value in vars(layer).items() if key.startswith("W_")}
            options = {key: getattr(layer, key) for key in _OPTIONS.get(type(layer), ())}
            entry |= {key: value for key, value in options.items() if value}
        layers.append(entry)
    keys = ("inputs", "outputs", "length", "dim")
    return {**{key: getattr(network, key) for key in keys}, "layers": layers}


def _shapes(description: dict[str, Any]) -> Iterator[list[int]]:
    for entry in description["layers"]:
        for affine in entry.get("layers", []):
            yield affine["shape"]
            yield affine["shape"][:1]
        for block in entry.get("blocks", []):
            d_ff, d_model = block["shape"]
            yield from ([d_ff, d_model], [d_ff], [d_model, d_ff])
        yield from entry.get("shapes", {}).values()


def _rebuild(description: dict[str, Any], tensors: Iterator[Integers]) -> ExactNetwork:
    layers: list[Layer] = []
    for entry in description["layers"]:
        causal = entry["kind"] == _CAUSAL
        kind = HardmaxAttention if causal else _KINDS[entry["kind"]]
        if kind is FeedForward:
            chain = tuple(
                Affine(next(tensors), next(tensors), shift=int(a["shift"]), relu=bool(a["relu"]), role=str(a["role"]))
                for a in entry["layers"]
            )
            layers.append(FeedForward(chain, residual=bool(entry["residual"]), name=str(entry["name"])))
        elif kind is Residual:
            blocks = (Block(next(tensors), next(tensors), next(tensors), role=str(b["role"])) for b in entry["blocks"])
            layers.append(Residual(tuple(blocks), name=str(entry["name"])))
        else:
            weights = {key: next(tensors) for key in entry["shapes"]}
            options = {key: entry[key] for key in entry if key not in ("kind", "name", "shapes")}
            if not set(options) <= set(_OPTIONS.get(kind, ())):
                raise BadInput(f"config.json: {entry['name']} has {', '.join(options)}, which no {entry['kind']} has")
            options |= {"causal": True} if causal else {}
            make: Any = kind
            layers.append(make(**weights, **options, name=str(entry["name"])))
    return ExactNetwork(
        tuple(layers),
        inputs=description["inputs"],
        outputs=description["outputs"],
        length=int(description["length"]),
        dim=int(description["dim"]),
    )
