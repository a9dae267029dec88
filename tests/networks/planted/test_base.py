"""What a base's configuration may make transformers allocate and run, before it is instantiated."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTJConfig,
    GPTJForCausalLM,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    PreTrainedModel,
)

from byheart.errors import BadInput
from byheart.networks.planted.base import load_base, quiet, read_base, tokenizer_in
from byheart.tasks.tokenizers import Bytes

TINY = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
EXPERTS = {**TINY, "vocab_size": 64, "num_key_value_heads": 1, "num_local_experts": 4}
NEO = {"vocab_size": 64, "hidden_size": 16, "num_layers": 2, "num_heads": 2}
NEO |= {"attention_types": [[["global", "local"], 1]]}
LONG_ROPE = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 32.0, "original_max_position_embeddings": 1 << 15}


def saved(model: PreTrainedModel, folder: Path, **changes: Any) -> Path:
    """Save a model, and then change its config.json."""
    with quiet():
        model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    return folder


def gpt2() -> PreTrainedModel:
    return GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=16, n_layer=1, n_head=2))


def gptj() -> PreTrainedModel:
    sizes = {"vocab_size": 64, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2, "rotary_dim": 8}
    return GPTJForCausalLM(GPTJConfig(**sizes))


def gpt_neo() -> PreTrainedModel:
    return GPTNeoForCausalLM(GPTNeoConfig(**NEO, max_position_embeddings=32))


@pytest.mark.parametrize(
    ("config", "model"),
    [
        (LlamaConfig(**TINY, vocab_size=1 << 18, max_position_embeddings=1 << 20), LlamaForCausalLM),
        (LlamaConfig(**TINY, vocab_size=64, max_position_embeddings=1 << 20, rope_scaling=LONG_ROPE), LlamaForCausalLM),
        (LlamaConfig(**TINY, vocab_size=64, max_position_embeddings=10_485_760), LlamaForCausalLM),
        (MixtralConfig(**EXPERTS, sliding_window=4096, max_position_embeddings=1 << 17), MixtralForCausalLM),
        (GPTNeoConfig(**NEO, max_position_embeddings=2048), GPTNeoForCausalLM),
        (GPTJConfig(vocab_size=64, n_positions=2048, n_embd=16, n_layer=1, n_head=2, rotary_dim=8), GPTJForCausalLM),
    ],
    ids=["wide", "long", "longest", "experts", "masks", "positions"],
)
def test_real_settings_are_loaded(config: Any, model: Any, tmp_path: Path) -> None:
    config.dtype = torch.bfloat16
    folder = saved(model(config), tmp_path / "model")
    read_base(folder)
    assert load_base(folder).config.vocab_size == config.vocab_size


@pytest.mark.parametrize(
    ("model", "changes", "message"),
    [
        (gptj, {"n_positions": 1 << 25}, "n_positions is 33,554,432; expected at most 16,777,216"),
        (gptj, {"n_positions": 1 << 23}, r"n_positions makes transformer\.h\.0\.attn\.embed_positions \[8388608, 8\]"),
        (gpt_neo, {"max_position_embeddings": 1 << 14}, r"max_position_embeddings makes .*\[1, 1, 16384, 16384\]"),
        (gpt2, {"n_inner": 1 << 22}, r"n_inner makes transformer\.h\.0\.mlp"),
        (gpt2, {"beside": {"deep": [{"rows": 1 << 40}]}}, "rows is 1,099,511,627,776"),
        (lambda: MixtralForCausalLM(MixtralConfig(**EXPERTS)), {"num_local_experts": 1 << 12}, "num_local_experts is"),
    ],
    ids=["huge", "table", "masks", "weights", "nested", "experts"],
)
def test_what_is_not_in_the_files_is_refused(model: Any, changes: Any, message: str, tmp_path: Path) -> None:
    """A folder of some KiB would take GiB of memory."""
    folder = saved(model(), tmp_path / "model", **changes)
    with pytest.raises(BadInput, match=message):
        load_base(folder)


@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation", "_experts_implementation_internal"])
@pytest.mark.parametrize("value", ["kernels-community/flash-attn", {"": "kernels-community/flash-attn"}])
def test_kernels_from_elsewhere_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    """Transformers would download and run them; for any other key it would not."""
    for changes in ({name: value}, {"text_config": {name: value}}):
        folder = saved(gpt2(), tmp_path / "model", **changes)
        for read in (read_base, load_base):
            with pytest.raises(BadInput, match=f"{name} is .*; expected eager or sdpa"):
                read(folder)
    for mine in (None, "eager", "sdpa"):
        read_base(saved(gpt2(), tmp_path / "model", **{name: mine}))


def test_an_adapter_is_refused(tmp_path: Path) -> None:
    """Where peft is installed, transformers would add it to the model."""
    folder = saved(gpt2(), tmp_path / "model")
    (folder / "adapter_config.json").write_text("{}")
    for read in (read_base, load_base):
        with pytest.raises(BadInput, match=r"adapter_config\.json: would add an adapter"):
            read(folder)


@pytest.mark.parametrize("name", ["configuration_files", "transformers_weights"])
def test_other_files_are_not_read(name: str, tmp_path: Path) -> None:
    """Transformers would take its settings, or its weights, even pickles, from files that nobody has checked."""
    folder = saved(gpt2(), tmp_path / "model", **{name: ["config.5.0.0.json"]})
    for read in (read_base, load_base):
        with pytest.raises(BadInput, match=f"{name} names other files"):
            read(folder)


def test_another_tokenizer_is_not_read(tmp_path: Path) -> None:
    """The growth of tokenizer.json alone is checked."""
    for name, content in Bytes().files().items():
        (tmp_path / name).write_bytes(content)
    tokenizer_in(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings | {"fast_tokenizer_files": []}))
    with pytest.raises(BadInput, match="fast_tokenizer_files names other files"):
        tokenizer_in(tmp_path)
