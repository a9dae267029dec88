"""The way in: a task, texts or files; read, made into contexts, compiled in one of the layouts."""

from pathlib import Path
from typing import Any, Literal

from byheart.constructions.built import Built
from byheart.constructions.construction import settings_from
from byheart.constructions.reciting.rectangular import BYTES_A_QUESTION, NAME, Settings, compile_rectangular
from byheart.errors import BadInput, check_seed
from byheart.files import memory
from byheart.progress import Report
from byheart.tasks import Questions
from byheart.tasks.questions import Given, contexts_of, read_given
from byheart.tasks.tokenizers import BytePairs, Bytes

TokenizerName = Literal["bytes", "bpe"]
MOST_IDS = 1 << 22
"""Tokens, and labels: config.json lists the length of every label's code, and takes no more than 64 MB."""
VOCAB = 1024
"""Tokens of byte pairs, if nobody says how many."""


def compile(
    questions: Given,
    *,
    settings: Settings | None = None,
    tokenizer: TokenizerName | None = None,
    vocab: int | None = None,
    window: int | None = None,
    seed: int = 0,
    report: Report | None = None,
    **given: Any,
) -> Built:
    """A float Transformer that recites texts, each from its first tokens on, or answers a next-token task.

    ``questions``: a task; a text, or several by name; paths. ``tokenizer`` ("bytes" or "bpe"; None: bytes) is for
    texts, and ``vocab`` (None: 1024), how many tokens there are to be at most, for "bpe".
    Settings are given one by one (``layout="uniform"``) or all together.
    ``window`` None: the smallest power of two at which no context asks for two answers. Files that would not fit into
    the machine's memory are refused before they are read.

    >>> built = compile("To be, or not to be, that is the question.")
    >>> built.network.window, built.questions.size.examples
    (8, 42)
    """
    settings = settings_from(Settings, NAME, settings, given)
    check_seed(seed)
    if tokenizer not in (None, "bytes", "bpe"):
        raise BadInput(f"tokenizer is {tokenizer!r}; expected bytes or bpe")
    if vocab is not None and tokenizer != "bpe":
        raise BadInput(f"vocab is {vocab}, which is for the tokenizer bpe; expected none, or tokenizer bpe")
    _check_memory([questions] if isinstance(questions, Path) else questions, tokenizer)
    read = read_given(questions)
    chosen = None
    if not isinstance(read, Questions):
        pairs = tokenizer == "bpe"
        chosen = BytePairs.train(tuple(read.values()), VOCAB if vocab is None else vocab) if pairs else Bytes()
    elif tokenizer is not None:
        raise BadInput(f"tokenizer is {tokenizer}, which is for texts; a task has its tokens already")
    contexts = contexts_of(read, tokenizer=chosen, window=window)
    if max(contexts.vocab, contexts.label_count) > MOST_IDS:
        sizes = f"{contexts.vocab:,} tokens and {contexts.label_count:,} labels"
        raise BadInput(f"there are {sizes}; expected at most {MOST_IDS:,}: each has a row in the network and its files")
    files = {} if chosen is None else chosen.files(begins=settings.layout != "rectangular")
    if settings.layout == "uniform":
        from byheart.constructions.reciting.uniform.llama import compile_uniform

        return compile_uniform(contexts, settings, seed=seed, files=files, report=report)
    if settings.layout == "experts":
        from byheart.constructions.reciting.experts.qwen import compile_experts

        return compile_experts(contexts, settings, seed=seed, files=files, report=report)
    return compile_rectangular(contexts, settings, seed=seed, files=files, report=report)


def _check_memory(questions: Given, tokenizer: TokenizerName | None) -> None:
    """Refuse files that cannot fit; with byte pairs there are about a third as many tokens."""
    paths = [path for path in questions if isinstance(path, Path)] if isinstance(questions, list | tuple) else []
    size = sum(path.stat().st_size for path in paths if path.is_file())
    needed = size * BYTES_A_QUESTION // (3 if tokenizer == "bpe" else 1)
    there = int(memory.SHARE * memory.available())
    if needed > there:
        gib = 2**30
        fits = int(there / BYTES_A_QUESTION / 2**20)
        raise BadInput(
            f"{size / 2**20:,.0f} MiB of text would take about {needed / gib:,.0f} GiB of memory to compile; there are "
            f"{there / gib:,.1f} GiB for it, enough for about {fits:,} MiB: split the text into several models"
        )
