"""Byheart's stock models as GGUF files: what llama.cpp, and all that is built on it, loads.

    from byheart.exporting.gguf import to_gguf

    to_gguf(byheart.load("book"), "book.gguf")

Exact: every tensor, in float32. Of a Llama, only the rows of W_Q and W_K stand in another order: llama.cpp turns
neighbours (0, 1), (2, 3), …, transformers turns halves apart. A Qwen2-MoE has zeros beside its tensors
(:mod:`byheart.exporting.qwen2moe`). The file is read back before it takes its place, and every tensor and every
entry of the head compared. Not checked: what llama.cpp makes of it; ``make gguf`` does, on the CPU.

**The cache has to be of 32 bits, and flash attention off**; llama.cpp has to be asked for it. Values hold x + 1.5·2²³,
to round x with; a float of 16 bits ends at 65504, so that there they are infinite, and their difference is no number.
Keys need more bits than 11 to tell one place from the next. Flash attention makes both 16 bits, whatever the cache has.

Needs the package ``gguf``, which is imported when a network is written, not before (extra ``gguf``).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput, check_installed
from byheart.exporting import qwen2moe
from byheart.exporting.refusing import refused
from byheart.files.writing import new_file
from byheart.networks import Network
from byheart.networks.about import texts_of
from byheart.networks.stock.config import architecture
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks.loaded_tokenizer import TOKENIZER_FILE, LoadedTokenizer
from byheart.tasks.tokenizers import from_files

Array = NDArray[np.float32]
Head = dict[str, Any]
"""Values by their keys, as in the file's head: strings, numbers, lists of either."""

CACHE = "a cache of 32 bits and no flash attention (-ctk f32 -ctv f32 -fa off)"
NEVER = "<|end|> <|end|>"
"""A merge for tokenizers that have none, since llama.cpp wants one; no text contains these names."""
_ARCHITECTURE = "general.architecture"
_NORMAL, _CONTROL = 1, 3
"""GGUF's types of tokens: text, and control tokens."""
_OUTER = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_INNER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def to_gguf(network: Network, path: Path | str) -> int:
    """Write the network to ``path``, whole or not at all, and return the number of tensors.

    Networks compiled from texts have their tokenizer in the file, bytes or byte pairs. A loaded tokenizer is refused,
    since llama.cpp would split texts in another way. Networks compiled from a task take token ids. Raises BadInput if
    the network has no GGUF.
    """
    check_gguf(network)
    assert isinstance(network, StockNetwork)
    kept, told = tensors(network), head(network)
    with new_file(Path(path)) as draft:
        _write(draft, told, kept)
        _compare(draft, told, kept)
    return len(kept)


def check_gguf(network: Network) -> None:
    """Raise BadInput if a network has no GGUF, or the package that writes it is missing."""
    if not isinstance(network, StockNetwork):
        raise refused(network, "llama.cpp")
    if _is_moe(network):
        qwen2moe.check(network)
    check_installed("gguf", "writing GGUF", "gguf")


def _is_moe(network: StockNetwork) -> bool:
    return architecture(network.config).model_type == "qwen2_moe"


def tensors(network: StockNetwork) -> dict[str, Array]:
    """Return every tensor in float32 by llama.cpp's name."""
    kept = qwen2moe.tensors(network) if _is_moe(network) else _llama(network)
    return {name: np.ascontiguousarray(tensor, dtype=np.float32) for name, tensor in kept.items()}


def _llama(network: StockNetwork) -> dict[str, NDArray[Any]]:
    """Return the tensors of a Llama, W_Q and W_K in llama.cpp's order of rows."""
    heads = network.config["num_attention_heads"]
    turned = {"attn_q": heads, "attn_k": network.config.get("num_key_value_heads", heads)}
    kept = {}
    for name, tensor in network.tensors():
        layer, _, inner = name.removeprefix("model.layers.").removesuffix(".weight").partition(".")
        part = _INNER.get(inner, "")
        rows = interleaved(tensor, turned[part]) if part in turned else tensor
        kept[_OUTER.get(name, f"blk.{layer}.{part}.weight")] = rows
    return kept


def interleaved(rows: NDArray[Any], heads: int) -> NDArray[Any]:
    """Reorder the rows of W_Q or W_K so that the two that RoPE turns together are neighbours.

    >>> interleaved(np.arange(8)[:, None], heads=2).T
    array([[0, 2, 1, 3, 4, 6, 5, 7]])
    """
    return rows.reshape(heads, 2, -1, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def head(network: StockNetwork) -> Head:
    """Return all entries of the file beside the tensors."""
    config = network.config
    heads, width = config["num_attention_heads"], config["hidden_size"]
    d_head = config.get("head_dim", width // heads)
    rope = config.get("rope_parameters", {})
    names = [text["name"] for text in texts_of(network)]
    sizes = {
        "vocab_size": config["vocab_size"],
        "context_length": config.get("max_position_embeddings", 2048),
        "embedding_length": width,
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": heads,
        "attention.head_count_kv": config.get("num_key_value_heads", heads),
        "attention.key_length": d_head,
        "attention.value_length": d_head,
        "attention.layer_norm_rms_epsilon": float(config.get("rms_norm_eps", 1e-6)),
        "rope.dimension_count": d_head,
        "rope.freq_base": float(rope.get("rope_theta", config.get("rope_theta", 1e4))),
    }
    name = qwen2moe.ARCHITECTURE if _is_moe(network) else "llama"
    if _is_moe(network):
        sizes |= qwen2moe.sizes(config)
    return {
        _ARCHITECTURE: name,
        "general.type": "model",
        "general.name": f"Byheart: {', '.join(names[:3]) or 'a task'}",
        "general.description": f"Recites what it was compiled from, with {CACHE}.",
        "general.file_type": 0,
        **{f"{name}.{key}": value for key, value in sizes.items()},
        **_spoken(network),
        "byheart.fingerprint": network.fingerprint,
        "byheart.texts": json.dumps(texts_of(network), ensure_ascii=False),
    }


def _spoken(network: StockNetwork) -> Head:
    """Return the tokenizer's entries: bytes or byte pairs as GPT-2 writes them, or none for token ids."""
    tokenizer = from_files(network.files)
    if tokenizer is None:
        return {"tokenizer.ggml.model": "no_vocab"}
    if isinstance(tokenizer, LoadedTokenizer):
        expected = "expected one of Byheart's, bytes or bpe: compile with these, or export it with --onnx"
        raise BadInput(f"the tokenizer was loaded; llama.cpp would split texts in its own way; {expected}")
    if tokenizer.vocab != network.config["vocab_size"]:
        sizes = f"{tokenizer.vocab} tokens, and the embedding {network.config['vocab_size']}"
        raise BadInput(f"the tokenizer has {sizes}; expected as many, as `byheart compile` makes them")
    model = json.loads(network.files[TOKENIZER_FILE])["model"]
    words = sorted(model["vocab"], key=model["vocab"].__getitem__)
    begins = {} if network.first is None else {"bos_token_id": network.first}
    said = {
        "model": "gpt2",
        "pre": "gpt-2",  # it splits at ends of lines, where our tokenizer does not; our merges never join tokens there
        "tokens": words,
        "token_type": [_CONTROL if number == tokenizer.end else _NORMAL for number in range(len(words))],
        "merges": [" ".join(pair) for pair in model["merges"]] or [NEVER],
        **begins,
        "eos_token_id": tokenizer.end,
        "padding_token_id": tokenizer.end,
        "add_bos_token": network.first is not None,
        "add_eos_token": False,
    }
    return {f"tokenizer.ggml.{name}": value for name, value in said.items()}


def _write(path: Path, told: Head, kept: Mapping[str, Array]) -> None:
    from gguf import GGUFValueType, GGUFWriter

    kinds = {str: GGUFValueType.STRING, bool: GGUFValueType.BOOL, list: GGUFValueType.ARRAY}
    kinds |= {int: GGUFValueType.UINT32, float: GGUFValueType.FLOAT32}
    writer = GGUFWriter(path, told[_ARCHITECTURE])
    try:
        for key, value in told.items():
            if key == _ARCHITECTURE:
                continue  # is there already
            writer.add_key_value(key, value, kinds[type(value)])
        for name, tensor in kept.items():
            writer.add_tensor(name, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def _compare(path: Path, told: Head, kept: Mapping[str, Array]) -> None:
    """Raise RuntimeError unless the file holds what was written, bit for bit."""
    from gguf import GGMLQuantizationType, GGUFReader

    reader = GGUFReader(path)
    there = {key: field.contents() for key, field in reader.fields.items()}
    wrong = [key for key, value in told.items() if there.get(key) != _rounded(value)]
    found = {tensor.name: tensor for tensor in reader.tensors}
    for name, tensor in kept.items():
        same = name in found and found[name].tensor_type == GGMLQuantizationType.F32
        if not same or found[name].data.shape != tensor.shape or found[name].data.tobytes() != tensor.tobytes():
            wrong.append(name)
    wrong += [name for name in found if name not in kept]
    if wrong:
        raise RuntimeError(f"{path}: {wrong[:3]} were not read back as they were written")


def _rounded(value: Any) -> Any:
    """Return a value as the file holds it: floats in float32."""
    return float(np.float32(value)) if isinstance(value, float) else value
