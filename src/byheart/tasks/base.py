"""What all questions share, and what all tasks share: the sequences, the sizes and the fingerprint."""

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.sizes import Size
from byheart.tasks.checks import Floats, Ids, below, count, floats, integers, portions
from byheart.tasks.distinct import distinct


class Questions(ABC):
    """What a network is asked, and what it must answer: a task, or the contexts of texts. Frozen."""

    kind: ClassVar[str]
    """What is asked for: ``"next-token"``, ``"seq-to-seq"``, …"""

    @property
    @abstractmethod
    def size(self) -> Size:
        """The sizes, in the papers' letters."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A sha256 over all that the questions and answers consist of."""

    def is_named(self, fingerprint: str) -> bool:
        """Whether a certificate with this fingerprint is about these questions."""
        return fingerprint == self.fingerprint

    @property
    @abstractmethod
    def answers(self) -> npt.NDArray[Any]:
        """What must be answered, one row for each question."""

    @property
    def stands_for(self) -> int:
        """How many examples ask one of the questions: as many as there are, unless equal ones are asked once."""
        return self.size.examples

    @abstractmethod
    def with_answers(self, answers: npt.ArrayLike) -> Self:
        """The same questions with other answers."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size})"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Task(Questions):
    """What all tasks share: N sequences of n tokens, given either as ids or as vectors.

    Everything is checked on construction (:class:`~byheart.errors.BadInput` names the first thing that is wrong) and
    every array is a read-only copy. Two tasks are equal if their fingerprints are.
    """

    answers_name: ClassVar[str]
    """The field that holds the answers: ``"labels"``, ``"probabilities"`` or ``"targets"``."""
    _integers = staticmethod(integers)
    tokens: Ids | None
    """int64 [N, n]: token ids in [0, ``vocab``), or ``None`` if tokens are vectors."""
    vectors: Floats | None
    """float64 [N, n, d]: token vectors, meant as the exact dyadic rationals they are, or ``None`` if tokens are ids."""
    label_count: int
    """C: how many labels there are, used or not."""
    vocab: int
    """ω: how many token ids there are, used or not; or how many distinct token vectors the task holds."""

    @property
    def inputs_name(self) -> str:
        """The field that holds the sequences: ``"tokens"`` or ``"vectors"``."""
        return "tokens" if self.vectors is None else "vectors"

    @property
    def inputs(self) -> npt.NDArray[Any]:
        """The sequences: int64 [N, n] or float64 [N, n, d]."""
        return np.asarray(getattr(self, self.inputs_name))

    @property
    def answers(self) -> npt.NDArray[Any]:
        """What is asked for, one row for each example: the labels or the probabilities."""
        return np.asarray(getattr(self, self.answers_name))

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All that the task consists of, by name: what files hold, and what the fingerprint is taken over."""
        return {self.inputs_name: self.inputs, self.answers_name: self.answers}

    def with_answers(self, answers: npt.ArrayLike) -> Self:
        """The same sequences with other answers out of the same ``label_count``."""
        changes: dict[str, Any] = {self.answers_name: answers}
        return replace(self, **changes)

    @property
    def size(self) -> Size:
        """The task's sizes, in the papers' letters."""
        examples, length, *dim = self.inputs.shape
        return Size(examples, length, self.label_count, self.vocab, dim[0] if dim else None)

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 over everything the task consists of: equal tasks share it, whatever file they came from."""
        arrays = self.arrays
        shapes = {name: array.shape for name, array in arrays.items()}
        digest = hashlib.sha256(json.dumps([self.kind, shapes, self.label_count, self.vocab]).encode())
        for array in arrays.values():
            for part in portions(array):
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
            self._set(tokens=ids, vectors=None, vocab=below("tokens", ids, vocab, "vocab"))
        elif vectors is not None:
            points = floats("vectors", vectors, shape=("N", "n", "d"))
            different = len(distinct(points.reshape(-1, points.shape[2])).first)
            if vocab is not None and count("vocab", vocab) != different:
                raise BadInput(f"vocab is {vocab}; expected {different}, the number of distinct vectors")
            self._set(tokens=None, vectors=points, vocab=different)


def axes(values: Any) -> int:
    """How many axes an array has, or lists in lists, going by their first entries."""
    axes = 0
    while isinstance(values, list | tuple) and values:
        values, axes = values[0], axes + 1
    return axes + np.ndim(values)
