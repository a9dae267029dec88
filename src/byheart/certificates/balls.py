"""Certificates for softmax networks: every output of the saved float64 weights, enclosed in ball arithmetic.

What is asked of an output depends on the task, and is decided only when the balls leave no doubt:

- a *label* is right if its logit is larger than every other, ball above ball;
- a *target* is met if the whole ball lies within ``tolerance`` of it;
- *distributions* are reached if the divergence Σ_t π_t KL(p_t ‖ softmax(logits_t)) is at most ``tolerance`` nats: by so
  much does the network's loss exceed the entropy of the data, below which no loss can be.

Examples in doubt are evaluated again with twice the bits, up to ``most_bits``; what is in doubt then is *undecided*,
and the network is not certified. Nothing is rounded on the way and nothing sampled.
"""

import time
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Literal

import numpy as np

from byheart.certificates.certificate import Certificate, versions
from byheart.certificates.controls import Control
from byheart.certificates.verdict import Counterexample, Verdict
from byheart.errors import BadInput
from byheart.networks.softmax import Inputs, SoftmaxNetwork, fingerprint
from byheart.networks.softmax.balls import Ball, enclose, precision
from byheart.networks.softmax.network import check_inputs
from byheart.progress import Report
from byheart.tasks import NextToken, NextTokenDistribution, QueryLabels, QueryTargets, QueryTask, Task, shuffled

TOLERANCE = 1e-6
FEWEST_BITS, MOST_BITS = 64, 4096
NUDGE = 1e-3
"""By how much the control changes one weight."""

Outcome = Literal["right", "wrong", "undecided"]


@dataclass(frozen=True, eq=False)
class Judged:
    """The verdict, how many bits it took, how many examples stayed in doubt, and what was found, in words."""

    verdict: Verdict
    bits: int
    undecided: int
    found: str


@dataclass(frozen=True)
class _Answer:
    """One example's: what came out, how certain, by which margin (a lower bound) and what was got."""

    outcome: Outcome
    margin: float
    got: str
    error: float = 0.0
    """An upper bound on how far a target was missed."""


def inputs_of(task: Task) -> Inputs:
    """A task's inputs as softmax networks read them."""
    if isinstance(task, QueryTask):
        assert task.vectors is not None
        return task.vectors, task.queries
    if task.tokens is None:
        raise BadInput("softmax networks read token ids, or contexts with queries; this task has vectors")
    return task.tokens, None


def certify_softmax(
    network: SoftmaxNetwork,
    task: Task,
    *,
    tolerance: float = TOLERANCE,
    most_bits: int = MOST_BITS,
    report: Report | None = None,
) -> Certificate:
    """Enclose every output and judge it.

    >>> import numpy as np
    >>> one = np.ones((1, 1, 1))
    >>> network = SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=one)
    >>> task = QueryTargets(contexts=[[0.0], [1.0]], queries=[[0.0], [1.0]], targets=[0.5, 0.7310585])
    >>> certify_softmax(network, task).certified
    True
    >>> print(certify_softmax(network, task.with_answers([0.5, 0.731])).counterexample)
    example 1: expected 0.731, got 0.7310585786
    """
    judged = judge_softmax(network, task, tolerance=tolerance, most_bits=most_bits, report=report)
    verdict = judged.verdict
    return Certificate(
        certified=verdict.certified,
        statement=_statement(task, tolerance),
        method=f"ball arithmetic, exhaustive, {judged.bits} bits",
        checked=verdict.checked,
        examples=task.size.examples,
        errors=verdict.errors,
        smallest_margin=verdict.margin,
        counterexample=verdict.counterexample,
        weights=fingerprint(network),
        task=task.fingerprint,
        versions=versions("byheart", "numpy", "python-flint"),
        seconds=verdict.seconds,
        undecided=judged.undecided,
        found=judged.found,
        tolerance=None if isinstance(task, NextToken | QueryLabels) else tolerance,
    )


def judge_softmax(
    network: SoftmaxNetwork,
    task: Task,
    *,
    tolerance: float = TOLERANCE,
    most_bits: int = MOST_BITS,
    report: Report | None = None,
) -> Judged:
    """Judge every example with as many bits as it takes, up to ``most_bits``."""
    _check(network, task, tolerance)
    if isinstance(task, NextTokenDistribution):
        return _judge_divergence(network, task, tolerance, most_bits, report)
    start = time.perf_counter()
    answers: dict[int, _Answer] = {}
    bits, doubtful = FEWEST_BITS, list(range(task.size.examples))
    while True:
        rows = _enclosed(network, task, doubtful, bits, report)
        with precision(bits):
            answers |= {i: _judge_one(row, task, i, tolerance) for i, row in zip(doubtful, rows, strict=True)}
        doubtful = [i for i in doubtful if answers[i].outcome == "undecided"]
        if not doubtful or 2 * bits > most_bits:
            break
        bits *= 2
    return _summed_up(answers, task, tolerance, bits, time.perf_counter() - start)


def _summed_up(answers: dict[int, _Answer], task: Task, tolerance: float, bits: int, seconds: float) -> Judged:
    bad = [i for i in range(len(answers)) if answers[i].outcome != "right"]
    undecided = sum(answers[i].outcome == "undecided" for i in bad)
    margin = min(answer.margin for answer in answers.values()) if not bad else None
    example = Counterexample(bad[0], None, task.answers[bad[0]].item(), answers[bad[0]].got) if bad else None
    found = ""
    if isinstance(task, QueryTargets) and not bad:
        found = f"errors at most {_upward(max(answer.error for answer in answers.values()), 2)}"
    margin = None if margin is None or np.isinf(margin) else margin
    verdict = Verdict(not bad, len(answers), len(bad) - undecided, margin, example, seconds)
    return Judged(verdict, bits, undecided, found)


def _check(network: SoftmaxNetwork, task: Task, tolerance: float) -> None:
    if not 0 < tolerance < np.inf:
        raise BadInput(f"tolerance is {tolerance}; expected more than 0, and finite")
    if not isinstance(task, NextToken | NextTokenDistribution | QueryTask):
        raise BadInput(f"a softmax network answers once for a sequence; the task is {task.kind}")
    check_inputs(network, inputs_of(task))
    least = 1 if isinstance(task, QueryTargets) else task.label_count
    if network.outputs < least or (isinstance(task, QueryTargets | NextTokenDistribution) and network.outputs > least):
        raise BadInput(f"the network has {network.outputs} outputs; the task asks for {least}")


def _enclosed(
    network: SoftmaxNetwork, task: Task, examples: list[int], bits: int, report: Report | None
) -> list[list[Ball]]:
    sequences, queries = inputs_of(task)
    if len(examples) < task.size.examples:  # all of them: a shared context stays one array
        sequences, queries = sequences[examples], None if queries is None else queries[examples]
    return [row for rows in enclose(network, (sequences, queries), bits=bits, report=report) for row in rows]


def _judge_one(row: list[Ball], task: Task, example: int, tolerance: float) -> _Answer:
    if isinstance(task, QueryTargets):
        return _judge_target(row[0], float(task.targets[example]), tolerance)
    assert isinstance(task, NextToken | QueryLabels)
    return _judge_label(row, int(task.labels[example]))


def _judge_label(row: list[Ball], label: int) -> _Answer:
    gaps = [row[label] - other for index, other in enumerate(row) if index != label]
    margin = min((float(gap.lower()) for gap in gaps), default=np.inf)
    best = max(range(len(row)), key=lambda index: float(row[index]))
    if all(gap > 0 for gap in gaps):
        return _Answer("right", margin, str(label))
    return _Answer("wrong" if any(gap <= 0 for gap in gaps) else "undecided", margin, str(best))


def _judge_target(output: Ball, target: float, tolerance: float) -> _Answer:
    error = abs(output - target)
    margin = tolerance - float(error.upper())
    outcome: Outcome = "right" if error < tolerance else "wrong" if error >= tolerance else "undecided"
    return _Answer(outcome, margin, f"{float(output):.10g}", error=float(error.upper()))


def _judge_divergence(
    network: SoftmaxNetwork, task: NextTokenDistribution, tolerance: float, most_bits: int, report: Report | None
) -> Judged:
    """All examples together: the divergence is one number."""
    from flint import arb

    start, bits, everything = time.perf_counter(), FEWEST_BITS, list(range(task.size.examples))
    likelihoods = task.likelihoods.tolist()
    while True:
        rows = _enclosed(network, task, everything, bits, report)
        with precision(bits):
            each = [_divergence(row, p.tolist()) for row, p in zip(rows, task.probabilities, strict=True)]
            total = sum((weight * value for weight, value in zip(likelihoods, each, strict=True)), arb(0))
            right, wrong = bool(total < tolerance), bool(total >= tolerance)
        if right or wrong or 2 * bits > most_bits:
            break
        bits *= 2
    worst = max(range(len(each)), key=lambda index: float(each[index]))
    expected = f"a divergence of at most {tolerance:g} on average"
    example = None if right else Counterexample(worst, None, expected, f"{float(each[worst]):.6g}")
    errors = sum(float(value) >= tolerance for value in each) if wrong else 0
    margin = tolerance - max(0.0, float(total.upper())) if right else None
    seconds = time.perf_counter() - start
    verdict = Verdict(right, len(each), errors, margin, example, seconds)
    undecided = 0 if right or wrong else len(each)
    return Judged(verdict, bits, undecided, f"divergence at most {_upward(float(total.upper()), 6)} nats")


def _upward(value: float, digits: int) -> str:
    """An upper bound in so many digits, rounded up; what only rounding makes negative is 0.

    >>> _upward(0.6476532, 6), _upward(1.234e-17, 2), _upward(-1e-20, 2)
    ('0.647654', '1.3e-17', '0')
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(max(0.0, value))
    return f"{float(rounded):.{digits}g}"


def _divergence(logits: list[Ball], probabilities: list[float]) -> Ball:
    """KL(p ‖ softmax(logits)) = Σ_j p_j (log p_j − logit_j + log Σ exp logits), 0 log 0 = 0."""
    from flint import arb

    largest = max(logits, key=float).mid()
    shifted = [logit - largest for logit in logits]
    total = sum((value.exp() for value in shifted), arb(0)).log()
    terms = (arb(p) * (arb(p).log() - value + total) for p, value in zip(probabilities, shifted, strict=True) if p)
    return sum(terms, arb(0))


def _statement(task: Task, tolerance: float) -> str:
    if isinstance(task, NextTokenDistribution):
        return f"The network's loss exceeds the entropy of the data by at most {tolerance:g} nats."
    if isinstance(task, QueryTargets):
        return f"The network's output lies within {tolerance:g} of the target for every example, as real numbers."
    return "The label's logit is the largest for every example, as real numbers."


def controls(
    network: SoftmaxNetwork, task: Task, rng: np.random.Generator, *, tolerance: float = TOLERANCE, tries: int = 30
) -> list[Control]:
    """Two lies that must be found out: answers dealt out anew, and one weight changed by 1e-3."""
    possible = float(np.ptp(task.answers, axis=0).max()) > (2 * tolerance if isinstance(task, QueryTargets) else 0)
    lie = shuffled(task, rng)
    while possible and _same(lie, task, tolerance):
        lie = shuffled(task, rng)
    told = judge_softmax(network, lie, tolerance=tolerance).verdict
    wrong = f"{told.errors} of {told.checked} answers wrong"
    return [
        Control("shuffled answers", wrong, told, possible),
        _nudged(network, task, rng, tolerance, tries),
    ]


def _same(lie: Task, task: Task, tolerance: float) -> bool:
    """Whether the lie is none, within what is allowed."""
    allowed = 2 * tolerance if isinstance(task, QueryTargets) else 0
    return bool((np.abs(lie.answers - task.answers) <= allowed).all())


def _nudged(network: SoftmaxNetwork, task: Task, rng: np.random.Generator, tolerance: float, tries: int) -> Control:
    """Weights that no example feels exist, and labels have room: nudges are tried until one is noticed."""
    tensors = dict(network.tensors())
    attempt = 0
    while True:
        attempt += 1
        name = list(tensors)[rng.integers(len(tensors))]
        changed = tensors[name].copy()
        entry = int(rng.integers(changed.size))
        changed.flat[entry] += NUDGE
        verdict = judge_softmax(network.with_tensor(name, changed), task, tolerance=tolerance).verdict
        if not verdict.certified or attempt == tries:
            break
    detail = f"{name}[{entry}] + {NUDGE:g}, try {attempt}: {verdict.errors} of {verdict.checked} answers wrong"
    felt = isinstance(task, QueryTargets) and tolerance <= NUDGE / 10
    return Control("nudged weight", detail, verdict, possible=felt)
