"""A one-layer softmax Transformer with float64 weights: what the theorems about attention alone speak of.

Tokens become vectors x_1, …, x_n ∈ R^d: W_E[t_s] + W_pos[s] for token ids, or the context itself where a task gives
vectors and a query beside them. With q the last vector, or the query,

    z = [x_n +] Σ_h W_Oʰᵀ W_Vʰᵀ Σ_s aʰ_s x_s,    aʰ = softmax_s(x_sᵀ W_Kʰ W_Qʰᵀ q),

no scale, no bias, no norm; ``skip`` says whether x_n is added. Then, if there is a W_in, h = tanh(W_inᵀ z + b_in) takes
the place of z; and, if there is a W_U, the logits are W_Uᵀ z. Otherwise the output is z itself.

=============  ================  =========================================  ============
construction   inputs            W_V, W_O                                   then
=============  ================  =========================================  ============
mahdavi-2024   context, query    d → d_v → outputs                          [W_U]
dana-2025      token ids         d → d_h → d, with skip                     W_U
madden-2024    token ids         d → d_h → d                                W_in, W_U
=============  ================  =========================================  ============

The numbers that a float64 evaluation (:func:`evaluate`) gives are approximate. What they are exactly, up to a radius
that is known, :mod:`byheart.networks.softmax.balls` says.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from byheart.errors import BadInput
from byheart.networks.folders import SOFTMAX, WEIGHTS, read_weights
from byheart.networks.network import Network
from byheart.networks.reading import Inputs, Reads, check_kind, check_tokens

Floats = npt.NDArray[np.float64]

CHUNK = 1 << 24
"""Entries of the largest array that an evaluation makes at a time."""


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxNetwork(Network):
    """The tensors of a one-layer network; those that it does not have are ``None``."""

    kind = "softmax"
    W_Q: Floats
    """[H, d, d_h]"""
    W_K: Floats
    """[H, d, d_h]"""
    W_V: Floats
    """[H, d, d_v]"""
    W_O: Floats
    """[H, d_v, k], k the width of z"""
    W_E: Floats | None = None
    """[ω, d]"""
    W_pos: Floats | None = None
    """[n, d]"""
    W_in: Floats | None = None
    """[k, m]"""
    b_in: Floats | None = None
    """[m]"""
    W_U: Floats | None = None
    """[m or k, C]"""
    skip: bool = False

    def __post_init__(self) -> None:
        for name, tensor in self.weights().items():
            object.__setattr__(self, name, _checked(name, tensor))
        H, d, d_h = self.W_Q.shape
        d_v, width = self.W_V.shape[-1], self.W_O.shape[-1]
        _expect_shape("W_K", self.W_K, (H, d, d_h))
        _expect_shape("W_V", self.W_V, (H, d, d_v))
        _expect_shape("W_O", self.W_O, (H, d_v, width))
        if (self.W_E is None) != (self.W_pos is None):
            raise BadInput("one of W_E and W_pos is missing; expected both (token ids) or none (contexts and queries)")
        if self.W_E is not None and self.W_pos is not None:
            _expect_shape("W_E", self.W_E, (len(self.W_E), d))
            _expect_shape("W_pos", self.W_pos, (len(self.W_pos), d))
        if (self.W_in is None) != (self.b_in is None):
            raise BadInput("one of W_in and b_in is missing; expected both or none")
        if self.skip and self.W_E is None:
            raise BadInput("skip is for token ids; a query beside a context is not part of the stream")
        if self.skip and width != d:
            raise BadInput(f"W_O gives {width} features and the skip connection {d}; expected the same")
        if self.W_in is not None and self.b_in is not None:
            _expect_shape("W_in", self.W_in, (width, len(self.b_in)))
            width = len(self.b_in)
        if self.W_U is not None:
            _expect_shape("W_U", self.W_U, (width, self.W_U.shape[-1]))

    @property
    def inputs(self) -> Reads:
        """What the network reads."""
        return "queries" if self.W_E is None else "tokens"

    @property
    def outputs(self) -> int:
        """How many numbers it gives for an example."""
        last = next(tensor for tensor in (self.W_U, self.b_in, self.W_O) if tensor is not None)
        return int(last.shape[-1])

    def weights(self) -> dict[str, Floats]:
        """Every tensor that there is, by the name of its field."""
        return {field: tensor for field in _PARTS if (tensor := getattr(self, field)) is not None}

    def tensors(self) -> Iterator[tuple[str, Floats]]:
        """Every tensor that there is, in the order of the data's way, by its full name."""
        weights = self.weights()
        return ((f"{_PARTS[field]}.{field}", weights[field]) for field in _ORDER if field in weights)

    def entry_bits(self, name: str) -> int:
        """Those of float64."""
        return 64

    @property
    def depth(self) -> int:
        """Attention is one, and so are the embedding, the units and the unembedding, where they are."""
        return 1 + sum(tensor is not None for tensor in (self.W_E, self.W_in, self.W_U))

    @property
    def width(self) -> int:
        """The largest of d, the units and the outputs."""
        return max(int(self.W_Q.shape[1]), self.outputs, 0 if self.b_in is None else len(self.b_in))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all tensors and the skip connection."""
        weights = self.weights()
        shapes = {name: tensor.shape for name, tensor in weights.items()}
        digest = hashlib.sha256(json.dumps([SOFTMAX, self.skip, shapes]).encode())
        for tensor in weights.values():
            digest.update(tensor.astype("<f8").tobytes())
        return digest.hexdigest()

    def as_config(self) -> dict[str, Any]:
        """Return the entries of config.json."""
        return {"format": SOFTMAX, "skip": self.skip}

    def write_tensors(self, folder: Path) -> None:
        """Write the weights into ``folder``."""
        save_file(self.weights(), folder / WEIGHTS)

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

    def with_tensor(self, name: str, tensor: Floats) -> "SoftmaxNetwork":
        """The same network with one tensor replaced, called by its full name or by its field's."""
        changes: dict[str, Any] = {name.rsplit(".", maxsplit=1)[-1]: tensor}
        return replace(self, **changes)


_PARTS = dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), "attention") | {"W_E": "embedding", "W_pos": "positions"}
_PARTS |= {"W_in": "units", "b_in": "units", "W_U": "unembedding"}
"""The part that each tensor belongs to, in the order in which fingerprints are taken."""
_ORDER = ("W_E", "W_pos", "W_Q", "W_K", "W_V", "W_O", "W_in", "b_in", "W_U")


def check_inputs(network: SoftmaxNetwork, inputs: Inputs) -> None:
    """BadInput unless the network reads such inputs."""
    sequences, queries = inputs
    check_kind(network.inputs, inputs)
    if network.W_E is not None and network.W_pos is not None:
        if sequences.shape[1] != len(network.W_pos):
            raise BadInput(f"the sequences have {sequences.shape[1]} tokens; the network reads {len(network.W_pos)}")
        check_tokens(sequences, len(network.W_E))
        return
    assert queries is not None
    if sequences.shape[2] != network.W_Q.shape[1]:
        raise BadInput(f"the vectors have dimension {sequences.shape[2]}; the network reads {network.W_Q.shape[1]}")
    if queries.shape != (len(sequences), sequences.shape[2]):
        raise BadInput(f"queries are {list(queries.shape)}; expected {[len(sequences), sequences.shape[2]]}")


def embedded(network: SoftmaxNetwork, inputs: Inputs) -> tuple[Floats, Floats]:
    """The vectors x [N, n, d] and q [N, d]."""
    sequences, queries = inputs
    if network.W_E is None or network.W_pos is None:
        assert queries is not None
        return sequences, queries
    vectors = network.W_E[sequences] + network.W_pos
    return vectors, vectors[:, -1]


@np.errstate(over="ignore", invalid="ignore")
def attention(network: SoftmaxNetwork, vectors: Floats, asked: Floats) -> Floats:
    """The heads' weights aʰ [N, H, n] over vectors [N, n, d], asked by [N, d]; nan where scores are beyond float64."""
    if network.W_E is not None:
        # Keys and queries first: to multiply W_K W_Qᵀ out would lose the square of a change of basis in both.
        keys = np.einsum("tnd,hdk->thnk", vectors, network.W_K, optimize=True)
        return softmax(np.einsum("thnk,hdk,td->thn", keys, network.W_Q, asked, optimize=True))
    directions = np.einsum("hdk,hek,te->thd", network.W_K, network.W_Q, asked, optimize=True)
    return softmax(directions @ vectors.transpose(0, 2, 1))


def softmax(scores: Floats) -> Floats:
    """softmax over the last axis."""
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return weights


def evaluate(network: SoftmaxNetwork, inputs: Inputs) -> Floats:
    """The outputs float64 [N, C], in float64 arithmetic.

    >>> one = np.ones((1, 1, 1))
    >>> network = SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=one)
    >>> context, query = np.array([[[0.0], [1.0]]]), np.array([[np.log(3)]])
    >>> evaluate(network, (context, query)).round(12)
    array([[0.75]])
    """
    check_inputs(network, inputs)
    sequences, queries = inputs
    H, d, d_h = network.W_Q.shape
    each = max(1, CHUNK // (sequences.shape[1] * max(H * d_h, d) + H * d))
    parts = []
    for start in range(0, len(sequences), each):
        chosen = slice(start, start + each)
        vectors, asked = embedded(network, (sequences[chosen], None if queries is None else queries[chosen]))
        averages = attention(network, vectors, asked) @ vectors
        z = np.einsum("thd,hdv,hvk->tk", averages, network.W_V, network.W_O, optimize=True)
        parts.append(_after(network, z + asked if network.skip else z))
    return np.concatenate(parts)


def _after(network: SoftmaxNetwork, z: Floats) -> Floats:
    if network.W_in is not None and network.b_in is not None:
        z = np.tanh(z @ network.W_in + network.b_in)
    return z if network.W_U is None else z @ network.W_U


_AXES = {"W_Q": 3, "W_K": 3, "W_V": 3, "W_O": 3, "W_E": 2, "W_pos": 2, "W_in": 2, "b_in": 1, "W_U": 2}


def _checked(name: str, tensor: npt.ArrayLike) -> Floats:
    array = np.asarray(tensor)
    if array.dtype != np.float64 or array.ndim != _AXES[name] or 0 in array.shape:
        raise BadInput(f"{name} is {array.dtype} {list(array.shape)}; expected float64 with {_AXES[name]} axes")
    if not np.isfinite(array).all():
        raise BadInput(f"{name} has entries that are not finite")
    flags = array.flags
    own = array if flags.owndata and flags.c_contiguous and not flags.writeable else np.array(array, order="C")
    own.flags.writeable = False
    return own


def _expect_shape(name: str, tensor: Floats, shape: tuple[int, ...]) -> None:
    if tensor.shape != shape:
        raise BadInput(f"{name} is {list(tensor.shape)}; expected {list(shape)}, to fit the other tensors")
