"""A tally of the outcomes of many questions, which takes one byte per question.

A question may be asked at several places, in any order. An answer is right if the label's logit is the largest,
strictly, wherever the question is asked. It is undecided if it is doubtful somewhere, and wrong nowhere.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.verdict import RIGHT, UNDECIDED, WRONG, Counterexample, Outcomes
from byheart.files.memory import GrowingArray, allocate
from byheart.networks.transformer.answers import Answers
from byheart.tasks.arrays import take
from byheart.tasks.contexts import Contexts

_NOT_ASKED = 255


class Tally:
    """The outcomes of questions, with the network's answers and their places for those that are not right."""

    def __init__(self, contexts: Contexts, places: NDArray[np.integer]) -> None:
        self._contexts, self._places = contexts, places
        self._codes = allocate(len(contexts), np.uint8)
        self._codes[:] = _NOT_ASKED
        self._at, self._got = GrowingArray(dtype=np.int64), GrowingArray(dtype=np.int64)
        """Answers that are wrong or in doubt: index into ``places``, and label of the network; −1 − label if right."""
        self.doubtful = 0
        """Number of places at which the answer is not proved."""
        self._margin = np.inf

    def add(self, first: int, answers: Answers, doubtful: NDArray[np.bool_] | None = None) -> None:
        """Add the answers at the places from index ``first`` on; ``doubtful`` says which of them are not proved."""
        place = self._places[first : first + len(answers.labels)]
        question = self._contexts.questions_at(place)
        right = (answers.labels == self._contexts.labels[question]) & (answers.margins > 0)  # False for nan
        codes = self._codes
        codes[question[codes[question] == _NOT_ASKED]] = RIGHT
        bad = ~right
        if doubtful is not None:
            self.doubtful += int(doubtful.sum())
            doubt = question[doubtful]
            codes[doubt[codes[doubt] == RIGHT]] = UNDECIDED
            bad |= doubtful
        codes[question[~right]] = WRONG
        self._margin = np.minimum(self._margin, answers.margins.min(initial=np.inf))  # nan, if there is one
        index = np.flatnonzero(bad)
        self._at.extend(index + first)
        self._got.extend(np.where(right[index], -1 - answers.labels[index], answers.labels[index]))

    @property
    def margin(self) -> float | None:
        """The smallest margin; None unless it is finite and all answers are right."""
        return None if len(self._at) or not np.isfinite(self._margin) else float(self._margin)

    @property
    def outcomes(self) -> Outcomes:
        """Outcome of every question, after all have been asked."""
        assert self._codes.max() < _NOT_ASKED, "every question is asked somewhere"
        return Outcomes(self._codes, self._describe)

    @cached_property
    def _where(self) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
        """Numbers of the questions that are not right, increasing, and an index into ``_at`` for each of them.

        The index is that of the first place where the answer is wrong; if there is none, of the first in doubt.
        """
        at, got = self._at.array, self._got.array
        question = self._contexts.questions_at(take(self._places, at))
        order = np.lexsort((at, got < 0, question))
        questions, first = np.unique(question[order], return_index=True)
        return questions, order[first]

    def _describe(self, number: int) -> Counterexample:
        """Describe the answer to a question that is not right."""
        questions, chosen = self._where
        index = chosen[np.searchsorted(questions, number)]
        label, got = int(self._contexts.labels[number]), int(self._got.array[index])
        text = f"{got}" if got >= 0 else f"{-1 - got}, not proved to be exact"
        if got == label:
            text = "a tie, or no number"
        place = int(self._places[self._at.array[index]])
        return Counterexample(number, None, label, text, self._contexts.where(place))
