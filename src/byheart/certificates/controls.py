"""Controls: two lies that the check has to find. A certificate is worth what its controls are.

*Shuffled labels*: the same network against a task whose labels were dealt out anew. *Flipped bit*: one random bit of one
random weight changed, against the true task; bits that no example depends on exist (fillers, unused embedding rows), so
flips are tried until one is noticed, and the number of flips that it took is reported.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from byheart.certificates.verdict import Evaluator, Verdict, judge
from byheart.networks import FeedForward, Integers, Layer, Network, integers
from byheart.tasks import NextToken, SeqToSeq, shuffled


@dataclass(frozen=True)
class Control:
    """A lie, and what the check said to it: ``found`` must be true."""

    name: str
    detail: str
    verdict: Verdict

    @property
    def found(self) -> bool:
        """Whether the lie was found out."""
        return not self.verdict.certified


def shuffled_labels(network: Network, task: NextToken | SeqToSeq, rng: np.random.Generator, evaluator: Evaluator = "limbs") -> Control:  # fmt: skip
    """The network against shuffled labels: right only by chance."""
    lie = shuffled(task, rng)
    while lie == task and len(np.unique(task.labels, axis=0)) > 1:
        lie = shuffled(task, rng)
    verdict = judge(network, lie, evaluator=evaluator)
    return Control("shuffled labels", f"{verdict.errors} of {verdict.checked} answers wrong", verdict)


def flipped_bit(
    network: Network,
    task: NextToken | SeqToSeq,
    rng: np.random.Generator,
    evaluator: Evaluator = "limbs",
    tries: int = 30,
) -> Control:
    """The network with one bit of one weight flipped, against the true task."""
    for attempt in range(1, tries + 1):
        broken, place = flip_random_bit(network, rng)
        verdict = judge(broken, task, evaluator=evaluator)
        if not verdict.certified:
            break
    return Control(
        "flipped bit", f"{place}, flip {attempt}: {verdict.errors} of {verdict.checked} answers wrong", verdict
    )


def flip_random_bit(network: Network, rng: np.random.Generator) -> tuple[Network, str]:
    """A copy of ``network`` with one bit of one non-zero weight flipped, and where that is."""
    names = [name for name, tensor in network.tensors() if np.count_nonzero(tensor)]
    name = names[rng.integers(len(names))]

    def flip(tensor: Integers) -> Integers:
        flat = tensor.ravel().copy()
        entry = rng.choice(np.flatnonzero(flat))
        bit = int(rng.integers(int(abs(flat[entry])).bit_length()))
        flat[entry] ^= 1 << bit
        nonlocal name
        name = f"{name}[{entry}] bit {bit}"
        return integers(flat, tensor.shape)

    target = name
    return replace(network, layers=tuple(_changed(layer, target, flip) for layer in network.layers)), name


def _changed(layer: Layer, target: str, change: Callable[[Integers], Integers]) -> Layer:
    """``layer`` with ``change`` applied to the tensor called ``target``, if it has it."""
    if isinstance(layer, FeedForward):
        chain = list(layer.layers)
        for index, affine in enumerate(chain):
            for key in ("W", "b"):
                if target == f"{layer.name}.{index}.{affine.role}.{key}":
                    changed = change(getattr(affine, key))
                    chain[index] = replace(affine, W=changed) if key == "W" else replace(affine, b=changed)
        return replace(layer, layers=tuple(chain))
    changes = {
        key: change(value)
        for key, value in vars(layer).items()
        if key.startswith("W_") and target == f"{layer.name}.{key}"
    }
    return replace(layer, **changes)
