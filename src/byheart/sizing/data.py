"""What is to be memorized, read and measured: questions, window, entropies.

Texts of more bytes than are to be looked at are sampled: pieces of 64 KiB, evenly spaced over all of them, are put
together to one text. What is found there is multiplied by how much more there is, and is an estimate; of the window it
is what the sample needs, and the whole may need more.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np

from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.files.untrusted import read_part
from byheart.sizes import Size
from byheart.tasks.contexts import Contexts
from byheart.tasks.entropies import Entropy, as_bytes, compressed_sizes, conditional_entropies
from byheart.tasks.facts import Facts
from byheart.tasks.questions import QuestionsLike, as_contexts, read_questions
from byheart.tasks.task import Questions
from byheart.tasks.task_files import TASK_READERS
from byheart.tasks.texts import list_files
from byheart.tasks.tokenizers import Bytes

MOST = 4
"""MiB of text that are looked at, if nobody says how many: some ten seconds."""
PIECE = 1 << 16
TAKES = 80
"""Bytes of memory for every byte that is looked at (measured at 16 MiB)."""


@dataclass(frozen=True, eq=False)
class Data:
    """What was given, measured."""

    name: str
    contexts: Contexts
    """Of all, or of the sample."""
    entropies: tuple[Entropy, ...]
    """Bits of all; of the whole where there is a sample, too."""
    places: int
    """How many places of the texts, or examples of the task, ask a question."""
    bytes: int | None = None
    """Of the texts; None: it is a task, or facts."""
    looked_at: int | None = None
    """Bytes of the sample; None: all of it."""
    facts: int | None = None
    """How many; None: these are no facts."""

    @property
    def times(self) -> float:
        """How many times as much there is as was looked at."""
        return 1.0 if self.looked_at is None or self.bytes is None else self.bytes / self.looked_at

    @property
    def size(self) -> Size:
        """N distinct questions, the window, C and ω."""
        found = self.contexts.size
        return Size(round(self.times * found.examples), found.length, found.labels, found.vocab)

    @property
    def occurrences(self) -> list[int]:
        """How often each answer is asked for, N times in all."""
        _, counts = np.unique(self.contexts.labels, return_counts=True)
        return [round(self.times * count) for count in counts.tolist()]

    @property
    def bits(self) -> float:
        """Of the answers, by order 0: what they take if contexts tell nothing about them."""
        return self.entropies[0].bits

    @property
    def fewest(self) -> Entropy:
        """The fewest bits that something holds it in: the best compressor's, or those of order 0."""
        return min((self.entropies[0], *(e for e in self.entropies if e.compressor)), key=lambda entropy: entropy.bits)


def read(given: QuestionsLike, most: int) -> Data:
    """Read and measure what was given; of texts at most this many bytes are looked at."""
    paths = _paths(given)
    if paths is None:
        return _measured(given, most)
    if any(path.suffix in TASK_READERS for path in paths):
        if len(paths) > 1:
            raise BadInput(f"{len(paths)} files, a task among them; expected texts, or one task")
        return _measured(paths[0], most)
    files = list_files(paths)
    sizes = [file.stat().st_size if file.is_file() else 0 for file in files]
    if not all(sizes) or sum(sizes) <= most:  # reading says what is wrong with a file that holds nothing
        return _measured([files[sizes.index(0)]] if not all(sizes) else files, most)
    return _sampled(files, sizes, most)


def _paths(given: object) -> list[Path] | None:
    """The paths that were given; None if it is something else."""
    if isinstance(given, Path):
        return [given]
    is_paths = isinstance(given, list | tuple) and given and all(isinstance(path, Path) for path in given)
    return list(given) if is_paths else None  # type: ignore[call-overload]


def _measured(given: QuestionsLike, most: int) -> Data:
    """All of it."""
    questions = read_questions(given)
    if isinstance(questions, Questions):
        contexts = as_contexts(questions)
        name = str(given) if isinstance(given, Path) else f"{questions.kind} task"
        entropies = _entropies(contexts, as_bytes(contexts.labels))
        return Data(name, contexts, entropies, contexts.stands_for)
    if isinstance(questions, Facts):
        return _facts(questions)
    total = sum(map(len, questions.values()))
    if total > most:
        raise BadInput(f"a text of {total:,} bytes; expected at most {most:,}, or a file, which can be sampled")
    check_memory(TAKES * total, f"{total:,} bytes of text")
    contexts = as_contexts(questions, tokenizer=Bytes())
    entropies = _entropies(contexts, b"".join(questions.values()))
    return Data(_called(questions), contexts, entropies, total, total)


def _facts(facts: Facts) -> Data:
    """All of them: what is to be memorized are their completions, and that they end."""
    check_memory(TAKES * facts.asked, f"{len(facts):,} facts")
    contexts = as_contexts(facts, tokenizer=None if facts.are_ids else Bytes())
    said = (fact.completion if isinstance(fact.completion, bytes) else b"" for fact in facts)
    entropies = _entropies(contexts, as_bytes(contexts.labels) if facts.are_ids else b"\n".join(said))
    return Data("facts", contexts, entropies, contexts.stands_for, facts=len(facts))


def _called(texts: Mapping[str, bytes]) -> str:
    return next(iter(texts)) if len(texts) == 1 else f"{len(texts):,} texts"


def _sampled(files: Sequence[Path], sizes: Sequence[int], most: int) -> Data:
    """What pieces of the files say of all."""
    check_memory(TAKES * most, f"{most:,} bytes of text")
    ends = [0, *accumulate(sizes)]
    text = b"".join(bytes(read_part(files[file], start, size)) for file, start, size in _pieces(ends, most))
    contexts = as_contexts({"sample": text}, tokenizer=Bytes())
    times = ends[-1] / len(text)
    scaled = (Entropy(e.name, times * e.bits, e.compressor) for e in _entropies(contexts, text))
    name = str(files[0]) if len(files) == 1 else f"{len(files):,} texts"
    return Data(name, contexts, tuple(scaled), ends[-1], ends[-1], len(text))


def _pieces(ends: Sequence[int], most: int) -> Iterator[tuple[int, int, int]]:
    """(file, start, size) of this many bytes, in pieces evenly spaced over files that end there, put together.

    >>> list(_pieces([0, 3, 10], most=4))
    [(0, 0, 3), (1, 0, 1)]
    """
    size = min(PIECE, most)
    count = most // size
    for number in range(count):
        begin = number * (ends[-1] - size) // max(1, count - 1)
        file = bisect_right(ends, begin) - 1
        while file < len(ends) - 1 and ends[file] < begin + size:
            first = max(ends[file], begin)
            yield file, first - ends[file], min(ends[file + 1], begin + size) - first
            file += 1


def _entropies(contexts: Contexts, data: bytes) -> tuple[Entropy, ...]:
    return (Entropy("order 0", contexts.order0_bits), *conditional_entropies(contexts), *compressed_sizes(data))
