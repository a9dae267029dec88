"""One judge per kind of network. Only this module of the room asks for the kind.

A judge is a module with four names:

- ``asked`` turns a user's task or texts into the questions that such a network answers;
- ``judge`` checks every answer;
- ``perturbed`` returns the network with changed weights, for controls;
- ``LIBRARIES`` lists the packages whose versions a certificate names.

It is imported when it is first needed. Judges know nothing of how networks are built.
"""

from importlib import import_module
from typing import Any

import numpy as np

from byheart.certificates.claim import JudgeOptions
from byheart.certificates.counting import with_number
from byheart.certificates.verdict import Verdict
from byheart.errors import BadInput
from byheart.networks import Network
from byheart.networks.folders import NAMES
from byheart.tasks import Questions
from byheart.tasks.contexts import Contexts
from byheart.tasks.edits import Edits, apply_edits
from byheart.tasks.questions import QuestionsLike
from byheart.tasks.tokenizers import from_files
from byheart.tasks.windows import Undetermined

MODULES = {"softmax": "layered", "trained": "layered"}
"""Judges of several kinds. All others have the name of the kind."""
OPTIONS = {
    "evaluator": ("exact",),
    "threads": ("exact",),
    "radius": ("exact",),
    "executor": ("exact", "transformer"),
    "device": ("transformer", "stock"),
    "tolerance": ("softmax", "trained"),
}
"""Options of judges, and the kinds of networks that each is for."""


def judge_for(network: Network) -> Any:
    """Return the module that judges networks of this kind."""
    return import_module(f"byheart.certificates.judges.{MODULES.get(network.kind, network.kind)}")


def asked(network: Network, source: QuestionsLike, edits: Edits | None = None) -> Questions:
    """Return a user's task or texts as the questions that the network answers, with answers changed by ``edits``.

    The network's folder has no influence on which answers are right.
    """
    try:
        questions: Questions = judge_for(network).asked(network, source)
    except Undetermined as conflict:
        cannot = "the network looks back no farther, so this is not what it has memorized"
        raise BadInput(
            f"{conflict.message}; {cannot}; expected what it was compiled from (facts: --facts)"
        ) from conflict
    if not edits:
        return questions
    if not isinstance(questions, Contexts):
        raise BadInput(f"edits are for networks that `byheart compile` makes; this is {network.title}")
    return apply_edits(questions, edits, from_files(network.files))


def judge(network: Network, questions: QuestionsLike, **options: Any) -> Verdict:
    """Check every answer of ``network``; ``options`` are the fields of :class:`JudgeOptions`.

    >>> from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
    >>> from byheart.tasks import NextToken
    >>> double = FeedForward((Affine(W=integers([[2]]), b=integers([0])),))
    >>> network = ExactNetwork((double,), inputs="tokens", outputs="last", length=1)
    >>> judge(network, NextToken([[0], [1], [2]], [0, 2, 4])).certified
    True
    >>> judge(network, NextToken([[0], [1], [2]], [0, 2, 4]), tolerance=0.1)
    Traceback (most recent call last):
    byheart.errors.BadInput: tolerance is an option for a softmax network or a trained network; this is an exact network
    """
    return judge_asked(network, judge_for(network).asked(network, questions), JudgeOptions(**options))


def judge_asked(network: Network, questions: Questions, options: JudgeOptions) -> Verdict:
    """Judge the answers to questions that :func:`asked` returned; refuse an option that the judge does not use."""
    for name in options.chosen:
        if network.kind not in OPTIONS[name]:
            kinds = " or ".join(NAMES[kind] for kind in OPTIONS[name])
            raise BadInput(f"{name} is an option for {kinds}; this is {network.title}")
    if options.count or options.at_least is not None:
        _check_countable(questions, options.count, options.at_least)
    verdict: Verdict = judge_for(network).judge(network, questions, options)
    if options.count or options.at_least is not None:
        return with_number(verdict, at_least=options.at_least)
    return verdict


def _check_countable(questions: Questions, count: bool, at_least: int | None) -> None:
    """Raise BadInput unless answers can be counted, and ``at_least`` is at most their number."""
    if count and at_least is not None:
        raise BadInput(f"count and at_least = {at_least!r} are given; expected one of them: a count says more")
    if np.issubdtype(questions.answers.dtype, np.floating):
        name = "count" if count else "at_least"
        raise BadInput(f"{name} is for labels, which are right or wrong; the task asks for real numbers")
    answers = questions.answers.size
    if at_least is not None and (not isinstance(at_least, int) or not 1 <= at_least <= answers):
        raise BadInput(f"at_least is {at_least!r}; expected from 1 to {answers}, the number of answers")
