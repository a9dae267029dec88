"""A stock Llama folder, run by Hugging Face's own ``LlamaForCausalLM``; none of our code computes a logit here."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.transformer.evaluate import Answers

Windows = NDArray[np.int32]
PORTION = 1 << 14
"""Tokens that are read at once."""


@dataclass(frozen=True, eq=False)
class Stock:
    """The model as transformers loads it, and what Byheart noted in its config.json."""

    model: Any
    about: dict[str, Any]

    @property
    def first(self) -> int | None:
        """The token that stands before every text."""
        first: int | None = self.model.config.bos_token_id
        return first


def load(folder: Path) -> Stock:
    """The Llama in ``folder``; BadInput if there is none, or no transformers to run it."""
    try:
        from transformers import LlamaForCausalLM
        from transformers.utils import logging
    except ImportError:
        raise BadInput("a stock Llama is run by transformers; install it with: pip install 'byheart[hf]'") from None
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        about = json.loads((folder / "config.json").read_bytes()).get("about", {})
        model: Any = LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager")
    except (OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"{folder}: cannot be loaded as a Llama ({error})") from error
    return Stock(model.eval(), about)


@torch.inference_mode()
def answers(
    stock: Stock,
    count: int,
    windows: Callable[[slice], Windows],
    window: int,
    report: Callable[[int, int], None] | None = None,
) -> Answers:
    """Labels and margins of ``count`` contexts, whose windows [k, window] ``windows`` gives, −1 for missing tokens."""
    found, margins = np.empty(count, dtype=np.int64), np.empty(count)
    size = max(1, PORTION // (window + 1))
    for start in range(0, count, size):
        part = slice(start, min(start + size, count))
        tokens, mask = _given(windows(part), stock.first)
        logits = stock.model(tokens, attention_mask=mask, logits_to_keep=1).logits[:, 0]
        two = logits.topk(2, dim=1)
        found[part], margins[part] = two.indices[:, 0].numpy(), (two.values[:, 0] - two.values[:, 1]).numpy()
        if report is not None:
            report(part.stop, count)
    return Answers(found, margins)


@torch.inference_mode()
def generate(stock: Stock, prompt: list[int], *, tokens: int | None, end: int | None) -> Iterator[int]:
    """What follows ``prompt``, greedily, with Llama's own cache."""
    given = [*([] if stock.first is None else [stock.first]), *prompt]
    past, said = None, 0
    while tokens is None or said < tokens:
        found = stock.model(torch.tensor([given]), past_key_values=past, use_cache=True)
        past = found.past_key_values
        token = int(found.logits[0, -1].argmax())
        yield token
        said += 1
        if token == end:
            return
        given = [token]


def _given(windows: Windows, first: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and mask: the first token stands before the window, or where it begins; what lies before is masked."""
    rows = np.pad(windows.astype(np.int64), ((0, 0), (1, 0)), constant_values=-1)
    begins = (rows >= 0).argmax(axis=1)
    mask = (rows >= 0).astype(np.int64)
    rows[rows < 0] = 0
    if first is not None:
        short = begins > 1
        rows[short, begins[short] - 1] = first
        mask[short, begins[short] - 1] = 1
    return torch.from_numpy(rows), torch.from_numpy(mask)
