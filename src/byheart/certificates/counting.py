"""Certificates that count: the number of right answers, and the numbers of all others.

Answers are numbered in the order of the questions: answer i belongs to example i. If a network answers at each of the n
tokens of a sequence, answer i belongs to position i mod n of example ⌊i/n⌋.
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
"""Largest number of ranges that a certificate names. They take less than half of a certificate's permitted size."""
MOST_SHOWN = 12
"""Largest number of ranges that are printed."""
COLUMNS = ("example", "position", "outcome", "expected", "got")


def with_number(verdict: Verdict, *, at_least: int | None) -> Verdict:
    """Return the verdict on the claim that ``at_least`` answers are right; if it is None, on how many are right."""
    claim = replace(verdict.claim, at_least=at_least, exactly=at_least is None)
    asked_for = "" if at_least is None else f"at least {at_least:,} asked for"
    notes = [note for note in (verdict.note, asked_for) if note]
    margin = verdict.margin if verdict.certified else None  # a margin is stated only if all answers are right
    return replace(verdict, claim=claim, note=", ".join(notes), margin=margin)


@dataclass(frozen=True)
class Count:
    """The part of a certificate that ``--count`` asks for."""

    right: int
    """Number of right answers."""
    named_wrong: str
    """Numbers of wrong answers as ranges, "3, 17-19"; the first ``MOST_RANGES`` of them."""
    named_undecided: str
    """Numbers of undecided answers, in the same form."""
    digest: str
    """SHA-256 of one letter per answer: r, w or u. It covers answers that are not named, too."""

    @classmethod
    def of(cls, codes: Codes) -> "Count":
        """Count the outcomes of answers.

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
    """Format increasing numbers as at most ``most`` ranges. The same numbers always give the same text.

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
    """Shorten ranges for printing, and set dashes.

    >>> at_a_glance("3, 17-19"), at_a_glance(", ".join(str(2 * i) for i in range(100)))
    ('3, 17–19', '0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, …')
    """
    shown = names.replace("-", "–").split(", ")
    return ", ".join(shown if len(shown) <= MOST_SHOWN else [*shown[:MOST_SHOWN], "…"])


def write_named(outcomes: Outcomes, path: Path) -> None:
    """Write all answers that are not proved right as CSV: example, position, outcome, expected and got.

    All cells are numbers or our own words. So spreadsheets find no formula of somebody else's there.
    """
    with new_file(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for outcome, case in outcomes.others:
            writer.writerow([case.example, case.position, outcome, case.expected, case.got])
