"""What a construction is: one module, one value ``CONSTRUCTION``, and the whole package knows it.

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
    """What a construction hands back: the network, the plan that it followed, and what was chosen on the way."""

    network: Network
    plan: Plan
    """Worked out before the network was built, from the counted demand of the task alone."""
    chosen: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class NoSettings:
    """Nothing is left to choose."""


@dataclass(frozen=True)
class Reading:
    """How the network reads a sequence."""

    positions: bool = False
    """Give every position a code of its own, so that order matters."""


@dataclass(frozen=True)
class VectorReading:
    """How the network reads vectors."""

    read: Literal["grid", "cells"] = "grid"
    """Vectors: as the floats that they are (grid), or as (r, δ)-separated reals, right near every token (cells)."""
    radius: float | None = None
    """With --read cells: right for all vectors within this distance of a token (default: as two directions allow)."""


@dataclass(frozen=True)
class SequenceReading(VectorReading, Reading):
    """How the network reads a sequence, and vectors in it."""


def _no_plan(size: Size, setting: Setting, _: object) -> Plan:
    raise BadInput(f"no plan for {setting} tasks of {size.examples} examples")


@dataclass(frozen=True, eq=False)  # a construction is equal to itself only: functions have no other equality
class Construction:
    """A construction as the rest of the package sees it."""

    name: str
    """What it is called everywhere: "kim-2023"."""
    summary: str
    """One line for help texts, without a full stop."""
    build: Callable[[Task, Any, np.random.Generator, Report | None], Made]
    """Task, settings, randomness and progress report → network; BadInput for tasks outside the hypotheses."""
    paper: str = ""
    """Authors and year; empty for what is nobody's theorem."""
    kind: Literal["exact", "softmax"] = "exact"
    """Which kind of network it builds."""
    settings: type[Any] = NoSettings
    """A frozen dataclass with a default for every field; the command line's flags are its fields."""
    covers: tuple[Setting, ...] = ()
    """The settings of the theory in which it memorizes tasks of any size."""
    plan: Callable[[Size, Setting, Any], Plan] = _no_plan
    """The plan for the hardest task of a size, in a setting that it covers; BadInput for sizes that it is not for."""
    orders: Mapping[str, str] = field(default_factory=dict)
    """What is published (or claimed) about the number of parameters, in words, by kind of task."""
    hypotheses: Callable[[Task, Any], list[Hypothesis]] | None = None
    """Task and settings → the theorem's hypotheses, each with a verdict; None if there is no theorem to check."""
    theorems: tuple[Theorem, ...] = ()
    """The statements that it runs, for ``byheart theorems``."""
    colour: str = "#222222"
    """The colour of its curve in pictures."""
    dash: tuple[int, tuple[int, ...]] | None = None
    """The dashes of its curve in pictures, where it may coincide with another; None: solid."""
    flags: str = ""
    """Flags for the example in its help text."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or self.name.startswith("-") or self.name.endswith(".py"):
            raise BadInput(f"a construction is called {self.name!r}; expected a name such as 'mine-2026'")
        known = fields(self.settings) if is_dataclass(self.settings) else None
        if known is None or any(one.default is MISSING is one.default_factory for one in known):
            raise BadInput(f"{self.name}: expected settings to be a dataclass with a default for every field")
        taken = [one.name for one in known if one.name in ("task", "out", "seed", "construction", "json")]
        if taken:
            raise BadInput(
                f"{self.name}: a setting is called {taken[0]}, as a flag of every build; choose another name"
            )

    def settings_with(self, **wanted: object) -> Any:
        """Default settings but for those ``wanted``, where the construction leaves them open (``positions``, say)."""
        return self.settings(**{name: value for name, value in wanted.items() if self.leaves_open(name)})

    def leaves_open(self, setting: str) -> bool:
        """Whether it has a setting of that name."""
        return setting in self.settings.__dataclass_fields__

    def check(self, task: Task, **given: object) -> list[Hypothesis]:
        """The hypotheses of its theorem on ``task``, in the form that the settings name.

        >>> from byheart.constructions import find
        >>> from byheart.tasks import NextToken
        >>> task = NextToken(tokens=[[0, 1], [1, 0], [2, 2]], labels=[0, 1, 1])
        >>> for hypothesis in find("dana-2025").check(task):
        ...     print(f"{hypothesis.verdict}: {hypothesis.name}: {hypothesis.found}")
        holds: one answer to every context: no two equal contexts ask for different answers
        holds: at least two tokens in a context: n = 2
        holds: contexts end in at least d different tokens: in 3; all of H·d_h + d may be had up to d = 3
        """
        settings = settings_from(self.settings, self.name, None, given)
        if self.hypotheses is None:
            raise BadInput(f"{self.name} has no hypotheses beyond those that its build checks")
        return self.hypotheses(task, settings)


def settings_from(kind: type[Any], name: str, settings: object, given: Mapping[str, object]) -> Any:
    """The settings of ``name``, given all together or one by one; BadInput for unknown ones, and for wrong words."""
    if settings is not None and given:
        raise BadInput(f"settings are given twice: as a whole, and {', '.join(given)}; expected one of the two")
    names = [known.name for known in fields(kind)]
    if unknown := [key for key in given if key not in names]:
        has = f"; it has {', '.join(names)}" if names else ""
        raise BadInput(f"{name} has no setting called {unknown[0]!r}{has}")
    chosen = kind(**given) if settings is None else settings
    if not isinstance(chosen, kind):
        wanted = f"{kind.__module__}.{kind.__qualname__}"
        raise BadInput(f"{name}: expected settings of type {wanted}; got {type(settings).__name__}")
    for key, hint in get_type_hints(kind).items():
        value = getattr(chosen, key)
        if get_origin(hint) is Literal and value not in get_args(hint):
            raise BadInput(f"{key} is {value!r}; expected one of {', '.join(map(str, get_args(hint)))}")
    return chosen
