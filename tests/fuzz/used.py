"""What transformers and verify.py make of a folder that was certified: it must be what the user's own files say.

Nothing of Byheart is asked here, but for folders of 0.1.0, which have no code.
"""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from tests.fuzz.seeds import Answer, Seed

from byheart import verify
from byheart.networks.folders import TOKENIZER
from byheart.networks.transformer.pretrained import ByheartForCausalLM

LOADED = ("byheart", "llama", "qwen2_moe", "gpt2", "byheart-plant")
"""Types of models that transformers may load; it must refuse all others."""


def contradiction(seed: Seed, command: tuple[str, ...], place: Path) -> str:
    """What somebody else says of a certified folder that the user's files do not say; "" if nothing."""
    folder = place / command[1]
    config = json.loads((folder / "config.json").read_bytes())
    may_load = config.get("model_type") in LOADED
    try:
        model, tokenizer = _loaded(folder, config, any(isinstance(answer.prompt, str) for answer in seed.answers))
        for answer in seed.answers if may_load else ():
            if (said := _said(model, tokenizer, answer)) != answer.whole:
                what = f"{said!r:.150} for {answer.prompt!r:.90}, not {answer.whole!r:.150}"
                return f"certified, and transformers says {what}"
    except BaseException as error:  # transformers raises what it likes, and code of the folder what that likes
        return f"certified, and transformers says {error!r:.300}" if may_load else ""
    return "" if may_load else f"certified as {config.get('format')!r}, and transformers loads it"


def _loaded(folder: Path, config: dict[str, Any], texts: bool) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer, logging  # not byheart.hf: the folder's code is to run
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    CONFIG_MAPPING._extra_content.pop("byheart", None)  # as if nothing in this process had imported byheart.hf
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    auto: Any = AutoModelForCausalLM
    if config.get("model_type") == "byheart" and not (
        "auto_map" in config and (folder / "modeling_byheart.py").exists()
    ):
        auto = ByheartForCausalLM
    options = {"trust_remote_code": True} if auto is AutoModelForCausalLM else {}
    tokenizer = AutoTokenizer.from_pretrained(folder, **options) if texts else None
    model, info = auto.from_pretrained(folder, output_loading_info=True, **options)
    if wrong := sorted(info["missing_keys"]) + sorted(info["unexpected_keys"]):
        raise ValueError(f"missing or unexpected: {wrong[:3]}")
    own = "byheart" if options == {} else "transformers"
    if not type(model).__module__.startswith(own):
        raise ValueError(f"{type(model).__module__} would run, not the folder's code")
    return model, tokenizer


def _said(model: Any, tokenizer: Any, answer: Answer) -> Any:
    """A prompt and its continuation; or the token after a sequence."""
    import torch

    with torch.inference_mode():
        if not isinstance(answer.prompt, str):
            return int(model(torch.tensor([answer.prompt])).logits[0, -1].argmax())
        batch = tokenizer(answer.prompt, return_tensors="pt")
        if answer.ends:
            output = model.generate(**batch, max_new_tokens=len(answer.whole.encode()) + 8)
            return tokenizer.decode(output[0], skip_special_tokens=True)
        ids = batch["input_ids"]
        for _ in range(len(answer.whole.encode()) - len(answer.prompt.encode())):  # its tokens are bytes
            ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], 1)
        return answer.prompt + tokenizer.decode(ids[0, batch["input_ids"].shape[1] :])


def opinion(command: tuple[str, ...], place: Path, seed: int) -> str:
    """What verify.py says against a certified folder; "" if nothing, or if it does not know the kind."""
    folder = place / command[1]
    config = json.loads((folder / "config.json").read_bytes())
    is_known = config.get("format", config.get("model_type")) in verify.KEYS
    tokenizer = [path for name in TOKENIZER if (path := folder / name).exists()]
    if not is_known or any(
        hashlib.sha256(path.read_bytes()).hexdigest() not in verify.TOKENIZERS for path in tokenizer
    ):
        return ""
    words = [str(place / word) for word in command[2:] if word.endswith((".txt", ".npz", ".jsonl", ".csv"))]
    given: dict[str, Any] = {"texts": [], "task": None, "facts": [], "tolerance": None, "sample": 2, "seed": seed}
    given |= {"task": words[0]} if "--task" in command else {"facts" if "--facts" in command else "texts": words}
    given |= {"sample": None} if "dist.npz" in command else {}
    try:
        found = verify.verify(argparse.Namespace(folder=str(folder), **given))
    except Exception as error:
        return f"certified, and verify.py says {error!r:.300}"
    return (
        "" if found["wrong"] == found["undecided"] == 0 else f"certified, and verify.py says {found['not_right'][:1]}"
    )
