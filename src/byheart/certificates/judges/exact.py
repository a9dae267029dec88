"""The judge of exact networks: in exact arithmetic, every answer to a task equals its label or is wrong.

Outputs are exact, so it does not matter which examples are evaluated together: the verdict is the same for every
executor and every number of workers.

Networks with softmax attention have real outputs, which :mod:`byheart.certificates.judges.enclosed` judges.
:mod:`byheart.certificates.judges.radius` proves that no answer changes near the tokens.
"""

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.claim import Claim, Evaluator, JudgeOptions
from byheart.certificates.judges.enclosed import judge_enclosed
from byheart.certificates.judges.radius import check_radius, stated_radius, unproved
from byheart.certificates.verdict import (
    RIGHT,
    UNDECIDED,
    WRONG,
    Codes,
    Counterexample,
    Outcomes,
    Verdict,
    downward,
    tallied,
)
from byheart.errors import BadInput, check_threads
from byheart.executors import Job, Workplace, run_jobs
from byheart.networks.exact import ExactNetwork, Integers, integers
from byheart.networks.exact.exact_network import Inputs
from byheart.progress import Report
from byheart.tasks import NextToken, SeqToSeq
from byheart.tasks.questions import QuestionsLike, as_task

LIBRARIES = ("numpy", "numba", "python-flint")
_HUGE = 10**15
"""Magnitude above which outputs are printed as powers of two."""
SLICES_PER_WORKER = 4
"""Number of slices per worker, so that a worker that is done early takes another."""
FEWEST = 64
"""Smallest number of examples in a slice."""


@dataclass(frozen=True)
class Comparisons:
    """The outcomes of some examples' answers."""

    codes: Codes
    outputs: Integers
    """Outputs in place of the labels of wrong answers, in order."""
    worst: int | Fraction
    """The largest |output − label|."""

    def output(self, answer: int) -> int | Fraction:
        """Return the network's output for a wrong answer."""
        got: int | Fraction = self.outputs[np.count_nonzero(self.codes[:answer])]
        return got


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
    if network.rational:
        start, evaluator, executor = time.perf_counter(), options.evaluator or "limbs", options.executor
        run = compare if executor is None or executor.name == "local" else partial(compare_on, executor)
        comparisons = run(network, evaluator, options.threads or 1, task.inputs, task.labels, report=options.report)
        verdict = _compared(network, task, comparisons, f"exact, exhaustive ({evaluator})", start)
    else:
        verdict = judge_enclosed(network, task, report=options.report)
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


def _compared(
    network: ExactNetwork, task: NextToken | SeqToSeq, comparisons: Comparisons, method: str, start: float
) -> Verdict:
    """Return the verdict on rational outputs that were compared with their labels."""
    worst = comparisons.worst
    outcomes = Outcomes(comparisons.codes, lambda answer: _counterexample(comparisons.output(answer), task, answer))
    return Verdict(
        claim=Claim("equals label", "as exact rational numbers", unit=_asking(network)),
        method=method,
        seconds=time.perf_counter() - start,
        margin=float(Fraction(1, 2) - worst) if worst < _HUGE else None,
        **tallied(outcomes),
    )


def compare(
    network: ExactNetwork,
    evaluator: Evaluator,
    threads: int,
    inputs: Inputs,
    labels: NDArray[np.int64],
    *,
    report: Report | None,
) -> Comparisons:
    """Compare the outputs of some examples with their labels."""
    if evaluator == "limbs":
        from byheart.networks.exact.evaluate import evaluate

        outputs = evaluate(network, inputs, threads=threads, report=report).ravel()
    else:
        from byheart.networks.exact.reference import evaluate as evaluate_flint

        outputs = evaluate_flint(network, inputs, report=report).ravel()
    wanted = labels.ravel()
    codes = np.where(outputs == wanted, RIGHT, WRONG).astype(np.uint8)
    wrong = codes == WRONG
    pairs = zip(outputs[wrong].tolist(), wanted[wrong].tolist(), strict=True)
    return Comparisons(codes, outputs[wrong], max((abs(output - label) for output, label in pairs), default=0))


def compare_on(
    workplace: Workplace,
    network: ExactNetwork,
    evaluator: Evaluator,
    threads: int,
    inputs: Inputs,
    labels: NDArray[np.int64],
    *,
    report: Report | None,
) -> Comparisons:
    """Compare the outputs of all examples with their labels, in slices on an executor."""
    parts: dict[int, Comparisons] = {}
    with workplace.open(network, evaluator, threads) as executor:
        size = max(FEWEST, -(-len(inputs) // (SLICES_PER_WORKER * executor.workers)))
        tasks = (
            Job(begin, compare, (inputs[begin : begin + size], labels[begin : begin + size]))
            for begin in range(0, len(inputs), size)
        )
        for begin, part in run_jobs(executor, tasks, peaks=workplace.peaks):
            parts[begin] = part
            if report is not None:
                report(min(size * len(parts), len(inputs)), len(inputs))
    return _joined([parts[begin] for begin in sorted(parts)])


def _joined(parts: list[Comparisons]) -> Comparisons:
    """Join the comparisons of consecutive slices."""
    return Comparisons(
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.outputs for part in parts]),
        max(part.worst for part in parts),
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
