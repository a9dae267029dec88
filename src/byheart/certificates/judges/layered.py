"""The judge of layered networks, trained or of one softmax layer: it encloses every output in ball arithmetic.

The claim is about real-number arithmetic on the weights as they are; rounding in training or on a GPU plays no part. So
a certificate may count one answer fewer or more than was measured, if two logits are closer than floats can tell. The
claim about an output depends on the task, and is decided only if the balls leave no doubt:

- a *label* is right if its logit is a number and larger than every other, ball above ball;
- a *target* is met if the whole ball lies within ``tolerance`` of it; for a vector, each coordinate is an answer;
- *distributions* are reached if the divergence Σ_t π_t KL(p_t ‖ softmax(logits_t)) is at most ``tolerance`` nats. The
  divergence is the network's loss minus the entropy of the data, which is the least possible loss.

Examples in doubt are evaluated again with twice the bits, up to ``most_bits``. Answers that are in doubt then are
*undecided*, and the network is not certified. Every rounding widens a ball, and nothing is sampled.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from byheart.certificates.claim import Claim, JudgeOptions
from byheart.certificates.verdict import Answer, Counterexample, Outcome, Verdict, decide, doubling, summed_up, upward
from byheart.errors import BadInput
from byheart.networks.balls import Ball, lower, precision, upper
from byheart.networks.trained import Inputs, TrainedNetwork
from byheart.networks.trained.enclose import enclose
from byheart.tasks import NextToken, NextTokenDistribution, QueryLabels, QueryTargets, QueryTask, Task
from byheart.tasks.questions import QuestionsLike, as_task

LIBRARIES = ("numpy", "python-flint")
TOLERANCE = 1e-6
"""Default of the largest permitted error of targets and divergences."""
FEWEST_BITS, MOST_BITS = 64, 4096
DEFAULTS = JudgeOptions()
NUDGE = 1e-3
"""Change of one weight in the control's first attempt."""
Enclosing: TypeAlias = Callable[[Sequence[int], int], Iterable[tuple[int, list[Ball]]]]
"""Function from examples and bits to the examples' outputs as balls, in any order, each with its place in the list."""


def inputs_of(task: Task) -> Inputs:
    """Return a task's inputs in the form that softmax and trained networks read."""
    if isinstance(task, QueryTask):
        assert task.vectors is not None
        return task.vectors, task.queries
    if task.tokens is None:
        raise BadInput("the network reads token ids, or contexts with queries; this task has vectors")
    return task.tokens, None


def asked(network: TrainedNetwork, source: QuestionsLike) -> Task:
    """Return the task; raise BadInput unless it is one that the network answers.

    A network may have more outputs than there are labels; the other logits must then be smaller, too. A token without
    an output has probability 0, and so it must have in a task's distributions.
    """
    task = as_task(source)
    if not isinstance(task, NextToken | NextTokenDistribution | QueryTask):
        raise BadInput(f"the network answers once for a sequence; the task is {task.kind}")
    network.check_inputs(inputs_of(task))
    outputs, labels = network.outputs, task.label_count
    if isinstance(task, NextTokenDistribution) and outputs < labels and not task.probabilities[:, outputs:].any():
        return task
    real = isinstance(task, QueryTargets | NextTokenDistribution)
    if outputs < labels or (real and outputs > labels):
        raise BadInput(f"the network has {outputs} outputs; the task asks for {labels}")
    return task


def judge(
    network: TrainedNetwork,
    task: Task,
    options: JudgeOptions = DEFAULTS,
    *,
    most_bits: int = MOST_BITS,
) -> Verdict:
    """Enclose every output with as many bits as its judgement takes, up to ``most_bits``.

    >>> from byheart.networks.softmax import SoftmaxNetwork
    >>> one = np.ones((1, 1, 1))
    >>> network = SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=one)
    >>> task = QueryTargets(contexts=[[0.0], [1.0]], queries=[[0.0], [1.0]], targets=[0.5, 0.7310585])
    >>> judge(network, task).certified
    True
    >>> print(judge(network, task.with_answers([0.5, 0.731])).counterexample)
    example 1: expected 0.731, got 0.7310585786
    """
    if options.tolerance is not None and isinstance(task, NextToken | QueryLabels):
        raise BadInput("tolerance is for targets and distributions; the task asks for labels, which are right or wrong")
    tolerance = TOLERANCE if options.tolerance is None else options.tolerance
    if not 0 < tolerance < np.inf:
        raise BadInput(f"tolerance is {tolerance}; expected more than 0, and finite")
    fewest_bits = 2 * FEWEST_BITS if network.attentions > 1 else FEWEST_BITS  # balls grow from layer to layer

    def enclosing(examples: Sequence[int], bits: int) -> Iterable[tuple[int, list[Ball]]]:
        return enclose(network, chosen_inputs(task, examples), bits=bits, report=options.report)

    if isinstance(task, NextTokenDistribution):
        return _judge_divergence(task, enclosing, tolerance, fewest_bits, most_bits)
    return _judge_answers(task, enclosing, tolerance, fewest_bits, most_bits)


def _judge_answers(task: Task, enclosing: Enclosing, tolerance: float, fewest_bits: int, most_bits: int) -> Verdict:
    """Judge every label or target on its own."""
    start = time.perf_counter()

    def ask(examples: Sequence[int], bits: int) -> list[list[Answer]]:
        rows: list[list[Answer]] = [[] for _ in examples]
        for place, outputs in enclosing(examples, bits):
            with precision(bits):
                rows[place] = _judge_one(outputs, task, examples[place], tolerance)
        assert all(rows), "every example has an answer"
        return rows

    answers, bits = decide(task.size.examples, ask, fewest=fewest_bits, most=most_bits)
    note, real = "", isinstance(task, QueryTargets)
    if real and all(answer.outcome == "right" for row in answers for answer in row):
        note = f"errors at most {upward(max(answer.error for row in answers for answer in row), 2)}"
    verdict = summed_up(
        answers,
        lambda example, k: _expected(task, example, k),
        claim=_claim(task, tolerance),
        method=_method(bits),
        seconds=time.perf_counter() - start,
        note=note,
    )
    return verdict if verdict.certified else replace(verdict, margin=None)


def perturbed(network: TrainedNetwork, rng: np.random.Generator, attempt: int) -> tuple[TrainedNetwork, str]:
    """Return the network with one weight changed, and its place. Each attempt doubles the change."""
    weights, nudge = network.by_name(), NUDGE * 2**attempt
    name = list(weights)[rng.integers(len(weights))]
    changed = weights[name].copy()
    entry = int(rng.integers(changed.size))
    changed.flat[entry] += nudge
    return network.with_tensor(name, changed), f"{name}[{entry}] + {nudge:g}"


def chosen_inputs(task: Task, examples: Sequence[int]) -> Inputs:
    """Return the inputs of some examples; a context that all share stays one array."""
    sequences, queries = inputs_of(task)
    if len(examples) == task.size.examples:
        return sequences, queries
    chosen = np.array(examples)
    own = sequences[: len(chosen)] if sequences.strides[0] == 0 else sequences[chosen]
    return own, None if queries is None else queries[chosen]


def _method(bits: int) -> str:
    return f"ball arithmetic, exhaustive, {bits} bits"


def _judge_one(row: list[Ball], task: Task, example: int, tolerance: float) -> list[Answer]:
    if isinstance(task, QueryTargets):
        wanted = task.coordinates[example].tolist()
        return [_judge_target(output, target, tolerance) for output, target in zip(row, wanted, strict=True)]
    assert isinstance(task, NextToken | QueryLabels)
    return [_judge_label(row, int(task.labels[example]))]


def _claim(task: Task, tolerance: float) -> Claim:
    if not isinstance(task, QueryTargets):
        return Claim("largest logit", "as real numbers")
    return Claim("near target", "as real numbers", tolerance=tolerance, coordinates=task.label_count)


def _expected(task: Task, example: int, coordinate: int) -> int | float | str:
    """Return the right answer to an example; for a vector, that of one coordinate."""
    answer = task.answers[example]
    return answer.item() if answer.ndim == 0 else f"{answer[coordinate].item()} in coordinate {coordinate}"


def _judge_label(row: list[Ball], label: int) -> Answer:
    gaps = [row[label] - other for index, other in enumerate(row) if index != label]
    margin = min((lower(gap) for gap in gaps), default=np.inf)
    if row[label].is_finite() and all(gap > 0 for gap in gaps):
        return Answer("right", margin, str(label))
    best = max(range(len(row)), key=lambda index: float(row[index]))
    if best != label:
        return Answer("wrong" if any(gap <= 0 for gap in gaps) else "undecided", margin, str(best))
    return _judge_close(row, label, margin)


def _judge_close(row: list[Ball], label: int, margin: float) -> Answer:
    """Judge a label that is the largest in float64, but not for certain."""
    level = [index for index, other in enumerate(row) if index != label and row[label] - other <= 0]
    if not level:
        return Answer("undecided", margin, f"{label}, in doubt")
    tie = row[label] - row[level[0]] == 0
    return Answer("wrong", margin, f"a tie with {level[0]}" if tie else str(level[0]))


def _judge_target(output: Ball, target: float, tolerance: float) -> Answer:
    error = abs(output - target)
    margin = lower(tolerance - error)
    outcome: Outcome = "right" if error < tolerance else "wrong" if error >= tolerance else "undecided"
    return Answer(outcome, margin, f"{float(output):.10g}", error=upper(error))


def _judge_divergence(
    task: NextTokenDistribution, enclosing: Enclosing, tolerance: float, fewest_bits: int, most_bits: int
) -> Verdict:
    """Judge all examples together: the divergence is one number."""
    from flint import arb

    start, likelihoods = time.perf_counter(), task.likelihoods.tolist()
    each: list[Ball] = [None] * task.size.examples
    for bits in doubling(fewest_bits, most_bits):
        for example, row in enclosing(range(task.size.examples), bits):
            with precision(bits):
                each[example] = _divergence(row, task.probabilities[example].tolist())
        with precision(bits):
            total = sum((weight * value for weight, value in zip(likelihoods, each, strict=True)), arb(0))
            right, wrong = bool(total < tolerance), bool(total >= tolerance)
        if right or wrong:
            break
    worst = max(range(len(each)), key=lambda index: float(each[index]))
    expected = f"a divergence of at most {tolerance!r} on average"
    return Verdict(
        claim=Claim("loss", tolerance=tolerance),
        method=_method(bits),
        checked=len(each),
        errors=max(1, sum(float(value) >= tolerance for value in each)) if wrong else 0,
        seconds=time.perf_counter() - start,
        margin=min(tolerance, lower(tolerance - total)) if right else None,
        counterexample=None if right else Counterexample(worst, None, expected, f"{float(each[worst]):.6g}"),
        undecided=0 if right or wrong else len(each),
        note=f"divergence at most {upward(upper(total), 6)} nats" if total.is_finite() else "",
    )


def _divergence(logits: list[Ball], probabilities: list[float]) -> Ball:
    """Return KL(p ‖ softmax(logits)) = Σ_j p_j (log p_j − logit_j + log Σ exp logits), where 0 log 0 = 0.

    There may be fewer logits than probabilities; the probabilities without a logit are 0.
    """
    from flint import arb

    largest = max(logits, key=float).mid()
    shifted = [logit - largest for logit in logits]
    total = sum((value.exp() for value in shifted), arb(0)).log()
    terms = (arb(p) * (arb(p).log() - value + total) for p, value in zip(probabilities, shifted, strict=False) if p)
    return sum(terms, arb(0))
