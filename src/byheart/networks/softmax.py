"""One-layer softmax Transformers with float64 weights: the networks of the theorems about attention alone.

Tokens become vectors x_1, …, x_n ∈ R^d: W_E[t_s] + W_pos[s] for token ids, or the context itself if a task gives
vectors and a query beside them. With q the last vector, or the query,

    z = [x_n +] Σ_h W_Oʰᵀ W_Vʰᵀ Σ_s aʰ_s x_s,    aʰ = softmax_s(x_sᵀ W_Kʰ W_Qʰᵀ q),

without scale, biases and norms; ``skip`` says whether x_n is added. Then, if there is a W_in, h = tanh(W_inᵀ z + b_in)
replaces z; and, if there is a W_U, the logits are W_Uᵀ z. Otherwise the output is z itself.

=============  ================  =========================================  ============
construction   inputs            W_V, W_O                                   then
=============  ================  =========================================  ============
mahdavi-2024   context, query    d → d_v → outputs                          [W_U]
dana-2025      token ids         d → d_h → d, with skip                     W_U
madden-2024    token ids         d → d_h → d                                W_in, W_U
=============  ================  =========================================  ============

Such a network is a :class:`~byheart.networks.trained.TrainedNetwork` with other names, shapes and files: its blocks and
weights are those of the same function, so it is evaluated and enclosed as every layered network is.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from byheart.errors import BadInput
from byheart.networks.folders import SOFTMAX, WEIGHTS, read_weights
from byheart.networks.trained.evaluate import evaluate, softmax
from byheart.networks.trained.steps import (
    Activation,
    AffineMap,
    PositionTable,
    StepSequence,
    TokenTable,
    TrainedAttention,
)
from byheart.networks.trained.trained_network import Floats, Inputs, TrainedNetwork

__all__ = ["Inputs", "SoftmaxNetwork", "attention", "embedded", "evaluate", "softmax"]

_PARTS = dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), "attention") | {"W_E": "embedding", "W_pos": "positions"}
_PARTS |= {"W_in": "units", "b_in": "units", "W_U": "unembedding"}
"""Part that each tensor belongs to, in the order in which fingerprints are computed."""
_ORDER = ("W_E", "W_pos", "W_Q", "W_K", "W_V", "W_O", "W_in", "b_in", "W_U")
"""Fields in the order in which the data passes through them."""
_FULL = {name: f"{_PARTS[name]}.{name}" for name in _ORDER}
"""Full names of the tensors, by field."""
_AXES = {"W_Q": 3, "W_K": 3, "W_V": 3, "W_O": 3, "b_in": 1}
"""Number of axes of each tensor that is not a matrix."""


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxNetwork(TrainedNetwork):
    """A one-layer network, given by nine tensors; ``None`` stands for a tensor that the network does not have."""

    kind = "softmax"
    blocks: tuple[StepSequence, ...] = field(init=False)
    weights: Mapping[str, npt.NDArray[Any]] = field(init=False)
    W_Q: Floats
    """Shape [H, d, d_h]."""
    W_K: Floats
    """Shape [H, d, d_h]."""
    W_V: Floats
    """Shape [H, d, d_v]."""
    W_O: Floats
    """Shape [H, d_v, k]; k is the width of z."""
    W_E: Floats | None = None
    """Shape [ω, d]."""
    W_pos: Floats | None = None
    """Shape [n, d]."""
    W_in: Floats | None = None
    """Shape [k, m]."""
    b_in: Floats | None = None
    """Shape [m]."""
    W_U: Floats | None = None
    """Shape [m or k, C]."""
    skip: bool = False

    def __post_init__(self) -> None:
        for name, tensor in self.by_name().items():
            object.__setattr__(self, name, _checked(name, tensor))
        self._check_shapes()
        object.__setattr__(self, "blocks", self._blocks())
        object.__setattr__(self, "weights", {_FULL[name]: _flat(name, W) for name, W in self.by_name().items()})
        super().__post_init__()

    def _check_shapes(self) -> None:
        (H, d, d_h), (d_v, width) = self.W_Q.shape, (self.W_V.shape[-1], self.W_O.shape[-1])
        if (self.W_E is None) != (self.W_pos is None):
            raise BadInput("one of W_E and W_pos is missing; expected both (token ids) or none (contexts and queries)")
        if (self.W_in is None) != (self.b_in is None):
            raise BadInput("one of W_in and b_in is missing; expected both or none")
        if self.skip and self.W_E is None:
            raise BadInput("skip is for token ids; a query beside a context is not part of the stream")
        last = width if self.b_in is None else len(self.b_in)
        shapes: dict[str, tuple[int | None, ...]] = {"W_K": (H, d, d_h), "W_V": (H, d, d_v), "W_O": (H, d_v, width)}
        shapes |= {"W_E": (None, d), "W_pos": (None, d), "W_in": (width, last), "W_U": (last, None)}
        for name, shape in shapes.items():
            tensor = getattr(self, name)
            if tensor is None:
                continue
            expected = tuple(size or own for size, own in zip(shape, tensor.shape, strict=True))
            if tensor.shape != expected:
                raise BadInput(f"{name} is {list(tensor.shape)}; expected {list(expected)}, to fit the other tensors")
        if self.skip and width != d:
            raise BadInput(f"W_O gives {width} features and the skip connection {d}; expected the same")

    def _blocks(self) -> tuple[StepSequence, ...]:
        names = {name: _FULL[name] for name in ("W_Q", "W_K", "W_V", "W_O")}
        blocks = [StepSequence((TrainedAttention(len(self.W_Q), 1, **names),), self.skip)]
        if self.W_E is not None:
            blocks.insert(0, StepSequence((TokenTable(_FULL["W_E"]), PositionTable(_FULL["W_pos"]))))
        if self.W_in is not None:
            blocks.append(StepSequence((AffineMap(_FULL["W_in"], _FULL["b_in"]), Activation("tanh"))))
        if self.W_U is not None:
            blocks.append(StepSequence((AffineMap(_FULL["W_U"]),)))
        return tuple(blocks)

    def by_name(self) -> dict[str, Floats]:
        """Return all tensors by the names of their fields, in the order of fingerprints."""
        return {name: tensor for name in _PARTS if (tensor := getattr(self, name)) is not None}

    def tensors(self) -> Iterator[tuple[str, Floats]]:
        """Yield all tensors by their full names, in the order in which the data passes through them."""
        tensors = self.by_name()
        return ((_FULL[name], tensors[name]) for name in _ORDER if name in tensors)

    @property
    def width(self) -> int:
        """Maximum of d, the number of units, and the number of outputs."""
        return max(int(self.W_Q.shape[1]), self.outputs, 0 if self.b_in is None else len(self.b_in))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all tensors and the skip connection."""
        tensors = self.by_name()
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        digest = hashlib.sha256(json.dumps([SOFTMAX, self.skip, shapes]).encode())
        for tensor in tensors.values():
            digest.update(tensor.astype("<f8").tobytes())
        return digest.hexdigest()

    def as_config(self) -> dict[str, Any]:
        """Return the entries of config.json."""
        return {"format": SOFTMAX, "skip": self.skip}

    def write_tensors(self, folder: Path) -> None:
        """Write the weights into ``folder``."""
        save_file(self.by_name(), folder / WEIGHTS)

    @classmethod
    def read(cls, config: dict[str, Any], folder: Path, **beside: Any) -> "SoftmaxNetwork":
        """Return the network with the weights in ``folder``."""
        if not isinstance(config.get("skip"), bool):
            raise BadInput(f"config.json: skip is {config.get('skip')!r}; expected true or false")
        try:
            weights: dict[str, Any] = read_weights(folder, ("F64",))
            return cls(**weights, skip=config["skip"], **beside)
        except TypeError as error:  # a tensor has an unknown name
            raise BadInput(f"{WEIGHTS} does not hold the tensors of a softmax network ({error})") from error

    def with_tensor(self, name: str, tensor: npt.NDArray[Any]) -> "SoftmaxNetwork":
        """Return the same network with one tensor replaced, named in full or by its field."""
        changes: dict[str, Any] = {name.rsplit(".", maxsplit=1)[-1]: tensor}
        return replace(self, **changes)

    def check_inputs(self, inputs: Inputs) -> None:
        """Raise BadInput unless the network reads such inputs; sequences of token ids must have exactly n tokens."""
        sequences, queries = inputs
        if queries is None and self.W_pos is not None and sequences.shape[1] != len(self.W_pos):
            raise BadInput(f"the sequences have {sequences.shape[1]} tokens; the network reads {len(self.W_pos)}")
        super().check_inputs(inputs)


def _flat(name: str, tensor: Floats) -> Floats:
    """Return a tensor in the layout of steps: [out, in], with the heads' rows in order."""
    if name in ("W_Q", "W_K", "W_V"):
        return tensor.transpose(0, 2, 1).reshape(-1, tensor.shape[1])
    if name == "W_O":
        return tensor.reshape(-1, tensor.shape[2]).T
    return tensor.T if name in ("W_in", "W_U") else tensor


def embedded(network: SoftmaxNetwork, inputs: Inputs) -> tuple[Floats, Floats]:
    """Return the vectors x [N, n, d] and q [N, d]."""
    sequences, queries = inputs
    if network.W_E is None or network.W_pos is None:
        assert queries is not None
        return sequences, queries
    vectors = network.W_E[sequences] + network.W_pos
    return vectors, vectors[:, -1]


@np.errstate(over="ignore", invalid="ignore")
def attention(network: SoftmaxNetwork, vectors: Floats, queries: Floats) -> Floats:
    """Return the heads' weights aʰ [N, H, n] of vectors [N, n, d] for queries [N, d]; nan beyond float64."""
    if network.W_E is not None:
        # Multiply W_K and W_Q by vectors first: after a change of basis in both, W_K W_Qᵀ would lose its square.
        keys = np.einsum("tnd,hdk->thnk", vectors, network.W_K, optimize=True)
        return softmax(np.einsum("thnk,hdk,td->thn", keys, network.W_Q, queries, optimize=True))
    directions = np.einsum("hdk,hek,te->thd", network.W_K, network.W_Q, queries, optimize=True)
    return softmax(directions @ vectors.transpose(0, 2, 1))


def _checked(name: str, tensor: npt.ArrayLike) -> Floats:
    """Return a read-only array; raise BadInput unless it is finite float64 with as many axes as the field has."""
    array, axes = np.asarray(tensor), _AXES.get(name, 2)
    if array.dtype != np.float64 or array.ndim != axes or 0 in array.shape:
        raise BadInput(f"{name} is {array.dtype} {list(array.shape)}; expected float64 with {axes} axes")
    if not np.isfinite(array).all():
        raise BadInput(f"{name} has entries that are not finite")
    flags = array.flags
    own = array if flags.owndata and flags.c_contiguous and not flags.writeable else np.array(array, order="C")
    own.flags.writeable = False
    return own
