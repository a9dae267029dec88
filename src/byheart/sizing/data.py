"""Read the data that are to be memorized, and measure them: questions, window, entropies.

Long texts are sampled: pieces of 64 KiB, evenly spaced over all texts, are joined to one text. Its numbers, multiplied
by the ratio of the sizes, are estimates for all texts. The window is that of the sample; all texts may need a larger
one.
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

SAMPLE_MIB = 4
"""Default size of the sample, in MiB of text: some ten seconds."""
PIECE = 1 << 16
"""Bytes per piece of the sample."""
MEMORY_PER_BYTE = 80
"""Bytes of memory per byte of text (measured at 16 MiB)."""


@dataclass(frozen=True, eq=False)
class Data:
    """Measured data."""

    name: str
    contexts: Contexts
    """The questions of all data, or of the sample."""
    entropies: tuple[Entropy, ...]
    """Bits of all data; estimates if there is a sample."""
    places: int
    """Number of places in the texts, or examples of the task, that ask a question."""
    bytes: int | None = None
    """Bytes of the texts; None for a task and for facts."""
    looked_at: int | None = None
    """Bytes of the sample; None if there is none."""
    facts: int | None = None
    """Number of facts; None for other data."""

    @property
    def times(self) -> float:
        """Size of all data divided by the size of the sample."""
        return 1.0 if self.looked_at is None or self.bytes is None else self.bytes / self.looked_at

    @property
    def size(self) -> Size:
        """N distinct questions, the window, C and ω."""
        size = self.contexts.size
        return Size(round(self.times * size.examples), size.length, size.labels, size.vocab)

    @property
    def occurrences(self) -> list[int]:
        """Number of questions per answer, N in total."""
        _, counts = np.unique(self.contexts.labels, return_counts=True)
        return [round(self.times * count) for count in counts.tolist()]

    @property
    def bits(self) -> float:
        """Bits of the answers, by order 0: their size if contexts say nothing about them."""
        return self.entropies[0].bits

    @property
    def fewest(self) -> Entropy:
        """The fewest bits that hold the data: those of the best compressor, or of order 0."""
        return min((self.entropies[0], *(e for e in self.entropies if e.compressor)), key=lambda entropy: entropy.bits)


def read(source: QuestionsLike, sample: int) -> Data:
    """Read and measure data. If texts have more than ``sample`` bytes, a sample of that size is read."""
    paths = _paths(source)
    if paths is None:
        return _measure(source, sample)
    if any(path.suffix in TASK_READERS for path in paths):
        if len(paths) > 1:
            raise BadInput(f"{len(paths)} files, a task among them; expected texts, or one task")
        return _measure(paths[0], sample)
    files = list_files(paths)
    sizes = [file.stat().st_size if file.is_file() else 0 for file in files]
    if not all(sizes) or sum(sizes) <= sample:  # reading an empty file raises the error that describes it
        return _measure([files[sizes.index(0)]] if not all(sizes) else files, sample)
    return _measure_sample(files, sizes, sample)


def _paths(source: object) -> list[Path] | None:
    """Return the paths if the source is a path or several; None if it is something else."""
    if isinstance(source, Path):
        return [source]
    is_paths = isinstance(source, list | tuple) and source and all(isinstance(path, Path) for path in source)
    return list(source) if is_paths else None  # type: ignore[call-overload]


def _measure(source: QuestionsLike, max_bytes: int) -> Data:
    """Measure all data; raise BadInput for texts of more than ``max_bytes``."""
    questions = read_questions(source)
    if isinstance(questions, Questions):
        contexts = as_contexts(questions)
        name = str(source) if isinstance(source, Path) else f"{questions.kind} task"
        entropies = _entropies(contexts, as_bytes(contexts.labels))
        return Data(name, contexts, entropies, contexts.stands_for)
    if isinstance(questions, Facts):
        return _measure_facts(questions)
    total = sum(map(len, questions.values()))
    if total > max_bytes:
        raise BadInput(f"a text of {total:,} bytes; expected at most {max_bytes:,}, or a file, which can be sampled")
    check_memory(MEMORY_PER_BYTE * total, f"{total:,} bytes of text")
    contexts = as_contexts(questions, tokenizer=Bytes())
    entropies = _entropies(contexts, b"".join(questions.values()))
    return Data(_text_name(questions), contexts, entropies, total, total)


def _measure_facts(facts: Facts) -> Data:
    """Measure facts: their completions, and that each ends, have to be memorized."""
    check_memory(MEMORY_PER_BYTE * facts.asked, f"{len(facts):,} facts")
    contexts = as_contexts(facts, tokenizer=None if facts.are_ids else Bytes())
    completions = (fact.completion if isinstance(fact.completion, bytes) else b"" for fact in facts)
    entropies = _entropies(contexts, as_bytes(contexts.labels) if facts.are_ids else b"\n".join(completions))
    return Data("facts", contexts, entropies, contexts.stands_for, facts=len(facts))


def _text_name(texts: Mapping[str, bytes]) -> str:
    return next(iter(texts)) if len(texts) == 1 else f"{len(texts):,} texts"


def _measure_sample(files: Sequence[Path], sizes: Sequence[int], sample: int) -> Data:
    """Estimate the numbers of all files from pieces of them."""
    check_memory(MEMORY_PER_BYTE * sample, f"{sample:,} bytes of text")
    ends = [0, *accumulate(sizes)]
    text = b"".join(bytes(read_part(files[file], start, size)) for file, start, size in _pieces(ends, sample))
    contexts = as_contexts({"sample": text}, tokenizer=Bytes())
    times = ends[-1] / len(text)
    scaled = (Entropy(e.name, times * e.bits, e.compressor) for e in _entropies(contexts, text))
    name = str(files[0]) if len(files) == 1 else f"{len(files):,} texts"
    return Data(name, contexts, tuple(scaled), ends[-1], ends[-1], len(text))


def _pieces(ends: Sequence[int], total: int) -> Iterator[tuple[int, int, int]]:
    """Yield (file, start, size) for pieces of ``total`` bytes, evenly spaced over files that end at ``ends``.

    >>> list(_pieces([0, 3, 10], total=4))
    [(0, 0, 3), (1, 0, 1)]
    """
    size = min(PIECE, total)
    count = total // size
    for number in range(count):
        begin = number * (ends[-1] - size) // max(1, count - 1)
        file = bisect_right(ends, begin) - 1
        while file < len(ends) - 1 and ends[file] < begin + size:
            first = max(ends[file], begin)
            yield file, first - ends[file], min(ends[file + 1], begin + size) - first
            file += 1


def _entropies(contexts: Contexts, data: bytes) -> tuple[Entropy, ...]:
    return (Entropy("order 0", contexts.order0_bits), *conditional_entropies(contexts), *compressed_sizes(data))
