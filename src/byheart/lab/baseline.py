"""The trained baseline: a GPT of at most P parameters, trained on a task, and how much of it it has memorized.

N sequences of n tokens, C labels. Training is the usual one and has memorizing as its only goal: AdamW without weight
decay, a linear warm-up and a cosine decay to zero, large batches, the loss read at the last position. The data stay on
the device. On a GPU, a whole step is one CUDA graph, as these networks are so small that launching kernels would take
longer than running them.

What counts is measured after training, on all N examples, in float32: :mod:`byheart.lab.entropy`.
"""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

import numpy.typing as npt
import torch
from torch.nn import functional

from byheart.errors import BadInput
from byheart.lab.devices import device_called
from byheart.lab.entropy import memorized_bits, surprises
from byheart.lab.gpt import GPT, Shape, gpt_with
from byheart.tasks.checks import below, count, integers

Precision = Literal["float32", "bfloat16"]
Report = Callable[[str], None]

BETAS = (0.9, 0.99)
WARM_UP = 0.03  # share of the budget
LARGEST_NORM = 1.0  # of gradients: rates are large, and a single bad step must not end a run
STEPS_AHEAD = 50  # steps that a GPU is given before the host waits for it
SECONDS_A_REPORT = 10.0
ROWS_MEASURED_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Trained:
    """What came out of a training run.

    ``loss_bits`` is the mean cross-entropy over all examples, ``accuracy`` the share of them whose most likely label is
    the right one. ``seconds`` is the time of the training steps alone.
    """

    parameters: int
    memorized_bits: float
    bits_per_parameter: float
    accuracy: float
    loss_bits: float
    steps: int
    seconds: float
    epochs: float
    shape: Shape
    device: str


def train(
    inputs: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    labels_in_all: int,
    parameters: int,
    seconds: float | None = None,
    steps: int | None = None,
    batch: int = 1 << 14,
    learning_rate: float = 1e-2,
    seed: int = 0,
    device: str = "cpu",
    precision: Precision = "float32",
    vocab: int | None = None,
    shape: Shape | None = None,
    prior_bits: float | None = None,
    graph: bool = True,
    report: Report | None = None,
) -> Trained:
    """Train on inputs [N, n] and labels [N] below ``labels_in_all``, for so many ``seconds`` or ``steps``.

    The shape is that of :func:`~byheart.lab.gpt.gpt_with` unless one of at most ``parameters`` is given. ``vocab`` is
    one more than the largest token if not given. ``prior_bits`` is what a label costs without the network: log₂ C if
    not given, which is right for uniform labels only. Equal seeds give equal results on a CPU, for a budget in steps.

    >>> import numpy as np
    >>> trained = train(np.arange(8)[:, None], np.arange(8), labels_in_all=8, parameters=900, steps=200)
    >>> trained.accuracy, round(trained.memorized_bits)
    (1.0, 24)
    """
    tokens = integers("inputs", inputs, ("N", "n"))
    answers = integers("labels", labels, (len(tokens),))
    V = below("inputs", tokens, vocab, "vocab")
    C = below("labels", answers, labels_in_all, "labels_in_all")
    N, n = tokens.shape
    budget = _Budget(seconds, steps)
    batches = -(-N // count("batch", batch))
    if not learning_rate > 0:
        raise BadInput(f"learning_rate is {learning_rate}; expected more than 0")
    shape = _checked(shape or gpt_with(parameters, V, C, n), parameters, V, C, n)

    place = device_called(device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPT(shape).to(place)
    data = torch.from_numpy(tokens.copy()).to(place), torch.from_numpy(answers.copy()).to(place)
    run = _Run(model, *data, size=N // batches, seed=seed, precision=precision)
    if graph and place.type == "cuda":
        run.record(report)
    taken = _loop(run, budget, learning_rate, report)

    surprise, accuracy = _measure(model, *data)
    bits = memorized_bits(surprise, math.log2(C) if prior_bits is None else prior_bits)
    return Trained(
        parameters=shape.parameters,
        memorized_bits=bits,
        bits_per_parameter=bits / shape.parameters,
        accuracy=accuracy,
        loss_bits=surprise.mean().item(),
        steps=run.steps,
        seconds=taken,
        epochs=run.steps * run.size / N,
        shape=shape,
        device=torch.cuda.get_device_name(place) if place.type == "cuda" else str(place),
    )


class _Budget:
    """How much of the time or of the steps is used."""

    def __init__(self, seconds: float | None, steps: int | None) -> None:
        if (seconds is None) == (steps is None):
            given = "neither" if seconds is None else "both"
            raise BadInput(f"{given} of seconds and steps given; expected one of them")
        if seconds is not None and not 0 < seconds < math.inf:
            raise BadInput(f"seconds is {seconds}; expected more than 0")
        self.seconds = seconds
        self.steps = None if steps is None else count("steps", steps)

    def used(self, steps: int, seconds: float) -> float:
        """From 0 to 1, and more once it is used up."""
        return steps / self.steps if self.steps is not None else seconds / (self.seconds or math.inf)


class _Run:
    """A model, its data and its optimizer; every step takes the next batch of the epoch's random order."""

    def __init__(
        self, model: GPT, tokens: torch.Tensor, labels: torch.Tensor, *, size: int, seed: int, precision: Precision
    ) -> None:
        self.model, self.tokens, self.labels, self.size, self.precision = model, tokens, labels, size, precision
        self.device = tokens.device
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.rate = torch.zeros((), device=self.device)
        on_gpu = self.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=self.rate, betas=BETAS, weight_decay=0.0, fused=True, capturable=on_gpu
        )
        # What a recorded step reads and writes lies at fixed places.
        self.places = torch.zeros(size, dtype=torch.int64, device=self.device)
        self.loss = torch.zeros((), device=self.device)
        self.order = torch.empty(0, dtype=torch.int64, device=self.device)
        self.steps = 0
        self.work: Callable[[], None] = self._work

    def step(self, rate: float) -> None:
        """One step at a learning rate; on a GPU it is only asked for."""
        batches = len(self.tokens) // self.size
        start = self.steps % batches * self.size
        if start == 0:
            self.order = torch.randperm(len(self.tokens), generator=self.generator, device=self.device)
        self.places.copy_(self.order[start : start + self.size])
        self.rate.fill_(rate)
        self.work()
        self.steps += 1

    def record(self, report: Report | None) -> None:
        """Make a step one CUDA graph; if that cannot be done, steps stay as they are, and slower."""
        stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        try:
            stream.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.device(self.device), torch.cuda.stream(stream):
                for _ in range(3):  # lazy initialization must not be recorded; the rate is zero, so nothing is learned
                    self._work()
                self._forget()
                stream.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=stream):
                    self._work()
            torch.cuda.synchronize(self.device)
            self.work = graph.replay
        except RuntimeError as error:
            if report is not None:
                report(f"no CUDA graph ({error}); going on without")

    def _work(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        with self._autocast():
            logits = self.model(self.tokens[self.places], last=True)
        loss = functional.cross_entropy(logits.float(), self.labels[self.places])
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), LARGEST_NORM)
        self.optimizer.step()
        self.loss.copy_(loss.detach())

    def _forget(self) -> None:
        """Set the optimizer's moments and its count of steps to zero, where they are."""
        for state in self.optimizer.state.values():
            for moment in state.values():
                moment.zero_()

    def _autocast(self) -> AbstractContextManager[None]:
        # Casts are not kept from one call to the next: a recorded step has to cast anew.
        wanted = self.precision == "bfloat16"
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=wanted, cache_enabled=False)


def _loop(run: _Run, budget: _Budget, learning_rate: float, report: Report | None) -> float:
    """Train until the budget is used; seconds taken."""
    on_gpu = run.device.type == "cuda"
    start = time.perf_counter()
    seconds = reported = 0.0
    while (used := budget.used(run.steps, seconds)) < 1:
        run.step(learning_rate * schedule(used))
        if not on_gpu or run.steps % STEPS_AHEAD == 0:
            if on_gpu:
                torch.cuda.synchronize(run.device)
            seconds = time.perf_counter() - start
        if report is not None and seconds - reported >= SECONDS_A_REPORT:
            reported = seconds
            report(f"step {run.steps:,}, {seconds:.0f} s, {run.loss.item() / math.log(2):.3f} bits a label")
    if on_gpu:
        torch.cuda.synchronize(run.device)
    return time.perf_counter() - start


def schedule(used: float) -> float:
    """The learning rate, as a share of the largest, when so much of the budget is used.

    >>> [round(schedule(used), 3) for used in (0, WARM_UP / 2, WARM_UP, 0.5 + WARM_UP / 2, 1)]
    [0.01, 0.5, 1.0, 0.5, 0.0]
    """
    if used < WARM_UP:
        return max(used / WARM_UP, 0.01)  # the first step is a step, however few there are
    return 0.5 + 0.5 * math.cos(math.pi * (used - WARM_UP) / (1 - WARM_UP))


@torch.no_grad()
def _measure(model: GPT, tokens: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Surprise of every example, float64 [N] on the CPU, and the share of right answers."""
    surprise, right = [], 0
    for start in range(0, len(tokens), ROWS_MEASURED_AT_ONCE):
        rows, answers = (part[start : start + ROWS_MEASURED_AT_ONCE] for part in (tokens, labels))
        logits = model(rows, last=True)
        surprise.append(surprises(logits, answers).cpu())
        right += int((logits.argmax(dim=1) == answers).sum())
    return torch.cat(surprise), right / len(labels)


def _checked(shape: Shape, parameters: int, vocab: int, labels: int, length: int) -> Shape:
    if shape.parameters > parameters:
        raise BadInput(f"shape has {shape.parameters} parameters; expected at most {parameters}")
    if (shape.vocab, shape.labels, shape.length) != (vocab, labels, length):
        raise BadInput(f"{shape} is for other tasks; expected vocab {vocab}, labels {labels} and length {length}")
    return shape
