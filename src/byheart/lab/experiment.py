"""Experiments: lists of configs for `byheart lab run`, and how they are grouped and trained.

A config is a frozen dataclass of plain values (numbers, strings, booleans, None, tuples of them), which JSON can hold.
Its key, a hash of class and values, names its results everywhere.

A key is computed from the names that classes and settings had at first. So old runs, which are read under today's
names, can be resumed, and shipped results can be reproduced: the seeds of Dana's models depend on their keys.
"""

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from reprlib import repr as shortened
from typing import Any, ClassVar, Literal, Protocol, get_args

from byheart.errors import BadInput
from byheart.lab.member import Member, TrainingOutcome
from byheart.progress import Report
from byheart.tasks import Task

Scale = Literal["smoke", "short", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)

Row = dict[str, float | int | str | None]
KIND = "KIND"
"""Attribute of a renamed class: its name when keys and fingerprints were first computed."""
_TODAY = {"dim": "model_dim", "mlp_dim": "hidden"}
_FORMER = {today: former for former, today in _TODAY.items()}


class Config(Protocol):
    """Any frozen dataclass of plain values."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Prepared:
    """One config, ready to be trained and saved: the member, a function for its metrics, and its task."""

    member: Member
    metrics: Callable[[TrainingOutcome], Row]
    task: Task
    """The inputs and answers on which accuracy and loss are measured, as a task for networks."""


Groups = Callable[[Sequence[Any]], list[list[Any]]]
Work = Callable[[Sequence[Any], str, Report | None], list[Row]]
Prepare = Callable[[Any], Prepared]


@dataclass(frozen=True)
class Experiment:
    """A sweep over configs.

    ``groups`` cuts configs into jobs. ``work`` trains the configs of a job on a device, reports its progress, and
    returns their metrics. Both may receive only some of the configs, because a resumed run passes those that are left.
    ``prepare`` is for networks that are saved (:mod:`byheart.lab.saving`).
    """

    name: str
    scale: str
    configs: tuple[Any, ...]
    groups: Groups
    work: Work
    prepare: Prepare | None = None

    def __post_init__(self) -> None:
        if not self.configs:
            raise BadInput(f"{self.name} has no configs; expected at least one")
        for config in self.configs:
            if not is_dataclass(config) or isinstance(config, type):
                raise BadInput(f"{self.name}: {config!r} is not a config; expected a dataclass of plain values")
            for name, value in asdict(config).items():
                if not is_plain(value):
                    expected = "finite numbers that 64 bits hold, texts, True, False, None, and tuples of them"
                    raise BadInput(f"{self.name}: {name} is {shortened(value)} in a config; expected {expected}")
        keys = {key(config): config for config in self.configs}
        if len(keys) != len(self.configs):
            raise BadInput(
                f"{self.name}: {len(self.configs) - len(keys)} configs are there twice; expected different ones"
            )


def grouped(configs: Sequence[Any], common: Callable[[Any], Hashable]) -> list[list[Any]]:
    """Return groups of configs with equal values of ``common``, in the order of their first members.

    >>> grouped([3, 5, 4, 7], lambda number: number % 2)
    [[3, 5, 7], [4]]
    """
    groups: dict[Hashable, list[Any]] = {}
    for config in configs:
        groups.setdefault(common(config), []).append(config)
    return list(groups.values())


def is_plain(value: object) -> bool:
    """Return True if JSON, as Byheart reads it, preserves a value; tuples come back as lists.

    >>> is_plain((0.5, "x", None)), is_plain(float("nan")), is_plain(2**63), is_plain({})
    (True, False, False, False)
    """
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return value is None or (
        isinstance(value, int | float)
        and math.isfinite(value)
        and (isinstance(value, float) or -(2**63) <= value < 2**63)
    )


def to_json(config: Config) -> dict[str, Any]:
    """Return the config as JSON has it, with tuples as lists."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    return values


def key(config: Config) -> str:
    """Return sixteen hexadecimal digits that depend only on the class and the values of a config."""
    text = json.dumps([kind_of(config), formerly(to_json(config))], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def kind_of(value: object) -> str:
    """Return the name of a value's class, or its former name if the class states one as ``KIND``.

    >>> kind_of(7)
    'int'
    """
    return str(getattr(type(value), KIND, type(value).__name__))


def renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings or metrics under today's names. The dimension of a task's vectors is still called ``dim``.

    >>> renamed({"dim": 4, "heads": 2, "mlp_dim": None}), renamed({"dim": 4})
    ({'model_dim': 4, 'heads': 2, 'hidden': None}, {'dim': 4})
    """
    return {_TODAY.get(name, name) if "mlp_dim" in values else name: value for name, value in values.items()}


def formerly(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under the names from which keys are computed.

    >>> formerly({"model_dim": 4, "heads": 2, "hidden": None})
    {'dim': 4, 'heads': 2, 'mlp_dim': None}
    """
    had = settings.keys() >= _FORMER.keys() and "dim" not in settings
    return {_FORMER.get(name, name) if had else name: value for name, value in settings.items()}


def checked_scale(scale: str) -> Scale:
    """Return ``scale``. Raise BadInput unless it is one of :data:`SCALES`.

    >>> checked_scale("huge")
    Traceback (most recent call last):
    byheart.errors.BadInput: scale is 'huge'; expected smoke, short or paper
    """
    if scale not in SCALES:
        raise BadInput(f"scale is {scale!r}; expected {', '.join(SCALES[:-1])} or {SCALES[-1]}")
    return scale
