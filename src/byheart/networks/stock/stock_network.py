"""Stock models: configuration and tensors of transformers' ``LlamaForCausalLM`` or ``Qwen2MoeForCausalLM``."""

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from byheart.errors import BadInput, missing_package
from byheart.files.untrusted import MAX_JSON_BYTES, read_bytes
from byheart.networks.folders import CONFIG, WEIGHTS, generation_config, read_weights
from byheart.networks.network import Network
from byheart.networks.stock.config import architecture, checked, shapes
from byheart.networks.weight_files import write_weights


@dataclass(frozen=True, eq=False, repr=False)
class StockNetwork(Network):
    """A Llama or a Qwen2-MoE, given by its configuration and its tensors, whose entries must be finite."""

    kind = "stock"
    metadata: ClassVar[dict[str, str]] = {"format": "pt"}
    config: Mapping[str, Any]
    """Arguments of ``transformers.LlamaConfig`` or ``Qwen2MoeConfig``."""
    weights: Mapping[str, NDArray[Any]]
    """Tensors by their names in transformers' files, one per matrix of an expert. A tied unembedding is left out."""
    digest: str | None = None
    """SHA-256 over the two files that the network was read from: its fingerprint in certificates of Byheart 0.1.0."""

    def __post_init__(self) -> None:
        self._check_shapes(shapes(checked(self.config), len(self.weights)))
        for name in ("bos_token_id", "pad_token_id"):  # transformers cannot load or run a model with any other value
            token, vocab = self.config.get(name), self.config["vocab_size"]
            if token is not None and token >= vocab:
                raise BadInput(f"config.json: {name} is {token}; expected null or a token, from 0 to {vocab - 1}")
        half = [name for name, tensor in self.weights.items() if tensor.dtype != np.float32]
        if half and "float32" not in (self.config.get("dtype"), self.config.get("torch_dtype")):
            expected = 'expected "dtype": "float32" in config.json, or transformers would run it in that format'
            raise BadInput(f"{half[0]} is {self.weights[half[0]].dtype}; {expected}")
        for name, tensor in self.weights.items():
            if not np.isfinite(tensor).all():
                raise BadInput(f"{name} has entries that are not finite")

    @cached_property
    def model(self) -> Any:
        """The model of transformers: float32 with plain attention, whatever the configuration asks for."""
        try:
            import transformers
            from transformers.utils import logging
        except ImportError:
            raise BadInput(missing_package("transformers", self.title, "hf")) from None
        import torch

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        kind = architecture(self.config)
        try:
            config_class: Any = getattr(transformers, f"{kind.prefix}Config")
            config = config_class.from_dict({**checked(self.config), "attn_implementation": "eager"})
            state = {name: torch.from_numpy(np.ascontiguousarray(tensor)) for name, tensor in self.weights.items()}
            model_class: Any = getattr(transformers, kind.model_class)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Initializing zero-element tensors")  # a shared expert has no units
                model = model_class.from_pretrained(None, config=config, state_dict=state, dtype=torch.float32)
        except BadInput:
            raise
        except Exception as error:  # a configuration may hold anything, so transformers may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadInput(f"transformers cannot make {kind.name} of it ({reason})") from error
        return model.eval()

    @property
    def title(self) -> str:
        """Name of the architecture, as in "a stock Llama"."""
        return f"a stock {architecture(self.config).name.removeprefix('a ')}"

    def _check_shapes(self, expected: Mapping[str, tuple[int, ...]]) -> None:
        """Raise BadInput unless the shapes are as ``expected``; transformers would draw missing tensors at random."""
        actual = {name: tensor.shape for name, tensor in self.weights.items()}
        if actual != expected:
            wrong = sorted(name for name in {*actual, *expected} if actual.get(name) != expected.get(name))
            problem = f"tensors {wrong[:3]} are missing, unknown or of another shape"
            raise BadInput(f"{problem}; expected those that config.json describes")

    @property
    def first(self) -> int | None:
        """Token that precedes every text; None if there is none."""
        first: int | None = self.config.get("bos_token_id")
        return first

    @property
    def window(self) -> int:
        """Number of tokens that the network was compiled to look back."""
        window = self.about.get("window")
        if type(window) is not int or window < 1:
            expected = f"expected {architecture(self.config).name} that Byheart compiled"
            raise BadInput(f"config.json: about.window is {window!r}; {expected}")
        return window

    def tensors(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield every tensor with its name in transformers, sorted by name, as files keep them."""
        yield from sorted(self.weights.items())

    def part(self, name: str) -> str:
        """Return the tensor's name within its layer, such as q_proj or gate_proj; tensors of experts are one part."""
        if ".experts." in name:
            return "experts"
        return name.removesuffix(".weight").rsplit(".", maxsplit=1)[-1]

    def entry_bits(self, name: str) -> int:
        """Return the number of bits per entry in the tensor's format."""
        return 8 * self.weights[name].dtype.itemsize

    @property
    def depth(self) -> int:
        """Number of layers: embedding, unembedding, one per attention and two per feed-forward block."""
        return 2 + 3 * int(self.config["num_hidden_layers"])

    @property
    def width(self) -> int:
        """Number of features of the stream, or of hidden units if these are more."""
        names = ("hidden_size", "intermediate_size", "moe_intermediate_size")
        return max(int(self.config.get(name, 0)) for name in names)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the configuration and all tensors."""
        shapes = {name: [str(tensor.dtype), *tensor.shape] for name, tensor in self.weights.items()}
        digest = hashlib.sha256(json.dumps(["stock", dict(self.config), shapes], sort_keys=True).encode())
        for name in sorted(self.weights):
            digest.update(np.ascontiguousarray(self.weights[name]).data)
        return digest.hexdigest()

    def as_config(self) -> dict[str, Any]:
        """Return the entries of config.json: the arguments of transformers' configuration."""
        return dict(self.config)

    def side_files(self) -> dict[str, bytes]:
        """Return the settings with which transformers generates."""
        return generation_config(first=self.first, end=self.config.get("eos_token_id"))

    def write_tensors(self, folder: Path) -> None:
        """Write the weights into ``folder``."""
        # safetensors writes an array's memory as it is, whatever its strides
        weights = {name: np.ascontiguousarray(tensor) for name, tensor in self.weights.items()}
        write_weights(folder, weights, partial(save_file, metadata=self.metadata))

    @classmethod
    def read(cls, config: dict[str, Any], folder: Path, **beside: Any) -> "StockNetwork":
        """Return the model that ``config`` describes, with the weights in ``folder``."""
        weights = read_weights(folder, ("F32", "F16"))
        digest = None
        if (folder / WEIGHTS).exists():  # Byheart 0.1.0 wrote no other file of weights
            content = read_bytes(folder / CONFIG, max_bytes=MAX_JSON_BYTES) + read_bytes(folder / WEIGHTS)
            digest = hashlib.sha256(content).hexdigest()
        own = {name: value for name, value in config.items() if name != "about"}
        return cls(own, weights, digest, **beside)

    def is_named(self, fingerprint: str) -> bool:
        """Return True if a certificate with this fingerprint is about this network."""
        return fingerprint in (self.fingerprint, self.digest)
