"""Count the parameters of other people's causal language models, from config.json alone.

Nothing is loaded or built: counts are arithmetic on sizes that are checked first, so a file may contain anything.
Every parameter is counted once, embeddings included; tied parameters are counted once. The families are those of
Hugging Face's library; a test compares the arithmetic with its models.

Adapters, and weights that config.json does not describe, are not covered. Quantized models have no bits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shortened
from typing import Annotated, Any

from byheart.errors import BadInput
from byheart.files.decoding import Within, decode
from byheart.files.untrusted import read_json
from byheart.networks.folders import CONFIG
from byheart.networks.rules import MOST

Config = Mapping[str, Any]

BITS = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16, "float8_e4m3fn": 8, "float8_e5m2": 8}
"""Bits per parameter, by the name of the format in config.json."""
MOST_LAYERS = 1 << 16
MOST_JSON = 1 << 22
HEADS = ("ForCausalLM", "LMHeadModel")
"""Suffixes of the names of architectures that predict the next token."""


@dataclass(frozen=True)
class Model:
    """A model as its config.json describes it."""

    family: str
    parameters: int
    bits: int | None
    """Bits per stored parameter; None if config.json does not state them."""


def read_model(folder: Path) -> Model:
    """Return the model that ``folder/config.json`` describes; raise BadInput if it is no causal language model."""
    path = folder / CONFIG
    try:
        config = read_json(path, max_bytes=MOST_JSON)
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"{path}: no such file; expected a model's folder, or --parameters P") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
    try:
        return model_of(config)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def model_of(config: Config) -> Model:
    """Return the model that a configuration describes.

    >>> sizes = {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}
    >>> model_of({"model_type": "gpt2", **sizes})
    Model(family='gpt2', parameters=124439808, bits=None)
    >>> model_of({"model_type": "bert"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    byheart.errors.BadInput: model_type is 'bert'; expected a causal language model: gemma, gpt2, ... or --parameters P
    """
    family = config.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise BadInput(
            f"model_type is {shortened(family)}; expected a causal language model: {known}; or --parameters P"
        )
    named = config.get("architectures")
    if named is not None and not any(isinstance(name, str) and name.endswith(HEADS) for name in _list(named)):
        raise BadInput(f"architectures is {shortened(named)}; expected one that ends in {' or '.join(HEADS)}")
    return Model(family, FAMILIES[family](config), _bits(config))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _bits(config: Config) -> int | None:
    """Return the bits per parameter; None if the format is missing or the weights are quantized, in whatever format."""
    name = config.get("dtype", config.get("torch_dtype"))
    if name is None or config.get("quantization_config") is not None:
        return None
    bits = BITS.get(name.removeprefix("torch.")) if isinstance(name, str) else None
    if bits is None:
        raise BadInput(f"dtype is {shortened(name)}; expected {', '.join(BITS)}; or --parameters P with --bits B")
    return bits


def _size(config: Config, name: str, default: int | None = None, *, most: int = MOST) -> int:
    """Return the size called ``name``, or ``default`` if it is missing or null."""
    value = config.get(name)
    if value is None and default is not None:
        return default
    hint: Any = Annotated[int, Within(1, most)]
    return int(decode(hint, value, name))


def _flag(config: Config, name: str, default: bool) -> bool:
    return decode(bool, config.get(name, default), name)


def _head_dim(config: Config, width: int, heads: int, family: int | None) -> int:
    """Return the dimension of a head: as stated, the ``family``'s default, or the width divided by the heads."""
    if config.get("head_dim") is None and family is None and width % heads:
        raise BadInput(f"hidden_size is {width}; expected a multiple of the {heads} heads, or head_dim")
    return _size(config, "head_dim", family or width // heads)


def _gpt2(config: Config) -> int:
    """Count GPT-2: LayerNorm and biases everywhere, learnt positions, two matrices per feed-forward layer."""
    vocab, positions, d = (_size(config, name) for name in ("vocab_size", "n_positions", "n_embd"))
    units = _size(config, "n_inner", 4 * d)
    attention = 4 * d * d + 4 * d
    layer = attention + 2 * d * units + units + d + 4 * d
    head = 0 if _flag(config, "tie_word_embeddings", True) else vocab * d
    return (vocab + positions) * d + _size(config, "n_layer", most=MOST_LAYERS) * layer + 2 * d + head


def _gpt_neox(config: Config) -> int:
    """Count GPT-NeoX: GPT-2 with rotary positions and an untied unembedding."""
    vocab, d, units = (_size(config, name) for name in ("vocab_size", "hidden_size", "intermediate_size"))
    attention = 4 * d * d + (4 * d if _flag(config, "attention_bias", True) else 0)
    layer = attention + 2 * d * units + units + d + 4 * d
    head = 0 if _flag(config, "tie_word_embeddings", False) else vocab * d
    return vocab * d + _size(config, "num_hidden_layers", most=MOST_LAYERS) * layer + 2 * d + head


def _llama(
    config: Config,
    *,
    query_bias: bool = False,
    output_bias: bool = False,
    head_norms: bool = False,
    tied: bool = False,
    head_dim: int | None = None,
) -> int:
    """Count Llama and its variants: RMSNorm, grouped heads, gated feed-forward layers."""
    vocab, d = _size(config, "vocab_size"), _size(config, "hidden_size")
    heads = _size(config, "num_attention_heads")
    pairs = _size(config, "num_key_value_heads", heads)
    dim = _head_dim(config, d, heads, head_dim)
    rows = (heads + 2 * pairs) * dim
    attention = d * rows + heads * dim * d + query_bias * rows + output_bias * d + head_norms * 2 * dim
    layer = attention + _feed_forward(config, d) + 2 * d
    head = 0 if _flag(config, "tie_word_embeddings", tied) else vocab * d
    return vocab * d + _size(config, "num_hidden_layers", most=MOST_LAYERS) * layer + d + head


def _feed_forward(config: Config, d: int) -> int:
    """Count a feed-forward layer: three matrices per expert, plus the router if there are several experts."""
    units = _size(config, "intermediate_size")
    bias = 2 * units + d if _flag(config, "mlp_bias", False) else 0
    if config.get("model_type") != "mixtral":
        return 3 * d * units + bias
    experts = _size(config, "num_local_experts", most=MOST_LAYERS)
    return experts * 3 * d * units + experts * d


def _biased(config: Config, **others: Any) -> int:
    """Count a Llama whose four matrices of attention all have biases, or none has."""
    bias = _flag(config, "attention_bias", False)
    return _llama(config, query_bias=bias, output_bias=bias, **others)


FAMILIES: dict[str, Callable[[Config], int]] = {
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "llama": _biased,
    "mistral": _llama,
    "mixtral": _llama,
    "phi3": _llama,
    "qwen2": lambda config: _llama(config, query_bias=True),
    "qwen3": lambda config: _biased(config, head_norms=True, head_dim=128),
    "gemma": lambda config: _biased(config, tied=True, head_dim=256),
}
"""Functions that count the parameters, by ``model_type``."""
