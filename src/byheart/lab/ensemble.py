"""Ensembles: many small models, trained at once with a leading model axis.

A model of a few thousand parameters keeps neither a GPU nor a CPU core busy: starting operations takes most of a step.
So members that compute the same operations (grid points, seeds, learning rates) are stacked, and one step trains them
all (:mod:`byheart.lab.stack`). Members may differ in data, number of examples, seed, learning rate, steps and stopping.
Members of different architectures are trained apart. On a GPU, they are trained together if they can be padded to a
common architecture (:class:`~byheart.lab.member.Joinable`). Finished members leave the stack, and stacks are as large
as the memory allows. On a GPU several stacks run side by side, because a stack of few members leaves most of it idle.

A member's result depends only on its own seed, not on the other members, up to rounding.

In a job of a run, training is kept in the run's folder from time to time, and continues from there
(:mod:`byheart.lab.checkpoints`).
"""

import math
from collections import deque
from collections.abc import Collection, Hashable, Sequence
from functools import reduce

import torch

from byheart.devices import find_device
from byheart.errors import BadInput
from byheart.lab.checkpoints import Book, opened
from byheart.lab.course import BegunStack, Clock, Course, PlannedStack, share_time
from byheart.lab.ledger import Ledger
from byheart.lab.member import Joinable, Member, MemberArchitecture, Training, TrainingOutcome
from byheart.lab.pages import page_of, read_page
from byheart.lab.stack import Stack
from byheart.lab.weights import trained_shapes
from byheart.progress import Report

__all__ = ["Member", "Training", "TrainingOutcome", "train"]

MEMBERS_AT_ONCE_ON_CPU = 8
"""Largest number of members of a stack on a CPU; more do not fit into the caches."""
MEMORY_SHARE = 0.6
"""Share of a GPU's free memory that stacks may take."""
SIDE_BY_SIDE = 16
"""Largest number of stacks that run side by side on a GPU; more streams gain nothing."""


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
        for course in running:
            course.finish()
            if not course.over and not due:  # at once, so that the GPU works while the other stacks are processed
                course.start()
        running = [course for course in running if not course.over]
        if book is not None and due and (running or waiting):
            share_time(running, clock)
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
        buckets.setdefault(_bucket(member, join=join), []).append(index)
    return [(_joined([members[i].architecture for i in bucket]), bucket) for bucket in buckets.values()]


def _bucket(member: Member, *, join: bool) -> Hashable:
    """Return what all members of a stack must have in common."""
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


def _joined(architectures: Sequence[MemberArchitecture]) -> MemberArchitecture:
    distinct = list(dict.fromkeys(architectures))
    if len(distinct) == 1:
        return distinct[0]
    joinable = [architecture for architecture in distinct if isinstance(architecture, Joinable)]
    return reduce(lambda smaller, larger: smaller.join(larger), joinable)


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
            _check_stack(stack, architecture, [members[i] for i in stack.places], bucket)
            first.append(PlannedStack(stack.places, architecture, member_bytes * len(stack.places), stack))
        fresh = [place for place in bucket if place not in started and place not in done]
        size = max(1, _room(device) // max(member_bytes, 1)) if cuda else MEMBERS_AT_ONCE_ON_CPU
        for start in range(0, len(fresh), size):
            places = fresh[start : start + size]
            planned.append(PlannedStack(places, architecture, member_bytes * len(places)))
    return deque([*first, *planned])


def _check_stack(
    begun: BegunStack, architecture: MemberArchitecture, members: Sequence[Member], bucket: Sequence[int]
) -> None:
    """Raise BadInput unless the members are of one bucket, and have as many weights as the stack that has begun."""
    width = sum(map(math.prod, trained_shapes(architecture, members[0].frozen).values()))
    stored = begun.matrices[0].shape[1]
    if not set(begun.places) <= set(bucket) or stored != width:
        raise BadInput(f"a stack has {stored} weights per model; expected models of one kind, with {width}")


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
