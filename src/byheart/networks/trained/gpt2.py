"""A GPT-2 of Hugging Face's transformers (``GPT2LMHeadModel``) as a trained network.

The function is that of the model in evaluation: dropout does nothing, and the mask is the causal one. Tensors are
turned (``Conv1D`` keeps [in, out]) and cut (c_attn is W_Q, W_K and W_V side by side), and nothing else: they are the
same numbers. What would make it another function, and is not enclosed here, is refused: attention that is scaled by the
layer, cross-attention, other activations; so is every other model type, with rotary positions or without.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.folders import read_weights
from byheart.networks.rules import FRACTION, SIZE, TOKEN, TOKENS, Rule, check, one_of
from byheart.networks.trained.gpt import EMBEDDING, POSITIONS, UNEMBEDDING, gpt_blocks
from byheart.networks.trained.steps import AffineMap, Function, StepSequence
from byheart.networks.trained.trained_network import BYTES_PER_BYTE, TrainedNetwork

ACTIVATIONS: dict[str, Function] = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "tanh": "tanh",
}
_FALSE, _FLAG = one_of(False), one_of(False, True)
_MATTERS: dict[str, Rule] = {
    **dict.fromkeys(("vocab_size", "n_positions", "n_embd", "n_layer", "n_head"), SIZE),
    "n_inner": None | SIZE,
    "activation_function": one_of(*ACTIVATIONS),
    "layer_norm_epsilon": FRACTION,
    **dict.fromkeys(("scale_attn_weights", "tie_word_embeddings"), _FLAG),
    **dict.fromkeys(("scale_attn_by_inverse_layer_idx", "add_cross_attention", "is_encoder_decoder"), _FALSE),
    "quantization_config": one_of(None),
    "pruned_heads": one_of({}, None),
}
"""Keys that change the function."""
_BESIDE: dict[str, Rule] = {
    "model_type": one_of("gpt2"),
    "architectures": one_of(["GPT2LMHeadModel"]),
    **dict.fromkeys(("bos_token_id", "pad_token_id"), TOKEN),
    "eos_token_id": TOKENS,
    **dict.fromkeys(
        ("attn_pdrop", "embd_pdrop", "resid_pdrop", "summary_first_dropout", "initializer_range"), FRACTION
    ),
    **dict.fromkeys(("n_ctx", "dtype", "torch_dtype", "task_specific_params"), Any),
    "attn_implementation": one_of(None, "eager", "sdpa"),  # another name may be that of code to download
    **dict.fromkeys(("summary_activation", "summary_proj_to_labels", "summary_type", "summary_use_proj"), Any),
    **dict.fromkeys(("use_cache", "gradient_checkpointing", "reorder_and_upcast_attn", "about"), Any),
    **dict.fromkeys(("transformers_version", "_name_or_path"), str),
}
"""Keys that are allowed and do not change the function."""
_NEEDED = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
_DEFAULTS: dict[str, Any] = {
    "n_inner": None,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "tie_word_embeddings": True,
}
"""Values of missing keys, as in ``transformers.GPT2Config``."""
_MASKS = (".attn.bias", ".attn.masked_bias")
"""The causal mask, which older files keep beside the weights."""
_FIRST, _HEAD = "transformer.", "lm_head.weight"
"""The word that names begin with, but for the unembedding's; in older files none does."""
_LINEAR = (("attention", "O", "attn.c_proj"), ("mlp", "in", "mlp.c_fc"), ("mlp", "out", "mlp.c_proj"))
"""Affine maps that are one of ours, by our names and by theirs."""

Arrays = Mapping[str, NDArray[Any]]


def checked(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that change the function; raise BadInput if any key or value is unknown."""
    check(config, _MATTERS | _BESIDE, _NEEDED, "a GPT-2")
    sizes = {name: value for name, value in {**_DEFAULTS, **config}.items() if name in _MATTERS}
    if sizes["n_embd"] % sizes["n_head"]:
        raise BadInput(f"config.json: n_embd is {sizes['n_embd']}; expected a multiple of n_head = {sizes['n_head']}")
    return sizes


def read_gpt2(config: dict[str, Any], folder: Path, **beside: Any) -> TrainedNetwork:
    """Return the GPT-2 that ``config`` describes, with the weights in ``folder``, as a trained network."""
    sizes = checked(config)
    return from_gpt2(sizes, read_weights(folder, ("F32", "F64", "F16", "U8"), takes=BYTES_PER_BYTE), **beside)


def from_gpt2(sizes: Mapping[str, Any], weights: Arrays, **beside: Any) -> TrainedNetwork:
    """Return the network for a configuration from :func:`checked`, and tensors by transformers' names."""
    layers = sizes["n_layer"]
    own = _own(weights)
    if layers > len(own):
        raise BadInput(f"there are {len(own)} tensors; expected those of {layers} layers, as config.json says")
    own = {name: tensor.astype(np.float32) if tensor.dtype == np.float16 else tensor for name, tensor in own.items()}
    _check_shapes(own, shapes(sizes))
    if sizes["tie_word_embeddings"]:
        head = own.pop(_HEAD, own["wte.weight"])
        if not np.array_equal(head, own["wte.weight"]):
            raise BadInput("lm_head.weight is not wte.weight; config.json says that they are tied")
    return TrainedNetwork(_blocks(sizes), _renamed(own, layers), **beside)


def _own(weights: Arrays) -> dict[str, NDArray[Any]]:
    """Return all tensors but masks, without the names' prefix; raise BadInput unless all or none have the prefix."""
    own = {name: tensor for name, tensor in weights.items() if not name.endswith(_MASKS)}
    if len({name.startswith(_FIRST) for name in own if name != _HEAD}) > 1 or _FIRST + _HEAD in own:
        raise BadInput(f"some tensors are called {_FIRST}…, others are not; expected all but {_HEAD}, or none")
    return {name.removeprefix(_FIRST): tensor for name, tensor in own.items()}


def shapes(sizes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all tensors, by transformers' names without their prefix."""
    vocab, d, units = sizes["vocab_size"], sizes["n_embd"], sizes["n_inner"] or 4 * sizes["n_embd"]
    inner: dict[str, tuple[int, ...]] = {
        **{f"{norm}.{part}": (d,) for norm in ("ln_1", "ln_2") for part in ("weight", "bias")},
        "attn.c_attn.weight": (d, 3 * d),
        "attn.c_attn.bias": (3 * d,),
        "attn.c_proj.weight": (d, d),
        "attn.c_proj.bias": (d,),
        "mlp.c_fc.weight": (d, units),
        "mlp.c_fc.bias": (units,),
        "mlp.c_proj.weight": (units, d),
        "mlp.c_proj.bias": (d,),
    }
    outer: dict[str, tuple[int, ...]] = {
        "wte.weight": (vocab, d),
        "wpe.weight": (sizes["n_positions"], d),
        "ln_f.weight": (d,),
        "ln_f.bias": (d,),
        _HEAD: (vocab, d),
    }
    return outer | {f"h.{i}.{name}": shape for i in range(sizes["n_layer"]) for name, shape in inner.items()}


def _check_shapes(own: Arrays, expected: Mapping[str, tuple[int, ...]]) -> None:
    """Raise BadInput unless the tensors are those of the model; a tied unembedding may be missing."""
    actual = {_HEAD: own["wte.weight"].shape} if "wte.weight" in own else {}
    actual |= {name: tensor.shape for name, tensor in own.items()}
    if actual != expected:
        wrong = sorted(name for name in {*actual, *expected} if actual.get(name) != expected.get(name))
        raise BadInput(f"tensors {wrong[:3]} are missing, unknown or of another shape; expected those of a GPT-2")


def _renamed(own: Arrays, layers: int) -> dict[str, NDArray[Any]]:
    """Return the tensors by the names of :func:`~byheart.networks.trained.gpt.gpt_blocks`."""
    named = {EMBEDDING: own["wte.weight"], POSITIONS: own["wpe.weight"]}
    if _HEAD in own:
        named[UNEMBEDDING] = own[_HEAD]
    norms = {f"norm.{i}.{k}": f"h.{i}.ln_{k}" for i in range(layers) for k in (1, 2)} | {"norm.last": "ln_f"}
    for name, theirs in norms.items():
        named |= {f"{name}.gain": own[f"{theirs}.weight"], f"{name}.bias": own[f"{theirs}.bias"]}
    for i in range(layers):
        W, b = (np.split(own[f"h.{i}.attn.c_attn.{part}"].T, 3) for part in ("weight", "bias"))
        named |= {f"attention.{i}.W_{part}": tensor for part, tensor in zip("QKV", W, strict=True)}
        named |= {f"attention.{i}.b_{part}": tensor for part, tensor in zip("QKV", b, strict=True)}
        for part, end, theirs in _LINEAR:
            named[f"{part}.{i}.W_{end}"] = own[f"h.{i}.{theirs}.weight"].T
            named[f"{part}.{i}.b_{end}"] = own[f"h.{i}.{theirs}.bias"]
    return named


def _blocks(sizes: Mapping[str, Any]) -> tuple[StepSequence, ...]:
    return gpt_blocks(
        layers=sizes["n_layer"],
        heads=sizes["n_head"],
        over=sizes["n_embd"] // sizes["n_head"] if sizes["scale_attn_weights"] else 1,
        epsilon=sizes["layer_norm_epsilon"],
        function=ACTIVATIONS[sizes["activation_function"]],
        unembedding=AffineMap(EMBEDDING if sizes["tie_word_embeddings"] else UNEMBEDDING),
        biases=True,
    )
