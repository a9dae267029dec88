"""Measurements of members during training, by their places among all members, and the page on which a run keeps them.

The training of a member alone determines when it is evaluated: every ``evaluate_every`` steps, and after the last one.
It also determines when the member is done: after the last step, or at the first evaluation that is good enough. So only
the measured values have to be recorded.

A *page* is the state of an ensemble in training as plain values and arrays, from which training continues:

    stacks                  stacks that have begun: the places of their members among all, and their number of steps
    rights, seconds         float64 [M]: right answers in the last batches (a sum of shares), the members' time
    evaluations             int64 [M]: number of evaluations of each member
    history                 float64 [·, 2]: loss and accuracy (NaN: none) at each evaluation, member after member
    stack.I.J               [m, P]: weights (J = 0) and both moments of the I-th stack
    member.I.NAME           weights of a member that is done, if they are kept

Everything else follows from the members: the steps of evaluations, the members that are done, the orders of examples.
Anybody may have written a page. Its numbers are checked for a state that training can reach; its weights are not
checked to be those that training produces.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.lab.member import Member, State, Tensors, Training, TrainingOutcome

Point = tuple[int, float, float | None]
"""Step, loss, and accuracy if there is one."""
Arrays = dict[str, NDArray[Any]]


def evaluation(training: Training, number: int) -> int:
    """Return the step of the ``number``-th evaluation, counted from 1.

    >>> [evaluation(Training(batch=1, steps=50, learning_rate=1, evaluate_every=20), number) for number in (1, 2, 3)]
    [20, 40, 50]
    """
    return min(number * (training.evaluate_every or training.steps), training.steps)


def evaluations(training: Training, step: int) -> int:
    """Return the number of evaluations up to and including a step.

    >>> training = Training(batch=1, steps=50, learning_rate=1, evaluate_every=20)
    >>> [evaluations(training, step) for step in (19, 20, 49, 50)]
    [0, 1, 2, 3]
    """
    every = training.evaluate_every or training.steps
    return step // every if step < training.steps else -(-training.steps // every)


class Ledger:
    """Records of members by place: history, right answers in last batches, seconds, with ``keep_weights`` weights."""

    def __init__(self, members: Sequence[Member], *, keep_weights: bool) -> None:
        self.members, self.keep_weights = members, keep_weights
        self.history: list[list[Point]] = [[] for _ in members]
        self.rights = [0.0] * len(members)
        self.seconds = [0.0] * len(members)
        self.weights: dict[int, Tensors] = {}
        self.done: set[int] = set()

    def note(self, place: int, loss: float, accuracy: float | None) -> bool:
        """Record a member's next evaluation, and return True if the member is done."""
        training, history = self.members[place].training, self.history[place]
        step = evaluation(training, len(history) + 1)
        history.append((step, loss, accuracy))
        good = training.stop_at is not None and accuracy is not None and accuracy >= training.stop_at
        if step >= training.steps or good:
            self.done.add(place)
        return place in self.done

    def outcome(self, place: int) -> TrainingOutcome:
        """Return the outcome of a member that is done."""
        step, loss, accuracy = self.history[place][-1]
        training = self.members[place].training
        counted = training.last_batches > 0 and step >= training.steps and accuracy is not None
        return TrainingOutcome(
            accuracy=accuracy,
            last_accuracy=self.rights[place] / training.last_batches if counted else None,
            loss=loss,
            steps=step,
            seconds=self.seconds[place],
            weights=self.weights.get(place),
            history=self.history[place],
        )


@dataclass(frozen=True)
class BegunStack:
    """A stack under way: places of its members, number of steps, and weights and both moments, [m, P] each."""

    places: list[int]
    step: int
    matrices: State


@dataclass(frozen=True)
class StoredPage:
    """Values for JSON, and arrays by their names."""

    about: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def page_of(ledger: Ledger, begun: Sequence[BegunStack]) -> StoredPage:
    """Return the page of a ledger and of the stacks that have begun and are not over."""
    points = [(loss, math.nan if right is None else right) for history in ledger.history for _, loss, right in history]
    arrays = {
        "rights": np.array(ledger.rights, np.float64),
        "seconds": np.array(ledger.seconds, np.float64),
        "evaluations": np.array([len(history) for history in ledger.history], np.int64),
        "history": np.array(points, np.float64).reshape(-1, 2),
    }
    for index, stack in enumerate(begun):
        arrays |= {f"stack.{index}.{number}": matrix.numpy() for number, matrix in enumerate(stack.matrices)}
    for place, weights in ledger.weights.items():
        arrays |= {f"member.{place}.{name}": tensor.numpy() for name, tensor in weights.items()}
    return StoredPage({"stacks": [{"places": stack.places, "step": stack.step} for stack in begun]}, arrays)


def read_page(page: StoredPage, ledger: Ledger, dtype: torch.dtype) -> list[BegunStack]:
    """Read a page into an empty ledger, and return the stacks that have begun. Raise BadInput if the page is damaged.

    The caller checks that the members of a stack belong together and have as many weights as the page.
    """
    arrays, floats = dict(page.arrays), str(dtype).removeprefix("torch.")
    _read_members(arrays, ledger)
    begun = _read_stacks(page.about.get("stacks"), arrays, ledger, floats)
    for place in sorted(ledger.done) if ledger.keep_weights else ():
        shapes = ledger.members[place].architecture.init(torch.Generator())
        ledger.weights[place] = {
            name: torch.from_numpy(_take(arrays, f"member.{place}.{name}", floats, first.shape)).clone()
            for name, first in shapes.items()
        }
    if arrays:
        raise BadInput(f"it holds {min(arrays)!r}, which is not part of a checkpoint")
    return begun


def _take(arrays: Arrays, name: str, dtype: str, shape: Sequence[int]) -> NDArray[Any]:
    """Remove and return an array of this shape; -1 stands for any size."""
    array = arrays.pop(name, None)
    if array is None:
        raise BadInput(f"{name!r} is missing")
    fits = len(array.shape) == len(shape) and all(
        expected in (-1, size) for size, expected in zip(array.shape, shape, strict=True)
    )
    if array.dtype != np.dtype(dtype) or not fits:
        raise BadInput(f"{name!r} is {array.dtype} {list(array.shape)}; expected {dtype} {list(shape)}")
    return array


def _read_members(arrays: Arrays, ledger: Ledger) -> None:
    trainings = [member.training for member in ledger.members]
    rights, seconds = (_take(arrays, name, "float64", [len(trainings)]) for name in ("rights", "seconds"))
    counts = _take(arrays, "evaluations", "int64", [len(trainings)])
    limits = [evaluations(training, training.steps) for training in trainings]
    if (counts < 0).any() or (counts > limits).any():
        raise BadInput("a model was evaluated more often than its training allows")
    points = iter(_take(arrays, "history", "float64", [int(counts.sum()), 2]).tolist())
    batches = np.array([training.last_batches for training in trainings])
    if not ((rights >= 0) & (rights <= batches)).all() or not ((seconds >= 0) & (seconds < math.inf)).all():
        raise BadInput("rights or seconds are not numbers that training can give")
    ledger.rights, ledger.seconds = rights.tolist(), seconds.tolist()
    for place, count in enumerate(counts.tolist()):
        for _ in range(count):
            if place in ledger.done:
                raise BadInput(f"model {place} was evaluated after it was done")
            loss, right = next(points)
            if not (math.isnan(right) if trainings[place].loss == "mean-square" else 0 <= right <= 1):
                raise BadInput(f"model {place} has an accuracy of {right:g}, which training cannot give")
            ledger.note(place, loss, None if math.isnan(right) else right)


def _read_stacks(stacks: object, arrays: Arrays, ledger: Ledger, floats: str) -> list[BegunStack]:
    """Return the stacks of a page; their members must be different, and evaluated as often as due by their steps."""
    if not isinstance(stacks, list):
        raise BadInput("stacks are not a list")
    begun, free = list[BegunStack](), set(range(len(ledger.members)))
    for index, stack in enumerate(stacks):
        if not isinstance(stack, dict) or stack.keys() != {"places", "step"}:
            raise BadInput("a stack is not an object of places and step")
        places, step = stack["places"], stack["step"]
        good = isinstance(places, list) and places and all(type(place) is int and place in free for place in places)
        if not good or sorted(set(places)) != places or type(step) is not int or step < 1:
            raise BadInput(
                f"a stack has places {places!r:.60} at step {step!r:.20}; expected models of its own, and 1 or more"
            )
        free -= set(places)
        for place in places:
            training, count, is_done = ledger.members[place].training, len(ledger.history[place]), place in ledger.done
            if not (evaluation(training, count) <= step if is_done else count == evaluations(training, step)):
                raise BadInput(f"model {place} was evaluated {count} times by step {step}, which is not when it is due")
        if all(place in ledger.done for place in places):
            raise BadInput("a stack has no model that is not done")
        matrices = [_take(arrays, f"stack.{index}.{number}", floats, [len(places), -1]) for number in range(3)]
        if len({matrix.shape for matrix in matrices}) > 1 or (matrices[-1] < 0).any():
            raise BadInput(f"the moments of stack {index} have another shape than its weights, or negative squares")
        weights, first, second = map(torch.from_numpy, matrices)
        begun.append(BegunStack(places, step, (weights, first, second)))
    if early := [place for place in free if ledger.history[place] and place not in ledger.done]:
        raise BadInput(f"model {early[0]} has begun, and is not in a stack")
    return begun
