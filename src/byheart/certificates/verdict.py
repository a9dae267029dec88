"""Is it true? Every answer of a network to every question of a task, in exact arithmetic, against the label."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.exact import ExactNetwork, Integers
from byheart.progress import Report
from byheart.tasks import NextToken, SeqToSeq, Task

Evaluator: TypeAlias = Literal["limbs", "flint"]
"""``limbs``: compiled, by the batch. ``flint``: python-flint's rationals, one sequence at a time, much slower."""


_EVALUATORS = ("limbs", "flint")
_HUGE = 10**15


@dataclass(frozen=True)
class Counterexample:
    """A question answered wrongly: which example, at which position (seq-to-seq), what was expected and got."""

    example: int
    position: int | None
    expected: int | float | str
    got: str

    def __str__(self) -> str:
        place = f"example {self.example}" + ("" if self.position is None else f", position {self.position}")
        return f"{place}: expected {self.expected}, got {self.got}"


@dataclass(frozen=True)
class Verdict:
    """What an exhaustive check found; ``margin``: ½ − the largest |output − label|, or None if that is huge."""

    certified: bool
    checked: int
    errors: int
    margin: float | None
    counterexample: Counterexample | None
    seconds: float
    undecided: int = 0
    """Answers that could be right or wrong: the bits allowed did not tell."""
    bits: int | None = None
    """With how many bits outputs were enclosed; None where they were computed exactly."""


def judge(
    network: ExactNetwork,
    task: Task,
    *,
    evaluator: Evaluator = "limbs",
    threads: int = 1,
    report: Report | None = None,
) -> Verdict:
    """Evaluate ``network`` on all of ``task`` and compare every output with its label: equal, or wrong.

    Networks with softmax attention are enclosed instead (:mod:`byheart.certificates.enclosed`).
    ``report`` is called with the numbers of examples that are done and that there are.
    """
    if not isinstance(task, NextToken | SeqToSeq):
        raise BadInput(f"an exact network answers next-token and seq-to-seq tasks; the task is {task.kind}")
    wanted = "last" if isinstance(task, NextToken) else "every"
    if network.outputs != wanted:
        answers = {"last": "next-token", "every": "seq-to-seq"}[network.outputs]
        raise BadInput(f"the network answers {answers} tasks; the task is {task.kind}")
    if evaluator not in _EVALUATORS:
        raise BadInput(f"evaluator is {evaluator!r}; expected {' or '.join(_EVALUATORS)}")
    if not network.rational:
        if evaluator != "limbs":
            raise BadInput(
                "outputs behind softmax attention are enclosed, and evaluators are for exact ones; leave it out"
            )
        from byheart.certificates.enclosed import judge_enclosed

        return judge_enclosed(network, task, report=report)
    start = time.perf_counter()
    outputs = _evaluator(evaluator)(network, task.inputs, threads=threads, report=report)
    wrong = outputs != task.labels
    places = np.argwhere(wrong)
    return Verdict(
        certified=len(places) == 0,
        checked=outputs.size,
        errors=len(places),
        margin=_margin(outputs, task.labels),
        counterexample=_counterexample(outputs, task, places[0]) if len(places) else None,
        seconds=time.perf_counter() - start,
    )


def _margin(outputs: Integers, labels: NDArray[np.int64]) -> float | None:
    pairs = zip(outputs.ravel().tolist(), labels.ravel().tolist(), strict=True)
    worst = max(abs(Fraction(output) - label) for output, label in pairs)
    return float(Fraction(1, 2) - worst) if worst < _HUGE else None


def _evaluator(name: Evaluator) -> Callable[..., Integers]:
    if name == "limbs":
        from byheart.networks.exact.evaluate import evaluate

        return evaluate
    from byheart.networks.exact.reference import evaluate as evaluate_flint

    return evaluate_flint


def _counterexample(outputs: Integers, task: NextToken | SeqToSeq, place: NDArray[np.int64]) -> Counterexample:
    example, position = int(place[0]), int(place[1]) if len(place) > 1 else None
    got = Fraction(outputs[tuple(place)])
    # A flipped bit can make outputs of thousands of digits: their size says enough.
    text = str(got) if abs(got) < _HUGE and got.denominator < _HUGE else f"about {'-' if got < 0 else ''}2^{_log2(got)}"
    return Counterexample(example, position, int(task.labels[tuple(place)]), text)


def _log2(value: Fraction) -> int:
    return abs(value.numerator).bit_length() - value.denominator.bit_length()
