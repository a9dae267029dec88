"""A network that was trained, as data: blocks of steps, and the tensors that they name.

:mod:`byheart.networks.trained.steps` defines its function, over the real numbers: weights are float32 or float64 and
stand for the dyadic numbers that they are. :mod:`~byheart.networks.trained.evaluate` computes the function in float64,
:mod:`~byheart.networks.trained.enclose` encloses it. The outputs are read at the last token, or at the query that
stands beside a context.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from byheart.errors import BadInput
from byheart.networks.folders import TRAINED, WEIGHTS, read_weights
from byheart.networks.network import Network
from byheart.networks.trained.steps import (
    Ids,
    PositionTable,
    Shapes,
    Step,
    StepSequence,
    TokenTable,
    TrainedAttention,
    blocks_from_json,
    tensors_of,
    width_read,
)

Floats = npt.NDArray[np.float64]
Inputs = tuple[npt.NDArray[Any], Floats | None]
"""Token ids int64 [N, n] and None; or contexts float64 [N, n, d] and queries float64 [N, d]."""
Reads = Literal["tokens", "queries"]
_NAMES: dict[Reads, str] = {"tokens": "token ids", "queries": "contexts and queries"}
MAX_NAME_LENGTH = 256
"""Largest number of characters in a tensor's name."""
BYTES_PER_BYTE = 16
"""Memory per byte of the file: a float32 becomes a ball of about 64 bytes."""
FORMATS = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True, eq=False, repr=False)
class TrainedNetwork(Network):
    """Blocks of steps with their tensors; BadInput if a tensor is missing, unused, not finite, or of the wrong shape.

    >>> from byheart.networks.trained import AffineMap, StepSequence, TokenTable
    >>> table = {"embedding.W_E": np.array([[1.0], [2.0]]), "unembedding.W_U": np.array([[1.0], [-1.0], [0.0]])}
    >>> network = TrainedNetwork((StepSequence((TokenTable("embedding.W_E"), AffineMap("unembedding.W_U"))),), table)
    >>> network
    <TrainedNetwork: 5 parameters, depth 2, width 3>
    """

    kind = "trained"
    blocks: tuple[StepSequence, ...]
    weights: Mapping[str, npt.NDArray[Any]]
    """Tensors by the names that steps give them, in alphabetical order."""

    def __post_init__(self) -> None:
        tensors = {name: _checked(name, tensor) for name, tensor in sorted(self.weights.items())}
        object.__setattr__(self, "weights", tensors)
        if not self.blocks or not all(block.steps for block in self.blocks):
            raise BadInput("a block has no steps; expected one or more blocks of one or more steps")
        if self.inputs == "queries" and self.attentions > 1:
            raise BadInput("a query is beside a context, and attention is there twice; the context is read once only")
        _ = self.widths  # raises BadInput if shapes do not fit
        if unused := sorted(set(tensors) - {name for step in self.steps for name in tensors_of(step)}):
            raise BadInput(f"{unused[0]} belongs to no step; expected the tensors that steps name, and no other")

    @property
    def steps(self) -> Iterator[Step]:
        """All steps, block by block."""
        return (step for block in self.blocks for step in block.steps)

    @property
    def embedding(self) -> TokenTable | None:
        """The step that turns token ids into vectors, if the network reads token ids."""
        first = next(self.steps, None)
        return first if isinstance(first, TokenTable) else None

    @property
    def attentions(self) -> int:
        """Number of attention steps."""
        return sum(isinstance(step, TrainedAttention) for step in self.steps)

    @property
    def heads(self) -> int:
        """Largest number of heads of an attention step, and at least 1."""
        return max((step.heads for step in self.steps if isinstance(step, TrainedAttention)), default=1)

    @property
    def inputs(self) -> Reads:
        """Kind of inputs that the network reads."""
        return "queries" if self.embedding is None else "tokens"

    @cached_property
    def shapes(self) -> Shapes:
        """Shapes of the tensors, by name."""
        return {name: tensor.shape for name, tensor in self.weights.items()}

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Width of the stream after every block."""
        widths: list[int] = []
        for block in self.blocks:
            widths.append(block.width(widths[-1] if widths else None, self.shapes))
        return tuple(widths)

    @property
    def outputs(self) -> int:
        """Number of outputs per example."""
        return self.widths[-1]

    @property
    def vocab(self) -> int:
        """Number of tokens ω, for a network that reads token ids."""
        assert self.embedding is not None
        return len(self.weights[self.embedding.W_E])

    @property
    def length(self) -> int | None:
        """Number of places that have a position; None if any number has."""
        tables = [step.W_pos for step in self.steps if isinstance(step, PositionTable) and step.W_pos is not None]
        return min((len(self.weights[name]) for name in tables), default=None)

    @property
    def read_dim(self) -> int:
        """Dimension of the vectors that a network without embedding reads."""
        return width_read(next(self.steps), self.shapes)

    def tensors(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield every tensor once, in the order in which steps name them."""
        names = dict.fromkeys(name for step in self.steps for name in tensors_of(step))
        return ((name, self.weights[name]) for name in names)

    def by_name(self) -> dict[str, npt.NDArray[Any]]:
        """Return the tensors by the names that :meth:`with_tensor` knows, in a fixed order."""
        return dict(self.weights)

    def entry_bits(self, name: str) -> int:
        """Return the number of bits of the tensor's format."""
        return 8 * self.weights[name].dtype.itemsize

    @property
    def depth(self) -> int:
        """Number of embeddings, attention steps and affine maps."""
        return sum(step.depth for step in self.steps)

    @property
    def width(self) -> int:
        """Largest number of rows of a map, those of attention included; or the dimension of what is read."""
        widest = max(step.widest(self.shapes) for step in self.steps)
        return widest if self.embedding is not None else max(widest, self.read_dim)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the blocks and all tensors."""
        shapes = {name: [tensor.dtype.name, *tensor.shape] for name, tensor in self.weights.items()}
        description = [TRAINED, [block.as_json() for block in self.blocks], shapes]
        digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
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
        if unknown := sorted(set(config) - {"format", "blocks", "about"}):
            raise BadInput(f"config.json: has {unknown[0]!r}; expected format, blocks and about")
        blocks = blocks_from_json(config.get("blocks"))
        return cls(blocks, read_weights(folder, ("F32", "F64"), takes=BYTES_PER_BYTE), **beside)

    def with_tensor(self, name: str, tensor: npt.NDArray[Any]) -> "TrainedNetwork":
        """Return the same network with one tensor replaced."""
        return replace(self, weights={**self.weights, name: tensor})

    def check_inputs(self, inputs: Inputs) -> None:
        """Raise BadInput unless the network reads such inputs."""
        sequences, queries = inputs
        kind: Reads = "tokens" if queries is None else "queries"
        if kind != self.inputs:
            raise BadInput(f"the network reads {_NAMES[self.inputs]}; the task has {_NAMES[kind]}")
        places = sequences.shape[1] + (queries is not None)
        if self.length is not None and places > self.length:
            raise BadInput(f"the sequences have {places} places; the network has positions for {self.length}")
        if queries is None:
            self._check_tokens(sequences)
        elif sequences.shape[2] != self.read_dim or queries.shape != (len(sequences), sequences.shape[2]):
            shapes = f"contexts are {list(sequences.shape)} and queries {list(queries.shape)}"
            expected = f"the network reads vectors of dimension {self.read_dim}, and a query for each context"
            raise BadInput(f"{shapes}; {expected}")

    def _check_tokens(self, tokens: Ids) -> None:
        assert self.embedding is not None
        is_padded = self.embedding.padded
        if tokens.min() < 0 or tokens.max() >= self.vocab + is_padded:
            unknown = tokens.min() if tokens.min() < 0 else tokens.max()
            raise BadInput(f"token {unknown} occurs; the network knows 0 to {self.vocab - 1}")
        padding = tokens == self.vocab
        if is_padded and (padding[:, 0].any() or (padding[:, :-1] & ~padding[:, 1:]).any()):
            raise BadInput(f"token {self.vocab}, which pads, stands before another or alone; expected it at the end")


def _checked(name: str, tensor: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return a read-only copy; raise BadInput if a network cannot have such a tensor."""
    if not name.isprintable() or len(name) > MAX_NAME_LENGTH:
        raise BadInput(f"a tensor is called {shortened(name)}; expected at most {MAX_NAME_LENGTH} letters that print")
    array = np.array(tensor, order="C")
    if array.dtype not in FORMATS or array.ndim not in (1, 2) or 0 in array.shape:
        raise BadInput(f"{name} is {array.dtype} {list(array.shape)}; expected float32 or float64 with one or two axes")
    if not np.isfinite(array).all():
        raise BadInput(f"{name} has entries that are not finite")
    array.flags.writeable = False
    return array


def lengths(network: TrainedNetwork, tokens: Ids) -> Ids:
    """Return the number of tokens of each sequence, without padding."""
    counts: Ids = (tokens != network.vocab).sum(axis=1)
    return counts
