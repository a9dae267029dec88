"""Measurements of members during training, by their places among all members.

The training of a member alone determines when it is evaluated: every ``evaluate_every`` steps, and after the last one.
It also determines when the member is done: after the last step, or at the first evaluation that is good enough. So only
the measured values have to be recorded.
"""

from collections.abc import Sequence

from byheart.lab.member import Member, Tensors, Training, TrainingOutcome

Point = tuple[int, float, float | None]
"""Step, loss, and accuracy if there is one."""


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
