"""Turn the users' input into questions: tasks, texts, facts, files.

Also turn facts into a next-token task, for constructions that answer one label to sequences of one length.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeAlias

import numpy as np

from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.progress import Report
from byheart.tasks.contexts import Contexts
from byheart.tasks.fact import Fact, Piece
from byheart.tasks.facts import Facts
from byheart.tasks.task import NextToken, Questions, Task
from byheart.tasks.task_files import TASK_READERS, load
from byheart.tasks.texts import encode_texts, read_files
from byheart.tasks.tokenizers import Tokenizer
from byheart.tasks.windows import fact_contexts, task_contexts, text_contexts

Texts: TypeAlias = Mapping[str, bytes]
"""Texts by name."""
Pairs: TypeAlias = Sequence[tuple[Any, Any]] | Sequence[Mapping[str, Any]]
"""Facts: pairs of a prompt and a completion, or records with common keys."""
QuestionsLike: TypeAlias = (
    Questions | Facts | str | bytes | Path | Sequence[str | bytes] | Sequence[Path] | Mapping[str, str | bytes] | Pairs
)
"""A task, or the contexts of texts; facts, or pairs; a text, or several, in a list or by name; a file with a task
(.npz, .jsonl) or a text, or files with texts."""


def read_questions(given: QuestionsLike, *, narrow: bool = False) -> Questions | Facts | Texts:
    """Return questions, facts, or texts by name. ``narrow`` keeps ids of a task's file in narrow types.

    >>> read_questions("It was"), read_questions({"one": "It", "two": b"was"}), read_questions(["It", "was"])
    ({'text': b'It was'}, {'one': b'It', 'two': b'was'}, {'text 1': b'It', 'text 2': b'was'})
    >>> read_questions(42)
    Traceback (most recent call last):
    byheart.errors.BadInput: got int; expected a task, texts in a list or by name, (prompt, completion) pairs, or paths
    """
    if isinstance(given, Questions | Facts):
        return given
    if _are_pairs(given):
        return Facts(given)  # type: ignore[arg-type]  # whatever is no pair is refused by name
    if isinstance(given, Path) and given.suffix in TASK_READERS:
        return load(given, narrow=narrow)
    if isinstance(given, str | bytes):
        _check_no_name(given)
        given = {"text": given}
    if isinstance(given, list | tuple) and given and all(isinstance(text, str | bytes) for text in given):
        for text in given:
            _check_no_name(text)
        given = {f"text {number}": text for number, text in enumerate(given, start=1)}
    if isinstance(given, Mapping):
        return {name: _bytes(name, text) for name, text in given.items()}
    paths = [given] if isinstance(given, Path) else given
    if not isinstance(paths, list | tuple) or not all(isinstance(path, Path) for path in paths):
        expected = "a task, texts in a list or by name, (prompt, completion) pairs, or paths"
        first = f" that begins with {shortened(given[0])}" if isinstance(given, list | tuple) else ""
        raise BadInput(f"got {type(given).__name__}{first}; expected {expected}")
    return read_files(paths)


def _are_pairs(value: object) -> bool:
    """Return True if the first entry looks like a fact."""
    first = value[0] if isinstance(value, list | tuple) and value else None
    if isinstance(first, list | tuple):
        return len(first) == 2 and all(isinstance(part, str | bytes | list | tuple) for part in first)
    return isinstance(first, Mapping)


def _check_no_name(text: str | bytes) -> None:
    """Raise BadInput for a text that is the name of a task or text file: surely the file is meant."""
    if isinstance(text, str) and text.isprintable() and len(text) < 256:
        path = Path(text)
        if path.suffix in (*TASK_READERS, ".txt") and path.is_file():
            raise BadInput(f"got {text!r} as a text, and there is a file of that name; expected Path({text!r})")


def _bytes(name: str, text: str | bytes) -> bytes:
    if not isinstance(text, str | bytes):
        raise BadInput(f"{name} is {type(text).__name__}; expected a text: str or bytes")
    return text.encode() if isinstance(text, str) else text


def as_task(given: QuestionsLike) -> Task:
    """Return a task; raise BadInput if ``given`` is something else."""
    questions = read_questions(given)
    if not isinstance(questions, Task):
        what = "facts" if isinstance(questions, Facts) else "texts"
        raise BadInput(f"got {what}; expected a task: --task FILE, or byheart.tasks.NextToken(tokens, labels)")
    return questions


def as_contexts(
    given: QuestionsLike, *, tokenizer: Tokenizer | None = None, window: int | None = None, report: Report | None = None
) -> Contexts:
    """Return the contexts of texts, facts or a task, of at most ``window`` tokens.

    >>> as_contexts(NextToken([[0, 1], [1, 1]], [1, 0])).windows(slice(None)).tolist()
    [[0, 1], [1, 1]]
    """
    questions = read_questions(given, narrow=True)
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
    texts = encode_texts(questions, tokenizer)
    return text_contexts(texts, vocab=tokenizer.vocab, end=tokenizer.end, window=window, report=report)


BYTES = 256
"""Id of the filler token of byte prompts, the first that is not a byte."""


@dataclass(frozen=True, eq=False)
class FactTask:
    """Prompts as sequences, completions as labels."""

    task: NextToken
    completions: tuple[Piece, ...]
    """Completion of each label."""


def fact_task(facts: Facts) -> FactTask:
    """Pad every prompt in front to the length of the longest, with its whole completion as one label.

    Tokens are bytes or ids, and one more for padding. Labels are numbered in the order of first
    completions.

    >>> found = fact_task(Facts([([1, 2], [5]), ([0], [3]), ([2], [5])]))
    >>> found.task.tokens.tolist(), found.task.labels.tolist(), found.completions
    ([[1, 2], [3, 0], [3, 2]], [0, 1, 0], ((5,), (3,)))
    """
    prompts = _prompts(facts)
    length = max(map(len, prompts))
    check_memory(32 * len(prompts) * length, f"a task of {len(prompts):,} prompts, filled up to {length:,} tokens")
    filler = 1 + max(map(max, prompts)) if facts.are_ids else BYTES
    tokens = np.full((len(prompts), length), filler, np.int64)
    for row, prompt in zip(tokens, prompts, strict=True):
        row[length - len(prompt) :] = list(prompt)
    numbers: dict[Piece, int] = {}
    labels = [numbers.setdefault(fact.completion, len(numbers)) for fact in facts]
    return FactTask(NextToken(tokens, labels, label_count=len(numbers), vocab=filler + 1), tuple(numbers))


def _prompts(facts: Facts) -> list[Piece]:
    """Return the prompts; raise BadInput if one is missing or has two completions."""
    facts_by_prompt: dict[Piece, Fact] = {}
    for fact in facts:
        if fact.prompt is None:
            raise BadInput(f"{fact.place}: has no prompt; expected a prompt and a completion, or byheart compile")
        first = facts_by_prompt.setdefault(fact.prompt, fact)
        if first is not fact:
            raise BadInput(f"{first.place} and {fact.place} have the same prompt; expected one completion for each")
    return list(facts_by_prompt)
