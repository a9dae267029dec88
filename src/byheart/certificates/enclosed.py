"""Networks with softmax attention: every output is enclosed in a ball, and must lie within ½ of its label.

Such outputs are real numbers, so "equal to the label" cannot be seen; "rounds to the label" can. Examples in doubt are
enclosed again with twice the bits, up to ``most_bits``; what is in doubt then is *undecided*, and the network is not
certified.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.verdict import Counterexample, Verdict
from byheart.networks import Network, count
from byheart.networks.enclose import enclose
from byheart.networks.softmax.balls import precision
from byheart.tasks import NextToken, SeqToSeq

FEWEST_BITS, MOST_BITS = 64, 1 << 17
_SMALL = 1e-6
"""Outputs that are known this well are told as a number."""


def judge_enclosed(
    network: Network,
    task: NextToken | SeqToSeq,
    *,
    most_bits: int = MOST_BITS,
    report: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Enclose every output of ``network`` on ``task`` with as many bits as it takes, and compare it with its label."""
    start = time.perf_counter()
    labels = task.labels.reshape(len(task.labels), -1)
    # Weights of b bits tell numbers apart that differ in their b-th bit; fewer bits than that would be tried in vain.
    bits = -(-(count(network).max_bits + 32) // FEWEST_BITS) * FEWEST_BITS
    low, high, said = np.zeros(labels.shape), np.zeros(labels.shape), np.zeros(labels.shape, dtype=object)
    doubtful = np.arange(len(labels))
    while True:
        outputs = enclose(network, task.inputs[doubtful], bits=bits, report=report).reshape(len(doubtful), -1)
        with precision(bits):
            low[doubtful], high[doubtful] = _distances(outputs, labels[doubtful])
            said[doubtful] = outputs
        undecided = (low <= 0.5) & (high >= 0.5)
        doubtful = np.flatnonzero(undecided.any(axis=1))
        if not len(doubtful) or 2 * bits > most_bits:
            break
        bits *= 2
    bad = np.argwhere(high >= 0.5)
    margin = float(0.5 - high.max())
    return Verdict(
        certified=len(bad) == 0,
        checked=labels.size,
        errors=int((low > 0.5).sum()),
        margin=margin if np.isfinite(margin) else None,
        counterexample=_counterexample(task, said, bad[0]) if len(bad) else None,
        seconds=time.perf_counter() - start,
        undecided=int(undecided.sum()),
        bits=bits,
    )


def _distances(outputs: NDArray[np.object_], labels: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Lower and upper bounds on |output − label|, entry by entry."""
    distances = [abs(output - int(label)) for output, label in zip(outputs.ravel(), labels.ravel(), strict=True)]
    bounds = [(float(distance.lower()), float(distance.upper())) for distance in distances]
    low, high = np.array(bounds).T
    return low.reshape(labels.shape), high.reshape(labels.shape)


def _counterexample(task: NextToken | SeqToSeq, said: NDArray[np.object_], place: NDArray[np.int64]) -> Counterexample:
    example, position = int(place[0]), int(place[1]) if isinstance(task, SeqToSeq) else None
    expected = int(task.labels[(example,) if position is None else (example, position)])
    output = said[tuple(place)]
    got = (
        f"{float(output):.10g}"
        if output.rad() < _SMALL
        else f"between {float(output.lower()):.6g} and {float(output.upper()):.6g}"
    )
    return Counterexample(example, position, expected, got)
