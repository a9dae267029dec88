"""Trained networks: every output of the saved weights, enclosed in ball arithmetic.

What is asked of an output is what :mod:`byheart.certificates.judges.softmax` asks, of real-number arithmetic on the
weights as they are: what a training run or a GPU rounds has no part in it. So a certificate may speak of an answer that
float32 gets wrong, or count one fewer than was measured, where two logits are nearer than floats can tell.
"""

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from byheart.certificates.judges.softmax import (
    FEWEST_BITS,
    LIBRARIES,
    MOST_BITS,
    answered_once,
    chosen_inputs,
    inputs_of,
    judged,
    nudged,
)
from byheart.certificates.verdict import Verdict
from byheart.errors import BadInput
from byheart.networks.softmax.balls import Ball
from byheart.networks.trained import TrainedAttention, TrainedNetwork
from byheart.networks.trained.balls import enclose
from byheart.networks.trained.trained_network import check_inputs
from byheart.progress import Report
from byheart.tasks import NextTokenDistribution, QueryTargets, Task
from byheart.tasks.questions import QuestionsLike

__all__ = ["LIBRARIES", "asked", "judge", "perturbed"]


def asked(network: TrainedNetwork, given: QuestionsLike) -> Task:
    """The task, if it is one that the network answers.

    A network may have more outputs than there are labels; the others must be smaller too. A token that has no output is
    never said, so that its probability in a distribution must be 0.
    """
    task = answered_once(given)
    check_inputs(network, inputs_of(task))
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
    *,
    tolerance: float | None = None,
    most_bits: int = MOST_BITS,
    report: Report | None = None,
) -> Verdict:
    """Enclose every output with as many bits as it takes, up to ``most_bits``, and judge it."""
    deep = sum(isinstance(step, TrainedAttention) for step in network.steps) > 1
    return judged(
        task,
        partial(_enclosed, network, task, report),
        tolerance=tolerance,
        fewest_bits=2 * FEWEST_BITS if deep else FEWEST_BITS,  # balls grow from layer to layer
        most_bits=most_bits,
    )


def _enclosed(
    network: TrainedNetwork, task: Task, report: Report | None, examples: Sequence[int], bits: int
) -> Iterable[tuple[int, list[Ball]]]:
    return enclose(network, chosen_inputs(task, examples), bits=bits, report=report)


def perturbed(network: TrainedNetwork, rng: np.random.Generator, attempt: int) -> tuple[TrainedNetwork, str]:
    """The network with one weight changed, and where; every attempt changes it by more."""
    name, changed, place = nudged(network.weights, rng, attempt)
    return network.with_tensor(name, changed), place
