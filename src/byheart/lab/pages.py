"""Pages: the state of an ensemble in training as plain values and arrays, from which training continues.

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
from byheart.lab.course import BegunStack
from byheart.lab.ledger import Ledger, evaluation, evaluations
from byheart.lab.member import Training

MATRICES = 3
"""Number of matrices per stack: weights and two moments."""


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
    arrays = dict(page.arrays)
    _read_members(arrays, ledger)
    begun = _read_stacks(page.about.get("stacks"), arrays, ledger, dtype)
    _read_weights(arrays, ledger, dtype)
    if arrays:
        raise BadInput(f"it holds {min(arrays)!r}, which is not part of a checkpoint")
    return begun


def _take(arrays: dict[str, NDArray[Any]], name: str, dtype: str, shape: Sequence[int]) -> NDArray[Any]:
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


def _read_members(arrays: dict[str, NDArray[Any]], ledger: Ledger) -> None:
    members = len(ledger.members)
    rights, seconds = (_take(arrays, name, "float64", [members]) for name in ("rights", "seconds"))
    counts = _take(arrays, "evaluations", "int64", [members])
    limits = [evaluations(member.training, member.training.steps) for member in ledger.members]
    if (counts < 0).any() or (counts > limits).any():
        raise BadInput("a model was evaluated more often than its training allows")
    points = iter(_take(arrays, "history", "float64", [int(counts.sum()), 2]).tolist())
    batches = np.array([member.training.last_batches for member in ledger.members])
    if not ((rights >= 0) & (rights <= batches)).all() or not ((seconds >= 0) & (seconds < math.inf)).all():
        raise BadInput("rights or seconds are not numbers that training can give")
    ledger.rights, ledger.seconds = rights.tolist(), seconds.tolist()
    for place, count in enumerate(counts.tolist()):
        for _ in range(count):
            if place in ledger.done:
                raise BadInput(f"model {place} was evaluated after it was done")
            loss, right = next(points)
            if not _is_accuracy(right, ledger.members[place].training):
                raise BadInput(f"model {place} has an accuracy of {right:g}, which training cannot give")
            ledger.note(place, loss, None if math.isnan(right) else right)


def _is_accuracy(right: float, training: Training) -> bool:
    """Return True if a value is an accuracy that training can give: a share, or NaN for a mean square."""
    return math.isnan(right) if training.loss == "mean-square" else 0 <= right <= 1


def _read_stacks(
    stacks: object, arrays: dict[str, NDArray[Any]], ledger: Ledger, dtype: torch.dtype
) -> list[BegunStack]:
    if not isinstance(stacks, list):
        raise BadInput("stacks are not a list")
    begun, free = list[BegunStack](), set(range(len(ledger.members)))
    for index, stack in enumerate(stacks):
        places, step = _stack(stack, free)
        free -= set(places)
        _check_step(places, step, ledger)
        names = [f"stack.{index}.{number}" for number in range(MATRICES)]
        matrices = [_take(arrays, name, _name(dtype), [len(places), -1]) for name in names]
        if len({matrix.shape for matrix in matrices}) > 1 or (matrices[-1] < 0).any():
            raise BadInput(f"the moments of stack {index} have another shape than its weights, or negative squares")
        weights, first, second = map(torch.from_numpy, matrices)
        begun.append(BegunStack(places, step, (weights, first, second)))
    if early := [place for place in free if ledger.history[place] and place not in ledger.done]:
        raise BadInput(f"model {early[0]} has begun, and is not in a stack")
    return begun


def _stack(stack: object, free: set[int]) -> tuple[list[int], int]:
    """Return the places and the step of a stack. Places must ascend, and not be those of another stack."""
    if not isinstance(stack, dict) or stack.keys() != {"places", "step"}:
        raise BadInput("a stack is not an object of places and step")
    places, step = stack["places"], stack["step"]
    good = isinstance(places, list) and places and all(type(place) is int and place in free for place in places)
    if not good or sorted(set(places)) != places or type(step) is not int or step < 1:
        raise BadInput(
            f"a stack has places {places!r:.60} at step {step!r:.20}; expected models of its own, and 1 or more"
        )
    return places, step


def _check_step(places: Sequence[int], step: int, ledger: Ledger) -> None:
    """Raise BadInput unless every member was evaluated as often as due by this step, and one of them is not done."""
    for place in places:
        training, count = ledger.members[place].training, len(ledger.history[place])
        on_time = evaluation(training, count) <= step if place in ledger.done else count == evaluations(training, step)
        if not on_time:
            raise BadInput(f"model {place} was evaluated {count} times by step {step}, which is not when it is due")
    if all(place in ledger.done for place in places):
        raise BadInput("a stack has no model that is not done")


def _read_weights(arrays: dict[str, NDArray[Any]], ledger: Ledger, dtype: torch.dtype) -> None:
    """Read the weights of members that are done, if the ledger keeps them."""
    for place in sorted(ledger.done) if ledger.keep_weights else ():
        shapes = ledger.members[place].architecture.init(torch.Generator())
        ledger.weights[place] = {
            name: torch.from_numpy(_take(arrays, f"member.{place}.{name}", _name(dtype), first.shape)).clone()
            for name, first in shapes.items()
        }


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
