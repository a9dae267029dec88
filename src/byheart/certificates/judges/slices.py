"""Exact networks: slices of examples, checked wherever there is room, and added up.

Outputs are exact, so it does not matter which examples are evaluated together: the verdict is the same whatever the
executor and however many workers there are.
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

A_WORKER = 4
"""Slices for each worker: whoever is done early takes another."""
FEWEST = 64
"""Examples of a slice."""


@dataclass(frozen=True)
class Comparisons:
    """What came out for the answers of some examples."""

    codes: Codes
    outputs: Integers
    """Of the answers that are wrong, in order."""
    worst: int | Fraction
    """The largest |output − label|."""

    def output(self, answer: int) -> int | Fraction:
        """What was got in place of the label, for an answer that is wrong."""
        got: int | Fraction = self.outputs[np.count_nonzero(self.codes[:answer])]
        return got


def found(
    network: ExactNetwork,
    inputs: Inputs,
    labels: NDArray[np.int64],
    evaluator: Evaluator,
    threads: int,
    workplace: Workplace,
    report: Report | None,
) -> Comparisons:
    """What comes out for all examples: in one piece here, in slices elsewhere."""
    if workplace.name == "local":
        return compared(network, evaluator, threads, inputs, labels, report=report)
    parts: dict[int, Comparisons] = {}
    with workplace.open(network, evaluator, threads) as executor:
        size = max(FEWEST, -(-len(inputs) // (A_WORKER * executor.workers)))
        tasks = (
            Job(begin, compared, (inputs[begin : begin + size], labels[begin : begin + size]))
            for begin in range(0, len(inputs), size)
        )
        for begin, part in run_jobs(executor, tasks, peaks=workplace.peaks):
            parts[begin] = part
            if report is not None:
                report(min(size * len(parts), len(inputs)), len(inputs))
    return _added([parts[begin] for begin in sorted(parts)])


def compared(
    network: ExactNetwork,
    evaluator: Evaluator,
    threads: int,
    inputs: Inputs,
    labels: NDArray[np.int64],
    *,
    report: Report | None,
) -> Comparisons:
    """Every output for these examples, held against its label."""
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


def _added(parts: list[Comparisons]) -> Comparisons:
    return Comparisons(
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.outputs for part in parts]),
        max(part.worst for part in parts),
    )
