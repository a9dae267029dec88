"""Controls: lies that the check has to find. A certificate is worth what its controls are.

*Shuffled answers*: the same network against questions whose answers were dealt out anew. *Perturbed weight*: one weight
changed a little, in a way of the network's kind (one bit flipped, or a number added), against the true questions;
weights that no question depends on exist (fillers, unused embedding rows), so changes are tried until one is noticed,
each larger than the one before where the kind allows it, and the number that it took is reported.

A lie is found where the verdict on it is not *certified*; where answers are counted, where an outcome is another.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byheart.certificates.claim import JudgeOptions
from byheart.certificates.judges import asked, judge_asked, judge_for
from byheart.certificates.verdict import RIGHT, Verdict
from byheart.networks import Network
from byheart.tasks import Questions, shuffled
from byheart.tasks.questions import QuestionsLike

TRIES = 30


@dataclass(frozen=True)
class Control:
    """A lie, and what the judge said to it."""

    name: str
    detail: str
    verdict: Verdict = field(repr=False)
    possible: bool = True
    """Whether it must be found: where all answers are alike, nothing need show."""
    truth: Verdict | None = field(default=None, repr=False)
    """What was counted of the network and the questions as they are; None if nothing was."""

    @property
    def found(self) -> bool | None:
        """Whether the lie was found; None if it was not and need not be."""
        return True if _noticed(self.verdict, self.truth) else (False if self.possible else None)


def controls(network: Network, given: QuestionsLike, rng: np.random.Generator, **chosen: Any) -> list[Control]:
    """Tell the judge of ``network`` two lies about it, with the same options as for the truth."""
    return controls_asked(network, asked(network, given), rng, JudgeOptions(**chosen))


def controls_asked(
    network: Network, questions: Questions, rng: np.random.Generator, options: JudgeOptions
) -> list[Control]:
    """Do the same for questions that :func:`asked` gave."""
    truth = judge_asked(network, questions, options) if options.count else None
    told = (network, questions, rng, options, truth)
    return [_shuffled_answers(*told), _perturbed(*told)]


def _shuffled_answers(
    network: Network, questions: Questions, rng: np.random.Generator, options: JudgeOptions, truth: Verdict | None
) -> Control:
    possible, lie = _varied(questions, options, truth), shuffled(questions, rng)
    while possible and not _is_lie(lie, questions, options, truth):
        lie = shuffled(questions, rng)
    verdict = judge_asked(network, lie, options)
    return Control("shuffled answers", _wrong(verdict, truth), verdict, possible, truth)


def _perturbed(
    network: Network, questions: Questions, rng: np.random.Generator, options: JudgeOptions, truth: Verdict | None
) -> Control:
    for attempt in range(TRIES):
        broken, place = judge_for(network).perturbed(network, rng, attempt)
        verdict = judge_asked(broken, questions, options)
        if _noticed(verdict, truth):
            break
    detail = f"{place}, try {attempt + 1}: {_wrong(verdict, truth)}"
    return Control("perturbed weight", detail, verdict, _varied(questions, options, truth), truth)


def _noticed(verdict: Verdict, truth: Verdict | None) -> bool:
    return not verdict.certified if truth is None else _changed(verdict, truth) > 0


def _changed(verdict: Verdict, truth: Verdict) -> int:
    """How many outcomes are not those of the truth."""
    assert verdict.outcomes is not None
    assert truth.outcomes is not None
    return int((verdict.outcomes.codes != truth.outcomes.codes).sum())


def _right(questions: Questions, truth: Verdict) -> np.ndarray[Any, Any]:
    """Which answers are right, in the shape of the answers."""
    assert truth.outcomes is not None
    return np.asarray(truth.outcomes.codes == RIGHT).reshape(questions.answers.shape)


def _is_lie(lie: Questions, questions: Questions, options: JudgeOptions, truth: Verdict | None) -> bool:
    """Whether other answers are asked for; where they are counted, in place of one that is right."""
    if truth is None:
        return _differs(lie.answers, questions.answers, options)
    return bool((lie.answers != questions.answers)[_right(questions, truth)].any())


def _varied(questions: Questions, options: JudgeOptions, truth: Verdict | None) -> bool:
    """Whether some two questions ask for different answers, and chance alone does not do what is asked for.

    Where answers are counted: whether another could be asked for in place of one that is right.
    """
    answers, at_least = questions.answers, options.at_least
    if truth is not None:
        return bool((_right(questions, truth) & (answers.min(axis=0) != answers.max(axis=0))).any())
    by_chance = at_least is not None and int(np.unique(answers, return_counts=True)[1].max()) >= at_least
    return not by_chance and _differs(answers.min(axis=0), answers.max(axis=0), options)


def _differs(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], options: JudgeOptions) -> bool:
    """Whether answers differ by more than is allowed on both sides together; labels, by anything."""
    from byheart.certificates.judges.softmax import TOLERANCE

    if not np.issubdtype(one.dtype, np.floating):
        return bool((one != other).any())
    return bool((np.abs(one - other) > 2 * (options.tolerance or TOLERANCE)).any())


def _wrong(verdict: Verdict, truth: Verdict | None) -> str:
    doubt = f", {verdict.undecided:,} undecided" if verdict.undecided else ""
    counted = "" if truth is None else f", outcomes changed: {_changed(verdict, truth):,}"
    return f"{verdict.errors:,} of {verdict.checked:,} answers wrong{doubt}{counted}"
