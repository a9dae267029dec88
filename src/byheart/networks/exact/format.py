"""An exact network as a description and two arrays: what config.json says, and what model.safetensors holds.

The description lists the layers: their kinds, their names, and the shapes of their tensors. The integers of all tensors
are stored in order in two arrays: ``lengths`` (int32: the number of bytes of the magnitude, negative for negative
numbers, 0 for 0) and ``magnitudes`` (uint8, little-endian). Small integers stay small, and a 4,000-bit weight costs 500
bytes. Unpacking checks every length.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.exact.exact_layers import (
    Affine,
    Block,
    Embedding,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Integers,
    Layer,
    Positions,
    Residual,
    SoftmaxAttention,
    TokenSum,
    UniformAttention,
    integers,
)

_KINDS: dict[str, type[Layer]] = {
    kind.__name__: kind
    for kind in (
        *(Embedding, Positions, FeedForward, Residual),
        *(UniformAttention, HardmaxAttention, SoftmaxAttention, TokenSum, Flatten),
    )
}
_OPTIONS: dict[type[Layer], tuple[str, ...]] = {SoftmaxAttention: ("score_shift", "shift")}
"""Integer fields of layers besides their tensors; they are written if they are not 0."""
_CAUSAL = "CausalHardmaxAttention"
"""Kind of causal attention in config.json; versions without causal attention refuse it."""


def pack(tensors: list[Integers]) -> dict[str, NDArray[np.generic]]:
    """Return all integers of ``tensors`` as the two arrays that are stored.

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
    """Return the tensors with these shapes from the stored arrays; raise BadInput if the sizes do not agree."""
    if strange := sorted(arrays.keys() - {"lengths", "magnitudes"}):
        raise BadInput(f"model.safetensors has the array {strange[0]!r}; expected lengths and magnitudes")
    for name, kind in (("lengths", np.int32), ("magnitudes", np.uint8)):
        dtype = arrays[name].dtype if name in arrays else "missing"
        if dtype != np.dtype(kind):
            raise BadInput(f"model.safetensors: the array {name!r} is {dtype}; expected {np.dtype(kind)}")
    lengths, magnitudes = arrays["lengths"], arrays["magnitudes"].tobytes()
    count = sum(prod(shape) for shape in shapes)
    if len(lengths) != count:
        raise BadInput(f"model.safetensors holds {len(lengths)} integers; config.json describes {count}")
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


def describe(layers: Sequence[Layer]) -> list[dict[str, Any]]:
    """Return the description of every layer, without its integers."""
    entries = []
    for layer in layers:
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
        entries.append(entry)
    return entries


def shapes(entries: Sequence[dict[str, Any]]) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of all tensors of the described layers, in order; raise BadInput for anything else."""
    for entry in entries:
        if entry["kind"] == FeedForward.__name__:
            for affine in entry["layers"]:
                outputs, inputs = _matrix(affine["shape"])
                yield from ((outputs, inputs), (outputs,))
        elif entry["kind"] == Residual.__name__:
            for block in entry["blocks"]:
                d_ff, d_model = _matrix(block["shape"])
                yield from ((d_ff, d_model), (d_ff,), (d_model, d_ff))
        else:
            yield from map(_matrix, entry["shapes"].values())


def _matrix(shape: object) -> tuple[int, int]:
    fits = isinstance(shape, list) and len(shape) == 2 and all(type(size) is int and size >= 1 for size in shape)
    if not fits or not isinstance(shape, list):
        raise BadInput(f"config.json: a matrix has shape {shape!r}; expected [rows, columns], from 1 on")
    return shape[0], shape[1]


def rebuild(entries: Sequence[dict[str, Any]], tensors: Iterator[Integers]) -> tuple[Layer, ...]:
    """Return the layers that ``entries`` describe, with ``tensors``, one for every shape that :func:`shapes` yields."""
    layers: list[Layer] = []
    for entry in entries:
        causal = entry["kind"] == _CAUSAL
        kind = HardmaxAttention if causal else _KINDS[entry["kind"]]
        name = _of_type(entry, "name", str)
        if kind is FeedForward:
            _only(entry, ("layers", "residual"))
            chain = [Affine(next(tensors), next(tensors), **_options(a)) for a in entry["layers"]]
            layers.append(FeedForward(tuple(chain), residual=_of_type(entry, "residual", bool), name=name))
        elif kind is Residual:
            _only(entry, ("blocks",))
            blocks = [
                Block(next(tensors), next(tensors), next(tensors), role=_of_type(b, "role", str))
                for b in entry["blocks"]
            ]
            layers.append(Residual(tuple(blocks), name=name))
        else:
            _only(entry, ("shapes", *_OPTIONS.get(kind, ())))
            weights = {key: next(tensors) for key in entry["shapes"]}
            options = {key: entry[key] for key in _OPTIONS.get(kind, ()) if key in entry}
            options |= {"causal": True} if causal else {}
            make: Any = kind
            layers.append(make(**weights, **options, name=name))
    return tuple(layers)


def _options(affine: dict[str, Any]) -> dict[str, Any]:
    return {key: _of_type(affine, key, kind) for key, kind in (("shift", int), ("relu", bool), ("role", str))}


def _of_type(entry: dict[str, Any], key: str, kind: type) -> Any:
    """Return a value of exactly this type: "false" is not false, and true is not 1."""
    value = entry[key]
    if type(value) is not kind:
        raise BadInput(f"config.json: {key} is {value!r}; expected {kind.__name__}")
    if isinstance(value, str) and not value.isprintable():  # names are printed, and a terminal obeys what it is shown
        raise BadInput(f"config.json: {key} is {value!r}; expected letters that can be printed")
    return value


def _only(entry: dict[str, Any], keys: tuple[str, ...]) -> None:
    if odd := entry.keys() - {"kind", "name", *keys}:
        raise BadInput(f"config.json: {entry['name']} has {', '.join(sorted(odd))}, which no {entry['kind']} has")
