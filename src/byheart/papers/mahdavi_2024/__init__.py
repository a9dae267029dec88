"""Mahdavi, Liao & Thrampoulidis 2024, as the authors' code runs them: how many examples does attention memorize?

N examples, n tokens of context, H heads of dimension d_h (64 unless swept), C = 100 labels or real targets:
:class:`~byheart.lab.models.mahdavi.QueryAttention`. Queries and contexts are uniform in [0, 1]^64, a context for each
example ("random") or one for all ("fixed"); labels are uniform, targets uniform in [0, 1] (mean squared error). Adam at
10⁻³, batches of 256, the rate rising over the first 5 % of the steps from 1 % and falling as a cosine to 0; steps =
max(⌊500 N/256⌋, 50,000), and 300,000 for the sweep of d_h and for saturation. Every 500 steps all examples are
measured; training ends when all are right, but for saturation. ``best_loss`` and ``best_accuracy`` are of the weights
with the least loss, which the authors keep, ``loss`` and ``accuracy`` of the last.

Differs from the authors' code in random numbers, and in that batches are always full. Byheart has no numbers of theirs
to compare with. Their figures show memorization that grows linearly with H, grows with n, and stops growing with d_h
beyond n.

Scales: "paper" is the authors' with six seeds; "short" two seeds and at most 50,000 steps; "smoke" a few tiny models.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import ClassVar, Literal

import torch

from byheart.errors import BadInput
from byheart.lab.ensemble import train
from byheart.lab.experiment import Experiment, Prepared, Row, checked_scale, grouped
from byheart.lab.member import ANSWERS, Member, Tensors, Training, TrainingOutcome
from byheart.lab.models.mahdavi import QueryAttention
from byheart.progress import Report
from byheart.tasks import QueryLabels, QueryTargets
from byheart.tasks.arrays import check_count

Answers = Literal["labels", "targets"]
Context = Literal["fixed", "random"]

LABELS = 100
EPOCHS, LEAST_STEPS, LONG = 500, 50_000, 300_000
SEEDS = {"smoke": 1, "short": 2, "paper": 6}
MOST_STEPS = {"smoke": 60, "short": 50_000, "paper": LONG}
HEADS = (1, 5, 10, 20, 30, 40, 50, 60)
LENGTHS = (1, 5, 10, 20, 30, 40, 50, 60)
HEAD_DIMS = (*range(10, 61, 5), 64)
ROWS_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class MahdaviConfig:
    """One model to train."""

    KIND: ClassVar = "Config"
    answers: Answers
    context: Context
    examples: int
    length: int
    heads: int
    head_dim: int
    seed: int
    steps: int
    stop: bool = True
    """True if training ends when every label is right; if not, saturated heads are counted after it."""
    labels: int = LABELS
    batch: int = 256
    learning_rate: float = 1e-3
    evaluate_every: int = 500

    def __post_init__(self) -> None:
        if self.answers not in ("labels", "targets") or self.context not in ("fixed", "random"):
            got = f"answers is {self.answers!r} and context {self.context!r}"
            raise BadInput(f"{got}; expected 'labels' or 'targets', and 'fixed' or 'random'")
        for name in ("examples", "length", "heads", "head_dim", "steps", "labels", "batch", "evaluate_every"):
            check_count(name, getattr(self, name))

    @property
    def architecture(self) -> QueryAttention:
        """The model; targets take one output."""
        outputs = self.labels if self.answers == "labels" else 1
        return QueryAttention(self.heads, self.head_dim, self.length, outputs, fixed=self.context == "fixed")

    @property
    def training(self) -> Training:
        """The training: schedule, loss, and when it stops."""
        return Training(
            batch=min(self.batch, self.examples),
            steps=self.steps,
            learning_rate=self.learning_rate,
            schedule="warm-up-cosine",
            loss="cross-entropy" if self.answers == "labels" else "mean-square",
            evaluate_every=self.evaluate_every,
            stop_at=1.0 if self.stop and self.answers == "labels" else None,
        )


def steps(examples: int) -> int:
    """Return the authors' number of steps.

    >>> steps(10_000), steps(130_000)
    (50000, 253906)
    """
    return max(EPOCHS * examples // 256, LEAST_STEPS)


def data(config: MahdaviConfig) -> tuple[Tensors, Tensors]:
    """Return examples and constants, float32.

    Examples are queries [N, D], their contexts [N, n, D] if each has its own, and answers [N]. A shared context [n, D]
    is a constant.
    """
    generator = torch.Generator().manual_seed(config.seed)
    N, n, D = config.examples, config.length, config.architecture.dim
    contexts = torch.rand(*((n, D) if config.context == "fixed" else (N, n, D)), generator=generator)
    queries = torch.rand(N, D, generator=generator)
    if config.answers == "labels":
        answers = torch.randint(config.labels, (N,), generator=generator)
    else:
        answers = torch.rand(N, generator=generator)
    examples = {"queries": queries, ANSWERS: answers}
    if config.context == "fixed":
        return examples, {"contexts": contexts}
    return examples | {"contexts": contexts}, {}


def members(configs: Sequence[MahdaviConfig]) -> list[Member]:
    """Return a member for each config; those with equal data share it."""
    shared: dict[tuple[object, ...], tuple[Tensors, Tensors]] = {}
    models = []
    for config in configs:
        sizes = (config.answers, config.context, config.examples, config.length, config.labels, config.seed)
        if sizes not in shared:
            shared[sizes] = data(config)
        examples, constants = shared[sizes]
        models.append(Member(config.architecture, config.training, config.seed, examples, constants))
    return models


def groups(configs: Sequence[MahdaviConfig]) -> list[list[MahdaviConfig]]:
    """Return models with equal numbers of examples, so of steps, as one job: a GPU trains them side by side."""
    return grouped(configs, lambda config: config.examples)


def work(configs: Sequence[MahdaviConfig], device: str = "cpu", report: Report | None = None) -> list[Row]:
    """Train the configs' models and return their metrics."""
    models = members(configs)
    counts_heads = [not config.stop for config in configs]
    outcomes = train(models, device=device, keep_weights=any(counts_heads), report=report)
    return [
        _metrics(member, outcome) | (_saturation(member, outcome) if counts else {})
        for member, outcome, counts in zip(models, outcomes, counts_heads, strict=True)
    ]


def prepare(config: MahdaviConfig) -> Prepared:
    """Return the model with its queries, its context or contexts, and their answers."""
    [member] = members([config])
    arrays = {name: tensor.numpy() for name, tensor in (member.examples | member.constants).items()}
    inputs = {"contexts": arrays["contexts"], "queries": arrays["queries"]}
    if config.answers == "labels":
        labels = QueryLabels(**inputs, labels=arrays[ANSWERS], label_count=config.labels)
        return Prepared(member, partial(_metrics, member), labels)
    return Prepared(member, partial(_metrics, member), QueryTargets(**inputs, targets=arrays[ANSWERS]))


def _metrics(member: Member, outcome: TrainingOutcome) -> Row:
    _, best_loss, best_accuracy = min(outcome.history, key=lambda point: point[1])
    return {
        "accuracy": outcome.accuracy,
        "loss": outcome.loss,
        "best_accuracy": best_accuracy,
        "best_loss": best_loss,
        "steps": outcome.steps,
        "parameters": member.architecture.parameters,
    }


@torch.no_grad()
def saturated_heads(member: Member, weights: Tensors) -> torch.Tensor:
    """Return the number of saturated heads for each example: int64 [N]."""
    model = member.architecture
    assert isinstance(model, QueryAttention)
    dtype = next(iter(weights.values())).dtype
    stacked = {name: tensor[None] for name, tensor in weights.items()}
    constants = {name: tensor[None].to(dtype) for name, tensor in member.constants.items()}
    parts = []
    for start in range(0, member.count, ROWS_AT_ONCE):
        inputs = {name: rows for name, rows in member.examples.items() if name != ANSWERS}
        batch = {name: rows[None, start : start + ROWS_AT_ONCE].to(dtype) for name, rows in inputs.items()}
        parts.append(model.saturated(stacked, batch | constants)[0])
    return torch.cat(parts)


def _saturation(member: Member, outcome: TrainingOutcome) -> Row:
    """Return mean number and share of saturated heads, and for k = 0, …, H the number of examples with k of them."""
    assert outcome.weights is not None
    counts = saturated_heads(member, outcome.weights)
    heads = member.architecture.heads  # type: ignore[attr-defined]
    mean = counts.double().mean().item()
    by_number = torch.bincount(counts, minlength=heads + 1).tolist()
    return {
        "saturated_heads": mean,
        "saturated_share": mean / heads,
        "examples_by_saturated_heads": " ".join(map(str, by_number)),
    }


@dataclass(frozen=True)
class FigureGrid:
    """The grid of a figure: sizes, and for each kind of context the numbers of examples."""

    answers: Answers
    examples: dict[Context, tuple[int, ...]]
    heads: tuple[int, ...] = (20,)
    lengths: tuple[int, ...] = (32,)
    head_dims: tuple[int, ...] = (64,)
    long: bool = False

    def configs(self, context: Context, scale: str) -> list[MahdaviConfig]:
        """Return all configs of the grid, seeds last."""
        sizes = product(self.examples[context], self.lengths, self.heads, self.head_dims, range(SEEDS[scale]))
        return [
            MahdaviConfig(
                self.answers, context, N, n, H, d_h, seed, min(LONG if self.long else steps(N), MOST_STEPS[scale])
            )
            for N, n, H, d_h, seed in sizes
        ]


def _every(first: int, last: int, by: int) -> tuple[int, ...]:
    return tuple(range(first * 1000, last * 1000 + 1, by * 1000))


BLOCKS = {
    "regression-context": FigureGrid(
        "targets", {"random": _every(10, 90, 20), "fixed": _every(10, 25, 5)}, lengths=LENGTHS
    ),
    "regression-heads": FigureGrid("targets", {"random": _every(10, 90, 20), "fixed": _every(10, 30, 5)}, heads=HEADS),
    "classification-heads": FigureGrid(
        "labels", {"random": _every(30, 130, 20), "fixed": _every(10, 40, 10)}, heads=HEADS
    ),
    "classification-context": FigureGrid(
        "labels", {"random": _every(20, 60, 10), "fixed": _every(6, 18, 4)}, lengths=LENGTHS
    ),
    "classification-head-dim": FigureGrid(
        "labels", {"fixed": _every(10, 20, 5)}, heads=(30,), head_dims=HEAD_DIMS, long=True
    ),
}
"""The grids of the paper's figures."""
SATURATION = ((4, 550), (8, 1300))
"""(H, N) of the runs in which saturated heads are counted."""


def _block(name: str, context: Context, scale: str) -> Experiment:
    block = BLOCKS[name]
    if checked_scale(scale) == "smoke":
        block = _tiny(block)
    return Experiment(
        f"mahdavi-2024-{name}-{context}", scale, tuple(block.configs(context, scale)), groups, work, prepare
    )


def _tiny(block: FigureGrid) -> FigureGrid:
    """Return a grid of two tiny models along the swept setting."""
    return FigureGrid(
        block.answers,
        dict.fromkeys(block.examples, (96,)),
        heads=(1, 3) if len(block.heads) > 1 else (2,),
        lengths=(2, 5) if len(block.lengths) > 1 else (4,),
        head_dims=(2, 64) if len(block.head_dims) > 1 else (64,),
        long=block.long,
    )


def saturation(scale: str) -> Experiment:
    """Return the experiment that counts saturated heads, example by example, after training that does not end early."""
    sizes = ((2, 40),) if checked_scale(scale) == "smoke" else SATURATION
    n = 4 if scale == "smoke" else 32
    configs = tuple(
        MahdaviConfig("labels", "fixed", N, n, H, 64, seed, min(LONG, MOST_STEPS[scale]), stop=False)
        for (H, N), seed in product(sizes, range(SEEDS[scale]))
    )
    return Experiment("mahdavi-2024-saturation", scale, configs, groups, work, prepare)


EXPERIMENTS: dict[str, Callable[[str], Experiment]] = {
    f"mahdavi-2024-{name}-{context}": partial(_block, name, context)
    for name, block in BLOCKS.items()
    for context in block.examples
} | {"mahdavi-2024-saturation": saturation}
"""Every experiment of the paper, by name."""
