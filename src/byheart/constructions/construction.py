"""The interface of a construction: a module defines one value ``CONSTRUCTION``, and the whole package knows it.

``byheart build``, ``bounds``, ``compare``, ``task check``, their help texts and pictures read nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from byheart.constructions.gadgets.demand import Setting
from byheart.constructions.plan import Plan
from byheart.errors import BadInput
from byheart.networks import Network
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import Task
from byheart.tasks.random_tasks import RandomTask
from byheart.tasks.theorems import Hypothesis

SEQUENCES = RandomTask(examples=100, length=6, vocab=30, labels=4)
"""Sequences with a label each, the task of most theorems."""
MANY_SEQUENCES = RandomTask(examples=10_000, length=6, vocab=30, labels=4)
"""A hundred times as many, for which networks limited to 100 layers or bits are smaller than the plain network."""
TOKENS = RandomTask(examples=100, length=6, vocab=30, labels=4, seq_to_seq=True)
"""Sequences of the same sizes with a label for every token."""
PREFIXES = RandomTask(examples=30, length=6, vocab=2000, labels=4, seq_to_seq=True)
"""Sequences that begin with different tokens, so that every prefix may ask for a label of its own."""
VECTORS = RandomTask(examples=100, length=6, vocab=30, labels=4, dim=4)
"""Sequences of the same sizes with vectors as tokens."""
TOKEN_VECTORS = RandomTask(examples=100, length=6, vocab=30, labels=4, dim=4, seq_to_seq=True)
"""Sequences of vectors with a label for every token."""
POINTS = RandomTask(examples=100, length=1, vocab=None, labels=4, dim=4)
"""A hundred single vectors with a label each."""
QUERIES = RandomTask(examples=31, length=8, dim=16, query="own", real=True, target_dim=3)
"""Contexts of vectors with a query and three real numbers each."""
ASSOCIATIONS = RandomTask(examples=42, length=2, vocab=10, labels=10)
"""The 42 pairs of tokens that four dimensions and ten heads of attention hold."""
PAIRS = RandomTask(examples=400, length=2, vocab=20, labels=20, shape="every")
"""All pairs of tokens, more than attention can hold."""
BIGRAMS = RandomTask(examples=36, length=2, vocab=6, distribution=True, shape="every")
"""All pairs of tokens with a distribution of the next token each."""
DISTRIBUTIONS = RandomTask(examples=30, length=4, vocab=10, distribution=True)
"""Contexts with a distribution of the next token each."""


@dataclass(frozen=True)
class Theorem:
    """One statement of a paper."""

    name: str
    """Number of the theorem in its paper, such as "Theorem 1"."""
    says: str
    """Statement in one line, in our letters."""
    assumes: str
    """Assumptions about the data."""
    limits: str
    """Promises about the network: width, depth, heads, bits."""
    task: RandomTask | None = None
    """Task on which it is shown; None for statements that no single network shows."""
    stated: Mapping[str, object] | None = None
    """Settings that build the theorem's network; None: not built that way."""
    ours: Mapping[str, object] | None = None
    """Settings that build our own, smaller network; None: there is no other."""
    judged: Mapping[str, str] = field(default_factory=dict)
    """Options of certify and the choices that give their values, if less than every right answer is promised."""
    shown_by: str = ""
    """Command that shows it, if that is not ``byheart build``."""
    paper: str = ""
    """Authors and year, if they are not those of the construction that shows it."""
    differs: str = ""
    """Difference between the network built "as stated" and the paper's; empty: none that we know of."""

    def __post_init__(self) -> None:
        if (self.task is None) != (self.stated is None and self.ours is None) or (self.task is None) != bool(
            self.shown_by
        ):
            raise ValueError(f"{self.name}: expected settings to build with on a task, or a command that shows it")

    @property
    def forms(self) -> dict[str, Mapping[str, object]]:
        """Settings by form: "as stated" and "ours"."""
        ways = {"as stated": self.stated, "ours": self.ours}
        return {form: settings for form, settings in ways.items() if settings is not None}


def limited(assumes: str) -> tuple[Theorem, Theorem]:
    """Return the two theorems that trade parameters for fewer layers or fewer bits, for points and for sequences."""
    shown_on = "shown on token ids, which are a distance of 1 apart; the plain network takes 30,033 parameters"
    return (
        Theorem(
            "depth",
            says="with depth L ≤ √N, Õ(N/L) parameters",
            assumes=assumes,
            limits="depth L",
            task=MANY_SEQUENCES,
            stated={"depth": 100},
            differs=shown_on,
        ),
        Theorem(
            "bits",
            says="with b ≤ √N bits per weight, Õ(N/b) parameters",
            assumes=assumes,
            limits="b bits per weight",
            task=MANY_SEQUENCES,
            stated={"bits": 100},
            differs=shown_on,
        ),
    )


def flags(settings: Mapping[str, object]) -> str:
    """Return settings as the command line takes them.

    >>> flags({"width": "constant", "model_dim": 10, "positions": True})
    '--width constant --model-dim 10 --positions'
    """
    words = []
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        words.append(flag if value is True else f"{flag} {value}")
    return " ".join(words)


@dataclass(frozen=True, eq=False)
class Made:
    """The result of a construction's ``build``: the network, the plan that it followed, and its choices by name."""

    network: Network
    plan: Plan
    """Shapes of all tensors, computed before the network was built, from the counted demand of the task alone."""
    chosen: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class NoSettings:
    """Settings of a construction that leaves nothing to choose."""


@dataclass(frozen=True)
class Reading:
    """Settings for how the network reads a sequence."""

    positions: bool = False
    """Give every position a code of its own, so that order matters."""


@dataclass(frozen=True)
class VectorReading:
    """Settings for how the network reads vectors."""

    read: Literal["grid", "cells"] = "grid"
    """Read vectors as exact floats (grid), or as (r, δ)-separated reals, right near every token (cells)."""
    radius: float | None = None
    """With --read cells: distance from a token within which answers are right (default: the most that two directions
    allow)."""


@dataclass(frozen=True)
class SequenceReading(VectorReading, Reading):
    """Settings for how the network reads a sequence and the vectors in it."""


RESERVED = ("task", "out", "seed", "construction", "json")
"""Names of flags that every ``byheart build`` has, and no setting may have."""


def _no_plan(size: Size, setting: Setting, _: object) -> Plan:
    raise BadInput(f"no plan for {setting} tasks of {size.examples} examples")


@dataclass(frozen=True, eq=False)  # a construction is equal to itself only: functions have no other equality
class Construction:
    """A construction as the rest of the package sees it."""

    name: str
    """Name of the construction everywhere, such as "kim-2023"."""
    summary: str
    """Line for help texts, without a full stop."""
    build: Callable[[Task, Any, np.random.Generator, Report | None], Made]
    """Function of task, settings, random generator and progress report; BadInput for tasks outside the hypotheses."""
    paper: str = ""
    """Authors and year; empty if no paper states the construction."""
    kind: Literal["exact", "softmax"] = "exact"
    """Kind of network that it builds."""
    settings: type[Any] = NoSettings
    """Frozen dataclass with a default for every field; its fields are the command line's flags."""
    covers: tuple[Setting, ...] = ()
    """Settings of the theory in which it memorizes tasks of any size."""
    plan: Callable[[Size, Setting, Any], Plan] = _no_plan
    """Function that plans the hardest task of a size in a covered setting; BadInput for sizes outside its range."""
    orders: Mapping[str, str] = field(default_factory=dict)
    """Published or claimed order of the number of parameters, in words, by kind of task."""
    hypotheses: Callable[[Task, Any], list[Hypothesis]] | None = None
    """Function from task and settings to the theorem's hypotheses with verdicts; None if there is no theorem."""
    theorems: tuple[Theorem, ...] = ()
    """Statements that the construction runs, for ``byheart theorems``."""
    colour: str = "#222222"
    """Colour of its curve in pictures."""
    dash: tuple[int, tuple[int, ...]] | None = None
    """Dash pattern of its curve in pictures, if it may coincide with another curve; None: solid."""
    flags: str = ""
    """Flags for the example in its help text."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or self.name.startswith("-") or self.name.endswith(".py"):
            raise BadInput(f"a construction is called {self.name!r}; expected a name such as 'mine-2026'")
        settings = fields(self.settings) if is_dataclass(self.settings) else None
        if settings is None or any(setting.default is MISSING is setting.default_factory for setting in settings):
            raise BadInput(f"{self.name}: expected settings to be a dataclass with a default for every field")
        reserved = [name for setting in settings if (name := setting.name) in RESERVED]
        if reserved:
            raise BadInput(f"{self.name}: a setting is called {reserved[0]}, as a flag of every build; rename it")

    def settings_with(self, **choices: object) -> Any:
        """Return default settings with those ``choices`` that the construction leaves open (such as ``positions``)."""
        return self.settings(**{name: value for name, value in choices.items() if self.leaves_open(name)})

    def leaves_open(self, setting: str) -> bool:
        """Return True if the construction has a setting of that name."""
        return setting in self.settings.__dataclass_fields__

    def check(self, task: Task, **options: object) -> list[Hypothesis]:
        """Check the hypotheses of the theorem on ``task``, in the form that the settings name.

        >>> from byheart.constructions import find
        >>> from byheart.tasks import NextToken
        >>> task = NextToken(tokens=[[0, 1], [1, 0], [2, 2]], labels=[0, 1, 1])
        >>> for hypothesis in find("dana-2025").check(task):
        ...     print(f"{hypothesis.verdict}: {hypothesis.name}: {hypothesis.found}")
        holds: one answer to every context: no two equal contexts ask for different answers
        holds: at least two tokens in a context: n = 2
        holds: contexts end in at least d different tokens: in 3; all of H·d_h + d may be had up to d = 3
        holds: d_h = 1, or the features of a draw have rank N: 1 heads of d_h = 2: rank 3 for almost all weights
        """
        settings = settings_from(self.settings, self.name, None, options)
        if self.hypotheses is None:
            raise BadInput(f"{self.name} has no hypotheses beyond those that its build checks")
        return self.hypotheses(task, settings)


def settings_from(kind: type[Any], name: str, settings: object, options: Mapping[str, object]) -> Any:
    """Return the settings of ``name``, from ``settings`` as a whole or from single ``options``.

    Unknown names and values that a ``Literal`` does not allow raise BadInput.
    """
    if settings is not None and options:
        raise BadInput(f"settings are given twice: as a whole, and {', '.join(options)}; expected one of the two")
    names = [field.name for field in fields(kind)]
    if unknown := [key for key in options if key not in names]:
        has = f"; it has {', '.join(names)}" if names else ""
        raise BadInput(f"{name} has no setting called {unknown[0]!r}{has}")
    chosen = kind(**options) if settings is None else settings
    if not isinstance(chosen, kind):
        expected = f"{kind.__module__}.{kind.__qualname__}"
        raise BadInput(f"{name}: expected settings of type {expected}; got {type(settings).__name__}")
    for key, hint in get_type_hints(kind).items():
        value = getattr(chosen, key)
        if get_origin(hint) is Literal and value not in get_args(hint):
            raise BadInput(f"{key} is {value!r}; expected one of {', '.join(map(str, get_args(hint)))}")
    return chosen
