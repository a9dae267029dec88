"""What users give, as questions: tasks, texts, facts, files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from byheart.errors import BadInput
from byheart.progress import Report
from byheart.tasks import files
from byheart.tasks.base import Questions, Task
from byheart.tasks.contexts import Contexts, task_contexts, text_contexts
from byheart.tasks.facts import Facts, fact_contexts
from byheart.tasks.task import NextToken
from byheart.tasks.texts import encoded, read_files
from byheart.tasks.tokenizers import Tokenizer

Texts: TypeAlias = Mapping[str, bytes]
"""Texts by name."""
Pairs: TypeAlias = Sequence[tuple[Any, Any]] | Sequence[Mapping[str, Any]]
"""Facts: pairs of a prompt and a completion, or records with usual keys."""
Given: TypeAlias = Questions | Facts | str | bytes | Path | Sequence[Path] | Mapping[str, str | bytes] | Pairs
"""A task, or the contexts of texts; facts, or pairs; a text, or several by name; a file with a task (.npz, .jsonl) or a
text, or files with texts."""


def read_given(given: Given, *, narrow: bool = False) -> Questions | Facts | Texts:
    """The questions themselves, or the texts or facts that they are to be made of; ``narrow`` as for a task's file.

    >>> read_given("It was"), read_given({"one": "It", "two": b"was"})
    ({'text': b'It was'}, {'one': b'It', 'two': b'was'})
    >>> read_given(42)
    Traceback (most recent call last):
    byheart.errors.BadInput: got int; expected a task such as byheart.tasks.NextToken(tokens, labels), a text, or paths
    """
    if isinstance(given, Questions | Facts):
        return given
    if _are_pairs(given):
        return Facts(given)  # type: ignore[arg-type]  # whatever is no pair is refused by name
    if isinstance(given, Path) and given.suffix in files.READERS:
        return files.load(given, narrow=narrow)
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


def _are_pairs(given: object) -> bool:
    """Whether these are meant to be facts, going by the first of them."""
    first = given[0] if isinstance(given, list | tuple) and given else None
    if isinstance(first, list | tuple):
        return len(first) == 2 and all(isinstance(part, str | bytes | list | tuple) for part in first)
    return isinstance(first, Mapping)


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
        what = "facts" if isinstance(questions, Facts) else "texts"
        raise BadInput(f"got {what}; expected a task: --task FILE, or byheart.tasks.NextToken(tokens, labels)")
    return questions


def contexts_of(
    given: Given, *, tokenizer: Tokenizer | None = None, window: int | None = None, report: Report | None = None
) -> Contexts:
    """What must be answered to recite texts, know facts, or solve a task, as contexts of at most ``window`` tokens.

    >>> contexts_of(NextToken([[0, 1], [1, 1]], [1, 0])).windows(slice(None)).tolist()
    [[0, 1], [1, 1]]
    """
    questions = read_given(given, narrow=True)
    if isinstance(questions, Contexts):
        return questions
    if isinstance(questions, NextToken):
        return task_contexts(questions, window)
    if isinstance(questions, Facts):
        return fact_contexts(questions, tokenizer, window=window)
    if isinstance(questions, Questions):
        raise BadInput(f"the task is {questions.kind}; expected next-token")
    if tokenizer is None:
        raise BadInput("got texts, and the network has no tokenizer: it was made from a task; expected that task")
    texts = encoded(questions, tokenizer)
    return text_contexts(texts, vocab=tokenizer.vocab, end=tokenizer.end, window=window, report=report)
