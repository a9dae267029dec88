"""What config.json may say of a stock Llama: every key that is known, the values that are allowed, and the shapes.

Whatever else a configuration says could change what transformers computes, or what it allocates: it is refused, not
ignored. The shapes of all tensors follow from the sizes by arithmetic; transformers is not asked.
"""

from collections.abc import Mapping
from typing import Any

from byheart.errors import BadInput
from byheart.networks.rules import SIZE, TEXT, TOKEN, TOKENS, Rule, check, number, one_of, whole

Sizes = dict[str, tuple[int, ...]]


def _is_plain_rope(value: object) -> bool:
    known = {"rope_type": one_of("default"), "rope_theta": _THETA}
    return isinstance(value, dict) and all(key in known and known[key][0](item) for key, item in value.items())


_THETA = number(1.0, 1e30)
_ROPE: Rule = (_is_plain_rope, "rope_type default and rope_theta")
_MATTERS: dict[str, Rule] = {
    **dict.fromkeys(("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"), SIZE),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads", "head_dim"), SIZE),
    "hidden_act": one_of("silu"),
    "max_position_embeddings": whole(1, 1 << 31),
    "rms_norm_eps": number(0.0, 1.0),
    "rope_parameters": _ROPE,
    "rope_theta": _THETA,
    "rope_scaling": one_of(None),
    **dict.fromkeys(("attention_bias", "mlp_bias"), one_of(False)),
    "tie_word_embeddings": one_of(False, True),
    "attention_dropout": one_of(0, 0.0),
    "pretraining_tp": one_of(1),
}
"""What LlamaConfig is told, where it is there."""
_BESIDE: dict[str, Rule] = {
    "model_type": one_of("llama"),
    "architectures": one_of(["LlamaForCausalLM"]),
    **dict.fromkeys(("bos_token_id", "pad_token_id"), TOKEN),
    "eos_token_id": TOKENS,
    **dict.fromkeys(("dtype", "torch_dtype"), one_of("float32", "float16", "bfloat16", None)),
    "attn_implementation": one_of("eager", "sdpa", None),
    "use_cache": one_of(False, True),
    "initializer_range": number(0.0, 1.0),
    **dict.fromkeys(("transformers_version", "_name_or_path"), TEXT),
}
"""What may stand there too, and changes no logit."""
_NEEDED = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")


def checked(config: Mapping[str, Any]) -> dict[str, Any]:
    """What matters of a configuration, for ``transformers.LlamaConfig``; BadInput if anything in it is strange."""
    check(config, _MATTERS | _BESIDE, _NEEDED, "a Llama")
    matters = {name: config[name] for name in _MATTERS if name in config}
    heads, pairs = matters["num_attention_heads"], _pairs(matters)
    if heads % pairs or _head(matters) % 2 or ("head_dim" not in matters and matters["hidden_size"] % heads):
        sizes = f"{heads} heads and {pairs} key-value heads of dimension {_head(matters)}"
        raise BadInput(f"config.json: {sizes}; expected a multiple, and an even dimension")
    return matters


def shapes(config: Mapping[str, Any], most: int) -> Sizes:
    """The shapes of the tensors of ``LlamaForCausalLM``, by name; BadInput if there are ``most`` layers or more."""
    layers, width, units = (config[name] for name in ("num_hidden_layers", "hidden_size", "intermediate_size"))
    queries, keys = config["num_attention_heads"] * _head(config), _pairs(config) * _head(config)
    tied = config.get("tie_word_embeddings", False)
    if layers >= most:
        raise BadInput(f"there are {most} tensors; expected those of {layers} layers, as config.json says")
    inner: Sizes = {
        "input_layernorm": (width,),
        "self_attn.q_proj": (queries, width),
        "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width),
        "self_attn.o_proj": (width, queries),
        "post_attention_layernorm": (width,),
        "mlp.gate_proj": (units, width),
        "mlp.up_proj": (units, width),
        "mlp.down_proj": (width, units),
    }
    outer: Sizes = {"model.embed_tokens": (config["vocab_size"], width), "model.norm": (width,)}
    if not tied:
        outer["lm_head"] = (config["vocab_size"], width)
    deep = {f"model.layers.{layer}.{name}": shape for layer in range(layers) for name, shape in inner.items()}
    return {f"{name}.weight": shape for name, shape in (outer | deep).items()}


def _head(config: Mapping[str, Any]) -> int:
    return int(config.get("head_dim", config["hidden_size"] // config["num_attention_heads"]))


def _pairs(config: Mapping[str, Any]) -> int:
    return int(config.get("num_key_value_heads", config["num_attention_heads"]))
