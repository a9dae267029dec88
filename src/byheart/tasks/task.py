"""The kinds of task: sequences, and the answers of a network that has memorized them.

:class:`Questions` is the base of tasks and of contexts of texts, with sizes and fingerprint.

**Tasks of a context and a query**: the tasks of Mahdavi, Liao & Thrampoulidis 2024 for one attention layer.

An example is a context E ∈ R^{n×d}, n token vectors, and a query e ∈ R^d beside it; the query is not attended to. The
answer is a label (:class:`QueryLabels`) or one or more real numbers (:class:`QueryTargets`). All examples may share
one context.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.sizes import Size
from byheart.tasks.arrays import (
    Floats,
    Ids,
    as_distribution,
    as_distributions,
    as_floats,
    as_integers,
    as_unsigned,
    check_count,
    check_ids,
    chunks,
)
from byheart.tasks.distinct import distinct


class Questions(ABC):
    """Questions to a network and their answers: a task, or the contexts of texts. Frozen."""

    kind: ClassVar[str]
    """Kind of the task: ``"next-token"``, ``"seq-to-seq"``, …"""

    @property
    @abstractmethod
    def size(self) -> Size:
        """Sizes, in the papers' letters."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A sha256 of all questions and answers."""

    def is_named(self, fingerprint: str) -> bool:
        """Return True if a certificate's fingerprint is that of these questions."""
        return fingerprint == self.fingerprint

    @property
    @abstractmethod
    def answers(self) -> npt.NDArray[Any]:
        """Answers, one row per question."""

    @property
    def stands_for(self) -> int:
        """Number of examples that ask one of the questions; equal examples may be merged into one question."""
        return self.size.examples

    @abstractmethod
    def with_answers(self, answers: npt.ArrayLike) -> Self:
        """Return the same questions with other answers."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size})"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Task(Questions):
    """N sequences of n tokens, given either as ids or as vectors, with answers.

    Everything is checked on construction (:class:`~byheart.errors.BadInput` names the first thing that is wrong) and
    every array is a read-only copy. Two tasks are equal if their fingerprints are.
    """

    answers_name: ClassVar[str]
    """Name of the field with the answers: ``"labels"``, ``"probabilities"`` or ``"targets"``."""
    _integers = staticmethod(as_integers)
    tokens: Ids | None
    """int64 [N, n]: token ids in [0, ``vocab``), or ``None`` if tokens are vectors."""
    vectors: Floats | None
    """float64 [N, n, d]: token vectors, meant as the exact dyadic rationals they are, or ``None`` if tokens are ids."""
    label_count: int
    """C: number of labels, used or not."""
    vocab: int
    """ω: number of token ids, used or not; or number of distinct token vectors of the task."""

    @property
    def inputs_name(self) -> str:
        """Name of the field with the sequences: ``"tokens"`` or ``"vectors"``."""
        return "tokens" if self.vectors is None else "vectors"

    @property
    def inputs(self) -> npt.NDArray[Any]:
        """The sequences: int64 [N, n] or float64 [N, n, d]."""
        return np.asarray(getattr(self, self.inputs_name))

    @property
    def answers(self) -> npt.NDArray[Any]:
        """Answers, one row per example: labels, probabilities or targets."""
        return np.asarray(getattr(self, self.answers_name))

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All arrays of the task by name, as files store them and the fingerprint covers them."""
        return {self.inputs_name: self.inputs, self.answers_name: self.answers}

    def with_answers(self, answers: npt.ArrayLike) -> Self:
        """Return the same sequences with other answers out of the same ``label_count``."""
        changes: dict[str, Any] = {self.answers_name: answers}
        return replace(self, **changes)

    @property
    def size(self) -> Size:
        """Sizes of the task, in the papers' letters."""
        examples, length, *dim = self.inputs.shape
        return Size(examples, length, self.label_count, self.vocab, dim[0] if dim else None)

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of the whole task. Equal tasks share it, whatever file they came from."""
        arrays = self.arrays
        shapes = {name: array.shape for name, array in arrays.items()}
        digest = hashlib.sha256(json.dumps([self.kind, shapes, self.label_count, self.vocab]).encode())
        for array in arrays.values():
            for part in chunks(array):
                digest.update(part.astype("<i8" if array.dtype.kind in "iu" else "<f8").data)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Task) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def _set(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _set_inputs(self, tokens: npt.ArrayLike | None, vectors: npt.ArrayLike | None, vocab: int | None) -> None:
        if vectors is None and axes(tokens) == 3:
            tokens, vectors = None, tokens
        if (tokens is None) == (vectors is None):
            raise BadInput(f"{'neither' if tokens is None else 'both'} of tokens and vectors given; expected one")
        if tokens is not None:
            ids = self._integers("tokens", tokens, shape=("N", "n"))
            self._set(tokens=ids, vectors=None, vocab=check_ids("tokens", ids, vocab, "vocab"))
        elif vectors is not None:
            points = as_floats("vectors", vectors, shape=("N", "n", "d"))
            different = len(distinct(points.reshape(-1, points.shape[2])).first)
            if vocab is not None and check_count("vocab", vocab) != different:
                raise BadInput(f"vocab is {vocab}; expected {different}, the number of distinct vectors")
            self._set(tokens=None, vectors=points, vocab=different)


def axes(values: Any) -> int:
    """Return the number of axes of an array, or of nested lists, judged by their first entries."""
    axes = 0
    while isinstance(values, list | tuple) and values:
        values, axes = values[0], axes + 1
    return axes + np.ndim(values)


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
        self._set(labels=checked, label_count=check_ids("labels", checked, label_count, "label_count"))

    def with_labels(self, labels: npt.ArrayLike) -> Self:
        """Return the same sequences with other labels out of the same ``label_count``."""
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
    byheart.tasks.arrays.BadEntry: labels[0] is 12; expected 0 to 9 (label_count = 10)
    """

    kind = "next-token"
    _label_axes = 1


class NarrowNextToken(NextToken):
    """A next-token task whose ids stay unsigned and narrow, for callers that only need its contexts.

    >>> narrow = NarrowNextToken(np.array([[0, 1]], np.uint8), np.array([300], np.uint16))
    >>> narrow.tokens.dtype, narrow == NextToken([[0, 1]], [300])
    (dtype('uint8'), True)
    """

    _integers = staticmethod(as_unsigned)


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

    If tokens are ids, the distributions are over them, C = ω. If they are vectors, C is free. ``weights`` states how
    likely each sequence is; without them, all are equally likely.

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
        checked = as_distributions("probabilities", probabilities, shape=("N", "C"))
        examples, columns = checked.shape
        if tokens is not None and vocab is None:
            vocab = columns
        self._set_inputs(tokens, vectors, vocab)
        if examples != len(self.inputs):
            raise BadInput(f"probabilities has shape {checked.shape}; expected [{len(self.inputs)}, {columns}]")
        for name, size in (("label_count", label_count), ("vocab", vocab if vectors is None else None)):
            if size is not None and size != columns:
                raise BadInput(f"{name} is {size}; expected {columns}, the number of columns of probabilities")
        self._set(
            probabilities=checked,
            label_count=columns,
            weights=None if weights is None else as_distribution("weights", weights, examples),
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
        """All arrays of the task, by name."""
        return super().arrays | ({} if self.weights is None else {"weights": self.weights})


_Asked = TypeVar("_Asked", bound=Questions)


def shuffled(questions: _Asked, rng: np.random.Generator) -> _Asked:
    """Return the questions with permuted answers, as a control: the same sizes, nothing to generalise.

    Sequence-to-sequence labels move as whole rows, so equal tokens of one sequence may get different
    labels.

    >>> task = NextToken(tokens=[[0], [1], [2]], labels=[0, 1, 2])
    >>> sorted(shuffled(task, rng=np.random.default_rng(0)).labels.tolist())
    [0, 1, 2]
    """
    return questions.with_answers(rng.permutation(questions.answers))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class QueryTask(Task):
    """A context and a query per example; ``vectors`` [N, n, d] are the contexts, repeated if they are shared."""

    queries: Floats
    """float64 [N, d]."""
    shared: bool
    """True if all examples have the same context."""

    @property
    def contexts(self) -> Floats:
        """float64 [N, n, d], or [n, d] if all examples share it."""
        assert self.vectors is not None
        return self.vectors[0] if self.shared else self.vectors

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All arrays of the task, by name."""
        return {"contexts": self.contexts, "queries": self.queries, self.answers_name: self.answers}

    def with_answers(self, answers: npt.ArrayLike) -> Self:
        """Return the same contexts and queries with other answers."""
        fields: dict[str, Any] = {"contexts": self.contexts, "queries": self.queries, self.answers_name: answers}
        if self.answers_name == "labels":
            fields["label_count"] = self.label_count
        return type(self)(**fields)

    def _set_queries(self, contexts: npt.ArrayLike, queries: npt.ArrayLike) -> None:
        query_vectors = as_floats("queries", queries, shape=("N", "d"))
        examples, dim = query_vectors.shape
        shared = np.ndim(contexts) == 2
        context_vectors = as_floats("contexts", contexts, shape=("n", "d") if shared else ("N", "n", "d"))
        if context_vectors.shape[-1] != dim or (not shared and len(context_vectors) != examples):
            expected = f"[{examples}, n, {dim}], or [n, {dim}] for a context that all share"
            raise BadInput(
                f"contexts has shape {context_vectors.shape} and queries {query_vectors.shape}; expected {expected}"
            )
        self._set_inputs(None, context_vectors[None] if shared else context_vectors, None)
        assert self.vectors is not None
        self._set(
            vectors=np.broadcast_to(self.vectors, (examples, *context_vectors.shape[-2:])),
            queries=query_vectors,
            shared=shared,
        )


@dataclass(frozen=True, init=False, eq=False, repr=False)
class QueryLabels(QueryTask):
    """A label per context and query: ``labels`` is int64 [N], in [0, ``label_count``).

    >>> QueryLabels(contexts=[[1.0, 0.0], [0.0, 1.0]], queries=[[1.0, 2.0], [2.0, 1.0], [0.5, 0.5]], labels=[0, 1, 1])
    QueryLabels(Size(examples=3, length=2, labels=2, vocab=2, dim=2))
    """

    kind = "query-labels"
    answers_name = "labels"
    labels: Ids
    """int64 [N]: labels in [0, ``label_count``)."""

    def __init__(
        self, *, contexts: npt.ArrayLike, queries: npt.ArrayLike, labels: npt.ArrayLike, label_count: int | None = None
    ) -> None:
        self._set_queries(contexts, queries)
        checked = as_integers("labels", labels, shape=(len(self.queries),))
        self._set(labels=checked, label_count=check_ids("labels", checked, label_count, "label_count"))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class QueryTargets(QueryTask):
    """A real number, or a vector of d_v of them, per context and query. ``label_count`` is d_v.

    >>> QueryTargets(contexts=[[[1.0, 0.0]], [[0.0, 1.0]]], queries=[[1.0, 2.0], [2.0, 1.0]], targets=[0.25, -3])
    QueryTargets(Size(examples=2, length=1, labels=1, vocab=2, dim=2))
    >>> QueryTargets(contexts=[[1.0, 0.0]], queries=[[1.0, 2.0]], targets=[[0.25, -3, 1]]).coordinates
    array([[ 0.25, -3.  ,  1.  ]])
    """

    kind = "query-targets"
    answers_name = "targets"
    targets: Floats
    """float64 [N], or [N, d_v] with d_v ≥ 2. Vectors of one number are stored as numbers."""

    def __init__(self, *, contexts: npt.ArrayLike, queries: npt.ArrayLike, targets: npt.ArrayLike) -> None:
        self._set_queries(contexts, queries)
        examples = len(self.queries)
        if axes(targets) < 2:
            self._set(targets=as_floats("targets", targets, shape=(examples,)), label_count=1)
            return
        vectors = as_floats("targets", targets, shape=(examples, "d"))
        outputs = vectors.shape[1]
        self._set(
            targets=as_floats("targets", vectors[:, 0], (examples,)) if outputs == 1 else vectors, label_count=outputs
        )

    @property
    def coordinates(self) -> Floats:
        """float64 [N, d_v]: the targets as vectors, even if they are single numbers."""
        return self.targets.reshape(len(self.targets), self.label_count)


AnyTask = type[NextToken] | type[SeqToSeq] | type[NextTokenDistribution] | type[QueryLabels] | type[QueryTargets]

KINDS: dict[str, AnyTask] = {
    task.kind: task for task in (NextToken, SeqToSeq, NextTokenDistribution, QueryLabels, QueryTargets)
}
