"""Models by transformers, quietly: no bars, no code from folders."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from byheart.errors import BadInput
from byheart.networks.planted.modeling_plant import PlantedForCausalLM

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tokenizer_config.json")
"""Files by which a folder has a tokenizer."""


@contextmanager
def quiet() -> Iterator[None]:
    """Transformers says nothing but errors."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def load_base(folder: Path) -> Any:
    """A causal language model, as transformers knows it."""
    from transformers import AutoModelForCausalLM

    return _loaded(AutoModelForCausalLM, folder)


def load_planted(folder: Path) -> Any:
    """A planted model; run by our own code, not by the folder's."""
    return _loaded(PlantedForCausalLM, folder)


def _loaded(auto: Any, folder: Path) -> Any:
    try:
        with quiet():
            options = {"use_safetensors": True, "trust_remote_code": False, "output_loading_info": True}
            model, found = auto.from_pretrained(folder, **options)
    except Exception as error:  # transformers raises what it likes
        reason = str(error).strip().partition("\n")[0]
        raise BadInput(f"{folder}: cannot be loaded by transformers ({reason})") from error
    if lacking := sorted(found["missing_keys"]):
        raise BadInput(f"the model lacks the tensor {lacking[0]}, which would be drawn at random; expected all tensors")
    return model.eval()


def logits_of(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """What a model of somebody's answers; BadInput if it was loaded, but cannot be run."""
    try:
        return model(ids, attention_mask=mask).logits  # type: ignore[no-any-return]
    except Exception as error:  # transformers raises what it likes
        reason = str(error).strip().partition("\n")[0]
        raise BadInput(f"the base cannot be run by transformers ({reason}); expected a model that works") from error


def tokenizer_in(folder: Path) -> Any:
    """The tokenizer of a model's folder; BadInput if it has none. No code of the folder is run."""
    from transformers import AutoTokenizer

    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise BadInput(f"{folder}: has no tokenizer; put its tokenizer.json there, or give token ids with --ids")
    try:
        with quiet():
            return AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # transformers raises what it likes
        reason = str(error).strip().partition("\n")[0]
        raise BadInput(f"{folder}: its tokenizer cannot be loaded ({reason}); give token ids with --ids") from error
