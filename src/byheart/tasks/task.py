"""A task: sequences, and what a network that has memorized them must answer to each."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.tasks.base import Questions, Task
from byheart.tasks.checks import Floats, Ids, below, distribution, distributions, unsigned

__all__ = ["NarrowNextToken", "NextToken", "NextTokenDistribution", "SeqToSeq", "Task", "shuffled"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class _Labelled(Task):
    """A task whose answers are labels: one per example, or one per token."""

    answers_name = "labels"
    labels: Ids
    """int64 [N] or [N, n]: labels in [0, ``label_count``)."""
    _label_axes: ClassVar[int]

    def __init__(
        self,
        tokens: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        *,
        vectors: npt.ArrayLike | None = None,
        label_count: int | None = None,
        vocab: int | None = None,
    ) -> None:
        self._set_inputs(tokens, vectors, vocab)
        if labels is None:
            raise BadInput(f"labels are missing; expected {type(self).__name__}(tokens, labels)")
        checked = self._integers("labels", labels, shape=self.inputs.shape[: self._label_axes])
        self._set(labels=checked, label_count=below("labels", checked, label_count, "label_count"))

    def with_labels(self, labels: npt.ArrayLike) -> Self:
        """The same sequences with other labels out of the same ``label_count``."""
        return self.with_answers(labels)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class NextToken(_Labelled):
    """One label per sequence: ``labels`` is int64 [N], in [0, ``label_count``).

    >>> task = NextToken([[0, 1, 2], [2, 2, 0]], [1, 0], label_count=10, vocab=200)
    >>> task
    NextToken(Size(examples=2, length=3, labels=10, vocab=200, dim=None))
    >>> task.with_labels([1, 1]).labels
    array([1, 1])
    >>> NextToken(tokens=[[0, 1, 2]], labels=[12], label_count=10)
    Traceback (most recent call last):
    byheart.tasks.checks.BadEntry: labels[0] is 12; expected 0 to 9 (label_count = 10)
    """

    kind = "next-token"
    _label_axes = 1


class NarrowNextToken(NextToken):
    """The same, where ids have no sign and are as narrow as they come, for whoever wants their contexts and no more.

    >>> narrow = NarrowNextToken(np.array([[0, 1]], np.uint8), np.array([300], np.uint16))
    >>> narrow.tokens.dtype, narrow == NextToken([[0, 1]], [300])
    (dtype('uint8'), True)
    """

    _integers = staticmethod(unsigned)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SeqToSeq(_Labelled):
    """One label per token: ``labels`` is int64 [N, n], in [0, ``label_count``).

    >>> SeqToSeq(vectors=[[[0.5, 1.0], [0.0, 2.0]]], labels=[[0, 1]])
    SeqToSeq(Size(examples=1, length=2, labels=2, vocab=2, dim=2))
    """

    kind = "seq-to-seq"
    _label_axes = 2


@dataclass(frozen=True, init=False, eq=False, repr=False)
class NextTokenDistribution(Task):
    """A distribution over the next token for each sequence: ``probabilities`` is float64 [N, C].

    Where tokens are ids the distributions are over them, C = ω. Where they are vectors, C is free. ``weights`` says how
    likely each sequence itself is; without them, all are equally likely.

    >>> NextTokenDistribution(tokens=[[0, 1]], probabilities=[[0.25, 0.75, 0.0]])
    NextTokenDistribution(Size(examples=1, length=2, labels=3, vocab=3, dim=None))
    """

    kind = "next-token-distribution"
    answers_name = "probabilities"
    probabilities: Floats
    """float64 [N, C]: rows that sum to 1, within 1e-9."""
    weights: Floats | None
    """float64 [N]: the sequences' own probabilities, which sum to 1 within 1e-9; ``None`` if all are the same."""

    def __init__(
        self,
        tokens: npt.ArrayLike | None = None,
        probabilities: npt.ArrayLike | None = None,
        *,
        weights: npt.ArrayLike | None = None,
        vectors: npt.ArrayLike | None = None,
        label_count: int | None = None,
        vocab: int | None = None,
    ) -> None:
        if probabilities is None:
            raise BadInput("probabilities are missing; expected NextTokenDistribution(tokens, probabilities)")
        checked = distributions("probabilities", probabilities, shape=("N", "C"))
        examples, columns = checked.shape
        if tokens is not None and vocab is None:
            vocab = columns
        self._set_inputs(tokens, vectors, vocab)
        if examples != len(self.inputs):
            raise BadInput(f"probabilities has shape {checked.shape}; expected [{len(self.inputs)}, {columns}]")
        for name, given in (("label_count", label_count), ("vocab", vocab if vectors is None else None)):
            if given is not None and given != columns:
                raise BadInput(f"{name} is {given}; expected {columns}, the number of columns of probabilities")
        self._set(
            probabilities=checked,
            label_count=columns,
            weights=None if weights is None else distribution("weights", weights, examples),
        )

    @property
    def likelihoods(self) -> Floats:
        """float64 [N]: ``weights``, or 1/N for every sequence.

        >>> NextTokenDistribution(tokens=[[0], [1]], probabilities=[[0.5, 0.5], [1, 0]]).likelihoods
        array([0.5, 0.5])
        """
        examples = len(self.probabilities)
        return np.full(examples, 1 / examples) if self.weights is None else self.weights

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All that the task consists of, by name."""
        return super().arrays | ({} if self.weights is None else {"weights": self.weights})


_Asked = TypeVar("_Asked", bound=Questions)


def shuffled(questions: _Asked, rng: np.random.Generator) -> _Asked:
    """The questions with their answers dealt out anew, as a control: the same sizes, nothing to generalise.

    Sequence-to-sequence labels move as whole rows, so that equal tokens of one sequence may come to ask for different
    labels.

    >>> task = NextToken(tokens=[[0], [1], [2]], labels=[0, 1, 2])
    >>> sorted(shuffled(task, rng=np.random.default_rng(0)).labels.tolist())
    [0, 1, 2]
    """
    return questions.with_answers(rng.permutation(questions.answers))
