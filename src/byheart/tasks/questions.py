"""What users give, as questions: tasks, texts, files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from byheart.errors import BadInput
from byheart.tasks import files
from byheart.tasks.base import Questions, Task
from byheart.tasks.contexts import Contexts, task_contexts, text_contexts
from byheart.tasks.task import NextToken
from byheart.tasks.texts import encoded, read_files
from byheart.tasks.tokenizers import Tokenizer

Texts: TypeAlias = dict[str, bytes]
"""Texts by name."""
Given: TypeAlias = Questions | str | bytes | Path | Sequence[Path] | Mapping[str, str | bytes]
"""A task, or the contexts of texts; a text, or several by name; a file with a task (.npz, .jsonl) or a text, or files
with texts."""


def read_given(given: Given) -> Questions | Texts:
    """The questions themselves, or the texts that they are to be made of.

    >>> read_given("It was"), read_given({"one": "It", "two": b"was"})
    ({'text': b'It was'}, {'one': b'It', 'two': b'was'})
    >>> read_given(42)
    Traceback (most recent call last):
    byheart.errors.BadInput: got int; expected a task such as byheart.tasks.NextToken(tokens, labels), a text, or paths
    """
    if isinstance(given, Questions):
        return given
    if isinstance(given, Path) and given.suffix in files.READERS:
        return files.load(given)
    if isinstance(given, str | bytes):
        _check_no_name(given)
        given = {"text": given}
    if isinstance(given, Mapping):
        return {name: _bytes(name, text) for name, text in given.items()}
    paths = [given] if isinstance(given, Path) else given
    if not isinstance(paths, list | tuple) or not all(isinstance(path, Path) for path in paths):
        expected = "a task such as byheart.tasks.NextToken(tokens, labels), a text, or paths"
        raise BadInput(f"got {type(given).__name__}; expected {expected}")
    return read_files(paths)


def _check_no_name(text: str | bytes) -> None:
    """BadInput for a text that is the name of a file, which is surely meant to be read: a text may be anything else."""
    if isinstance(text, str) and text.isprintable() and len(text) < 256:
        path = Path(text)
        if path.suffix in (*files.READERS, ".txt") and path.is_file():
            raise BadInput(f"got {text!r} as a text, and there is a file of that name; expected Path({text!r})")


def _bytes(name: str, text: str | bytes) -> bytes:
    if not isinstance(text, str | bytes):
        raise BadInput(f"{name} is {type(text).__name__}; expected a text: str or bytes")
    return text.encode() if isinstance(text, str) else text


def task_of(given: Given) -> Task:
    """The task that was given; BadInput if it is something else."""
    questions = read_given(given)
    if not isinstance(questions, Task):
        raise BadInput("got texts; expected a task: --task FILE, or byheart.tasks.NextToken(tokens, labels)")
    return questions


def contexts_of(given: Given, *, tokenizer: Tokenizer | None = None, window: int | None = None) -> Contexts:
    """What must be answered to recite texts, or to solve a next-token task, as contexts of at most ``window`` tokens.

    >>> contexts_of(NextToken([[0, 1], [1, 1]], [1, 0])).windows(slice(None)).tolist()
    [[0, 1], [1, 1]]
    """
    questions = read_given(given)
    if isinstance(questions, Contexts):
        return questions
    if isinstance(questions, NextToken):
        return task_contexts(questions, window)
    if isinstance(questions, Questions):
        raise BadInput(f"the task is {questions.kind}; expected next-token")
    if tokenizer is None:
        raise BadInput("got texts, and the network has no tokenizer: it was made from a task; expected that task")
    texts = encoded(questions, tokenizer)
    return text_contexts(texts, vocab=tokenizer.vocab, end=tokenizer.end, window=window)
