"""The judge of exact networks with softmax attention: every output, enclosed in a ball, lies within ½ of its label.

Such outputs are real numbers. No enclosure shows that one equals its label, but it can show that one rounds to it.
Examples in doubt are enclosed again with twice the bits, up to ``most_bits``. Answers that are in doubt then are
*undecided*, and the network is not certified.
"""

import time
from collections.abc import Sequence

import numpy as np

from byheart.certificates.claim import Claim
from byheart.certificates.verdict import Answer, Verdict, decide, summed_up
from byheart.networks.balls import Ball, lower, precision
from byheart.networks.exact import ExactNetwork
from byheart.networks.exact.enclose import enclose
from byheart.progress import Report
from byheart.tasks import NextToken, SeqToSeq

FEWEST_BITS, MOST_BITS = 64, 1 << 17
_HUGE = 10**15
"""Magnitude above which outputs are printed as powers of two."""
_SMALL = 1e-6
"""Radius of a ball below which it is printed as one number."""


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

    def ask(examples: Sequence[int], bits: int) -> list[list[Answer]]:
        outputs = enclose(network, task.inputs[np.array(examples)], bits=bits, report=report)
        with precision(bits):
            rows = zip(outputs.reshape(len(examples), -1), labels[np.array(examples)].tolist(), strict=True)
            return [[_compared(x, label) for x, label in zip(row, wanted, strict=True)] for row, wanted in rows]

    # Weights of b bits tell numbers apart that differ in their b-th bit; fewer bits than that would be tried in vain.
    fewest = -(-(network.account.max_bits + 32) // FEWEST_BITS) * FEWEST_BITS
    answers, bits = decide(len(labels), ask, fewest=fewest, most=max(FEWEST_BITS, most_bits))
    asking = "position" if network.outputs == "every" else "sequence"
    return summed_up(
        answers,
        lambda example, position: int(labels[example, position]),
        claim=Claim("rounds to label", "as real numbers", unit=asking),
        method=f"ball arithmetic, exhaustive, {bits} bits",
        seconds=time.perf_counter() - start,
        positions=isinstance(task, SeqToSeq),
    )


def _compared(output: Ball, label: int) -> Answer:
    """Compare an output with its label. A comparison of balls is True if it is certain; one with nan never is."""
    distance = abs(output - label)
    twice = 2 * distance
    margin = lower(0.5 - distance) if distance.is_finite() else -np.inf
    return Answer("right" if twice < 1 else "wrong" if twice > 1 else "undecided", margin, _describe(output))


def _describe(output: Ball) -> str:
    """Describe a ball in words."""
    from flint import arb

    if not output.is_finite():
        return "nothing known"
    if abs(output) > _HUGE:
        power = (abs(output).log() / arb.const_log2()).mid().floor().unique_fmpz()
        return f"about {'-' if output < 0 else ''}2^{power}"
    if output.rad() < _SMALL:
        return f"{float(output):.10g}"
    return f"between {float(output.lower()):.6g} and {float(output.upper()):.6g}"
