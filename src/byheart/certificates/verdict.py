"""What a judge found: one type for all of them."""

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
"""Outcomes of answers, one after the other: places in ``OUTCOMES``."""


@dataclass(frozen=True)
class Counterexample:
    """A question that was not answered right: which example, at which position (seq-to-seq), expected and got."""

    example: int
    position: int | None
    expected: int | float | str
    got: str
    where: str = ""
    """In whose file that is asked: of a fact, its line, and how much of it was said."""

    def __str__(self) -> str:
        place = f"example {self.example}" + ("" if self.position is None else f", position {self.position}")
        place += f" ({self.where})" if self.where else ""
        return f"{place}: expected {self.expected}, got {self.got}"


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What came out for every answer, and what is to be told of one that is not right."""

    codes: Codes
    told: Callable[[int], Counterexample]
    """What is told of the answer with this number."""

    @property
    def others(self) -> Iterator[tuple[Outcome, Counterexample]]:
        """All answers that are not known to be right, one after the other."""
        before = 0
        for part in chunks(self.codes):
            for i in np.flatnonzero(part).tolist():
                yield OUTCOMES[part[i]], self.told(before + i)
            before += len(part)


@dataclass(frozen=True)
class Verdict:
    """What was claimed, how it was checked, and what came out."""

    claim: Claim
    method: str
    checked: int
    """Answers that were looked at: all of them."""
    errors: int
    """Answers that are wrong."""
    seconds: float
    margin: float | None = None
    """By how much the nearest answer is right, at least; negative or None if not all are, None if that is huge."""
    counterexample: Counterexample | None = None
    """The first answer that is not known to be right."""
    undecided: int = 0
    """Answers that could be right or wrong: the bits allowed did not tell, or more bits tell otherwise."""
    note: str = ""
    """What else was found, in words."""
    outcomes: Outcomes | None = field(default=None, repr=False, compare=False)
    """Every answer's outcome; None if all are judged together."""

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
        """Answers that are proved to be right."""
        return self.checked - self.errors - self.undecided

    @property
    def certified(self) -> bool:
        """Whether every answer is proved to be right, or as many as have to be; of a count, whether it is proved."""
        if self.claim.exactly:
            return self.checked > 0 and not self.undecided
        least = self.checked if self.claim.at_least is None else self.claim.at_least
        return self.checked > 0 and self.right >= least

    def as_json(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        values = {
            part.name: getattr(self, part.name) for part in fields(self) if part.name not in ("claim", "outcomes")
        }
        claim = {name: getattr(self, name) for name in ("tolerance", "at_least", "radius", "unit")}
        counterexample = self.counterexample and vars(self.counterexample)
        more = {"counterexample": counterexample, "counted": self.counted, "certified": self.certified}
        return {"statement": self.statement, **values, **claim, **more}


def tallied(outcomes: Outcomes) -> dict[str, Any]:
    """What a verdict says of these outcomes, by the names of its fields."""
    times = count_ids(outcomes.codes, len(OUTCOMES)).tolist()
    return {
        "checked": len(outcomes.codes),
        "errors": times[WRONG],
        "undecided": times[UNDECIDED],
        "counterexample": next((told for _, told in outcomes.others), None),
        "outcomes": outcomes,
    }


@dataclass(frozen=True)
class Answer:
    """One answer: what came out, by which margin (a lower bound, where it is right), and what was got."""

    outcome: Outcome
    margin: float
    got: str
    error: float = 0.0
    """An upper bound on how far a real number was missed."""


def doubling(fewest: int, most: int) -> Iterator[int]:
    """Bits to calculate with: ``fewest``, twice as many, and so on; ``most`` is the last.

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
    """Every example's answers, with as many bits as it takes, and the most bits that it took.

    ``ask`` is called with examples and bits, first with all examples, then with those in doubt; it gives the answers
    that each of them has. What is in doubt with ``most`` bits stays undecided.
    """
    answers: list[Sequence[Answer]] = [()] * examples
    doubtful: Sequence[int] = range(examples)
    for bits in doubling(fewest, most):
        for example, found in zip(doubtful, ask(doubtful, bits), strict=True):
            answers[example] = found
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
    """The verdict over all answers of all examples; ``expected`` says what is right at an example and a position."""
    places = [(i, k) for i, row in enumerate(answers) for k in range(len(row))]
    codes = np.array([OUTCOMES.index(answer.outcome) for row in answers for answer in row], dtype=np.uint8)
    margin = min(answer.margin for row in answers for answer in row)

    def told(answer: int) -> Counterexample:
        i, k = places[answer]
        return Counterexample(i, k if positions else None, expected(i, k), answers[i][k].got)

    return Verdict(
        claim=claim,
        method=method,
        seconds=seconds,
        margin=float(margin) if np.isfinite(margin) else None,
        note=note,
        **tallied(Outcomes(codes, told)),
    )


def upward(value: float, digits: int) -> str:
    """An upper bound in so many digits, rounded up; what only rounding makes negative is 0.

    >>> upward(0.6476532, 6), upward(1.234e-17, 2), upward(-1e-20, 2)
    ('0.647654', '1.3e-17', '0')
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(max(0.0, value))
    return f"{float(rounded):.{digits}g}"


def downward(value: float, digits: int) -> str:
    """A lower bound in so many digits, rounded down.

    >>> downward(0.49999, 3), downward(0.5, 3), downward(5e-324, 3)
    ('0.499', '0.5', '4.94e-324')
    """
    return f"{Context(prec=digits, rounding=ROUND_FLOOR).create_decimal_from_float(value).normalize():g}"
