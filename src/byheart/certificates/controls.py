"""Controls: false claims that a check must reject. A certificate is worth as much as its controls.

- *Shuffled answers*: the network is judged on questions whose answers were permuted.
- *Perturbed weight*: one weight is changed a little (a bit is flipped, or a number added), and the network is judged on
  the true questions. No answer depends on some weights, such as fillers and unused embedding rows. So changes are tried
  until the judge notices one, and the number of tries is reported. Each change is larger than the one before, if the
  kind of network allows it.

A lie is found if the verdict on it is not *certified*. If answers are counted, it is found if an outcome differs.
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
"""Largest number of weights that are perturbed in turn."""


@dataclass(frozen=True)
class Control:
    """A lie, and the judge's verdict on it."""

    name: str
    detail: str
    verdict: Verdict = field(repr=False)
    possible: bool = True
    """True if the lie has to be found. It need not if all labels are equal."""
    truth: Verdict | None = field(default=None, repr=False)
    """Verdict on the true network and questions, if answers are counted; None otherwise."""

    @property
    def found(self) -> bool | None:
        """True if the lie was found, False if it was missed, None if it was missed but need not be found."""
        return True if _noticed(self.verdict, self.truth) else (False if self.possible else None)


def controls(network: Network, questions: QuestionsLike, rng: np.random.Generator, **options: Any) -> list[Control]:
    """Judge two lies about a network, with the options that the truth was judged with."""
    return controls_asked(network, asked(network, questions), rng, JudgeOptions(**options))


def controls_asked(
    network: Network, questions: Questions, rng: np.random.Generator, options: JudgeOptions
) -> list[Control]:
    """Do :func:`controls` for questions that :func:`asked` returned."""
    truth = judge_asked(network, questions, options) if options.count else None
    arguments = (network, questions, rng, options, truth)
    return [_shuffled_answers(*arguments), _perturbed(*arguments)]


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
    """Count the outcomes that differ from those of the true network and questions."""
    assert verdict.outcomes is not None
    assert truth.outcomes is not None
    return int((verdict.outcomes.codes != truth.outcomes.codes).sum())


def _right(questions: Questions, truth: Verdict) -> np.ndarray[Any, Any]:
    """Return which answers are right, in the shape of the answers."""
    assert truth.outcomes is not None
    return np.asarray(truth.outcomes.codes == RIGHT).reshape(questions.answers.shape)


def _is_lie(lie: Questions, questions: Questions, options: JudgeOptions, truth: Verdict | None) -> bool:
    """Return True if ``lie`` expects other answers; if answers are counted, True if it replaces a right one."""
    if truth is None:
        return _differs(lie.answers, questions.answers, options)
    return bool((lie.answers != questions.answers)[_right(questions, truth)].any())


def _varied(questions: Questions, options: JudgeOptions, truth: Verdict | None) -> bool:
    """Return True if two questions expect different answers, and a constant answer would not satisfy the claim.

    If answers are counted, return True if shuffling could replace an answer that is right.
    """
    answers, at_least = questions.answers, options.at_least
    if truth is not None:
        return bool((_right(questions, truth) & (answers.min(axis=0) != answers.max(axis=0))).any())
    constant_suffices = at_least is not None and int(np.unique(answers, return_counts=True)[1].max()) >= at_least
    return not constant_suffices and _differs(answers.min(axis=0), answers.max(axis=0), options)


def _differs(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], options: JudgeOptions) -> bool:
    """Return True if some labels differ, or if some real answers differ by more than twice the tolerance."""
    from byheart.certificates.judges.layered import TOLERANCE

    if not np.issubdtype(one.dtype, np.floating):
        return bool((one != other).any())
    return bool((np.abs(one - other) > 2 * (options.tolerance or TOLERANCE)).any())


def _wrong(verdict: Verdict, truth: Verdict | None) -> str:
    doubt = f", {verdict.undecided:,} undecided" if verdict.undecided else ""
    counted = "" if truth is None else f", outcomes changed: {_changed(verdict, truth):,}"
    return f"{verdict.errors:,} of {verdict.checked:,} answers wrong{doubt}{counted}"
