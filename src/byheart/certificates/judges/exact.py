"""The judge of exact networks: in exact arithmetic, every answer to a task equals its label or is wrong.

Networks with softmax attention have real outputs, which :mod:`byheart.certificates.judges.enclosed` judges.
:mod:`byheart.certificates.judges.radius` proves that no answer changes near the tokens.
"""

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np

from byheart.certificates.claim import Claim, JudgeOptions
from byheart.certificates.judges.enclosed import judge_enclosed
from byheart.certificates.judges.radius import check_radius, stated_radius, unproved
from byheart.certificates.judges.slices import compare_all
from byheart.certificates.verdict import RIGHT, UNDECIDED, Counterexample, Outcomes, Verdict, downward, tallied
from byheart.errors import BadInput, check_threads
from byheart.executors import Workplace
from byheart.networks.exact import ExactNetwork, integers
from byheart.tasks import NextToken, SeqToSeq
from byheart.tasks.questions import QuestionsLike, as_task

LIBRARIES = ("numpy", "numba", "python-flint")
_HUGE = 10**15
"""Magnitude above which outputs are printed as powers of two."""


def asked(network: ExactNetwork, source: QuestionsLike) -> NextToken | SeqToSeq:
    """Return the task; raise BadInput unless it is one that the network answers."""
    task = as_task(source)
    if not isinstance(task, NextToken | SeqToSeq):
        raise BadInput(f"an exact network answers next-token and seq-to-seq tasks; the task is {task.kind}")
    if network.outputs != ("last" if isinstance(task, NextToken) else "every"):
        answers = {"last": "next-token", "every": "seq-to-seq"}[network.outputs]
        raise BadInput(f"the network answers {answers} tasks; the task is {task.kind}")
    if network.streams[-1] != 1:
        raise BadInput(f"the network gives {network.streams[-1]} numbers for a label; expected one")
    return task


def judge(network: ExactNetwork, task: NextToken | SeqToSeq, options: JudgeOptions) -> Verdict:
    """Evaluate ``network`` on all of ``task`` and compare every output with its label.

    With a radius from the options or from the network's folder, no output may change near the tokens either.
    """
    radius = stated_radius(network) if options.radius is None else options.radius
    if radius is not None:
        check_radius(network, radius)
    _check_options(network, options)
    compare = _rational if network.rational else _enclosed
    verdict = compare(network, task, options)
    return verdict if radius is None else _nearby(network, task, verdict, radius)


def _check_options(network: ExactNetwork, options: JudgeOptions) -> None:
    """Raise BadInput unless the options go together, and with the network's outputs."""
    evaluator, threads = options.evaluator, options.threads
    if evaluator not in (None, "limbs", "flint"):
        raise BadInput(f"evaluator is {evaluator!r}; expected limbs or flint")
    if threads is not None:
        check_threads(threads)
    if not network.rational and (evaluator or threads or options.executor):
        what = "evaluator, threads and executor are for exact outputs"
        raise BadInput(f"{what}; behind softmax attention they are enclosed, here and one by one")
    if evaluator == "flint" and threads:
        raise BadInput("threads is an option of the evaluator limbs; flint has one")


def _enclosed(network: ExactNetwork, task: NextToken | SeqToSeq, options: JudgeOptions) -> Verdict:
    """Judge outputs that are real numbers."""
    return judge_enclosed(network, task, report=options.report)


def _rational(network: ExactNetwork, task: NextToken | SeqToSeq, options: JudgeOptions) -> Verdict:
    """Judge outputs that are rational numbers."""
    start, evaluator, where = time.perf_counter(), options.evaluator or "limbs", options.executor or Workplace()
    comparisons = compare_all(network, task.inputs, task.labels, evaluator, options.threads or 1, where, options.report)
    worst = comparisons.worst
    outcomes = Outcomes(comparisons.codes, lambda answer: _counterexample(comparisons.output(answer), task, answer))
    return Verdict(
        claim=Claim("equals label", "as exact rational numbers", unit=_asking(network)),
        method=f"exact, exhaustive ({evaluator})",
        seconds=time.perf_counter() - start,
        margin=float(Fraction(1, 2) - worst) if worst < _HUGE else None,
        **tallied(outcomes),
    )


def _nearby(network: ExactNetwork, task: NextToken | SeqToSeq, verdict: Verdict, radius: float) -> Verdict:
    """Extend a verdict to all vectors near the tokens. An answer that is not proved there is undecided."""
    start, before = time.perf_counter(), verdict.outcomes
    assert before is not None
    doubtful = np.asarray(unproved(network, task.inputs, radius).any(axis=1))
    near_doubt = np.repeat(doubtful, verdict.checked // len(doubtful)) & (before.codes == RIGHT)

    def describe(answer: int) -> Counterexample:
        if not near_doubt[answer]:
            return before.told(answer)
        place = _place(task, answer)
        label = int(task.labels[place])
        return _at(place, label, f"{label} at the tokens, not proved within {radius!r} of them")

    near = f"and for every vector within {downward(radius, 3)} of a token (proved, every ball)"
    if doubtful.any():
        near = f"{int(doubtful.sum()):,} of {len(doubtful):,} sequences not proved within {radius!r} of their tokens"
    return replace(
        verdict,
        claim=replace(verdict.claim, radius=radius),
        note=f"{verdict.note}, {near}" if verdict.note else near,
        seconds=verdict.seconds + time.perf_counter() - start,
        **tallied(Outcomes(np.where(near_doubt, UNDECIDED, before.codes).astype(np.uint8), describe)),
    )


def perturbed(network: ExactNetwork, rng: np.random.Generator, _: int) -> tuple[ExactNetwork, str]:
    """Return ``network`` with one bit of a weight flipped (not of a 0, if possible), and the place of the bit."""
    everything = dict(network.tensors())
    if not everything:
        raise BadInput("the network has no weights; expected one that can be perturbed")
    tensors = {name: tensor for name, tensor in everything.items() if np.count_nonzero(tensor)} or everything
    name = list(tensors)[rng.integers(len(tensors))]
    flat = tensors[name].ravel().copy()
    entry = int(rng.choice(np.flatnonzero(flat) if np.count_nonzero(flat) else np.arange(len(flat))))
    bit = int(rng.integers(max(1, abs(flat[entry]).bit_length())))
    flat[entry] ^= 1 << bit
    changed = integers(flat, tensors[name].shape)
    return network.with_tensor(name, changed), f"flipped bit {bit} of {name}[{entry}]"


def _asking(network: ExactNetwork) -> str:
    return "position" if network.outputs == "every" else "sequence"


def _place(task: NextToken | SeqToSeq, answer: int) -> tuple[int, ...]:
    """Return the example of an answer, and its position if an example has several answers."""
    return tuple(int(index) for index in np.unravel_index(answer, task.labels.shape))


def _at(place: tuple[int, ...], label: int, got: str) -> Counterexample:
    return Counterexample(place[0], place[1] if len(place) > 1 else None, label, got)


def _counterexample(output: int | Fraction, task: NextToken | SeqToSeq, answer: int) -> Counterexample:
    place, got = _place(task, answer), Fraction(output)
    # A flipped bit can make outputs of thousands of digits. Their size says enough.
    text = str(got) if abs(got) < _HUGE and got.denominator < _HUGE else f"about {'-' if got < 0 else ''}2^{_log2(got)}"
    return _at(place, int(task.labels[place]), text)


def _log2(value: Fraction) -> int:
    return abs(value.numerator).bit_length() - value.denominator.bit_length()
