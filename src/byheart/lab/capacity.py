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
early holds less: these are lower bounds of what the architecture can hold.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

from byheart.errors import BadInput
from byheart.lab.ensemble import Member, Outcome, Training, train
from byheart.lab.experiments.experiment import Experiment, Prepared, Row, checked_scale
from byheart.lab.member import ANSWERS
from byheart.lab.models.gpt import SmallGPT, gpt_with
from byheart.lab.quantiles import LEVEL, mean_interval
from byheart.progress import Report
from byheart.tasks import NextToken, random_next_token
from byheart.tasks.checks import count

MOST_NETWORKS = 10**6
"""No ladder has more: all of them are listed before the first is trained."""


@dataclass(frozen=True)
class Rung:
    """One network to train: at most so many parameters, asked to hold ``demand`` bits in each of them.

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
            count(name, getattr(self, name))
        if not 0 < self.demand < math.inf:
            raise BadInput(f"demand is {self.demand}; expected more than 0 bits per parameter")
        if not 0 < self.learning_rate < math.inf:
            raise BadInput(f"learning_rate is {self.learning_rate}; expected a finite number above 0")
        if self.labels < 2:
            raise BadInput(f"labels is {self.labels}; expected at least 2: one label holds no bits")

    @property
    def examples(self) -> int:
        """N."""
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
    """All rungs; ``fixed`` are further fields of :class:`Rung`, the same for all.

    >>> len(ladder([1000, 2000], [2, 4], seeds=3, steps=100).configs)
    12
    """
    if (networks := len(sizes) * len(demands) * len(learning_rates) * count("seeds", seeds)) > MOST_NETWORKS:
        raise BadInput(f"a ladder of {networks} networks; expected at most {MOST_NETWORKS}: fewer seeds, say")
    wanted = product(sizes, demands, learning_rates, range(seeds))
    rungs = (Rung(size, demand, seed, learning_rate=rate, **fixed) for size, demand, rate, seed in wanted)
    return Experiment("capacity", scale, tuple(rungs), groups, work, prepare)


def experiment(scale: str) -> Experiment:
    """Smoke: seconds on a CPU. Short: a quarter of an hour there. Paper: for a GPU, sizes as of our constructions."""
    if checked_scale(scale) == "smoke":
        return ladder([800, 1600], [1, 2], seeds=2, scale=scale, steps=60)
    if scale == "short":
        return ladder([1000, 2000, 4000], [1, 2, 3], seeds=3, scale=scale, steps=3000)
    return ladder(
        [10_000, 20_000, 40_000, 80_000],
        [4, 6],
        seeds=3,
        learning_rates=(2e-2, 4e-2),
        scale=scale,
        vocab=256,
        labels=256,
        steps=20_000,
    )


def groups(rungs: Sequence[Rung]) -> list[list[Rung]]:
    """Networks of one size with equally many examples: seeds and learning rates are trained at once."""
    jobs: dict[object, list[Rung]] = {}
    for rung in rungs:
        jobs.setdefault(replace(rung, seed=0, learning_rate=1.0), []).append(rung)
    return list(jobs.values())


def work(rungs: Sequence[Rung], device: str, report: Report | None) -> list[Row]:
    """Train each on its own random task, together; the metrics of a row."""
    members = [_member(rung) for rung in rungs]
    outcomes = train(members, device=device, report=report)
    return [_row(rung, member, outcome) for rung, member, outcome in zip(rungs, members, outcomes, strict=True)]


def prepare(rung: Rung) -> Prepared:
    """The network with its task."""
    member = _member(rung)
    return Prepared(member, partial(_row, rung, member), _task(rung))


def _task(rung: Rung) -> NextToken:
    """Its own random labels."""
    rng = np.random.default_rng(rung.seed)
    return random_next_token(examples=rung.examples, length=rung.length, vocab=rung.vocab, labels=rung.labels, rng=rng)


def _member(rung: Rung) -> Member:
    """Adam with warm-up and cosine decay, in batches that divide the examples evenly."""
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
    """The size of as few batches as cut an epoch, all equal and of at most so many examples.

    >>> even_batch(60, most=25)
    20
    """
    return examples // -(-examples // most)


def _row(rung: Rung, member: Member, outcome: Outcome) -> Row:
    network = member.architecture
    assert isinstance(network, SmallGPT)
    sizes: Row = {"layers": network.layers, "model_dim": network.model_dim, "hidden": network.hidden}
    return {"examples": rung.examples, **measures(member, outcome), "seconds": outcome.seconds, **sizes}


def measures(member: Member, outcome: Outcome) -> Row:
    """What a GPT that was trained on uniform labels has memorized of them."""
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
class Held:
    """Bits per parameter at one size, N and learning rate: mean over seeds, and its interval (None: one seed only).

    ``lost`` counts runs that have no number: they diverged. ``edge`` says whether no larger demand was tried.
    """

    parameters: int
    examples: int
    demand: float
    learning_rate: float
    bits_per_parameter: float
    low: float | None
    high: float | None
    seeds: int
    lost: int
    edge: bool


LARGEST = 1e15
"""No size of a run is larger."""


def held(rows: Sequence[Mapping[str, Any]], level: float = LEVEL) -> list[Held]:
    """Rows of results, seeds put together; points at which all runs were lost are omitted."""
    most: dict[int, float] = {}
    measured: dict[tuple[int, int, float, float], list[float | None]] = {}
    for row in rows:
        for name in ("parameters", "examples", "demand", "learning_rate"):
            if type(row.get(name)) not in (int, float) or not 0 < row[name] <= LARGEST:
                raise BadInput(f"a row's {name} is {row.get(name)!r}; expected a positive number")
        bits = row.get("bits_per_parameter")
        if type(bits) not in (int, float, type(None)):
            raise BadInput(f"a row's bits_per_parameter is {bits!r}; expected a number or none")
        place = (int(row["parameters"]), int(row["examples"]), float(row["demand"]), float(row["learning_rate"]))
        measured.setdefault(place, []).append(bits)
        most[place[0]] = max(most.get(place[0], 0.0), place[2])
    points = []
    for place, values in sorted(measured.items()):
        known = [value for value in values if value is not None and abs(value) <= LARGEST]
        if known:
            edge = place[2] == most[place[0]]
            points.append(Held(*place, *mean_interval(known, level), len(known), len(values) - len(known), edge))
    return points


def plateaus(rows: Sequence[Mapping[str, Any]], level: float = LEVEL) -> list[Held]:
    """For each size, the point with the most bits per parameter.

    >>> rows = [
    ...     {"parameters": 100, "learning_rate": 0.01, "examples": 50 * d, "demand": d, "bits_per_parameter": bits}
    ...     for d, bits in ((2, 1.5), (4, 1.7), (8, 1.6))
    ... ]
    >>> [(best.parameters, best.examples, best.bits_per_parameter, best.edge) for best in plateaus(rows)]
    [(100, 200, 1.7, False)]
    """
    best: dict[int, Held] = {}
    for point in held(rows, level):
        if point.parameters not in best or point.bits_per_parameter > best[point.parameters].bits_per_parameter:
            best[point.parameters] = point
    return list(best.values())
