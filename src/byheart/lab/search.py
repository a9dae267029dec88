"""Which learning rate? Every rate of a grid for some configs of an experiment, as an experiment of its own.

All else stays as it is; a ``last_learning_rate`` keeps its ratio to the first. The search is a run like any other:
every try is kept, and it can be stopped, resumed and merged. Experiments whose data follow from the whole config
(Dana's) draw them anew for each rate: rates are compared in the mean over seeds, not model by model.

The best rate is the one with the best mean over the seeds. The choice is made on the same seeds, so that its mean is a
little too good; where it stands at an end of the grid, a better one may lie beyond, and ``edge`` says so. A rate at
which a model has no number, since it diverged, is never the best.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from byheart.errors import BadInput
from byheart.lab.experiment import Experiment
from byheart.lab.rows import ResultRow
from byheart.lab.sources import Source, load
from byheart.lab.summary import MetricSummary, axes, points

RATE, LAST_RATE = "learning_rate", "last_learning_rate"


@dataclass(frozen=True)
class Search:
    """Where the search in another source's experiment comes from: for workers in other processes and machines."""

    origin: Source
    rates: tuple[float, ...]
    where: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str | None:
        """The text of the other source's file."""
        return self.origin.text

    def load(self) -> Experiment:
        """The search."""
        return search(load(self.origin), self.rates, dict(self.where))


def search(experiment: Experiment, rates: Sequence[float], where: Mapping[str, str] | None = None) -> Experiment:
    """The experiment's configs with each of the rates; only those whose settings, as texts, are as ``where`` says.

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
    found = chosen(experiment, where or {})
    configs = dict.fromkeys(_with_rate(config, rate) for config in found for rate in rates)
    return Experiment(f"{experiment.name}-search", experiment.scale, tuple(configs), experiment.groups, experiment.work)


def chosen(experiment: Experiment, where: Mapping[str, str]) -> list[Any]:
    """The configs whose settings, as texts, are as ``where`` says; BadInput if there are none."""
    names = [field.name for field in fields(experiment.configs[0])]
    for name in where:
        if name not in names:
            raise BadInput(f"{experiment.name}: configs have no {name}; expected {', '.join(names)}")
    found = [
        config for config in experiment.configs if all(str(getattr(config, name)) == where[name] for name in where)
    ]
    if not found:
        known = (f"{name} is {_values(experiment, name)}" for name in where)
        raise BadInput(f"{experiment.name}: no config is as asked for; {', and '.join(known)}")
    return found


def _values(experiment: Experiment, name: str) -> str:
    return " or ".join(dict.fromkeys(str(getattr(config, name)) for config in experiment.configs))


def _with_rate(config: Any, rate: float) -> Any:
    first, last = getattr(config, RATE), getattr(config, LAST_RATE, None)
    more = {} if last is None or rate == first else {LAST_RATE: last * rate / first}
    return replace(config, **{RATE: rate}, **more)


@dataclass(frozen=True)
class Tried:
    """What came of one rate for one choice of the other settings."""

    settings: dict[str, Any]
    learning_rate: float
    measured: MetricSummary | None
    best: bool = False
    edge: bool = False


def tried(rows: Sequence[ResultRow], metric: str, *, lowest: bool = False) -> list[Tried]:
    """All rates, those of the same settings one after the other; the best of them is marked.

    The largest mean of the metric is the best, or the lowest. What is constant is not among the settings.
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
        found = point.metrics.get(metric)
        whole = found if found is not None and found.models == point.models else None
        groups.setdefault(repr(settings), []).append(Tried(settings, point.settings[RATE], whole))
    return [one for group in groups.values() for one in _marked(group, lowest)]


def _marked(group: Sequence[Tried], lowest: bool) -> list[Tried]:
    ordered = sorted(group, key=lambda one: one.learning_rate)
    whole = [one for one in ordered if one.measured is not None]
    if not whole:
        return ordered
    sign = -1 if lowest else 1
    best = max(whole, key=lambda one: sign * one.measured.mean if one.measured else 0.0)
    ends = (ordered[0], ordered[-1])
    return [replace(one, best=True, edge=one in ends) if one is best else one for one in ordered]
