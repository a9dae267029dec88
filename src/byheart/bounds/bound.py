"""Bounds: parameters as a function of a task's sizes, with the source and the degree of trust.

Four kinds, never to be mixed in one column:

- *proved*: an inequality with explicit constants; the number is a count of parameters.
- *order*: the paper gives O, Õ, Ω or Θ only. The number is the expression inside it, with constant 1 (and, for Õ,
  without its logarithms). It shows how the bound grows. It is never a count and never to be compared with one.
- *fitted*: a curve through measurements.
- *measured*: a number that training reached.

A :class:`Bound` is about parameters. A paper's result about something else, such as a width or a prompt, or without
any number, is a :class:`Statement`, and is listed in a separate table.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from byheart.errors import BadInput
from byheart.sizes import Size

Setting = Literal["next-token", "seq-to-seq", "next-token-distribution", "points", "any"]
Side = Literal["upper", "lower"]
Kind = Literal["proved", "order", "fitted", "measured"]
Verdict = Literal["holds", "fails", "open"]
Condition: TypeAlias = Callable[..., bool | None]
"""Function of sizes and letters that returns True or False for a hypothesis, or None if they do not decide it."""


def _check_positive(fields: Mapping[str, float | None]) -> None:
    for name, value in fields.items():
        if value is not None and not value > 0:
            raise BadInput(f"{name} is {value}; expected a positive number")


@dataclass(frozen=True)
class Letters:
    """Quantities that some bounds need beyond the sizes of the task. All are optional: a bound names a missing one.

    >>> Letters(radius=1.0, separation=0.1).separation
    0.1
    >>> Letters(robustness=1.5)
    Traceback (most recent call last):
    byheart.errors.BadInput: robustness is 1.5; expected a number between 0 and 1, both excluded
    """

    model_dim: int | None = None
    """d: embedding dimension, where the model chooses it (tokens are ids)."""
    head_dim: int | None = None
    """d_h: rows of a head's query and key maps."""
    value_dim: int | None = None
    """d_v: real numbers in an answer, where it is a vector."""
    bits: int | None = None
    """b: bits that store one parameter."""
    radius: float | None = None
    """r: largest norm of a token (or point)."""
    separation: float | None = None
    """δ: smallest distance between two different tokens (or points)."""
    depth: int | None = None
    """L: layers of a feed-forward network."""
    robustness: float | None = None
    """ρ: radius around a point within which answers must be right, divided by half the separation; between 0 and 1."""
    relations: int | None = None
    """R: relations per subject, if examples are facts."""

    def __post_init__(self) -> None:
        _check_positive(asdict(self))
        if self.robustness is not None and self.robustness >= 1:
            raise BadInput(f"robustness is {self.robustness}; expected a number between 0 and 1, both excluded")
        if self.radius is not None and self.separation is not None and self.separation > 2 * self.radius:
            why = "no two points within the radius are farther apart"
            raise BadInput(
                f"separation is {self.separation} and radius is {self.radius}; expected a separation of at most twice "
                f"the radius: {why}"
            )


NO_LETTERS = Letters()


@dataclass(frozen=True)
class BoundAnswer:
    """A bound's number for a task, or the reason why there is none.

    >>> BoundAnswer(None, reason="needs: separation").reason
    'needs: separation'
    """

    parameters: float | None
    reason: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)  # equal to itself only: functions have no other equality
class PaperResult:
    """One result of a paper, in our letters.

    The names of the formula's arguments are the fields of :class:`~byheart.sizes.Size` and :class:`Letters` that it
    needs; an argument with a default is a choice that the theorem leaves open. The formula raises
    :class:`~byheart.errors.BadInput` for sizes outside those hypotheses on which the number depends.
    """

    name: str
    """Identifier, such as "kim-2023-seq-to-seq"."""
    paper: str
    """Authors and year, or the argument's name."""
    source: str
    """Title, venue and, if known, number of the theorem."""
    setting: Setting
    """Kind of task that is memorized."""
    model: str
    """Description of the networks that the result is about."""
    kind: Kind
    """Degree of trust: see the head of this module."""
    hypotheses: tuple[str, ...]
    """Assumptions of the theorem."""
    formula: Callable[..., float] | None = None

    def answer(self, size: Size, letters: Letters = NO_LETTERS) -> BoundAnswer:
        """Return the number, or the reason why there is none: a missing letter, or sizes outside the hypotheses."""
        if self.formula is None:
            return BoundAnswer(None, "no number")
        values = _values(size, letters)
        missing = [name for name in _needs(self.formula) if name not in values]
        if missing:
            return BoundAnswer(None, f"needs: {', '.join(missing)}")
        try:
            return BoundAnswer(_call(self.formula, values))
        except BadInput as error:
            return BoundAnswer(None, f"outside: {error}")


@dataclass(frozen=True, eq=False, kw_only=True)
class Bound(PaperResult):
    """One side of one theorem about the number of parameters.

    For kind "order" the number is the expression inside O(·) or Ω(·) with constant 1. It gives a slope, never a count.

    >>> import math
    >>> cube = Bound(
    ...     name="cube", paper="Nobody 2000", source="An example", setting="points", model="none", side="upper",
    ...     kind="proved", expression="⌈d/δ⌉", hypotheses=("δ < 1", "no gravity"),
    ...     formula=lambda dim, separation: math.ceil(dim / separation),
    ...     conditions={"δ < 1": lambda separation: separation < 1},
    ... )
    >>> size = Size(examples=10, length=1, labels=2, vocab=10, dim=3)
    >>> cube.needs
    ('dim', 'separation')
    >>> cube.answer(size)
    BoundAnswer(parameters=None, reason='needs: separation')
    >>> cube.answer(size, Letters(separation=0.5)).parameters
    6
    >>> cube.verdicts(size, Letters(separation=0.5))
    {'δ < 1': 'holds', 'no gravity': 'open'}
    """

    side: Side
    """Upper bounds: parameters that suffice. Lower bounds: parameters that are needed."""
    expression: str
    """The formula for people."""
    formula: Callable[..., float]
    paper_letters: Mapping[str, str] = field(default_factory=dict)
    """The paper's letters in ours, where they differ or need an explanation."""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    """Functions of sizes and letters that decide some of the hypotheses. They do not see the data (ranks, separation,
    distinctness)."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the sizes and letters that the formula requires."""
        return _needs(self.formula)

    def verdicts(self, size: Size, letters: Letters = NO_LETTERS) -> dict[str, Verdict]:
        """Decide every hypothesis: it holds, it fails, or it is open, because sizes and letters do not decide it."""
        values = _values(size, letters)

        def verdict(condition: Condition | None) -> Verdict:
            if condition is None or any(name not in values for name in _needs(condition)):
                return "open"
            holds = _call(condition, values)
            return "open" if holds is None else "holds" if holds else "fails"

        return {name: verdict(self.conditions.get(name)) for name in self.hypotheses}


@dataclass(frozen=True, eq=False, kw_only=True)
class Statement(PaperResult):
    """A paper's result about something other than parameters, or without a number.

    >>> deep = Statement(
    ...     name="deep", paper="Nobody 2000", source="An example", setting="points", model="none", kind="order",
    ...     says="a depth of Ω(N) is needed", counts="depth", hypotheses=("no gravity",),
    ...     formula=lambda examples: examples,
    ... )
    >>> deep.answer(Size(examples=10, length=1, labels=2, vocab=10)).parameters
    10
    """

    says: str
    counts: str = ""
    """Quantity that the formula gives, such as "width"; empty if there is no formula."""


def _values(size: Size, letters: Letters) -> dict[str, Any]:
    sizes = asdict(size)
    _check_positive(sizes)
    return {name: value for name, value in (sizes | asdict(letters)).items() if value is not None}


def _needs(function: Callable[..., object]) -> tuple[str, ...]:
    arguments = inspect.signature(function).parameters.values()
    return tuple(argument.name for argument in arguments if argument.default is argument.empty)


def _call(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    """Call ``function`` with the values that it has arguments for."""
    return function(**{name: values[name] for name in inspect.signature(function).parameters if name in values})


def may_differ(examples: int, length: int, vocab: int) -> bool | None:
    """Decide whether N sequences of n tokens can all differ: False if ω^n < N, True if N = 1, otherwise None.

    >>> may_differ(examples=9, length=3, vocab=2), may_differ(examples=8, length=3, vocab=2)
    (False, None)
    """
    if examples == 1:
        return True
    # With two or more tokens, sequences as long as N has bits are always enough.
    return False if vocab ** min(length, examples.bit_length()) < examples else None
