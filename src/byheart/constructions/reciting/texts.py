"""The ways in: texts, files, or a next-token task; and what a compiled folder says about them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from byheart.constructions.reciting.compile import BYTES_A_QUESTION, Compiled, Settings, compile_contexts
from byheart.errors import BadInput
from byheart.progress import Report
from byheart.tasks.contexts import Contexts, task_contexts, text_contexts
from byheart.tasks.task import NextToken
from byheart.tasks.texts import Text, read_files, read_texts
from byheart.tasks.tokenizers import BytePairs, Bytes

TokenizerName = Literal["bytes", "bpe"]


@dataclass(frozen=True, eq=False)
class Recital:
    """A compiled network together with its tokenizer and the names of its texts (none for a task)."""

    compiled: Compiled
    tokenizer: Bytes | BytePairs | None
    names: tuple[str, ...] = ()

    def about(self) -> dict[str, Any]:
        """What config.json says: the texts by name, length and the tokens to begin with."""
        texts = beginnings(self.compiled.contexts, self.names)
        return {**self.compiled.about(), "texts": texts, "edits": []}

    def save(self, folder: Path | str) -> None:
        """Write the network, and its tokenizer if it has one, to ``folder``, whole or not at all."""
        from byheart.networks.transformer import store

        also = None if self.tokenizer is None else self.tokenizer.save
        store.save(Path(folder), self.compiled.spec, self.compiled.tensors, self.about(), also=also)


def beginnings(contexts: Contexts, names: Sequence[str]) -> list[dict[str, Any]]:
    """Name, length and prompt of every text."""
    texts = []
    for index, name in enumerate(names):
        start, stop = contexts.starts[index : index + 2].tolist()
        prompt = contexts.tokens[start : start + contexts.prompts[index]].tolist()
        texts.append({"name": name, "tokens": stop - start, "prompt": prompt})
    return texts


def compile_text(
    texts: str | bytes | Mapping[str, str | bytes],
    *,
    tokenizer: TokenizerName = "bytes",
    vocab: int = 1024,
    window: int | None = None,
    settings: Settings | None = None,
    seed: int = 0,
    report: Report | None = None,
) -> Recital:
    """A Transformer that recites a text, or several by name, each from its first tokens on.

    ``window`` None: the smallest power of two at which no context asks for two answers. ``vocab`` is for "bpe".

    >>> recital = compile_text("To be, or not to be, that is the question.")
    >>> recital.compiled.contexts.window, len(recital.compiled.contexts)
    (8, 42)
    """
    named = texts if isinstance(texts, Mapping) else {"text": texts}
    data = {name: text.encode() if isinstance(text, str) else text for name, text in named.items()}
    for name, content in data.items():
        if not content:
            raise BadInput(f"{name}: the text is empty; expected at least one byte")
    chosen = _tokenizer(tokenizer, tuple(data.values()), vocab)
    read = [Text(name, chosen.encode(content)) for name, content in data.items()]
    contexts = text_contexts(read, vocab=chosen.vocab, end=chosen.end, window=window)
    return Recital(compile_contexts(contexts, settings, seed=seed, report=report), chosen, tuple(data))


def compile_files(
    paths: Sequence[Path],
    *,
    tokenizer: TokenizerName = "bytes",
    vocab: int = 1024,
    window: int | None = None,
    settings: Settings | None = None,
    seed: int = 0,
    report: Report | None = None,
) -> Recital:
    """The same for files; refuses, before reading, what would not fit into the machine's memory."""
    contexts, chosen, names = file_contexts(paths, tokenizer=tokenizer, vocab=vocab, window=window)
    return Recital(compile_contexts(contexts, settings, seed=seed, report=report), chosen, names)


def file_contexts(
    paths: Sequence[Path], *, tokenizer: TokenizerName = "bytes", vocab: int = 1024, window: int | None = None
) -> tuple[Contexts, Bytes | BytePairs, tuple[str, ...]]:
    """The questions of some files, their tokenizer, and the names of the texts."""
    _check_memory(paths, tokenizer)
    chosen = _tokenizer(tokenizer, read_files(paths) if tokenizer == "bpe" else (), vocab)
    texts = read_texts(paths, chosen)
    contexts = text_contexts(texts, vocab=chosen.vocab, end=chosen.end, window=window)
    return contexts, chosen, tuple(text.name for text in texts)


def compile_task(
    task: NextToken,
    *,
    window: int | None = None,
    settings: Settings | None = None,
    seed: int = 0,
    report: Report | None = None,
) -> Recital:
    """A Transformer that answers any next-token task: facts, say, question tokens to answer token.

    >>> task = NextToken(tokens=[[0, 1], [1, 0], [1, 1]], labels=[2, 0, 1])
    >>> recital = compile_task(task)
    >>> import torch
    >>> recital.compiled.module()(torch.tensor(task.inputs))[:, -1].argmax(1).tolist()
    [2, 0, 1]
    """
    return Recital(compile_contexts(task_contexts(task, window), settings, seed=seed, report=report), None)


def with_edits(contexts: Contexts, edits: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Contexts:
    """The questions with some answers changed.

    An edit names a text (by its name, or a task's example by its number), a token in it, and the label that follows.
    """
    changes = {}
    for edit in edits:
        text, token = edit["text"], edit["token"]
        number = (names.index(text) if text in names else -1) if isinstance(text, str) else text
        if not 0 <= number < len(contexts.starts) - 1 or token >= contexts.starts[number + 1] - contexts.starts[number]:
            raise BadInput(f"the network was edited at token {token} of {text!r}, which is not in what was given")
        changes[question_at(contexts, int(contexts.starts[number]) + token)] = edit["label"]
    return with_labels(contexts, changes)


def with_labels(contexts: Contexts, changes: Mapping[int, int]) -> Contexts:
    """The questions with other answers to some of them, by their numbers."""
    if not changes:
        return contexts
    labels = contexts.labels.copy()
    for question, label in changes.items():
        labels[question] = label
    return Contexts(
        tokens=contexts.tokens,
        starts=contexts.starts,
        places=contexts.places,
        labels=labels,
        window=contexts.window,
        vocab=contexts.vocab,
        labels_in_all=contexts.labels_in_all,
        prompts=contexts.prompts,
        end=contexts.end,
    )


def question_at(contexts: Contexts, place: int) -> int:
    """Which question is asked at a place: the one with the same last ``window`` tokens."""
    found = np.searchsorted(contexts.places, place)
    if found < len(contexts) and contexts.places[found] == place:
        return int(found)
    alone = replace(contexts, places=np.array([place]), labels=np.zeros(1, dtype=np.int64))
    wanted = alone.windows(slice(None))[0]
    last = np.flatnonzero(contexts.tokens[contexts.places] == wanted[-1])
    for chunk in np.array_split(last, max(1, len(last) // 4096)):
        equal = (contexts.windows(chunk) == wanted).all(axis=1)
        if equal.any():
            return int(chunk[equal.argmax()])
    raise BadInput(f"nothing is asked at token {place}; it belongs to a beginning that several texts share")


def _tokenizer(name: TokenizerName, texts: Sequence[bytes], vocab: int) -> Bytes | BytePairs:
    return BytePairs.train(texts, vocab) if name == "bpe" else Bytes()


def _check_memory(paths: Sequence[Path], tokenizer: TokenizerName) -> None:
    """Refuse what cannot fit; with byte pairs there are about a third as many tokens."""
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
