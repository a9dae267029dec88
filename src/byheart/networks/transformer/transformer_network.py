"""A float Transformer as a network: its spec, and every tensor in the format that it is stored in."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from byheart.errors import BadInput
from byheart.networks.about import refuse_of
from byheart.networks.folders import CONFIG, FLOAT, MODELING, generation_config, read_weights
from byheart.networks.network import Network
from byheart.networks.transformer.modeling import AUTO_MAP, modeling
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.spec import Spec, WindowAttention
from byheart.networks.weight_files import write_weights

if TYPE_CHECKING:
    from byheart.networks.transformer.program import CompiledProgram


LARGE = 1 << 23
"""Number of bytes of weights above which each expert has a file of its own."""


@dataclass(frozen=True, eq=False, repr=False)
class TransformerNetwork(Network):
    """A network by its spec and weights; BadInput if a tensor is missing, of another shape, or not finite.

    >>> spec = Spec(2, 2, 1, 1, "float32", embeds=(0,), unembeds=(0,), sublayers=())
    >>> tensors = {"embedding.W_E": [[1], [2]], "unembedding.W_U": [[1], [-1]], "unembedding.b_U": [0, 3]}
    >>> network = from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
    >>> network
    <TransformerNetwork: 6 parameters, depth 2, width 1>
    >>> network.module(torch.tensor([[0, 1]])).tolist()
    [[[1.0, 2.0], [2.0, 1.0]]]
    """

    kind = "transformer"
    metadata: ClassVar[dict[str, str]] = {"format": "pt"}  # transformers requires this mark
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
    def program(self) -> "CompiledProgram | None":
        """The network as compiled code reads it; None if compiled code cannot read it."""
        from byheart.networks.transformer.program import CompiledProgram  # needs numba

        return CompiledProgram.of(self.module)

    @property
    def window(self) -> int:
        """Number of tokens that it was made to look back."""
        return self.spec.window

    def tensors(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield every tensor; bfloat16, which numpy lacks, as float32, which holds the same numbers."""
        for name in self.spec.shapes():
            weight = self.weights[name].detach().cpu()
            yield name, (weight.float() if weight.dtype == torch.bfloat16 else weight).numpy()

    def entry_bits(self, name: str) -> int:
        """Return the number of bits per entry in the tensor's format."""
        return 16 if name in self.spec.bfloat16 else 8 * np.dtype(self.spec.precision).itemsize

    @property
    def depth(self) -> int:
        """Number of layers: embedding, unembedding, one per attention and two per feed-forward sublayer."""
        return 2 + sum(2 - isinstance(sublayer, WindowAttention) for sublayer in self.spec.sublayers)

    @property
    def width(self) -> int:
        """Number of features of the stream, or of the hidden units of a sublayer that has more."""
        hidden = (layer.groups * layer.units for layer in self.spec.sublayers if not isinstance(layer, WindowAttention))
        return max(self.spec.stream, *hidden, 0)

    @property
    def padded(self) -> int:
        """Number of parameters if every sublayer, the embedding and the unembedding were as wide as the stream."""
        return self.spec.padded

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the spec and the bytes of all tensors."""
        digest = hashlib.sha256(json.dumps(self.spec.as_json(), sort_keys=True).encode())
        for name in self.spec.shapes():
            digest.update(self.weights[name].detach().cpu().contiguous().view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def as_config(self) -> dict[str, Any]:
        """Return the entries of config.json: the spec, and the keys that Hugging Face reads."""
        _ = self.module  # refuses a network that could not be loaded
        end, refusal = self.about.get("end"), refuse_of(self)
        ends = end if refusal is None else [end, refusal.token]
        return {
            "model_type": FLOAT,
            "architectures": ["ByheartForCausalLM"],
            "auto_map": AUTO_MAP,
            "dtype": self.spec.precision,
            "vocab_size": self.spec.vocab,
            **({} if end is None else {"eos_token_id": ends, "pad_token_id": end}),
            "spec": self.spec.as_json(),
        }

    def side_files(self) -> dict[str, bytes]:
        """Return the settings for generating, and the code with which transformers runs the weights."""
        refusal = refuse_of(self)
        unknown = None if refusal is None else refusal.token
        generation = generation_config(first=None, end=self.about.get("end"), unknown=unknown)
        return {**generation, MODELING: modeling().encode()}

    def write_tensors(self, folder: Path) -> None:
        """Write the weights into ``folder``, each tensor in its own format. Large networks have one file per expert."""
        weights = {name: weight.contiguous() for name, weight in self.weights.items()}
        save = partial(save_file, metadata=self.metadata)
        is_large = sum(weight.nbytes for weight in weights.values()) > LARGE
        write_weights(folder, weights, save, alone=self.spec.experts if is_large else ())

    @classmethod
    def read(cls, config: dict[str, Any], folder: Path, **beside: Any) -> "TransformerNetwork":
        """Return the network that ``config`` describes, with the weights in ``folder``."""
        if "spec" not in config:
            raise BadInput(f"{CONFIG}: no 'spec'; expected the description of a network")
        arrays = read_weights(folder, ("F32", "F64", "BF16"))
        # Every feature that a part reads or writes has an entry of one of its tensors.
        spec = Spec.from_json(config["spec"], most=sum(array.size for array in arrays.values()))
        network = cls(spec, {name: _tensor(array) for name, array in arrays.items()}, **beside)
        _ = network.module  # refuses tensors of other types, and tensors that the spec does not name
        return network

    def with_tensor(self, name: str, tensor: torch.Tensor) -> "TransformerNetwork":
        """Return the same network with one tensor replaced."""
        return TransformerNetwork(self.spec, {**self.weights, name: tensor}, about=self.about, files=self.files)


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    """Return the array as a tensor; uint16 holds the bits of bfloat16."""
    if array.dtype == np.uint16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def from_arrays(spec: Spec, arrays: Mapping[str, NDArray[Any]], **beside: Any) -> TransformerNetwork:
    """Make a network of these tensors, each converted to the format that the spec names for it."""
    stored = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    for name in set(spec.bfloat16) & set(stored):
        short = stored[name].to(torch.bfloat16)
        if not torch.equal(short.to(stored[name].dtype), stored[name]):
            raise BadInput(f"{name} has entries that bfloat16 cannot hold; expected 8 bits and an exponent")
        stored[name] = short
    return TransformerNetwork(spec, stored, **beside)
