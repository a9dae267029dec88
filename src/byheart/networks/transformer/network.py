"""A float Transformer as a network: its spec, and every tensor in the format that it is stored in."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.network import Network
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.spec import Attention, Spec

if TYPE_CHECKING:
    from byheart.networks.transformer.program import Program


@dataclass(frozen=True, eq=False, repr=False)
class TransformerNetwork(Network):
    """What ``spec`` says with these weights; BadInput if one is missing, of another shape, or not finite.

    >>> spec = Spec(2, 2, 1, 1, "float32", embeds=(0,), unembeds=(0,), sublayers=())
    >>> tensors = {"embedding.W_E": [[1], [2]], "unembedding.W_U": [[1], [-1]], "unembedding.b_U": [0, 3]}
    >>> network = from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
    >>> network
    <TransformerNetwork: 6 parameters, depth 2, width 1>
    >>> network.module(torch.tensor([[0, 1]])).tolist()
    [[[1.0, 2.0], [2.0, 1.0]]]
    """

    kind = "transformer"
    spec: Spec
    weights: Mapping[str, torch.Tensor]

    def __post_init__(self) -> None:
        for name, shape in self.spec.shapes().items():
            if name not in self.weights:
                raise BadInput(f"{name} is missing; config.json describes it")
            given = self.weights[name]
            if tuple(given.shape) != shape:
                raise BadInput(f"{name} is {list(given.shape)}; config.json describes {list(shape)}")
            if not given.isfinite().all():
                raise BadInput(f"{name} has entries that are not finite")

    @cached_property
    def module(self) -> Transformer:
        """The network as a ``torch.nn.Module``, ready to run."""
        return Transformer(self.spec).load(self.weights).eval()

    @cached_property
    def program(self) -> "Program | None":
        """The network as compiled code reads it; None if that cannot."""
        from byheart.networks.transformer.program import Program  # needs numba

        return Program.of(self.module)

    @property
    def window(self) -> int:
        """How many tokens back it was made to look."""
        return self.spec.window

    def tensors(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Every tensor; numpy has no bfloat16, so that such a tensor comes as float32, which holds the same numbers."""
        for name in self.spec.shapes():
            weight = self.weights[name].detach().cpu()
            yield name, (weight.float() if weight.dtype == torch.bfloat16 else weight).numpy()

    def entry_bits(self, name: str) -> int:
        """Those of the tensor's format."""
        return 16 if name in self.spec.bfloat16 else 8 * np.dtype(self.spec.precision).itemsize

    @property
    def depth(self) -> int:
        """Embedding, unembedding, one for every attention and two for every feed-forward sublayer."""
        return 2 + sum(2 - isinstance(sublayer, Attention) for sublayer in self.spec.sublayers)

    @property
    def width(self) -> int:
        """The widest of the stream and the hidden units."""
        hidden = (layer.groups * layer.units for layer in self.spec.sublayers if not isinstance(layer, Attention))
        return max(self.spec.stream, *hidden, 0)

    @property
    def padded(self) -> int:
        """Parameters if every sublayer, the embedding and the unembedding were as wide as the stream."""
        return self.spec.padded

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the spec and the bytes of all tensors."""
        digest = hashlib.sha256(json.dumps(self.spec.as_json(), sort_keys=True).encode())
        for name in self.spec.shapes():
            digest.update(self.weights[name].detach().cpu().contiguous().view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def with_tensor(self, name: str, tensor: torch.Tensor) -> "TransformerNetwork":
        """The same network with one tensor replaced."""
        return TransformerNetwork(self.spec, {**self.weights, name: tensor}, about=self.about, files=self.files)


def from_arrays(spec: Spec, arrays: Mapping[str, NDArray[Any]], **beside: Any) -> TransformerNetwork:
    """The network with these tensors, each brought into the format that the spec names for it."""
    stored = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    for name in set(spec.bfloat16) & set(stored):
        short = stored[name].to(torch.bfloat16)
        if not torch.equal(short.to(stored[name].dtype), stored[name]):
            raise BadInput(f"{name} has entries that bfloat16 cannot hold; expected 8 bits and an exponent")
        stored[name] = short
    return TransformerNetwork(spec, stored, **beside)
