"""What a bound is: parameters as a function of a task's sizes, with its source and with how far it may be trusted.

Four kinds, never to be mixed in one column:

- *proved*: an inequality with explicit constants; the number is a count of parameters.
- *order*: the paper gives O, Õ, Ω or Θ only. The number is the expression inside it, with constant 1 (and, for Õ,
  without its logarithms). It shows how the bound grows. It is never a count and never to be compared with one.
- *fitted*: a curve through measurements.
- *measured*: what training reached.

A :class:`Bound` is about parameters. What a paper says of something else, of a width or of a prompt, or without any
number, is a :class:`Statement`, and stands in a table of its own.
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
"""Whether sizes and letters make a hypothesis true or false; None where they do not decide."""


def _check_positive(fields: Mapping[str, float | None]) -> None:
    for name, value in fields.items():
        if value is not None and not value > 0:
            raise BadInput(f"{name} is {value}; expected a positive number")


@dataclass(frozen=True)
class Letters:
    """What some bounds need beyond the sizes of the task. All are optional: a bound says which one it lacks.

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
    """ρ: radius that must be right around a point, over half the separation; between 0 and 1."""
    relations: int | None = None
    """R: relations that every subject has, where examples are facts."""

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
    """What a bound says about a task: a number, or none and the reason.

    >>> BoundAnswer(None, reason="needs: separation").reason
    'needs: separation'
    """

    parameters: float | None
    reason: str = ""


@dataclass(frozen=True, eq=False)  # a bound is equal to itself only: functions have no other equality
class Bound:
    """One side of one theorem.

    The names of the formula's arguments are the fields of :class:`~byheart.sizes.Size` and :class:`Letters` that it
    needs; an argument with a default is a choice that the theorem leaves open. The formula raises
    :class:`~byheart.errors.BadInput` for sizes outside the theorem's hypotheses, as far as it needs them. What sizes
    say about each hypothesis :meth:`verdicts` answers; the data (ranks, separation, distinctness) are not seen here.

    =============  =================================================================================================
    field          meaning
    =============  =================================================================================================
    name           identifier
    paper          authors and year, or the argument's name
    source         title and venue, theorem where it is known
    setting        what is memorized
    model          which networks it is about, in words
    side           "upper": parameters that suffice; "lower": parameters that are needed
    kind           see the head of this module
    expression     the formula for people, in our letters
    hypotheses     what has to be true
    formula        the same formula for programs
    paper_letters  from the paper's letters to ours, where they differ or need a word
    told_by_sizes  conditions on sizes and letters that decide some of the hypotheses
    =============  =================================================================================================

    >>> import math
    >>> cube = Bound(
    ...     name="cube", paper="Nobody 2000", source="An example", setting="points", model="none", side="upper",
    ...     kind="proved", expression="⌈d/δ⌉", hypotheses=("δ < 1", "no gravity"),
    ...     formula=lambda dim, separation: math.ceil(dim / separation),
    ...     told_by_sizes={"δ < 1": lambda separation: separation < 1},
    ... )
    >>> size = Size(examples=10, length=1, labels=2, vocab=10, dim=3)
    >>> cube.needs
    ('dim', 'separation')
    >>> cube.answer(size)
    BoundAnswer(parameters=None, reason='needs: separation')
    >>> cube.parameters(size, Letters(separation=0.5))
    6
    >>> cube.verdicts(size, Letters(separation=0.5))
    {'δ < 1': 'holds', 'no gravity': 'open'}
    """

    name: str
    paper: str
    source: str
    setting: Setting
    model: str
    side: Side
    kind: Kind
    expression: str
    hypotheses: tuple[str, ...]
    formula: Callable[..., float]
    paper_letters: Mapping[str, str] = field(default_factory=dict)
    told_by_sizes: Mapping[str, Condition] = field(default_factory=dict)

    @property
    def needs(self) -> tuple[str, ...]:
        """The sizes and letters without which there is no number."""
        return _needs(self.formula)

    def answer(self, size: Size, letters: Letters = NO_LETTERS) -> BoundAnswer:
        """The number, or why there is none: a letter is missing, or the sizes are outside the hypotheses."""
        return _answer(self.formula, size, letters)

    def verdicts(self, size: Size, letters: Letters = NO_LETTERS) -> dict[str, Verdict]:
        """Every hypothesis: it holds, it fails, or it is open: the sizes and the letters given do not decide."""
        given = _given(size, letters)

        def verdict(condition: Condition | None) -> Verdict:
            if condition is None or any(name not in given for name in _needs(condition)):
                return "open"
            true = _call(condition, given)
            return "open" if true is None else "holds" if true else "fails"

        return {name: verdict(self.told_by_sizes.get(name)) for name in self.hypotheses}

    def parameters(self, size: Size, letters: Letters = NO_LETTERS) -> float | None:
        """The number of parameters, or ``None``; :meth:`answer` says why.

        For kind "order" this is the expression inside O(·) or Ω(·) with constant 1, to draw a slope with: it is never
        to be read as a count.
        """
        return self.answer(size, letters).parameters


@dataclass(frozen=True, eq=False)
class Statement:
    """What a paper says of something else than parameters, or without a number; ``kind`` as of a bound.

    >>> deep = Statement(
    ...     name="deep", paper="Nobody 2000", source="An example", setting="points", model="none", kind="order",
    ...     says="a depth of Ω(N) is needed", counts="depth", hypotheses=("no gravity",),
    ...     formula=lambda examples: examples,
    ... )
    >>> deep.answer(Size(examples=10, length=1, labels=2, vocab=10)).parameters
    10
    """

    name: str
    paper: str
    source: str
    setting: Setting
    model: str
    kind: Kind
    says: str
    hypotheses: tuple[str, ...]
    counts: str = ""
    """What the number counts: "width", …; empty where there is none."""
    formula: Callable[..., float] | None = None

    def answer(self, size: Size, letters: Letters = NO_LETTERS) -> BoundAnswer:
        """The number of what is counted, which is not parameters, or why there is none."""
        return BoundAnswer(None, "no number") if self.formula is None else _answer(self.formula, size, letters)


def _answer(formula: Callable[..., float], size: Size, letters: Letters) -> BoundAnswer:
    given = _given(size, letters)
    missing = [name for name in _needs(formula) if name not in given]
    if missing:
        return BoundAnswer(None, f"needs: {', '.join(missing)}")
    try:
        return BoundAnswer(_call(formula, given))
    except BadInput as outside:
        return BoundAnswer(None, f"outside: {outside}")


def _given(size: Size, letters: Letters) -> dict[str, Any]:
    sizes = asdict(size)
    _check_positive(sizes)
    return {name: value for name, value in (sizes | asdict(letters)).items() if value is not None}


def _needs(function: Callable[..., object]) -> tuple[str, ...]:
    arguments = inspect.signature(function).parameters.values()
    return tuple(argument.name for argument in arguments if argument.default is argument.empty)


def _call(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    """The function's value at those of the given numbers that it has arguments for."""
    return function(**{name: given[name] for name in inspect.signature(function).parameters if name in given})


def may_differ(examples: int, length: int, vocab: int) -> bool | None:
    """That N sequences of n tokens differ: false if there are fewer than N, ω^n < N; true if N = 1.

    >>> may_differ(examples=9, length=3, vocab=2), may_differ(examples=8, length=3, vocab=2)
    (False, None)
    """
    if examples == 1:
        return True
    # With two tokens or more, as many places as N has bits are always enough.
    return False if vocab ** min(length, examples.bit_length()) < examples else None
