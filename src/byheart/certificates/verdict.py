"""Verdicts: the result of every judge, and how it is put together from single answers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.claim import Claim, sentence
from byheart.tasks.arrays import chunks, count_ids

Outcome = Literal["right", "wrong", "undecided"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
RIGHT, WRONG, UNDECIDED = range(len(OUTCOMES))
Codes: TypeAlias = NDArray[np.uint8]
"""Outcome of each answer, as an index into ``OUTCOMES``."""


@dataclass(frozen=True)
class Counterexample:
    """An answer that is not proved right: example, position (seq-to-seq), label, and the network's output."""

    example: int
    position: int | None
    expected: int | float | str
    got: str
    where: str = ""
    """Source of a question about a fact: its file and line, and the number of tokens of the completion before it."""

    def __str__(self) -> str:
        place = f"example {self.example}" + ("" if self.position is None else f", position {self.position}")
        place += f" ({self.where})" if self.where else ""
        return f"{place}: expected {self.expected}, got {self.got}"


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcome of every answer, and a function that describes those that are not right."""

    codes: Codes
    told: Callable[[int], Counterexample]
    """Function from an answer's number to its description."""

    @property
    def others(self) -> Iterator[tuple[Outcome, Counterexample]]:
        """Iterator over all answers that are not proved right."""
        before = 0
        for part in chunks(self.codes):
            for i in np.flatnonzero(part).tolist():
                yield OUTCOMES[part[i]], self.told(before + i)
            before += len(part)


@dataclass(frozen=True)
class Verdict:
    """A claim, the method of its check, and the result."""

    claim: Claim
    method: str
    checked: int
    """Number of answers, all of which were judged."""
    errors: int
    """Number of wrong answers."""
    seconds: float
    margin: float | None = None
    """Lower bound on the margin of the closest right answer. Negative or None if some are not right; None if huge."""
    counterexample: Counterexample | None = None
    """The first answer that is not proved right."""
    undecided: int = 0
    """Number of answers that may be right or wrong, because their computation was not precise enough."""
    note: str = ""
    """Further findings, in words."""
    outcomes: Outcomes | None = field(default=None, repr=False, compare=False)
    """Outcome of every answer; None if all are judged together."""

    @property
    def unit(self) -> str:
        """Kind of answers: an example, a token, a prompt."""
        return self.claim.unit

    @property
    def at_least(self) -> int | None:
        """Number of answers that have to be right; None: all."""
        return self.claim.at_least

    @property
    def counted(self) -> bool:
        """True if the claim is how many answers are right, whatever that number is."""
        return self.claim.exactly

    @property
    def tolerance(self) -> float | None:
        """Largest permitted error of real answers."""
        return self.claim.tolerance

    @property
    def radius(self) -> float | None:
        """Distance by which every vector of a question may move."""
        return self.claim.radius

    @property
    def statement(self) -> str:
        """The claim, as a sentence."""
        return sentence(self.claim, checked=self.checked, right=self.right, undecided=self.undecided)

    @property
    def right(self) -> int:
        """Number of answers that are proved to be right."""
        return self.checked - self.errors - self.undecided

    @property
    def certified(self) -> bool:
        """True if enough answers are proved to be right. If they are counted: True if every outcome is decided."""
        if self.claim.exactly:
            return self.checked > 0 and not self.undecided
        least = self.checked if self.claim.at_least is None else self.claim.at_least
        return self.checked > 0 and self.right >= least

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        values = {
            part.name: getattr(self, part.name) for part in fields(self) if part.name not in ("claim", "outcomes")
        }
        claim = {name: getattr(self, name) for name in ("tolerance", "at_least", "radius", "unit")}
        counterexample = self.counterexample and vars(self.counterexample)
        more = {"counterexample": counterexample, "counted": self.counted, "certified": self.certified}
        return {"statement": self.statement, **values, **claim, **more}


def tallied(outcomes: Outcomes) -> dict[str, Any]:
    """Return the fields of a verdict that follow from the outcomes."""
    times = count_ids(outcomes.codes, len(OUTCOMES)).tolist()
    return {
        "checked": len(outcomes.codes),
        "errors": times[WRONG],
        "undecided": times[UNDECIDED],
        "counterexample": next((case for _, case in outcomes.others), None),
        "outcomes": outcomes,
    }


@dataclass(frozen=True)
class Answer:
    """One answer: its outcome, its margin (a lower bound if it is right), and the network's output in words."""

    outcome: Outcome
    margin: float
    got: str
    error: float = 0.0
    """Upper bound on the error of a real answer."""


def doubling(fewest: int, most: int) -> Iterator[int]:
    """Yield numbers of bits to calculate with: ``fewest``, twice as many, and so on; ``most`` is the last.

    >>> list(doubling(64, 300)), list(doubling(64, 10))
    ([64, 128, 256, 300], [10])
    """
    bits = fewest
    while bits < most:
        yield bits
        bits *= 2
    yield most


def decide(
    examples: int, ask: Callable[[Sequence[int], int], Sequence[Sequence[Answer]]], *, fewest: int, most: int
) -> tuple[list[Sequence[Answer]], int]:
    """Decide every example's answers with as many bits as that takes; return them, and the largest number of bits.

    ``ask`` maps examples and a number of bits to each example's answers. It is called with all examples first, then
    with those in doubt. An answer that is in doubt with ``most`` bits stays undecided.
    """
    answers: list[Sequence[Answer]] = [()] * examples
    doubtful: Sequence[int] = range(examples)
    for bits in doubling(fewest, most):
        for example, row in zip(doubtful, ask(doubtful, bits), strict=True):
            answers[example] = row
        doubtful = [i for i in doubtful if any(answer.outcome == "undecided" for answer in answers[i])]
        if not doubtful:
            break
    return answers, bits


def summed_up(
    answers: Sequence[Sequence[Answer]],
    expected: Callable[[int, int], int | float | str],
    *,
    claim: Claim,
    method: str,
    seconds: float,
    positions: bool = False,
    note: str = "",
) -> Verdict:
    """Return the verdict on the answers of all examples; ``expected`` maps an example and a position to the label."""
    places = [(i, k) for i, row in enumerate(answers) for k in range(len(row))]
    codes = np.array([OUTCOMES.index(answer.outcome) for row in answers for answer in row], dtype=np.uint8)
    margin = min(answer.margin for row in answers for answer in row)

    def describe(answer: int) -> Counterexample:
        i, k = places[answer]
        return Counterexample(i, k if positions else None, expected(i, k), answers[i][k].got)

    return Verdict(
        claim=claim,
        method=method,
        seconds=seconds,
        margin=float(margin) if np.isfinite(margin) else None,
        note=note,
        **tallied(Outcomes(codes, describe)),
    )


def upward(value: float, digits: int) -> str:
    """Format an upper bound with ``digits`` digits, rounded up. A negative bound of a size becomes 0.

    >>> upward(0.6476532, 6), upward(1.234e-17, 2), upward(-1e-20, 2)
    ('0.647654', '1.3e-17', '0')
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(max(0.0, value))
    return f"{float(rounded):.{digits}g}"


def downward(value: float, digits: int) -> str:
    """Format a lower bound with ``digits`` digits, rounded down.

    >>> downward(0.49999, 3), downward(0.5, 3), downward(5e-324, 3)
    ('0.499', '0.5', '4.94e-324')
    """
    return f"{Context(prec=digits, rounding=ROUND_FLOOR).create_decimal_from_float(value).normalize():g}"
