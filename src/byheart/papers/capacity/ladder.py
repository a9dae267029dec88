"""Capacity in bits: a ladder of GPTs of growing size, each trained on random labels, and how many bits they hold.

The entropy method of Morris et al. 2025: without the network, one of C uniform labels costs log₂C bits to tell; with
it, −log₂p bits, where p is the probability that the network gives to the right label. What is saved, summed over the
examples, is what the network has memorized: N·(log₂C − mean cross-entropy in bits). Nothing is cut off at zero: a
network that is confidently wrong somewhere pays for it. The inputs are given, so bits of them do not count.

At a fixed size this grows with the number N of examples until the network is full; the *plateau* is the largest number
of bits per parameter over N. Their networks have 5·10⁵ to 1.5·10⁹ parameters and hold about 3.6; ours are as small as
the networks that are built, to stand beside them.

Letters: N examples of n tokens out of ω, C labels, P parameters, all counted. A rung asks for ``demand`` bits per
parameter, N = demand·P / log₂C.

What an interval says: Student's over seeds, each with its own task and its own training, at the N and the learning rate
whose mean over the seeds is largest. As this choice is made on the same seeds, the largest mean is a little too high;
where it stands at the largest demand tried, the network may not be full, and ``edge`` says so. Training that is stopped
early, or at a bad learning rate, holds less: these are lower bounds of what the architecture can hold. How much longer
training and other rates would bring is measured too, at some sizes of scale "paper" (:func:`tunings`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any, Literal

import numpy as np
import torch

from byheart.errors import BadInput
from byheart.lab.ensemble import Member, Training, TrainingOutcome, train
from byheart.lab.experiment import Experiment, Prepared, Row, checked_scale, grouped
from byheart.lab.fits import mean_interval
from byheart.lab.member import ANSWERS
from byheart.lab.models.gpt import SmallGPT, gpt_with
from byheart.progress import Report
from byheart.tasks import NextToken, random_next_token
from byheart.tasks.arrays import check_count

MOST_NETWORKS = 10**6
"""Largest number of networks of a ladder: all of them are listed before the first is trained."""
FEWEST_TRIED = 3
"""Least number of learning rates, or of numbers of steps, that show an effect of tuning."""


@dataclass(frozen=True)
class Rung:
    """One network to train, of at most ``most_parameters``, on enough labels to need ``demand`` bits per parameter.

    >>> Rung(most_parameters=1000, demand=4, labels=16).examples
    1000
    """

    most_parameters: int
    demand: float
    seed: int = 0
    length: int = 8
    vocab: int = 16
    labels: int = 16
    steps: int = 2000
    batch: int = 1 << 14
    learning_rate: float = 2e-2

    def __post_init__(self) -> None:
        for name in ("most_parameters", "length", "vocab", "labels", "steps", "batch"):
            check_count(name, getattr(self, name))
        if not 0 < self.demand < math.inf:
            raise BadInput(f"demand is {self.demand}; expected more than 0 bits per parameter")
        if not 0 < self.learning_rate < math.inf:
            raise BadInput(f"learning_rate is {self.learning_rate}; expected a finite number above 0")
        if self.labels < 2:
            raise BadInput(f"labels is {self.labels}; expected at least 2: one label holds no bits")

    @property
    def examples(self) -> int:
        """Number of examples N that asks for ``demand`` bits per parameter."""
        return max(1, round(self.demand * self.most_parameters / math.log2(self.labels)))


def ladder(
    sizes: Sequence[int],
    demands: Sequence[float],
    seeds: int,
    *,
    learning_rates: Sequence[float] = (2e-2,),
    scale: str = "own",
    **fixed: int,
) -> Experiment:
    """Return the experiment of all rungs; ``fixed`` are further fields of :class:`Rung`, the same for all.

    >>> len(ladder([1000, 2000], [2, 4], seeds=3, steps=100).configs)
    12
    """
    if (networks := len(sizes) * len(demands) * len(learning_rates) * check_count("seeds", seeds)) > MOST_NETWORKS:
        raise BadInput(f"a ladder of {networks} networks; expected at most {MOST_NETWORKS}: fewer seeds, say")
    grid = product(sizes, demands, learning_rates, range(seeds))
    rungs = (Rung(size, demand, seed, learning_rate=rate, **fixed) for size, demand, rate, seed in grid)
    return Experiment("capacity", scale, tuple(rungs), groups, work, prepare)


PAPER: dict[str, Any] = {"length": 4, "vocab": 64, "labels": 64, "steps": 12_000, "batch": 1 << 12}
SIZES = (8_000, 14_000, 25_000, 45_000, 80_000)
"""Sizes of scale "paper"; all have three layers."""
TUNED = (8_000, 14_000)
"""Sizes at which scale "paper" has smaller and larger demands, and varies the training."""


def experiment(scale: str) -> Experiment:
    """Return the ladder of a scale: "smoke" takes seconds on a CPU, "short" a quarter of an hour, "paper" needs a GPU.

    At its largest size, scale "paper" also tries lower learning rates.
    """
    if checked_scale(scale) == "smoke":
        return ladder([800, 1600], [1, 2], seeds=2, scale=scale, steps=60)
    if scale == "short":
        return ladder([1000, 2000, 4000], [1, 2, 3], seeds=3, scale=scale, steps=3000)
    rungs = ladder(SIZES, [5, 8], seeds=3, **PAPER).configs
    beyond = ladder(TUNED, [3, 12], seeds=3, **PAPER).configs
    tuned = [rung for rung in rungs if rung.most_parameters in TUNED and rung.demand == 8]
    largest = [rung for rung in rungs if rung.most_parameters == SIZES[-1] and rung.demand == 8]
    variations = varied(tuned, rates=(1 / 2, 2, 4), times=(1 / 4, 1 / 2, 2)) + varied(
        largest, rates=(1 / 4, 1 / 2), times=()
    )
    return Experiment("capacity", scale, (*rungs, *beyond, *variations), groups, work, prepare)


def ladder_like(
    scale: str,
    sizes: Sequence[int] = (),
    demands: Sequence[float] = (),
    learning_rates: Sequence[float] = (),
    seeds: int | None = None,
    **fixed: int | None,
) -> Experiment:
    """Return the ladder of a scale if no other choice is made, or else one with these choices.

    All other choices are those of the scale, with the training of its largest size.
    """
    whole = experiment(scale)
    if seeds is None and not (sizes or demands or learning_rates) and set(fixed.values()) <= {None}:
        return whole
    steps = sorted({rung.most_parameters for rung in whole.configs})
    largest = [rung for rung in whole.configs if rung.most_parameters == steps[-1]]
    settings: dict[str, Any] = {
        name: getattr(largest[0], name) if value is None else value for name, value in fixed.items()
    }
    return ladder(
        sizes or steps,
        demands or sorted({rung.demand for rung in largest}),
        seeds if seeds is not None else 1 + max(rung.seed for rung in largest),
        learning_rates=learning_rates or sorted({rung.learning_rate for rung in largest}),
        batch=largest[0].batch,
        **settings,
    )


def varied(rungs: Sequence[Rung], rates: Sequence[float], times: Sequence[float]) -> list[Rung]:
    """Return the rungs with their learning rate times each of ``rates``, and with their steps times each of ``times``.

    >>> some = varied([Rung(1000, 4, steps=100)], rates=[0.5, 2], times=[3])
    >>> [(rung.learning_rate, rung.steps) for rung in some]
    [(0.01, 100), (0.04, 100), (0.02, 300)]
    """
    variations = [replace(rung, learning_rate=rung.learning_rate * rate) for rate in rates for rung in rungs]
    return variations + [replace(rung, steps=round(rung.steps * time)) for time in times for rung in rungs]


def groups(rungs: Sequence[Rung]) -> list[list[Rung]]:
    """Return networks of one size as one job: all demands, seeds, learning rates and steps are trained at once."""
    return grouped(rungs, lambda rung: replace(rung, demand=1.0, seed=0, learning_rate=1.0, steps=1))


def work(rungs: Sequence[Rung], device: str, report: Report | None) -> list[Row]:
    """Train the networks together, each on its own random task, and return their metrics."""
    members = [_member(rung) for rung in rungs]
    outcomes = train(members, device=device, report=report)
    return [_row(rung, member, outcome) for rung, member, outcome in zip(rungs, members, outcomes, strict=True)]


def prepare(rung: Rung) -> Prepared:
    """Return the network with its task."""
    member = _member(rung)
    return Prepared(member, partial(_row, rung, member), _task(rung))


def _task(rung: Rung) -> NextToken:
    """Return the random labels that the rung's network is trained on."""
    rng = np.random.default_rng(rung.seed)
    return random_next_token(examples=rung.examples, length=rung.length, vocab=rung.vocab, labels=rung.labels, rng=rng)


def _member(rung: Rung) -> Member:
    """Return the network as a member, trained with warm-up and cosine decay in batches of equal size."""
    task = _task(rung)
    training = Training(
        batch=even_batch(rung.examples, rung.batch),
        steps=rung.steps,
        learning_rate=rung.learning_rate,
        last_learning_rate=0.0,
        schedule="warm-up-cosine",
    )
    examples = {"tokens": torch.tensor(task.inputs), ANSWERS: torch.tensor(task.labels)}
    network = gpt_with(rung.most_parameters, rung.vocab, rung.labels, rung.length)
    return Member(network, training, rung.seed, examples)


def even_batch(examples: int, most: int) -> int:
    """Return the size of equal batches of at most ``most`` examples, as few per epoch as possible.

    >>> even_batch(60, most=25)
    20
    """
    return examples // -(-examples // most)


def _row(rung: Rung, member: Member, outcome: TrainingOutcome) -> Row:
    network = member.architecture
    assert isinstance(network, SmallGPT)
    sizes: Row = {"layers": network.layers, "model_dim": network.model_dim, "hidden": network.hidden}
    return {"examples": rung.examples, **measures(member, outcome), "seconds": outcome.seconds, **sizes}


def measures(member: Member, outcome: TrainingOutcome) -> Row:
    """Return what a GPT has memorized of the uniform labels that it was trained on."""
    network = member.architecture
    assert isinstance(network, SmallGPT)
    loss_bits = outcome.loss / math.log(2)
    bits = member.count * (math.log2(network.labels) - loss_bits)
    return {
        "parameters": network.parameters,
        "memorized_bits": bits,
        "bits_per_parameter": bits / network.parameters,
        "accuracy": outcome.accuracy,
        "loss_bits": loss_bits,
        "epochs": outcome.steps * member.training.batch / member.count,
    }


@dataclass(frozen=True)
class CapacityEstimate:
    """Bits per parameter at one size, N, learning rate and number of steps: mean and interval over seeds (None: one).

    ``lost`` counts runs that have no number: they diverged. ``edge`` says whether no larger demand was tried.
    """

    parameters: int
    examples: int
    demand: float
    learning_rate: float
    steps: int
    bits_per_parameter: float
    low: float | None
    high: float | None
    seeds: int
    lost: int
    edge: bool

    @property
    def training(self) -> tuple[float, int]:
        """Learning rate and number of steps."""
        return self.learning_rate, self.steps


LARGEST = 1e15
"""Largest size that a run may have."""


def held(rows: Sequence[Mapping[str, Any]]) -> list[CapacityEstimate]:
    """Return means over the seeds of a table's rows; points at which all runs were lost are omitted."""
    most: dict[int, float] = {}
    measured: dict[tuple[int, int, float, float, int], list[float | None]] = {}
    for row in rows:
        for name in ("parameters", "examples", "demand", "learning_rate", "steps"):
            if type(row.get(name)) not in (int, float) or not 0 < row[name] <= LARGEST:
                raise BadInput(f"a row's {name} is {row.get(name)!r}; expected a positive number")
        bits = row.get("bits_per_parameter")
        if type(bits) not in (int, float, type(None)):
            raise BadInput(f"a row's bits_per_parameter is {bits!r}; expected a number or none")
        sizes = int(row["parameters"]), int(row["examples"]), float(row["demand"])
        measured.setdefault((*sizes, float(row["learning_rate"]), int(row["steps"])), []).append(bits)
        most[sizes[0]] = max(most.get(sizes[0], 0.0), sizes[2])
    points = []
    for place, values in sorted(measured.items()):
        finite = [value for value in values if value is not None and abs(value) <= LARGEST]
        if finite:
            edge = place[2] == most[place[0]]
            lost = len(values) - len(finite)
            points.append(CapacityEstimate(*place, *mean_interval(finite), len(finite), lost, edge))
    return points


def plateaus(rows: Sequence[Mapping[str, Any]]) -> list[CapacityEstimate]:
    """Return for each size the point with the most bits per parameter.

    Learning rates and steps that only some sizes were trained with do not count, unless there are no others: a size
    that was tried more often would look better for it.

    >>> one = {"parameters": 100, "learning_rate": 0.01, "steps": 9}
    >>> asked = (50, 2, 1.5), (100, 4, 1.7), (200, 8, 1.6)
    >>> rows = [one | {"examples": N, "demand": demand, "bits_per_parameter": bits} for N, demand, bits in asked]
    >>> [(best.parameters, best.examples, best.bits_per_parameter, best.edge) for best in plateaus(rows)]
    [(100, 100, 1.7, False)]
    """
    points, best = held(rows), dict[int, CapacityEstimate]()
    of_all = shared_trainings(points)
    for point in points:
        if of_all and point.training not in of_all:
            continue
        if point.parameters not in best or point.bits_per_parameter > best[point.parameters].bits_per_parameter:
            best[point.parameters] = point
    return list(best.values())


def shared_trainings(points: Sequence[CapacityEstimate]) -> set[tuple[float, int]]:
    """Return pairs of learning rate and steps that every size was trained with."""
    of_size: dict[int, set[tuple[float, int]]] = {}
    for point in points:
        of_size.setdefault(point.parameters, set()).add(point.training)
    return set.intersection(*of_size.values()) if of_size else set()


@dataclass(frozen=True)
class Tuning:
    """One size and N at one learning rate and several numbers of steps, or at several rates and one number of steps.

    ``chosen`` is how all sizes were trained (of several ways the best); ``points`` differ from it in ``along`` at most.
    """

    along: Literal["learning_rate", "steps"]
    chosen: tuple[float, int]
    points: list[CapacityEstimate]


def tunings(rows: Sequence[Mapping[str, Any]]) -> list[Tuning]:
    """Return what other learning rates bring, and other numbers of steps, where three or more of them were tried.

    >>> rows = [
    ...     {"parameters": 9, "learning_rate": 0.1, "steps": s, "examples": 50, "demand": 1, "bits_per_parameter": b}
    ...     for s, b in ((10, 1.5), (20, 1.7), (40, 1.8))
    ... ]
    >>> rows.append(rows[1] | {"parameters": 20})
    >>> [(tuning.along, tuning.chosen, [point.steps for point in tuning.points]) for tuning in tunings(rows)]
    [('steps', (0.1, 20), [10, 20, 40])]
    """
    points = held(rows)
    shared = shared_trainings(points)
    if not shared:
        return []
    rate, steps = max(sorted(shared), key=lambda training: _mean_of(points, training))
    tuned = []
    for parameters, examples in sorted({(point.parameters, point.examples) for point in points}):
        here = [point for point in points if (point.parameters, point.examples) == (parameters, examples)]
        by_rate = sorted((point for point in here if point.steps == steps), key=lambda point: point.learning_rate)
        by_steps = sorted((point for point in here if point.learning_rate == rate), key=lambda point: point.steps)
        tuned += [Tuning("learning_rate", (rate, steps), by_rate)] if len(by_rate) >= FEWEST_TRIED else []
        tuned += [Tuning("steps", (rate, steps), by_steps)] if len(by_steps) >= FEWEST_TRIED else []
    return tuned


def _mean_of(points: Sequence[CapacityEstimate], training: tuple[float, int]) -> float:
    return fmean(point.bits_per_parameter for point in points if point.training == training)
