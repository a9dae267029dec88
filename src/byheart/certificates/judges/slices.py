"""Comparisons of an exact network's outputs with labels, slice by slice, on any executor.

Outputs are exact, so it does not matter which examples are evaluated together: the verdict is the same for every
executor and every number of workers.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.claim import Evaluator
from byheart.certificates.verdict import RIGHT, WRONG, Codes
from byheart.executors import Job, Workplace, run_jobs
from byheart.networks.exact import ExactNetwork, Integers
from byheart.networks.exact.exact_network import Inputs
from byheart.progress import Report

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


def compare_all(
    network: ExactNetwork,
    inputs: Inputs,
    labels: NDArray[np.int64],
    evaluator: Evaluator,
    threads: int,
    workplace: Workplace,
    report: Report | None,
) -> Comparisons:
    """Compare all outputs with their labels: in one piece here, or in slices on an executor."""
    if workplace.name == "local":
        return compared(network, evaluator, threads, inputs, labels, report=report)
    parts: dict[int, Comparisons] = {}
    with workplace.open(network, evaluator, threads) as executor:
        size = max(FEWEST, -(-len(inputs) // (SLICES_PER_WORKER * executor.workers)))
        tasks = (
            Job(begin, compared, (inputs[begin : begin + size], labels[begin : begin + size]))
            for begin in range(0, len(inputs), size)
        )
        for begin, part in run_jobs(executor, tasks, peaks=workplace.peaks):
            parts[begin] = part
            if report is not None:
                report(min(size * len(parts), len(inputs)), len(inputs))
    return _joined([parts[begin] for begin in sorted(parts)])


def compared(
    network: ExactNetwork,
    evaluator: Evaluator,
    threads: int,
    inputs: Inputs,
    labels: NDArray[np.int64],
    *,
    report: Report | None,
) -> Comparisons:
    """Compare the outputs of some examples with their labels."""
    outputs, wanted = _outputs(network, evaluator, threads, inputs, report).ravel(), labels.ravel()
    codes = np.where(outputs == wanted, RIGHT, WRONG).astype(np.uint8)
    wrong = codes == WRONG
    pairs = zip(outputs[wrong].tolist(), wanted[wrong].tolist(), strict=True)
    return Comparisons(codes, outputs[wrong], max((abs(output - label) for output, label in pairs), default=0))


def _outputs(
    network: ExactNetwork, evaluator: Evaluator, threads: int, inputs: Inputs, report: Report | None
) -> Integers:
    if evaluator == "limbs":
        from byheart.networks.exact.evaluate import evaluate

        return evaluate(network, inputs, threads=threads, report=report)
    from byheart.networks.exact.reference import evaluate as evaluate_flint

    return evaluate_flint(network, inputs, report=report)


def _joined(parts: list[Comparisons]) -> Comparisons:
    """Join the comparisons of consecutive slices."""
    return Comparisons(
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.outputs for part in parts]),
        max(part.worst for part in parts),
    )
