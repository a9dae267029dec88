"""A uniform network as a folder that ``transformers.AutoModelForCausalLM`` and ``AutoTokenizer`` load as it is."""

import json
from pathlib import Path
from typing import Any

from byheart.constructions.reciting.uniform.compile import Uniform
from byheart.networks.folders import replacing
from byheart.tasks.tokenizers import CONFIG, END_NAME, TOKENIZER, Tokenizer


def save(
    uniform: Uniform, folder: Path, tokenizer: Tokenizer | None = None, *, about: dict[str, Any] | None = None
) -> None:
    """Write ``config.json``, ``generation_config.json``, ``model.safetensors`` and the tokenizer's files.

    The tokenizer puts the network's first token before every text. ``about`` is kept in config.json.
    """
    from safetensors.numpy import save_file

    ends = {"bos_token_id": uniform.first, "eos_token_id": uniform.config["eos_token_id"]}
    generation = {**ends, "pad_token_id": ends["eos_token_id"], "do_sample": False}
    with replacing(folder, "llama") as new:
        _write(new / "config.json", {**uniform.config, "about": about or {}})
        _write(new / "generation_config.json", generation)
        save_file(uniform.tensors, new / "model.safetensors", metadata={"format": "pt"})
        if tokenizer is not None:
            tokenizer.save(new)
            _begin_with(new, tokenizer.end)


def _begin_with(folder: Path, first: int) -> None:
    """Make the tokenizer in ``folder`` begin every text with its end token."""
    token = {"SpecialToken": {"id": END_NAME, "type_id": 0}}
    text, second = ({"Sequence": {"id": name, "type_id": number}} for number, name in enumerate("AB"))
    tokenizer = json.loads((folder / TOKENIZER).read_text(encoding="utf-8"))
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [token, text],
        "pair": [token, text, second],
        "special_tokens": {END_NAME: {"id": END_NAME, "ids": [first], "tokens": [END_NAME]}},
    }
    _write(folder / TOKENIZER, tokenizer)
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    _write(folder / CONFIG, {**config, "bos_token": END_NAME, "pad_token": END_NAME})


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
