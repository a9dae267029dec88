"""Members of an ensemble: each is an architecture, data, a seed, and a training.

Shapes: M members, N examples per member, batches of B, outputs of C numbers (logits of C labels, or real values).
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal, Protocol, Self, runtime_checkable

import torch

from byheart.errors import BadInput
from byheart.tasks.arrays import check_count

Tensors = dict[str, torch.Tensor]
State = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Weights of M models and both of Adam's moments, [M, P] each."""
Schedule = Literal["linear-by-epoch", "warm-up-cosine", "constant"]
Loss = Literal["cross-entropy", "summed-cross-entropy", "mean-square"]

SCHEDULES = ("linear-by-epoch", "warm-up-cosine", "constant")
LOSSES = ("cross-entropy", "summed-cross-entropy", "mean-square")
ANSWERS = "answers"
EPSILON = 1e-8
"""The number that Adam adds to the root of the second moment."""


class MemberArchitecture(Protocol):
    """A frozen, hashable dataclass of sizes that defines first weights and outputs."""

    @property
    def parameters(self) -> int:
        """Number of trained parameters, including embeddings and biases."""
        ...

    def init(self, generator: torch.Generator) -> Tensors:
        """Return first weights, float64 on the CPU."""
        ...

    def outputs(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Return outputs [M, B, C] for weights [M, …] and a batch of examples [M, B, …] and constants [M or 1, …].

        If answers have more axes, [M, B, …], outputs are [M, B, …, C].
        """
        ...


@runtime_checkable
class Joinable(MemberArchitecture, Protocol):
    """An architecture whose weights may be padded with zeros, which then stay zero by themselves.

    A tensor of the smaller architecture is the leading corner of the larger one's. Zeros stay zero because each is
    multiplied by another zero (in an empty head, W_V by W_O), so its gradient vanishes.
    """

    @property
    def family(self) -> Hashable:
        """Value that is equal for architectures that can be joined."""
        ...

    def join(self, other: Self) -> Self:
        """Return the smallest architecture that holds both."""
        ...


@dataclass(frozen=True)
class Training:
    """The training of a member: Adam with these ``betas``, on batches cut from a stream of shuffled epochs.

    Schedules: "linear-by-epoch" goes from ``learning_rate`` to ``last_learning_rate`` in equal steps, one per epoch.
    "warm-up-cosine" rises from 1 % of the rate to all of it in the first ``warm_up`` share of the steps, then falls to
    ``last_learning_rate``. A gradient longer than ``largest_norm`` is scaled down to it.

    All examples are measured every ``evaluate_every`` steps, and the member is done at an accuracy of ``stop_at``. The
    ``last_batches`` give ``last_accuracy``. The loss "summed-cross-entropy" is the sum over a batch; others are means.
    """

    batch: int
    steps: int
    learning_rate: float
    last_learning_rate: float = 0.0
    schedule: Schedule = "constant"
    loss: Loss = "cross-entropy"
    evaluate_every: int | None = None
    stop_at: float | None = None
    last_batches: int = 0
    betas: tuple[float, float] = (0.9, 0.999)
    warm_up: float = 0.05
    largest_norm: float | None = None

    def __post_init__(self) -> None:
        check_count("batch", self.batch)
        check_count("steps", self.steps)
        if self.evaluate_every is not None:
            check_count("evaluate_every", self.evaluate_every)
        if not self.learning_rate > 0 or not self.last_learning_rate >= 0:
            rates = f"learning_rate is {self.learning_rate} and last_learning_rate {self.last_learning_rate}"
            raise BadInput(f"{rates}; expected more than 0, and 0 or more")
        if self.schedule not in SCHEDULES:
            raise BadInput(f"schedule is {self.schedule!r}; expected one of {', '.join(SCHEDULES)}")
        if self.loss not in LOSSES:
            raise BadInput(f"loss is {self.loss!r}; expected one of {', '.join(LOSSES)}")
        if self.stop_at is not None and self.evaluate_every is None:
            raise BadInput(f"stop_at is {self.stop_at} and evaluate_every is None; expected a number of steps")
        if not 0 <= self.last_batches <= self.steps:
            raise BadInput(f"last_batches is {self.last_batches}; expected 0 to {self.steps} (steps)")
        if not all(0 <= share < 1 for share in (*self.betas, self.warm_up)):
            raise BadInput(f"betas are {self.betas} and warm_up {self.warm_up}; expected 0 or more, and less than 1")
        if self.largest_norm is not None and not self.largest_norm > 0:
            raise BadInput(f"largest_norm is {self.largest_norm}; expected more than 0, or None")


@dataclass(frozen=True, eq=False)
class Member:
    """One model to train.

    ``examples`` are tensors with a leading axis of N, among them "answers"; batches are cut from them. Members with the
    same tensors share their memory. ``constants`` belong to all examples of the model. ``initial`` replaces first
    weights, for example by a construction. Tensors named in ``frozen`` are not trained. ``measured_on`` replaces the
    examples on which accuracy and loss are measured.
    """

    architecture: MemberArchitecture
    training: Training
    seed: int
    examples: Tensors
    constants: Tensors = field(default_factory=dict)
    initial: Tensors | None = None
    frozen: frozenset[str] = frozenset()
    measured_on: Tensors | None = None

    def __post_init__(self) -> None:
        for data in (self.examples, self.measured_on):
            if data is None:
                continue
            if ANSWERS not in data:
                raise BadInput(f"examples have {', '.join(data)}; expected {ANSWERS!r} among them")
            sizes = {len(tensor) for tensor in data.values()}
            if len(sizes) != 1 or 0 in sizes:
                raise BadInput(f"examples have tensors of {sorted(sizes)} rows; expected one number, 1 or more")
        if self.measured_on is not None and set(self.measured_on) != set(self.examples):
            raise BadInput(f"measured_on has {sorted(self.measured_on)}; expected {sorted(self.examples)}")

    @property
    def count(self) -> int:
        """Number N of examples."""
        return len(self.examples[ANSWERS])

    @property
    def measured(self) -> Tensors:
        """Examples on which accuracy and loss are measured."""
        return self.examples if self.measured_on is None else self.measured_on


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """The result of training a member.

    ``accuracy`` and ``loss`` (the mean over examples) are measured after training. ``history`` has their earlier
    values: (step, loss, accuracy). Real answers have no accuracy. ``last_accuracy`` is the mean accuracy of the last
    batches, each before its step. ``seconds`` is the member's share of the time taken.
    """

    accuracy: float | None
    last_accuracy: float | None
    loss: float
    steps: int
    seconds: float
    weights: Tensors | None
    history: list[tuple[int, float, float | None]]
