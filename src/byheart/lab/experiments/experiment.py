"""What `byheart lab run` runs: a list of configs, which of them are trained together, and how.

A config is a frozen dataclass of plain values (numbers, strings, booleans, None, tuples of them). It goes to JSON and
comes back equal; an unknown key is an error. Its key, a hash of kind and values, names its results wherever they are.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeVar, get_args

from byheart.errors import BadInput
from byheart.lab.former import formerly
from byheart.progress import Report

Scale = Literal["smoke", "short", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)

_Kind = TypeVar("_Kind")

Row = dict[str, float | int | str | None]


class Config(Protocol):
    """Any frozen dataclass of plain values."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Groups = Callable[[Sequence[Any]], list[list[Any]]]
Work = Callable[[Sequence[Any], str, Report | None], list[Row]]


@dataclass(frozen=True)
class Experiment:
    """A sweep: ``groups`` cuts configs into jobs; ``work`` trains those of a job on a device, tells how far it is, and
    gives their metrics.

    Both take some configs of the experiment, not all of them: a run that goes on after a stop passes what is left.
    """

    name: str
    scale: str
    configs: tuple[Any, ...]
    groups: Groups
    work: Work

    def __post_init__(self) -> None:
        if not self.configs:
            raise BadInput(f"{self.name} has no configs; expected at least one")
        for config in self.configs:
            if not is_dataclass(config) or isinstance(config, type):
                raise BadInput(f"{self.name}: {config!r} is no config; expected a dataclass of plain values")
        keys = {key(config): config for config in self.configs}
        if len(keys) != len(self.configs):
            raise BadInput(
                f"{self.name}: {len(self.configs) - len(keys)} configs are there twice; expected different ones"
            )


def to_json(config: Config) -> dict[str, Any]:
    """The config as JSON has it: tuples become lists."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    return values


def from_json(kind: type[_Kind], values: Mapping[str, Any]) -> _Kind:
    """The config of this kind with these values; lists become tuples. Unknown and missing keys are errors.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point:
    ...     heads: int
    >>> from_json(Point, {"heads": 2})
    Point(heads=2)
    >>> from_json(Point, {"head": 2})
    Traceback (most recent call last):
    byheart.errors.BadInput: Point has no 'head'; expected heads
    """
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise BadInput(f"{kind.__name__} has no {name!r}; expected {', '.join(known)}")
    try:
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
    except TypeError as error:
        raise BadInput(f"{kind.__name__}: {error}; expected {', '.join(known)}") from None


def key(config: Config) -> str:
    """Sixteen hexadecimal digits that depend on the kind of the config and its values alone."""
    text = json.dumps([type(config).__name__, formerly(to_json(config))], sort_keys=True, ensure_ascii=False)
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
