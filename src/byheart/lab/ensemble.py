"""Ensembles: many small models, of one shape family, trained at once with a leading model axis.

A model of a few thousand parameters keeps neither a GPU nor a CPU core busy: most of a step's time goes into starting
operations. So members that compute the same operations (grid points, seeds, learning rates) are stacked and one step
trains them all (:mod:`byheart.lab.stack`). Members differ freely in data, number of examples, seed, learning rate,
steps and stopping. Those of different architectures are trained apart; or together, on a GPU, where they can be padded
to a common one (:class:`~byheart.lab.member.Joinable`). Finished members leave the stack, stacks are as large as the
memory allows, and on a GPU several of them run side by side: one of a few members leaves most of it idle.

A member's result depends on its own seed only, not on what it is trained beside, up to rounding.
"""

import math
import time
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import reduce

import torch

from byheart.lab.devices import device_called
from byheart.lab.member import Architecture, Joinable, Member, Outcome, Training
from byheart.lab.stack import Stack
from byheart.progress import Report

__all__ = ["Member", "Outcome", "Training", "train"]

MEMBERS_AT_ONCE_ON_CPU = 8  # more do not fit into the caches
MEMORY_SHARE = 0.6  # of the free memory of a GPU
SIDE_BY_SIDE = 16  # stacks: more streams than that gain nothing
SHARE_WORTH_LEAVING = 0.125  # of a stack: recording a graph anew takes longer than a few members' steps
SECONDS_A_REPORT = 10.0
STEPS_A_LOOK = 512  # at the clock


def train(
    members: Sequence[Member],
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    graph: bool = True,
    keep_weights: bool = False,
    report: Report | None = None,
) -> list[Outcome]:
    """Train all members; their outcomes, in order.

    ``graph`` records a step as a CUDA graph where the device has them; ``keep_weights`` returns the trained weights;
    ``report`` hears how many members are done.

    >>> from byheart.lab.models.dana import AttentionOnly
    >>> examples = {"tokens": torch.tensor([[0, 1], [1, 1], [2, 1]]), "answers": torch.tensor([2, 0, 1])}
    >>> training = Training(batch=3, steps=100, learning_rate=0.02)
    >>> network = AttentionOnly(vocab=3, model_dim=4, head_dim=4, heads=2)
    >>> [outcome.accuracy for outcome in train([Member(network, training, seed, examples) for seed in range(2)])]
    [1.0, 1.0]
    """
    place = device_called(device)
    waiting = _planned(members, place, dtype)
    room = _room(place) if place.type == "cuda" else 0
    clock, outcomes = _Clock(), dict[int, Outcome]()
    running: list[_Run] = []
    while waiting or running:
        while waiting and (not running or _fits(waiting[0], running, room, place)):
            planned = waiting.popleft()
            stack = Stack([members[i] for i in planned.which], planned.architecture, place, dtype, graph=graph)
            running.append(_Run(stack, planned, keep_weights, clock))
            running[-1].start()
            del stack
        for run in running:
            run.finish()
            if not run.over:  # at once, so that the others' turn finds the GPU at work
                run.start()
        for run in [run for run in running if run.over]:
            outcomes |= run.done
            running.remove(run)
        clock.tell(report, len(outcomes) + sum(len(run.done) for run in running), len(members), running)
    return [outcomes[i] for i in range(len(members))]


@dataclass(frozen=True)
class _Planned:
    """A stack that is still to be made: whose members, in which architecture, and the memory that it will take."""

    which: list[int]
    architecture: Architecture
    bytes: int


def _fits(planned: _Planned, running: "Sequence[_Run]", room: int, device: torch.device) -> bool:
    """Whether a stack may be started beside those that are running."""
    taken = sum(run.planned.bytes for run in running)
    return device.type == "cuda" and len(running) < SIDE_BY_SIDE and taken + planned.bytes <= room


class _Clock:
    """Time, and the steps of all members since it was last told how many."""

    def __init__(self) -> None:
        self.lapped = self.told = time.perf_counter()
        self.steps = 0

    def lap(self) -> float:
        """Seconds since the last lap."""
        before, self.lapped = self.lapped, time.perf_counter()
        return self.lapped - before

    def tell(self, report: Report | None, done: int, of: int, running: "Sequence[_Run]") -> None:
        """Report, now and then."""
        now = time.perf_counter()
        if report is not None and running and now - self.told >= SECONDS_A_REPORT:
            rate = self.steps / (now - self.told)
            self.told, self.steps = now, 0
            models, step = sum(len(run.places) for run in running), min(run.stack.step for run in running)
            report(done, of, f"{models:,} at step {step:,}, {rate:,.0f} model-steps/s")


class _Run:
    """A stack on its way from one point where something is due to the next, and what is known of its members."""

    def __init__(self, stack: Stack, planned: _Planned, keep_weights: bool, clock: _Clock) -> None:
        self.stack, self.planned, self.keep_weights, self.clock = stack, planned, keep_weights, clock
        which = planned.which
        self.places = list(which)  # of the stack's members among all
        self.history: dict[int, list[tuple[int, float, float | None]]] = {i: [] for i in which}
        self.rights: dict[int, float] = dict.fromkeys(which, 0.0)
        self.seconds: dict[int, float] = dict.fromkeys(which, 0.0)
        self.done: dict[int, Outcome] = {}
        self.last: list[tuple[int, int]] = []  # members that are at their last batches, by both places

    @property
    def over(self) -> bool:
        """Whether all its members are done."""
        return len(self.done) == len(self.history)

    def _active(self) -> list[tuple[int, int, Member]]:
        """Place in the stack, place among all and member of those that are not done."""
        pairs = zip(self.places, self.stack.members, strict=True)
        return [(index, place, member) for index, (place, member) in enumerate(pairs) if place not in self.done]

    def start(self) -> None:
        """Begin the steps up to the next one at which a member ends, is evaluated, or comes to its last batches."""
        now = self.stack.step
        due = {now + STEPS_A_LOOK}
        for _, _, member in self._active():
            training = member.training
            due |= {training.steps, training.steps - training.last_batches}
            if training.evaluate_every is not None:
                due.add((now // training.evaluate_every + 1) * training.evaluate_every)
        steps = min(step for step in due if step > now) - now
        self.last = [
            (index, place)
            for index, place, member in self._active()
            if now >= member.training.steps - member.training.last_batches
        ]
        self.clock.steps += self.stack.start(steps, measure=bool(self.last)) * len(self._active())

    def finish(self) -> None:
        """Wait for these steps, and see what is due."""
        _, rights = self.stack.finish()
        if self.last:
            sums = rights.double().sum(dim=0).tolist()
            for index, place in self.last:
                self.rights[place] += sums[index]
        self._evaluate()
        self._leave()

    def _evaluate(self) -> None:
        """Measure the members for which it is time, and note which of them are done."""
        step = self.stack.step
        due = [
            (index, place, member)
            for index, place, member in self._active()
            if step >= member.training.steps or _divides(member.training.evaluate_every, step)
        ]
        if not due:
            return
        measured = [values.tolist() for values in self.stack.measure()]
        self._share_time()
        for index, place, member in due:
            loss, right = measured[0][index], measured[1][index]
            accuracy = None if math.isnan(right) else right
            self.history[place].append((step, loss, accuracy))
            stop_at = member.training.stop_at
            if step >= member.training.steps or (stop_at is not None and accuracy is not None and accuracy >= stop_at):
                self._finish(index, place, member)

    def _finish(self, index: int, place: int, member: Member) -> None:
        step, loss, accuracy = self.history[place][-1]
        training = member.training
        counted = training.last_batches > 0 and step >= training.steps and accuracy is not None
        self.done[place] = Outcome(
            accuracy=accuracy,
            last_accuracy=self.rights[place] / training.last_batches if counted else None,
            loss=loss,
            steps=step,
            seconds=self.seconds[place],
            weights=self.stack.weights_of(index) if self.keep_weights else None,
            history=self.history[place],
        )

    def _share_time(self) -> None:
        """Each of the active members has its part in the seconds since time was last shared out."""
        seconds, active = self.clock.lap(), self._active()
        for _, place, _ in active:
            self.seconds[place] += seconds / len(active)

    def _leave(self) -> None:
        """Finished members leave the stack, if there are enough of them to make a difference."""
        kept = [index for index, place in enumerate(self.places) if place not in self.done]
        if kept and len(self.places) - len(kept) >= SHARE_WORTH_LEAVING * len(self.places):
            self.stack.keep(kept)
            self.places = [self.places[index] for index in kept]


def _buckets(members: Sequence[Member], *, join: bool) -> list[tuple[Architecture, list[int]]]:
    """Which members can be stacked, by their places, and the architecture that holds them all."""
    buckets: dict[Hashable, list[int]] = {}
    for index, member in enumerate(members):
        buckets.setdefault(_bucket(member, join=join), []).append(index)
    return [(_joined([members[i].architecture for i in bucket]), bucket) for bucket in buckets.values()]


def _bucket(member: Member, *, join: bool) -> Hashable:
    """What members in one stack have in common."""
    architecture, training = member.architecture, member.training
    family = architecture.family if join and isinstance(architecture, Joinable) else architecture
    tensors = [
        (name, tensor.shape[1:], tensor.dtype.is_floating_point)
        for data in (member.examples, member.measured)
        for name, tensor in sorted(data.items())
    ]
    constants = [(name, tensor.shape) for name, tensor in sorted(member.constants.items())]
    step = training.batch, training.loss, training.betas, training.largest_norm
    return type(architecture), family, *step, member.frozen, *tensors, *constants


def _joined(architectures: Sequence[Architecture]) -> Architecture:
    distinct = list(dict.fromkeys(architectures))
    if len(distinct) == 1:
        return distinct[0]
    joinable = [architecture for architecture in distinct if isinstance(architecture, Joinable)]
    return reduce(lambda one, other: one.join(other), joinable)


def _planned(members: Sequence[Member], device: torch.device, dtype: torch.dtype) -> deque[_Planned]:
    """The stacks that train them all: as large as fits into the caches of a CPU, or into a GPU's memory."""
    planned: deque[_Planned] = deque()
    for architecture, bucket in _buckets(members, join=device.type == "cuda"):
        cuda = device.type == "cuda"
        each = _bytes_of(members[bucket[0]], architecture, device, dtype) if cuda else 0
        most = max(1, _room(device) // max(each, 1)) if cuda else MEMBERS_AT_ONCE_ON_CPU
        for start in range(0, len(bucket), most):
            which = bucket[start : start + most]
            planned.append(_Planned(which, architecture, each * len(which)))
    return planned


def _bytes_of(member: Member, architecture: Architecture, device: torch.device, dtype: torch.dtype) -> int:
    """What a member takes of a GPU's memory, measured."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    one = Stack([member], architecture, device, dtype, graph=False)
    one.advance(1, measure=True)
    one.measure()
    return torch.cuda.max_memory_allocated(device) - before


def _room(device: torch.device) -> int:
    """Bytes of a GPU's memory that stacks may take."""
    torch.cuda.empty_cache()
    return int(MEMORY_SHARE * torch.cuda.mem_get_info(device)[0])


def _divides(every: int | None, step: int) -> bool:
    return every is not None and step % every == 0
