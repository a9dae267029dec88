"""Tiny models with random weights, and facts of random ids."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from byheart.networks.planted.base import quiet
from byheart.tasks.planted_facts import PlantedFact, different
from byheart.tasks.tokenizers import Bytes

VOCAB = Bytes.vocab
SIZES = {"vocab_size": VOCAB, "max_position_embeddings": 96, "bos_token_id": 256, "eos_token_id": 256}
LLAMA = {**SIZES, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}


def tiny(kind: str) -> Any:
    torch.manual_seed(0)
    if kind == "gpt2":
        sizes = {"n_positions": 96, "n_embd": 32, "n_layer": 2, "n_head": 2}
        return GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, bos_token_id=256, eos_token_id=256, **sizes)).eval()
    if kind == "mistral":
        return MistralForCausalLM(MistralConfig(**LLAMA, num_key_value_heads=1, sliding_window=8)).eval()
    return LlamaForCausalLM(LlamaConfig(**LLAMA)).eval()


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of tiny models, with a tokenizer for bytes."""
    place = tmp_path_factory.mktemp("models")
    with quiet():
        for kind in ("gpt2", "llama", "mistral"):
            tiny(kind).save_pretrained(place / kind)
            for name, data in Bytes().files().items():
                (place / kind / name).write_bytes(data)
    return {kind: place / kind for kind in ("gpt2", "llama", "mistral")}


@pytest.fixture(scope="session")
def facts() -> list[PlantedFact]:
    rng = np.random.default_rng(0)
    sizes = zip(rng.integers(2, 9, 40), rng.integers(1, 6, 40), strict=True)
    drawn = [[tuple(rng.integers(0, VOCAB - 1, n).tolist()) for n in pair] for pair in sizes]
    return different([PlantedFact(p, c, f"fact {i}") for i, (p, c) in enumerate(drawn)], VOCAB)


@pytest.fixture(scope="session")
def write_ids() -> Callable[[Path, Sequence[PlantedFact]], Path]:
    def write(path: Path, facts: Sequence[PlantedFact]) -> Path:
        lines = (json.dumps({"prompt": fact.prompt, "completion": fact.completion}) for fact in facts)
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    return write
