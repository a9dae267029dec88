"""What `byheart lab run` runs: a list of configs, which of them are trained together, and how.

A config is a frozen dataclass of plain values (numbers, strings, booleans, None, tuples of them), which JSON can hold.
Its key, a hash of kind and values, names its results wherever they are.
"""

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from reprlib import repr as shortened
from typing import Any, ClassVar, Literal, Protocol, get_args

from byheart.errors import BadInput
from byheart.lab.former import formerly, kind_of
from byheart.lab.member import Member, TrainingOutcome
from byheart.progress import Report
from byheart.tasks import Task

Scale = Literal["smoke", "short", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)

Row = dict[str, float | int | str | None]


class Config(Protocol):
    """Any frozen dataclass of plain values."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Prepared:
    """One config, ready to be trained and kept: the member, the metrics of what comes out, and what it is asked."""

    member: Member
    metrics: Callable[[TrainingOutcome], Row]
    task: Task
    """All that accuracy and loss are measured on, as a network is asked it."""


Groups = Callable[[Sequence[Any]], list[list[Any]]]
Work = Callable[[Sequence[Any], str, Report | None], list[Row]]
Prepare = Callable[[Any], Prepared]


@dataclass(frozen=True)
class Experiment:
    """A sweep: ``groups`` cuts configs into jobs; ``work`` trains those of a job on a device, tells how far it is, and
    gives their metrics. ``prepare`` is for networks that are to be kept (:mod:`byheart.lab.saving`).

    The first two take some configs of the experiment, not all of them: a run that goes on after a stop passes what is
    left.
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
                raise BadInput(f"{self.name}: {config!r} is no config; expected a dataclass of plain values")
            for name, value in asdict(config).items():
                if not is_plain(value):
                    what = "finite numbers that 64 bits hold, texts, True, False, None, and tuples of them"
                    raise BadInput(f"{self.name}: {name} is {shortened(value)} in a config; expected {what}")
        keys = {key(config): config for config in self.configs}
        if len(keys) != len(self.configs):
            raise BadInput(
                f"{self.name}: {len(self.configs) - len(keys)} configs are there twice; expected different ones"
            )


def is_plain(value: object) -> bool:
    """Whether it is a value that comes back from JSON, as Byheart reads it; tuples do as lists.

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
    """The config as JSON has it: tuples become lists."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    return values


def key(config: Config) -> str:
    """Sixteen hexadecimal digits that depend on the kind of the config and its values alone."""
    text = json.dumps([kind_of(config), formerly(to_json(config))], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def checked_scale(scale: str) -> Scale:
    """One of :data:`SCALES`.

    >>> checked_scale("huge")
    Traceback (most recent call last):
    byheart.errors.BadInput: scale is 'huge'; expected smoke, short or paper
    """
    if scale not in SCALES:
        raise BadInput(f"scale is {scale!r}; expected {', '.join(SCALES[:-1])} or {SCALES[-1]}")
    return scale
