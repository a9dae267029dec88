"""The rules for a stock model's config.json: known keys, allowed values, and the shapes of all tensors.

Two architectures are known: Llama, and Qwen2-MoE without biases or sliding windows. Any other key or value could change
what transformers computes or allocates, so it is refused, not ignored. A missing key is refused too, unless its default
in transformers is the value meant here. The shapes of all tensors follow from the sizes by arithmetic, without
transformers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from byheart.errors import BadInput
from byheart.files.decoding import Such, Within
from byheart.networks.rules import FRACTION, MOST, SIZE, TOKEN, TOKENS, Rule, check, one_of

Sizes = dict[str, tuple[int, ...]]
_THETA = Annotated[float, Within(1.0, 1e30)]


@dataclass(frozen=True)
class _PlainRope:
    """Settings of rotary positions without scaling."""

    rope_type: Literal["default"] = "default"
    rope_theta: _THETA = 1e4


_LAYERS = list[Annotated[int, Such(lambda value: value >= 0, "the number of a layer")]]
_PLAIN = list[Literal["full_attention"]] | None
_FORMAT = Annotated[
    Any,
    Such(
        lambda value: value in ("float32", None),
        '"float32" or null: transformers would load it in that format, and run another network than is checked here',
    ),
]
_MATTERS: dict[str, Rule] = {
    **dict.fromkeys(("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"), SIZE),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads", "head_dim"), SIZE),
    "hidden_act": one_of("silu"),
    "max_position_embeddings": Annotated[int, Within(1, 1 << 31)],
    "rms_norm_eps": FRACTION,
    "rope_parameters": _PlainRope,
    "rope_theta": _THETA,
    "rope_scaling": one_of(None),
    "tie_word_embeddings": one_of(False, True),
    "attention_dropout": one_of(0, 0.0),
}
"""Rules for keys that transformers' configuration takes, in both architectures."""
_BESIDE: dict[str, Rule] = {
    **dict.fromkeys(("bos_token_id", "pad_token_id"), TOKEN),
    "eos_token_id": TOKENS,
    **dict.fromkeys(("dtype", "torch_dtype"), _FORMAT),
    "attn_implementation": one_of("eager", "sdpa", None),
    "use_cache": one_of(False, True),
    "initializer_range": FRACTION,
    **dict.fromkeys(("transformers_version", "_name_or_path"), str),
}
"""Rules for other keys; their allowed values change no logit."""
_NEEDED = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")


@dataclass(frozen=True)
class StockArchitecture:
    """An architecture of transformers, and the rules for its config.json."""

    name: str
    model_type: str
    prefix: str
    """Prefix of the names of its classes in transformers."""
    matters: Mapping[str, Rule]
    """Rules for keys that transformers' configuration takes, in this architecture only."""
    beside: Mapping[str, Rule]
    """Rules for its other keys; their allowed values change no logit."""
    needed: tuple[str, ...]
    feed_forward: Callable[[Mapping[str, Any], int], Sizes]
    """Function from the configuration and a layer's number to the shapes of the layer's feed-forward block."""

    @property
    def model_class(self) -> str:
        """Name of the class of transformers that runs the model."""
        return f"{self.prefix}ForCausalLM"


def architecture(config: Mapping[str, Any]) -> StockArchitecture:
    """Return the architecture of a configuration; Llama if the configuration names none."""
    return _QWEN2_MOE if config.get("model_type") == _QWEN2_MOE.model_type else _LLAMA


def checked(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that transformers' configuration takes; raise BadInput if an entry is not allowed."""
    kind = architecture(config)
    named: dict[str, Rule] = {"model_type": one_of(kind.model_type), "architectures": one_of([kind.model_class])}
    known = {**_MATTERS, **kind.matters}
    check(config, {**known, **_BESIDE, **kind.beside, **named}, (*_NEEDED, *kind.needed), kind.name)
    matters = {name: config[name] for name in known if name in config}
    heads, pairs = matters["num_attention_heads"], _pairs(matters)
    if heads % pairs or _head(matters) % 2 or ("head_dim" not in matters and matters["hidden_size"] % heads):
        sizes = f"{heads} heads and {pairs} key-value heads of dimension {_head(matters)}"
        raise BadInput(f"config.json: {sizes}; expected a multiple, and an even dimension")
    chosen, there = matters.get("num_experts_per_tok", 1), matters.get("num_experts", 1)
    if chosen > there:
        raise BadInput(f"config.json: num_experts_per_tok is {chosen}; expected at most num_experts, which is {there}")
    kinds = matters.get("layer_types")
    if kinds is not None and len(kinds) != matters["num_hidden_layers"]:
        raise BadInput(f"config.json: layer_types has {len(kinds)} entries; expected one for each layer, or null")
    return matters


def shapes(config: Mapping[str, Any], most: int) -> Sizes:
    """Return the shapes of all tensors, by name; raise BadInput if there are ``most`` layers or experts, or more."""
    layers, width = config["num_hidden_layers"], config["hidden_size"]
    queries, keys = config["num_attention_heads"] * _head(config), _pairs(config) * _head(config)
    tied = config.get("tie_word_embeddings", False)
    for count, what in ((layers, "layers"), (config.get("num_experts", 0), "experts")):
        if count >= most:
            raise BadInput(f"there are {most} tensors; expected those of {count} {what}, as config.json says")
    attention: Sizes = {
        "input_layernorm": (width,),
        "self_attn.q_proj": (queries, width),
        "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width),
        "self_attn.o_proj": (width, queries),
        "post_attention_layernorm": (width,),
    }
    outer: Sizes = {"model.embed_tokens": (config["vocab_size"], width), "model.norm": (width,)}
    if not tied:
        outer["lm_head"] = (config["vocab_size"], width)
    deep: Sizes = {}
    for layer in range(layers):
        inner = attention | architecture_of(config).feed_forward(config, layer)
        deep |= {f"model.layers.{layer}.{name}": shape for name, shape in inner.items()}
        if len(deep) > most:
            break  # more shapes than tensors already, so the shapes of further layers make no difference
    return {f"{name}.weight": shape for name, shape in (outer | deep).items()}


def architecture_of(matters: Mapping[str, Any]) -> StockArchitecture:
    """Return the architecture of the entries that :func:`checked` returned, which lack ``model_type``."""
    return _QWEN2_MOE if "num_experts" in matters else _LLAMA


def _swiglu(name: str, units: int, width: int) -> Sizes:
    return {f"{name}.gate_proj": (units, width), f"{name}.up_proj": (units, width), f"{name}.down_proj": (width, units)}


def _dense(config: Mapping[str, Any], layer: int) -> Sizes:
    return _swiglu("mlp", config["intermediate_size"], config["hidden_size"])


def _experts(config: Mapping[str, Any], layer: int) -> Sizes:
    """Return the shapes of a layer's experts, or of its dense block if ``mlp_only_layers`` names the layer."""
    if layer in config["mlp_only_layers"]:
        return _dense(config, layer)
    width, experts = config["hidden_size"], config["num_experts"]
    sizes: Sizes = {"mlp.gate": (experts, width), "mlp.shared_expert_gate": (1, width)}
    sizes |= _swiglu("mlp.shared_expert", config["shared_expert_intermediate_size"], width)
    for expert in range(experts):
        sizes |= _swiglu(f"mlp.experts.{expert}", config["moe_intermediate_size"], width)
    return sizes


def _head(config: Mapping[str, Any]) -> int:
    return int(config.get("head_dim", config["hidden_size"] // config["num_attention_heads"]))


def _pairs(config: Mapping[str, Any]) -> int:
    return int(config.get("num_key_value_heads", config["num_attention_heads"]))


_LLAMA = StockArchitecture(
    "a Llama",
    "llama",
    "Llama",
    {**dict.fromkeys(("attention_bias", "mlp_bias"), one_of(False)), "pretraining_tp": one_of(1)},
    {},
    (),
    _dense,
)
_QWEN2_MOE = StockArchitecture(
    "a Qwen2-MoE",
    "qwen2_moe",
    "Qwen2Moe",
    {
        **dict.fromkeys(("num_experts", "num_experts_per_tok", "moe_intermediate_size"), SIZE),
        "shared_expert_intermediate_size": Annotated[int, Within(0, MOST)],
        "norm_topk_prob": one_of(False, True),
        "mlp_only_layers": _LAYERS,
        "decoder_sparse_step": one_of(1),
        **dict.fromkeys(("qkv_bias", "use_sliding_window", "output_router_logits"), one_of(False)),
        "layer_types": _PLAIN,
    },
    {
        "sliding_window": one_of(None, 0),
        "max_window_layers": Annotated[int, Within(0, MOST)],
        "router_aux_loss_coef": FRACTION,
    },
    (
        "num_key_value_heads",
        "num_experts",
        "num_experts_per_tok",
        "moe_intermediate_size",
        "shared_expert_intermediate_size",
        "mlp_only_layers",
        "qkv_bias",
    ),
    _experts,
)
