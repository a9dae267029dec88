"""A network that was trained, as data: blocks of steps, and the tensors that they name.

What it computes, :mod:`byheart.networks.trained.steps` defines, over the real numbers: its weights are float32 or
float64 and are taken as the dyadic numbers that they are. :mod:`~byheart.networks.trained.evaluate` computes it in
float64, :mod:`~byheart.networks.trained.balls` encloses it. The answer is what comes out at the last token, or at the
query that stands beside a context.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from byheart.errors import BadInput
from byheart.networks.folders import TRAINED, WEIGHTS, read_weights
from byheart.networks.network import Network
from byheart.networks.reading import Inputs, Reads, check_kind, check_tokens
from byheart.networks.trained.steps import (
    AffineMap,
    PositionTable,
    Step,
    StepSequence,
    TokenTable,
    TrainedAttention,
    blocks_from_json,
    tensors_of,
)

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
MOST_LETTERS = 256
"""Of a tensor's name."""
BYTES_PER_BYTE = 16
"""Memory per byte of the file: a float32 becomes a ball of about 64 bytes."""
FORMATS = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True, eq=False, repr=False)
class TrainedNetwork(Network):
    """Blocks of steps with their tensors; BadInput if one is missing, strange, too many, or not finite.

    >>> table = {"embedding.W_E": np.array([[1.0], [2.0]]), "unembedding.W_U": np.array([[1.0], [-1.0], [0.0]])}
    >>> network = TrainedNetwork((StepSequence((TokenTable("embedding.W_E"), AffineMap("unembedding.W_U"))),), table)
    >>> network
    <TrainedNetwork: 5 parameters, depth 2, width 3>
    """

    kind = "trained"
    blocks: tuple[StepSequence, ...]
    weights: Mapping[str, npt.NDArray[Any]]

    def __post_init__(self) -> None:
        own = {name: _checked(name, tensor) for name, tensor in sorted(self.weights.items())}
        object.__setattr__(self, "weights", own)
        if not self.blocks or not all(block.steps for block in self.blocks):
            raise BadInput("a block has no steps; expected one or more blocks of one or more steps")
        if self.inputs == "queries" and sum(isinstance(step, TrainedAttention) for step in self.steps) > 1:
            raise BadInput("a query is beside a context, and attention is there twice; the context is read once only")
        _ = self.widths  # which refuses what does not fit
        if strange := sorted(set(own) - {name for step in self.steps for name in tensors_of(step)}):
            raise BadInput(f"{strange[0]} belongs to no step; expected the tensors that steps name, and no other")

    @property
    def steps(self) -> Iterator[Step]:
        """All steps, block after block."""
        return (step for block in self.blocks for step in block.steps)

    @property
    def embedding(self) -> TokenTable | None:
        """What makes vectors of token ids, if it reads token ids."""
        first = next(self.steps, None)
        return first if isinstance(first, TokenTable) else None

    @property
    def inputs(self) -> Reads:
        """What the network reads."""
        return "queries" if self.embedding is None else "tokens"

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How wide the stream is behind every block."""
        shapes, widths, now = {name: tensor.shape for name, tensor in self.weights.items()}, [], None
        for block in self.blocks:
            now = block.width(now, shapes)
            widths.append(now)
        return tuple(widths)

    @property
    def outputs(self) -> int:
        """How many numbers it gives for an example."""
        return self.widths[-1]

    @property
    def vocab(self) -> int:
        """ω, for a network that reads token ids."""
        assert self.embedding is not None
        return len(self.weights[self.embedding.W_E])

    @property
    def length(self) -> int | None:
        """How many places have a position; None: any number."""
        tables = [step.W_pos for step in self.steps if isinstance(step, PositionTable) and step.W_pos is not None]
        return min((len(self.weights[name]) for name in tables), default=None)

    @property
    def read_dim(self) -> int:
        """The dimension of the vectors that a network without embedding reads."""
        first = next(self.steps)
        name = first.W if isinstance(first, AffineMap) else tensors_of(first)[0]
        return int(self.weights[name].shape[1])

    def tensors(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Every tensor once, in the order in which steps name them."""
        names = dict.fromkeys(name for step in self.steps for name in tensors_of(step))
        return ((name, self.weights[name]) for name in names)

    def entry_bits(self, name: str) -> int:
        """Those of its format."""
        return 8 * self.weights[name].dtype.itemsize

    @property
    def depth(self) -> int:
        """Embedding, attention and affine maps are one each."""
        return sum(isinstance(step, TokenTable | TrainedAttention | AffineMap) for step in self.steps)

    @property
    def width(self) -> int:
        """The widest of what embeddings and affine maps, those of attention among them, give out."""
        found = [self.read_dim] if self.embedding is None else []
        for step in self.steps:
            if isinstance(step, TokenTable):
                found.append(self.weights[step.W_E].shape[1])
            elif isinstance(step, AffineMap):
                found.append(step.rows or len(self.weights[step.W]))
            elif isinstance(step, TrainedAttention):
                found += [len(self.weights[name]) for name in (step.W_Q, step.W_V, step.W_O)]
        return max(found)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the blocks and all tensors."""
        shapes = {name: [tensor.dtype.name, *tensor.shape] for name, tensor in self.weights.items()}
        said = [TRAINED, [block.as_json() for block in self.blocks], shapes]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
        for tensor in self.weights.values():
            digest.update(tensor.astype(tensor.dtype.newbyteorder("<"), copy=False).tobytes())
        return digest.hexdigest()

    def as_config(self) -> dict[str, Any]:
        """Return the entries of config.json."""
        return {"format": TRAINED, "blocks": [block.as_json() for block in self.blocks]}

    def write_tensors(self, folder: Path) -> None:
        """Write the weights into ``folder``, each tensor in its own format."""
        save_file(dict(self.weights), folder / WEIGHTS)

    @classmethod
    def read(cls, config: dict[str, Any], folder: Path, **beside: Any) -> "TrainedNetwork":
        """Return the network that ``config`` describes, with the weights in ``folder``."""
        if strange := sorted(set(config) - {"format", "blocks", "about"}):
            raise BadInput(f"config.json: has {strange[0]!r}; expected format, blocks and about")
        blocks = blocks_from_json(config.get("blocks"))
        return cls(blocks, read_weights(folder, ("F32", "F64"), takes=BYTES_PER_BYTE), **beside)

    def with_tensor(self, name: str, tensor: npt.NDArray[Any]) -> "TrainedNetwork":
        """The same network with one tensor replaced."""
        return replace(self, weights={**self.weights, name: tensor})


def _checked(name: str, tensor: npt.ArrayLike) -> npt.NDArray[Any]:
    """A read-only copy; BadInput if it is no tensor of ours."""
    if not name.isprintable() or len(name) > MOST_LETTERS:
        raise BadInput(f"a tensor is called {shortened(name)}; expected at most {MOST_LETTERS} letters that print")
    array = np.array(tensor, order="C")
    if array.dtype not in FORMATS or array.ndim not in (1, 2) or 0 in array.shape:
        raise BadInput(f"{name} is {array.dtype} {list(array.shape)}; expected float32 or float64 with one or two axes")
    if not np.isfinite(array).all():
        raise BadInput(f"{name} has entries that are not finite")
    array.flags.writeable = False
    return array


def check_inputs(network: TrainedNetwork, inputs: Inputs) -> None:
    """BadInput unless the network reads such inputs."""
    sequences, queries = inputs
    check_kind(network.inputs, inputs)
    places = sequences.shape[1] + (queries is not None)
    if network.length is not None and places > network.length:
        raise BadInput(f"the sequences have {places} places; the network has positions for {network.length}")
    if queries is None:
        _check_tokens(network, sequences)
    elif sequences.shape[2] != network.read_dim or queries.shape != (len(sequences), sequences.shape[2]):
        got = f"contexts are {list(sequences.shape)} and queries {list(queries.shape)}"
        raise BadInput(
            f"{got}; the network reads vectors of dimension {network.read_dim}, and a query for each context"
        )


def _check_tokens(network: TrainedNetwork, tokens: Ids) -> None:
    assert network.embedding is not None
    check_tokens(tokens, network.vocab, padded=network.embedding.padded)
    if network.embedding.padded:
        padding = tokens == network.vocab
        if padding[:, 0].any() or (padding[:, :-1] & ~padding[:, 1:]).any():
            raise BadInput(f"token {network.vocab}, which pads, stands before another or alone; expected it at the end")


def lengths(network: TrainedNetwork, tokens: Ids) -> Ids:
    """How many tokens each sequence has, without those that fill it up."""
    counted: Ids = (tokens != network.vocab).sum(axis=1)
    return counted
