"""Parameters from config.json: held against Hugging Face's own models, and against files that say anything."""

import json
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.networks.causal import FAMILIES, model_of, read_model

SIZES: dict[str, Any] = {
    "vocab_size": 101,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
}
GPT2 = {"vocab_size": 101, "n_positions": 7, "n_embd": 24, "n_layer": 3, "n_head": 4}
NO_HEAD_DIM = {name: size for name, size in SIZES.items() if name != "head_dim"}
NEOX = {name: size for name, size in SIZES.items() if name not in ("num_key_value_heads", "head_dim")}
SHAPES: dict[str, list[dict[str, Any]]] = {
    "gpt2": [GPT2, GPT2 | {"n_inner": 50, "tie_word_embeddings": False}],
    "gpt_neox": [NEOX, NEOX | {"attention_bias": False}],
    "llama": [SIZES, SIZES | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}],
    "mistral": [SIZES, SIZES | {"tie_word_embeddings": True}],
    "mixtral": [SIZES | {"num_local_experts": 5}],
    "phi3": [SIZES, NO_HEAD_DIM],
    "qwen2": [SIZES, NO_HEAD_DIM],
    "qwen3": [
        SIZES,
        SIZES | {"attention_bias": True},
        {name: size for name, size in SIZES.items() if name != "head_dim"},
    ],
    "gemma": [SIZES, SIZES | {"attention_bias": True, "tie_word_embeddings": False}],
}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def test_every_family_is_tested() -> None:
    assert set(SHAPES) == set(FAMILIES)


@pytest.mark.slow
@pytest.mark.parametrize("family", SHAPES)
def test_as_many_as_the_library_makes(family: str) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    for shape in SHAPES[family]:
        with torch.device("meta"):
            config = transformers.AutoConfig.for_model(family, **shape, **TOKENS)
            model = transformers.AutoModelForCausalLM.from_config(config)
        expected = sum(tensor.numel() for tensor in model.parameters())
        assert model_of({"model_type": family, **shape}).parameters == expected, shape
        assert model_of(json.loads(config.to_json_string())).parameters == expected, "with all defaults written out"


def test_well_known_counts() -> None:
    llama = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32}
    sizes = llama | {"num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16"}
    found = model_of({"model_type": "llama", "architectures": ["LlamaForCausalLM"], **sizes})
    assert (found.parameters, found.bits) == (8_030_261_248, 16)


def test_one_layer_by_hand() -> None:
    """ω = 2, d = 1, one head of 1, one unit: 2 + 2 + 4 + 3 + 2 + 1."""
    sizes = {"vocab_size": 2, "hidden_size": 1, "intermediate_size": 1, "num_hidden_layers": 1}
    assert model_of({"model_type": "llama", **sizes, "num_attention_heads": 1}).parameters == 14


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"model_type": "bert"}, "model_type is 'bert'; expected a causal language model: gemma, "),
        ({"model_type": ["llama"]}, "model_type is "),
        ({"model_type": None}, "model_type is None"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "architectures is .*; expected one that ends in"),
        ({"architectures": []}, "architectures is"),
        ({"architectures": 7}, "architectures is 7"),
        ({"hidden_size": None}, "hidden_size is None; expected a whole number from 1 to 16,777,216"),
        ({"hidden_size": True}, "hidden_size is True"),
        ({"vocab_size": -1}, "vocab_size is -1"),
        ({"vocab_size": 10**30}, "vocab_size is"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers is 1000000; expected a whole number from 1 to 65,536"),
        ({"head_dim": None, "hidden_size": 25}, "hidden_size is 25; expected a multiple of the 4 heads"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no'; expected true or false"),
    ],
)
def test_files_that_say_anything(changes: dict[str, Any], complaint: str) -> None:
    config = {"model_type": "llama", **SIZES}
    assert model_of(config).parameters > 0
    with pytest.raises(BadInput, match=complaint):
        model_of(config | changes)


def test_bits_are_what_is_said() -> None:
    config = {"model_type": "llama", **SIZES}
    assert model_of(config).bits is None
    assert model_of(config | {"dtype": "float32"}).bits == 32
    assert model_of(config | {"dtype": "float32", "quantization_config": {"bits": 4}}).bits is None
    assert model_of(config | {"dtype": None}).bits is None
    for odd in ("float7", "auto", ["float32"], 32):
        with pytest.raises(
            BadInput, match=r"dtype is .*; expected float64, float32, .*; or --parameters P with --bits"
        ):
            model_of(config | {"dtype": odd})


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"config\.json: no such file; expected a model's folder, or --parameters P"):
        read_model(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(BadInput, match="expected a JSON object"):
        read_model(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(BadInput, match=r"config\.json: model_type is 't5'"):
        read_model(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", **GPT2}))
    assert read_model(tmp_path).parameters == 24_312
