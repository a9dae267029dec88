"""Tasks of a context and a query: what Mahdavi, Liao & Thrampoulidis 2024 ask of one attention layer.

An example is a context E ∈ R^{n×d}, n token vectors, and a query e ∈ R^d beside it; the query is not attended to. The
answer is a label (:class:`QueryLabels`) or one or more real numbers (:class:`QueryTargets`). All examples may share
one context.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.tasks.base import Task, axes
from byheart.tasks.checks import Floats, Ids, below, floats, integers
from byheart.tasks.task import NextToken, NextTokenDistribution, SeqToSeq


@dataclass(frozen=True, init=False, eq=False, repr=False)
class QueryTask(Task):
    """A context and a query for each example; ``vectors`` [N, n, d] are the contexts, repeated if they are shared."""

    queries: Floats
    """float64 [N, d]."""
    shared: bool
    """Whether all examples have one and the same context."""

    @property
    def contexts(self) -> Floats:
        """float64 [N, n, d], or [n, d] if all examples share it."""
        assert self.vectors is not None
        return self.vectors[0] if self.shared else self.vectors

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All that the task consists of, by name."""
        return {"contexts": self.contexts, "queries": self.queries, self.answers_name: self.answers}

    def with_answers(self, answers: npt.ArrayLike) -> Self:
        """The same contexts and queries with other answers."""
        fields: dict[str, Any] = {"contexts": self.contexts, "queries": self.queries, self.answers_name: answers}
        if self.answers_name == "labels":
            fields["label_count"] = self.label_count
        return type(self)(**fields)

    def _set_queries(self, contexts: npt.ArrayLike, queries: npt.ArrayLike) -> None:
        asked = floats("queries", queries, shape=("N", "d"))
        examples, dim = asked.shape
        shared = np.ndim(contexts) == 2
        given = floats("contexts", contexts, shape=("n", "d") if shared else ("N", "n", "d"))
        if given.shape[-1] != dim or (not shared and len(given) != examples):
            expected = f"[{examples}, n, {dim}], or [n, {dim}] for a context that all share"
            raise BadInput(f"contexts has shape {given.shape} and queries {asked.shape}; expected {expected}")
        self._set_inputs(None, given[None] if shared else given, None)
        assert self.vectors is not None
        self._set(vectors=np.broadcast_to(self.vectors, (examples, *given.shape[-2:])), queries=asked, shared=shared)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class QueryLabels(QueryTask):
    """A label for each context and query: ``labels`` is int64 [N], in [0, ``label_count``).

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
        checked = integers("labels", labels, shape=(len(self.queries),))
        self._set(labels=checked, label_count=below("labels", checked, label_count, "label_count"))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class QueryTargets(QueryTask):
    """A real number for each context and query, or a vector of d_v of them. ``label_count`` is d_v, the outputs.

    >>> QueryTargets(contexts=[[[1.0, 0.0]], [[0.0, 1.0]]], queries=[[1.0, 2.0], [2.0, 1.0]], targets=[0.25, -3])
    QueryTargets(Size(examples=2, length=1, labels=1, vocab=2, dim=2))
    >>> QueryTargets(contexts=[[1.0, 0.0]], queries=[[1.0, 2.0]], targets=[[0.25, -3, 1]]).coordinates
    array([[ 0.25, -3.  ,  1.  ]])
    """

    kind = "query-targets"
    answers_name = "targets"
    targets: Floats
    """float64 [N], or [N, d_v] with d_v from 2 on: vectors of one number are taken as numbers."""

    def __init__(self, *, contexts: npt.ArrayLike, queries: npt.ArrayLike, targets: npt.ArrayLike) -> None:
        self._set_queries(contexts, queries)
        examples = len(self.queries)
        if axes(targets) < 2:
            self._set(targets=floats("targets", targets, shape=(examples,)), label_count=1)
            return
        given = floats("targets", targets, shape=(examples, "d"))
        outputs = given.shape[1]
        self._set(targets=floats("targets", given[:, 0], (examples,)) if outputs == 1 else given, label_count=outputs)

    @property
    def coordinates(self) -> Floats:
        """float64 [N, d_v]: the targets as vectors, also where they are numbers."""
        return self.targets.reshape(len(self.targets), self.label_count)


AnyTask = type[NextToken] | type[SeqToSeq] | type[NextTokenDistribution] | type[QueryLabels] | type[QueryTargets]

KINDS: dict[str, AnyTask] = {
    task.kind: task for task in (NextToken, SeqToSeq, NextTokenDistribution, QueryLabels, QueryTargets)
}
