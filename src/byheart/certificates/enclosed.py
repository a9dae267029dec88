"""Networks with softmax attention: every output is enclosed in a ball, and must lie within ½ of its label.

Such outputs are real numbers, so "equal to the label" cannot be seen; "rounds to the label" can. Examples in doubt are
enclosed again with twice the bits, up to ``most_bits``; what is in doubt then is *undecided*, and the network is not
certified.
"""

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from byheart.certificates.verdict import Counterexample, Verdict
from byheart.networks import count
from byheart.networks.exact import ExactNetwork
from byheart.networks.exact.enclose import enclose
from byheart.networks.softmax.balls import Ball, precision
from byheart.progress import Report
from byheart.tasks import NextToken, SeqToSeq

FEWEST_BITS, MOST_BITS = 64, 1 << 17
_HUGE = 10**15
_SMALL = 1e-6
"""Outputs that are known this well are told as a number."""


def judge_enclosed(
    network: ExactNetwork,
    task: NextToken | SeqToSeq,
    *,
    most_bits: int = MOST_BITS,
    report: Report | None = None,
) -> Verdict:
    """Enclose every output of ``network`` on ``task`` with as many bits as it takes, and compare it with its label."""
    start = time.perf_counter()
    labels = task.labels.reshape(len(task.labels), -1)
    # Weights of b bits tell numbers apart that differ in their b-th bit; fewer bits than that would be tried in vain.
    bits = -(-(count(network).max_bits + 32) // FEWEST_BITS) * FEWEST_BITS
    bits = max(FEWEST_BITS, min(bits, most_bits))
    answers = np.empty(labels.shape, dtype=object)
    doubtful = np.arange(len(labels))
    while True:
        outputs = enclose(network, task.inputs[doubtful], bits=bits, report=report).reshape(len(doubtful), -1)
        with precision(bits):
            answers[doubtful] = _compared(outputs, labels[doubtful])
        outcomes = np.array([answer.outcome for answer in answers.ravel()]).reshape(labels.shape)
        doubtful = np.flatnonzero((outcomes == "undecided").any(axis=1))
        if not len(doubtful) or bits >= most_bits:
            break
        bits = min(2 * bits, most_bits)
    bad = np.argwhere(outcomes != "right")
    margin = 0.5 - max(answer.distance for answer in answers.ravel())
    return Verdict(
        certified=len(bad) == 0,
        checked=labels.size,
        errors=int((outcomes == "wrong").sum()),
        margin=margin if np.isfinite(margin) else None,
        counterexample=_counterexample(task, answers, bad[0]) if len(bad) else None,
        seconds=time.perf_counter() - start,
        undecided=int((outcomes == "undecided").sum()),
        bits=bits,
    )


@dataclass(frozen=True)
class _Answer:
    """What is known of one output: the ball, the outcome, and how far it is from the label at most."""

    output: Ball
    outcome: Literal["right", "wrong", "undecided"]
    distance: float


def _compared(outputs: NDArray[np.object_], labels: NDArray[np.int64]) -> NDArray[np.object_]:
    """Every output against its label. Comparisons of balls are true if that is certain; of nan none ever is."""
    found = np.empty(labels.shape, dtype=object)
    for place, output in np.ndenumerate(outputs):
        distance = abs(output - int(labels[place]))
        twice = 2 * distance
        outcome: Literal["right", "wrong", "undecided"] = (
            "right" if twice < 1 else "wrong" if twice > 1 else "undecided"
        )
        found[place] = _Answer(output, outcome, float(distance.upper()) if distance.is_finite() else np.inf)
    return found


def _counterexample(
    task: NextToken | SeqToSeq, answers: NDArray[np.object_], place: NDArray[np.int64]
) -> Counterexample:
    example, position = int(place[0]), int(place[1]) if isinstance(task, SeqToSeq) else None
    expected = int(task.labels[(example,) if position is None else (example, position)])
    return Counterexample(example, position, expected, _told(answers[tuple(place)].output))


def _told(output: Ball) -> str:
    """A ball for people."""
    if not output.is_finite():
        return "nothing known"
    if abs(output) > _HUGE:
        power = (abs(output).log() / arb.const_log2()).mid().floor().unique_fmpz()
        return f"about {'-' if output < 0 else ''}2^{power}"
    if output.rad() < _SMALL:
        return f"{float(output):.10g}"
    return f"between {float(output.lower()):.6g} and {float(output.upper()):.6g}"
