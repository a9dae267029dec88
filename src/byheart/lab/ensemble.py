"""Ensembles: many small models, of one shape family, trained at once with a leading model axis.

A model of a few thousand parameters keeps neither a GPU nor a CPU core busy: most of a step's time goes into starting
operations. So members that compute the same operations (grid points, seeds, learning rates) are stacked and one step
trains them all (:mod:`byheart.lab.stack`). Members differ freely in data, number of examples, seed, learning rate,
steps and stopping. Those of different architectures are trained apart; or together, on a GPU, where they can be padded
to a common one (:class:`~byheart.lab.member.Joinable`). Finished members leave the stack, stacks are as large as the
memory allows, and on a GPU several of them run side by side: one of a few members leaves most of it idle.

A member's result depends on its own seed only, not on what it is trained beside, up to rounding.

In a job of a run, training is kept in the run's folder now and then, and goes on from there
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
from byheart.lab.course import Begun, Clock, Course, PlannedStack, share_time
from byheart.lab.ledger import Ledger
from byheart.lab.member import Joinable, Member, MemberArchitecture, Training, TrainingOutcome
from byheart.lab.pages import page_of, read_page
from byheart.lab.stack import Stack
from byheart.lab.weights import trained_shapes
from byheart.progress import Report

__all__ = ["Member", "Training", "TrainingOutcome", "train"]

MEMBERS_AT_ONCE_ON_CPU = 8  # more do not fit into the caches
MEMORY_SHARE = 0.6  # of the free memory of a GPU
SIDE_BY_SIDE = 16  # stacks: more streams than that gain nothing


def train(
    members: Sequence[Member],
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    graph: bool = True,
    keep_weights: bool = False,
    report: Report | None = None,
) -> list[TrainingOutcome]:
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
            if not course.over and not due:  # at once, so that the others' turn finds the GPU at work
                course.start()
        running = [course for course in running if not course.over]
        if book is not None and due and (running or waiting):
            share_time(running, clock)
            begun = [*(course.begun for course in running), *(planned.begun for planned in waiting)]
            book.write(page_of(ledger, [each for each in begun if each is not None]))
            for course in running:
                course.start()
        clock.tell(report, len(ledger.done), len(members), running)
    return [ledger.outcome(i) for i in range(len(members))]


def _begin(
    members: Sequence[Member], device: torch.device, dtype: torch.dtype, book: Book | None, *, keep_weights: bool
) -> tuple[Ledger, deque[PlannedStack]]:
    """What is known, and the stacks that are left: at the checkpoint, where there is one that can be used, or anew."""
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
    """Whether a stack may be started beside those that are running."""
    taken = sum(course.planned.bytes for course in running)
    return device.type == "cuda" and len(running) < SIDE_BY_SIDE and taken + planned.bytes <= room


def _buckets(members: Sequence[Member], *, join: bool) -> list[tuple[MemberArchitecture, list[int]]]:
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


def _joined(architectures: Sequence[MemberArchitecture]) -> MemberArchitecture:
    distinct = list(dict.fromkeys(architectures))
    if len(distinct) == 1:
        return distinct[0]
    joinable = [architecture for architecture in distinct if isinstance(architecture, Joinable)]
    return reduce(lambda one, other: one.join(other), joinable)


def _planned(
    members: Sequence[Member],
    device: torch.device,
    dtype: torch.dtype,
    done: Collection[int] = (),
    begun: Sequence[Begun] = (),
) -> deque[PlannedStack]:
    """The stacks that train them all: as large as fits into the caches of a CPU, or into a GPU's memory.

    Those that have ``begun`` come first; who is neither in one nor ``done`` is stacked anew.
    """
    first, planned = list[PlannedStack](), list[PlannedStack]()
    started = {place for each in begun for place in each.places}
    for architecture, bucket in _buckets(members, join=device.type == "cuda"):
        cuda = device.type == "cuda"
        each = _bytes_of(members[bucket[0]], architecture, device, dtype) if cuda else 0
        for own in (own for own in begun if own.places[0] in bucket):
            _check_stack(own, architecture, [members[i] for i in own.places], bucket)
            first.append(PlannedStack(own.places, architecture, each * len(own.places), own))
        left = [place for place in bucket if place not in started and place not in done]
        most = max(1, _room(device) // max(each, 1)) if cuda else MEMBERS_AT_ONCE_ON_CPU
        for start in range(0, len(left), most):
            places = left[start : start + most]
            planned.append(PlannedStack(places, architecture, each * len(places)))
    return deque([*first, *planned])


def _check_stack(
    begun: Begun, architecture: MemberArchitecture, members: Sequence[Member], bucket: Sequence[int]
) -> None:
    """BadInput unless these members, of one bucket, have as many weights as the stack that has begun."""
    width = sum(map(math.prod, trained_shapes(architecture, members[0].frozen).values()))
    found = begun.matrices[0].shape[1]
    if not set(begun.places) <= set(bucket) or found != width:
        raise BadInput(f"a stack has {found} weights a model; expected models of one kind, with {width}")


def _bytes_of(member: Member, architecture: MemberArchitecture, device: torch.device, dtype: torch.dtype) -> int:
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
