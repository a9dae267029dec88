"""Controls: two lies that the check has to find. A certificate is worth what its controls are.

*Shuffled labels*: the same network against a task whose labels were dealt out anew. *Flipped bit*: one random bit of
one random weight changed, against the true task; bits that no example depends on exist (fillers, unused embedding
rows), so flips are tried until one is noticed, and the number of flips that it took is reported.
"""

from dataclasses import dataclass

import numpy as np

from byheart.certificates.verdict import Evaluator, Verdict, judge
from byheart.networks.exact import ExactNetwork, integers
from byheart.tasks import NextToken, SeqToSeq, shuffled


@dataclass(frozen=True)
class Control:
    """A lie, and what the check said to it: ``found`` must be true, or None where there is nothing to lie about."""

    name: str
    detail: str
    verdict: Verdict

    possible: bool = True

    @property
    def found(self) -> bool | None:
        """Whether the lie was found out; None if all labels are equal, so that it was none."""
        return True if not self.verdict.certified else (False if self.possible else None)


def shuffled_labels(
    network: ExactNetwork, task: NextToken | SeqToSeq, rng: np.random.Generator, evaluator: Evaluator = "limbs"
) -> Control:
    """The network against shuffled labels: right only by chance."""
    possible = len(np.unique(task.labels, axis=0)) > 1
    lie = shuffled(task, rng)
    while possible and lie == task:
        lie = shuffled(task, rng)
    verdict = judge(network, lie, evaluator=evaluator)
    return Control("shuffled labels", f"{verdict.errors} of {verdict.checked} answers wrong", verdict, possible)


def flipped_bit(
    network: ExactNetwork,
    task: NextToken | SeqToSeq,
    rng: np.random.Generator,
    evaluator: Evaluator = "limbs",
    tries: int = 30,
) -> Control:
    """The network with one bit of one weight flipped, against the true task."""
    for attempt in range(1, tries + 1):
        broken, place = flip_random_bit(network, rng)
        verdict = judge(broken, task, evaluator=evaluator)
        if not verdict.certified or attempt == tries:
            break
    wrong = f"{verdict.errors} of {verdict.checked} answers wrong"
    return Control("flipped bit", f"{place}, flip {attempt}: {wrong}", verdict, bool((task.labels != 0).any()))


def flip_random_bit(network: ExactNetwork, rng: np.random.Generator) -> tuple[ExactNetwork, str]:
    """A copy of ``network`` with one bit of one non-zero weight flipped, and where that is."""
    tensors = {name: tensor for name, tensor in network.tensors() if np.count_nonzero(tensor)}
    name = list(tensors)[rng.integers(len(tensors))]
    flat = tensors[name].ravel().copy()
    entry = int(rng.choice(np.flatnonzero(flat)))
    bit = int(rng.integers(abs(flat[entry]).bit_length()))
    flat[entry] ^= 1 << bit
    changed = integers(flat, tensors[name].shape)
    return network.with_tensor(name, changed), f"{name}[{entry}] bit {bit}"
