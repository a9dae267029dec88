"""Ensembles: many small models, trained at once with a leading model axis.

A model of a few thousand parameters keeps neither a GPU nor a CPU core busy: starting operations takes most of a step.
So members that compute the same operations (grid points, seeds, learning rates) are stacked, and one step trains them
all (:mod:`byheart.lab.stack`). Members may differ in data, number of examples, seed, learning rate, steps and stopping.
Members of different architectures are trained apart. On a GPU, they are trained together if they can be padded to a
common architecture (:class:`~byheart.lab.member.Joinable`). Finished members leave the stack, and stacks are as large
as the memory allows. On a GPU several stacks run side by side, because a stack of few members leaves most of it idle.

A stack repeats steps up to its next event: an evaluation, the end of a member, or its first last batch. Between events
it looks at the clock after a number of steps that depends on their speed. No result depends on that number.

A member's result depends only on its own seed, not on the other members, up to rounding.

In a job of a run, training is kept in the run's folder from time to time, and continues from there
(:mod:`byheart.lab.checkpoints`).
"""

import math
import time
from collections import deque
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch

from byheart.devices import find_device
from byheart.errors import BadInput
from byheart.lab.checkpoints import Book, opened
from byheart.lab.ledger import BegunStack, Ledger, page_of, read_page
from byheart.lab.member import Joinable, Member, MemberArchitecture, Training, TrainingOutcome
from byheart.lab.stack import Stack, tensor_shapes
from byheart.progress import Report

__all__ = ["Member", "Training", "TrainingOutcome", "train"]

MEMBERS_AT_ONCE_ON_CPU = 8
"""Largest number of members of a stack on a CPU; more do not fit into the caches."""
MEMORY_SHARE = 0.6
"""Share of a GPU's free memory that stacks may take."""
SIDE_BY_SIDE = 16
"""Largest number of stacks that run side by side on a GPU; more streams gain nothing."""
SHARE_WORTH_LEAVING = 0.125
"""Smallest share of members that leaves a stack. Recording a CUDA graph anew takes longer than a few members' steps."""
SECONDS_PER_REPORT = 10.0
"""Seconds between two reports of progress."""
SECONDS_PER_LOOK = 2.0
"""Seconds between two looks at the clock, and so until a request to stop is noticed."""
FIRST_LOOK, MAX_LOOK = 16, 512
"""Number of steps until the first look at the clock, and the largest number between two."""


@dataclass(frozen=True)
class PlannedStack:
    """A stack that is yet to be made: its members' places, its architecture, and the memory that it will take.

    ``begun`` is the state from which it continues, if there is one.
    """

    places: list[int]
    architecture: MemberArchitecture
    bytes: int
    begun: BegunStack | None = None


class Clock:
    """Time, and the number of model-steps since the last report."""

    def __init__(self) -> None:
        self.lapped = self.reported = time.perf_counter()
        self.steps = 0

    def share(self, running: "Sequence[Course]") -> None:
        """Divide the seconds since the last call equally among all active members."""
        before, self.lapped = self.lapped, time.perf_counter()
        active = [(course, place) for course in running for _, place, _ in course.active()]
        for course, place in active:
            course.ledger.seconds[place] += (self.lapped - before) / len(active)

    def tell(self, report: Report | None, done: int, of: int, running: "Sequence[Course]") -> None:
        """Report the progress if :data:`SECONDS_PER_REPORT` have passed."""
        now = time.perf_counter()
        if report is not None and running and now - self.reported >= SECONDS_PER_REPORT:
            rate = self.steps / (now - self.reported)
            self.reported, self.steps = now, 0
            models, step = sum(len(course.places) for course in running), min(course.stack.step for course in running)
            report(done, of, f"{models:,} at step {step:,}, {rate:,.0f} model-steps/s")


class Course:
    """A stack in training. Its measurements go into the ledger."""

    def __init__(self, stack: Stack, planned: PlannedStack, ledger: Ledger, clock: Clock) -> None:
        self.stack, self.planned, self.ledger, self.clock = stack, planned, ledger, clock
        self.places = list(planned.places)  # of the stack's members among all members
        self.last: list[tuple[int, int]] = []  # members in their last batches: place in the stack, place among all
        self.look, self.started = FIRST_LOOK, 0.0
        if planned.begun is not None:
            stack.go_on(planned.begun.step, planned.begun.matrices)
            self.planned = replace(planned, begun=None)  # the stack holds its matrices now

    @property
    def begun(self) -> BegunStack:
        """The state between two looks. It is valid until the next start."""
        return BegunStack(list(self.places), self.stack.step, self.stack.matrices())

    def active(self) -> list[tuple[int, int, Training]]:
        """Return the members that are not done: place in the stack, place among all members, and training."""
        pairs = zip(self.places, self.stack.members, strict=True)
        members = enumerate(pairs)
        return [(index, place, member.training) for index, (place, member) in members if place not in self.ledger.done]

    def start(self) -> None:
        """Start the steps up to the next event."""
        now, active = self.stack.step, self.active()
        due = {now + self.look}
        for _, _, training in active:
            due |= {training.steps, training.steps - training.last_batches}
            if training.evaluate_every is not None:
                due.add((now // training.evaluate_every + 1) * training.evaluate_every)
        steps = min(step for step in due if step > now) - now
        self.last = [
            (index, place) for index, place, training in active if now >= training.steps - training.last_batches
        ]
        self.started = time.perf_counter()
        self.clock.steps += self.stack.start(steps, measure=bool(self.last)) * len(active)

    def finish(self) -> bool:
        """Wait for the steps, and process the event. Return False if all members are done."""
        _, rights = self.stack.finish()
        seconds = time.perf_counter() - self.started
        if seconds > SECONDS_PER_LOOK:
            self.look = max(1, len(rights) // 2)
        elif seconds < SECONDS_PER_LOOK / 4 and len(rights) == self.look:
            self.look = min(2 * self.look, MAX_LOOK)
        # One step after the other, so that the sum does not depend on the number of steps per look.
        for step in rights.double().tolist() if self.last else ():
            for index, place in self.last:
                self.ledger.rights[place] += step[index]
        self._evaluate()
        kept = [index for index, _, _ in self.active()]
        if kept and len(self.places) - len(kept) >= SHARE_WORTH_LEAVING * len(self.places):
            self.stack.keep(kept)
            self.places = [self.places[index] for index in kept]
        return bool(kept)

    def _evaluate(self) -> None:
        """Measure the members that are due, and record which of them are done."""
        step = self.stack.step
        due = [
            (index, place)
            for index, place, training in self.active()
            if step >= training.steps or (training.evaluate_every is not None and step % training.evaluate_every == 0)
        ]
        if not due:
            return
        losses, rights = (values.tolist() for values in self.stack.measure())
        self.clock.share([self])
        for index, place in due:
            accuracy = None if math.isnan(rights[index]) else rights[index]
            if self.ledger.note(place, losses[index], accuracy) and self.ledger.keep_weights:
                self.ledger.weights[place] = self.stack.weights_of(index)


def train(
    members: Sequence[Member],
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    graph: bool = True,
    keep_weights: bool = False,
    report: Report | None = None,
) -> list[TrainingOutcome]:
    """Train all members, and return their outcomes in order.

    ``graph`` records a step as a CUDA graph if the device has them. ``keep_weights`` returns the trained weights.
    ``report`` receives the number of members done.

    >>> from byheart.lab.models.dana import AttentionOnly
    >>> examples = {"tokens": torch.tensor([[0, 1], [1, 1], [2, 1]]), "answers": torch.tensor([2, 0, 1])}
    >>> training = Training(batch=3, steps=100, learning_rate=0.02)
    >>> network = AttentionOnly(vocab=3, model_dim=4, head_dim=4, heads=2)
    >>> [outcome.accuracy for outcome in train([Member(network, training, seed, examples) for seed in range(2)])]
    [1.0, 1.0]
    """
    place = find_device(device)
    book = opened(members, dtype)
    ledger, waiting = _begin(members, place, dtype, book, keep_weights=keep_weights)
    room = _room(place) if place.type == "cuda" else 0
    clock = Clock()
    running: list[Course] = []
    while waiting or running:
        while waiting and (not running or _fits(waiting[0], running, room, place)):
            planned = waiting.popleft()
            stack = Stack([members[i] for i in planned.places], planned.architecture, place, dtype, graph=graph)
            running.append(Course(stack, planned, ledger, clock))
            running[-1].start()
            del stack
        due = book is not None and book.due()
        going = []
        for course in running:
            if course.finish():
                going.append(course)
                if not due:  # start at once, so that the GPU works while the other stacks are processed
                    course.start()
        running = going
        if book is not None and due and (running or waiting):
            clock.share(running)
            begun = [*(course.begun for course in running), *(planned.begun for planned in waiting)]
            book.write(page_of(ledger, [stack for stack in begun if stack is not None]))
            for course in running:
                course.start()
        clock.tell(report, len(ledger.done), len(members), running)
    return [ledger.outcome(i) for i in range(len(members))]


def _begin(
    members: Sequence[Member], device: torch.device, dtype: torch.dtype, book: Book | None, *, keep_weights: bool
) -> tuple[Ledger, deque[PlannedStack]]:
    """Return the ledger and the stacks that are left, from the checkpoint if it can be used, or anew."""
    ledger = Ledger(members, keep_weights=keep_weights)
    page = None if book is None else book.read()
    if book is not None and page is not None:
        try:
            return ledger, _planned(members, device, dtype, ledger.done, read_page(page, ledger, dtype))
        except BadInput as error:
            book.refuse(str(error))
            ledger = Ledger(members, keep_weights=keep_weights)
    return ledger, _planned(members, device, dtype)


def _fits(planned: PlannedStack, running: Sequence[Course], room: int, device: torch.device) -> bool:
    """Return True if a stack may be started beside the running ones."""
    used = sum(course.planned.bytes for course in running)
    return device.type == "cuda" and len(running) < SIDE_BY_SIDE and used + planned.bytes <= room


def _buckets(members: Sequence[Member], *, join: bool) -> list[tuple[MemberArchitecture, list[int]]]:
    """Return the groups of members that can be stacked, each as the architecture that holds all, and their places."""
    buckets: dict[Hashable, list[int]] = {}
    for index, member in enumerate(members):
        architecture, training = member.architecture, member.training
        family = architecture.family if join and isinstance(architecture, Joinable) else architecture
        tensors = [
            (name, tensor.shape[1:], tensor.dtype.is_floating_point)
            for data in (member.examples, member.measured)
            for name, tensor in sorted(data.items())
        ]
        constants = [(name, tensor.shape) for name, tensor in sorted(member.constants.items())]
        step = training.batch, training.loss, training.betas, training.largest_norm
        common = (type(architecture), family, *step, member.frozen, *tensors, *constants)
        buckets.setdefault(common, []).append(index)
    joined = []
    for bucket in buckets.values():
        distinct = dict.fromkeys(members[i].architecture for i in bucket)
        joined.append((reduce(lambda smaller, larger: smaller.join(larger), distinct), bucket))  # type: ignore[attr-defined]
    return joined


def _planned(
    members: Sequence[Member],
    device: torch.device,
    dtype: torch.dtype,
    done: Collection[int] = (),
    begun: Sequence[BegunStack] = (),
) -> deque[PlannedStack]:
    """Return stacks for all members that are not ``done``, as large as a CPU's caches or a GPU's memory allow.

    Stacks that have ``begun`` come first. Members outside of them are stacked anew.
    """
    first, planned = list[PlannedStack](), list[PlannedStack]()
    started = {place for stack in begun for place in stack.places}
    for architecture, bucket in _buckets(members, join=device.type == "cuda"):
        cuda = device.type == "cuda"
        member_bytes = _bytes_of(members[bucket[0]], architecture, device, dtype) if cuda else 0
        for stack in (stack for stack in begun if stack.places[0] in bucket):
            shapes = tensor_shapes(architecture, without=members[stack.places[0]].frozen)
            width, stored = sum(map(math.prod, shapes.values())), stack.matrices[0].shape[1]
            if not set(stack.places) <= set(bucket) or stored != width:
                raise BadInput(f"a stack has {stored} weights per model; expected models of one kind, with {width}")
            first.append(PlannedStack(stack.places, architecture, member_bytes * len(stack.places), stack))
        fresh = [place for place in bucket if place not in started and place not in done]
        size = max(1, _room(device) // max(member_bytes, 1)) if cuda else MEMBERS_AT_ONCE_ON_CPU
        for start in range(0, len(fresh), size):
            places = fresh[start : start + size]
            planned.append(PlannedStack(places, architecture, member_bytes * len(places)))
    return deque([*first, *planned])


def _bytes_of(member: Member, architecture: MemberArchitecture, device: torch.device, dtype: torch.dtype) -> int:
    """Measure the memory that a member takes on a GPU, in bytes."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    stack = Stack([member], architecture, device, dtype, graph=False)
    stack.advance(1, measure=True)
    stack.measure()
    return torch.cuda.max_memory_allocated(device) - before


def _room(device: torch.device) -> int:
    """Return the number of bytes of a GPU's memory that stacks may take."""
    torch.cuda.empty_cache()
    return int(MEMORY_SHARE * torch.cuda.mem_get_info(device)[0])
