"""The interface of a construction: a module defines one value ``CONSTRUCTION``, and the whole package knows it.

``byheart build``, ``bounds``, ``compare``, ``task check``, their help texts and pictures read nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from byheart.constructions.gadgets.demand import Setting
from byheart.constructions.plan import Plan
from byheart.constructions.theorem import Theorem
from byheart.errors import BadInput
from byheart.networks import Network
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import Task
from byheart.tasks.theorems import Hypothesis


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
