"""How many answers are right: the number, stated, and the names of those that are not.

Answers are numbered in the order of the questions: answer i is the one to example i. Where every one of the n tokens of
a sequence is asked about, it is the one at position i mod n of example ⌊i/n⌋.
"""

import csv
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.verdict import OUTCOMES, RIGHT, UNDECIDED, WRONG, Codes, Outcomes, Verdict
from byheart.files.writing import new_file
from byheart.tasks.arrays import chunks

MOST_RANGES = 4096
"""Ranges of answers that a certificate names, at most: with all of them it has less than half of the bytes it may."""
MOST_SHOWN = 12
"""Ranges that are shown to people, at most."""
COLUMNS = ("example", "position", "outcome", "expected", "got")


def with_number(verdict: Verdict, *, at_least: int | None) -> Verdict:
    """Return the verdict on another claim: that ``at_least`` answers are right, or, if it is None, how many are."""
    claim = replace(verdict.claim, at_least=at_least, exactly=at_least is None)
    asked_for = "" if at_least is None else f"at least {at_least:,} asked for"
    notes = [note for note in (verdict.note, asked_for) if note]
    margin = verdict.margin if verdict.certified else None  # a margin is said if all answers are right
    return replace(verdict, claim=claim, note=", ".join(notes), margin=margin)


@dataclass(frozen=True)
class Count:
    """How many answers are right, and which are not: the part of a certificate that ``--count`` asks for.

    Names are ranges of numbers, "3, 17-19"; of too many, the first. The digest covers all: the SHA-256 of one letter
    for each answer, r, w or u.
    """

    right: int
    named_wrong: str
    named_undecided: str
    digest: str

    @classmethod
    def of(cls, codes: Codes) -> "Count":
        """What there is to say about these outcomes.

        >>> count = Count.of(np.array([0, 1, 1, 0, 2], dtype=np.uint8))
        >>> count.right, count.named_wrong, count.named_undecided
        (2, '1-2', '4')
        >>> count.digest == hashlib.sha256(b"rwwru").hexdigest()
        True
        """
        letters, digest = np.frombuffer(b"".join(name[:1].encode() for name in OUTCOMES), np.uint8), hashlib.sha256()
        for part in chunks(codes):
            digest.update(letters[part].data)
        return cls(
            right=int((codes == RIGHT).sum()),
            named_wrong=ranges(np.flatnonzero(codes == WRONG)),
            named_undecided=ranges(np.flatnonzero(codes == UNDECIDED)),
            digest=digest.hexdigest(),
        )


def ranges(numbers: NDArray[np.int64], most: int = MOST_RANGES) -> str:
    """Increasing numbers as ranges: the one text for them, at most so many ranges long.

    >>> ranges(np.array([3, 17, 18, 19])), ranges(np.array([], dtype=np.int64))
    ('3, 17-19', '')
    >>> ranges(np.array([1, 3, 5, 6, 7]), most=2)
    '1, 3 and 3 more'
    """
    gaps = np.flatnonzero(np.diff(numbers) != 1)
    first, last = np.append(0, gaps + 1)[:most], np.append(gaps, len(numbers) - 1)[:most]
    if not len(numbers):
        return ""
    pairs = zip(numbers[first].tolist(), numbers[last].tolist(), strict=True)
    more = len(numbers) - 1 - int(last[-1])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in pairs) + (f" and {more} more" if more else "")


def at_a_glance(names: str) -> str:
    """Names for people: the first of them, with proper dashes.

    >>> at_a_glance("3, 17-19"), at_a_glance(", ".join(str(2 * i) for i in range(100)))
    ('3, 17–19', '0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, …')
    """
    first = names.replace("-", "–").split(", ")
    return ", ".join(first if len(first) <= MOST_SHOWN else [*first[:MOST_SHOWN], "…"])


def write_named(outcomes: Outcomes, path: Path) -> None:
    """Write all answers that are not known to be right as CSV: example, position, outcome, expected and got."""
    with new_file(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for outcome, told in outcomes.others:
            writer.writerow([told.example, told.position, outcome, told.expected, told.got])
