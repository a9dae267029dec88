"""A stock Llama folder, run by Hugging Face's own ``LlamaForCausalLM``; none of our code computes a logit here."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.transformer.evaluate import Answers, prints
from byheart.progress import Report

Ids = NDArray[np.int64]
PORTION, PIECE = 1 << 14, 1 << 10
"""Tokens that are read at once: of several sequences, and of one."""


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
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    window: int,
    report: Report | None = None,
) -> Answers:
    """What the model answers at ``places`` of the sequences that begin at ``starts[:-1]`` of ``tokens``.

    Sequences of one length are batched. Long ones are read piece by piece, each with the ``window`` tokens before it:
    nothing farther back can change an answer.
    """
    found, margins = np.empty(len(places), dtype=np.int64), np.empty(len(places))
    marks = np.empty(len(places), dtype=np.int64)
    lengths, done = np.diff(starts), 0
    whole = len(starts) > 2 and int(lengths.min()) == int(lengths.max()) <= PIECE
    parts = _batches(lengths, starts) if whole else _pieces(starts, window)
    for begins, length, before in parts:
        rows = tokens[begins[:, None] + np.arange(-before, length)].astype(np.int64)
        first = stock.first is not None and (whole or int(begins[0]) in starts)
        given = np.pad(rows, ((0, 0), (int(first), 0)), constant_values=stock.first or 0)
        a, b = np.searchsorted(places, (begins[0], begins[-1] + length))
        row = np.searchsorted(begins, places[a:b], side="right") - 1
        column = places[a:b] - begins[row] + before + first
        logits = stock.model(torch.from_numpy(given)).logits[torch.from_numpy(row), torch.from_numpy(column)]
        two = logits.topk(2, dim=1)
        found[a:b], margins[a:b] = two.indices[:, 0].numpy(), (two.values[:, 0] - two.values[:, 1]).numpy()
        marks[a:b] = prints(logits).numpy()
        done += int(b - a)
        if report is not None:
            report(done, len(places))
    return Answers(found, margins, marks)


Part = tuple[Ids, int, int]
"""Where rows of tokens begin, how many follow, and how many before them are read as well."""


def _batches(lengths: Ids, starts: Ids) -> Iterator[Part]:
    length = int(lengths[0])
    size = max(1, PORTION // length)
    for first in range(0, len(lengths), size):
        yield starts[first : min(first + size, len(lengths))], length, 0


def _pieces(starts: Ids, window: int) -> Iterator[Part]:
    for start, stop in pairwise(starts.tolist()):
        for begin in range(start, stop, PIECE):
            yield np.array([begin]), min(PIECE, stop - begin), min(window, begin - start)


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
