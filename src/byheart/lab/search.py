"""Search for a learning rate: train some configs of an experiment with every rate of a grid, as an experiment.

All other settings stay as they are; ``last_learning_rate`` keeps its ratio to the first. A search is a run like any
other: every try is kept, and it can be stopped, resumed and merged. Experiments whose data depend on the whole config
(Dana's) draw new data for each rate. So rates are compared by means over seeds, not model by model.

The best rate has the best mean over the seeds. It is chosen on the same seeds, so its mean is slightly too good. If it
is at an end of the grid, a better one may lie beyond, and ``edge`` is True. A rate at which a model diverged, and so
has no number, is never the best.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from byheart.errors import BadInput
from byheart.lab.experiment import Experiment
from byheart.lab.rows import MetricSummary, ResultRow, axes, points
from byheart.lab.sources import Source, load

RATE, LAST_RATE = "learning_rate", "last_learning_rate"


@dataclass(frozen=True)
class Search:
    """A source of the search in another source's experiment, for workers in other processes and on other machines."""

    origin: Source
    rates: tuple[float, ...]
    where: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str | None:
        """Text of the other source's file."""
        return self.origin.text

    def load(self) -> Experiment:
        """Return the search as an experiment."""
        return search(load(self.origin), self.rates, dict(self.where))


def search(experiment: Experiment, rates: Sequence[float], where: Mapping[str, str] | None = None) -> Experiment:
    """Return the experiment's configs with the settings ``where`` (as texts), each with every rate.

    >>> from byheart.papers.experiments import EXPERIMENTS
    >>> found = search(EXPERIMENTS["dana-2025-6"]("short"), [0.001, 0.01], {"heads": "9"})
    >>> [(config.heads, config.learning_rate) for config in found.configs]
    [(9, 0.001), (9, 0.01)]
    """
    if len(rates) < 2 or len(set(rates)) < len(rates) or not all(0 < rate < float("inf") for rate in rates):
        raise BadInput(
            f"learning rates are {', '.join(map(str, rates)) or 'none'}; expected two or more, all different"
        )
    if not hasattr(experiment.configs[0], RATE):
        raise BadInput(f"{experiment.name}: configs have no {RATE}; expected one to vary")
    base = chosen(experiment, where or {})
    configs = dict.fromkeys(_with_rate(config, rate) for config in base for rate in rates)
    return Experiment(f"{experiment.name}-search", experiment.scale, tuple(configs), experiment.groups, experiment.work)


def chosen(experiment: Experiment, where: Mapping[str, str]) -> list[Any]:
    """Return the configs with the settings ``where``, as texts. Raise BadInput if there are none."""
    names = [field.name for field in fields(experiment.configs[0])]
    for name in where:
        if name not in names:
            raise BadInput(f"{experiment.name}: configs have no {name}; expected {', '.join(names)}")
    configs = [
        config for config in experiment.configs if all(str(getattr(config, name)) == where[name] for name in where)
    ]
    if not configs:
        values = (f"{name} is {_values(experiment, name)}" for name in where)
        raise BadInput(f"{experiment.name}: no config matches; {', and '.join(values)}")
    return configs


def _values(experiment: Experiment, name: str) -> str:
    return " or ".join(dict.fromkeys(str(getattr(config, name)) for config in experiment.configs))


def _with_rate(config: Any, rate: float) -> Any:
    first, last = getattr(config, RATE), getattr(config, LAST_RATE, None)
    more = {} if last is None or rate == first else {LAST_RATE: last * rate / first}
    return replace(config, **{RATE: rate}, **more)


@dataclass(frozen=True)
class Tried:
    """The result of one rate, for one choice of the other settings."""

    settings: dict[str, Any]
    learning_rate: float
    measured: MetricSummary | None
    best: bool = False
    edge: bool = False


def tried(rows: Sequence[ResultRow], metric: str, *, lowest: bool = False) -> list[Tried]:
    """Return all rates, grouped by the other settings, with the best rate of each group marked.

    The largest mean of the metric is the best, or the smallest if ``lowest``. Constant settings are left out.
    """
    done = [row for row in rows if row.status == "done"]
    if not any(isinstance(row.metrics.get(metric), int | float) for row in done):
        names = dict.fromkeys(name for row in done for name in row.metrics)
        raise BadInput(
            f"no model has a number for {metric!r}; expected one of {', '.join(names) or 'none: all failed'}"
        )
    along = [name for name in axes(done) if name != LAST_RATE]
    groups: dict[str, list[Tried]] = {}
    for point in points(done, dict.fromkeys([*along, RATE])):
        settings = {name: value for name, value in point.settings.items() if name != RATE}
        summary = point.metrics.get(metric)
        whole = summary if summary is not None and summary.models == point.models else None
        groups.setdefault(repr(settings), []).append(Tried(settings, point.settings[RATE], whole))
    return [rate for group in groups.values() for rate in _marked(group, lowest)]


def _marked(group: Sequence[Tried], lowest: bool) -> list[Tried]:
    ordered = sorted(group, key=lambda rate: rate.learning_rate)
    whole = [rate for rate in ordered if rate.measured is not None]
    if not whole:
        return ordered
    sign = -1 if lowest else 1
    best = max(whole, key=lambda rate: sign * rate.measured.mean if rate.measured else 0.0)
    ends = (ordered[0], ordered[-1])
    return [replace(rate, best=True, edge=rate in ends) if rate is best else rate for rate in ordered]
