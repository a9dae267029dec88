"""The way in: a task, texts or files; read, made into contexts, compiled in one of the layouts."""

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from byheart.constructions.built import Built
from byheart.constructions.construction import settings_from
from byheart.constructions.reciting.rectangular import BYTES_A_QUESTION, NAME, Settings, compile_rectangular
from byheart.errors import BadInput, check_seed
from byheart.progress import Report
from byheart.tasks import Questions
from byheart.tasks.questions import Given, contexts_of, read_given
from byheart.tasks.tokenizers import BytePairs, Bytes

TokenizerName = Literal["bytes", "bpe"]


def compile(
    questions: Given,
    *,
    settings: Settings | None = None,
    tokenizer: TokenizerName = "bytes",
    vocab: int = 1024,
    window: int | None = None,
    seed: int = 0,
    report: Report | None = None,
    **given: Any,
) -> Built:
    """A float Transformer that recites texts, each from its first tokens on, or answers a next-token task.

    ``questions``: a task; a text, or several by name; paths. ``tokenizer`` and ``vocab`` (for "bpe") are for texts.
    Settings are given one by one (``layout="uniform"``) or all together.
    ``window`` None: the smallest power of two at which no context asks for two answers. Files that would not fit into
    the machine's memory are refused before they are read.

    >>> built = compile("To be, or not to be, that is the question.")
    >>> built.network.window, built.questions.size.examples
    (8, 42)
    """
    settings = settings_from(Settings, NAME, settings, given)
    check_seed(seed)
    if tokenizer not in ("bytes", "bpe"):
        raise BadInput(f"tokenizer is {tokenizer!r}; expected bytes or bpe")
    _check_memory([questions] if isinstance(questions, Path) else questions, tokenizer)
    read = read_given(questions)
    chosen = None
    if not isinstance(read, Questions):
        chosen = BytePairs.train(tuple(read.values()), vocab) if tokenizer == "bpe" else Bytes()
    contexts = contexts_of(read, tokenizer=chosen, window=window)
    stock = settings.layout == "uniform"
    files = {} if chosen is None else chosen.files(begins=stock)
    if stock:
        from byheart.constructions.reciting.uniform.llama import compile_uniform

        return compile_uniform(contexts, settings, seed=seed, files=files, report=report)
    return compile_rectangular(contexts, settings, seed=seed, files=files, report=report)


def _check_memory(questions: Given, tokenizer: TokenizerName) -> None:
    """Refuse files that cannot fit; with byte pairs there are about a third as many tokens."""
    paths = [path for path in questions if isinstance(path, Path)] if isinstance(questions, list | tuple) else []
    size = sum(path.stat().st_size for path in paths if path.is_file())
    needed = size * BYTES_A_QUESTION // (3 if tokenizer == "bpe" else 1)
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else np.inf
    if needed > there:
        gib = 2**30
        fits = int(there / BYTES_A_QUESTION / 2**20)
        raise BadInput(
            f"{size / 2**20:,.0f} MiB of text would take about {needed / gib:,.0f} GiB of memory to compile; this "
            f"machine has {there / gib:,.0f} GiB, enough for about {fits:,} MiB: split the text into several models"
        )
