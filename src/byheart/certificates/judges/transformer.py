"""Float Transformers: every question, asked of the weights.

A label is right if its logit is the largest, strictly. Where the weights are float32 (or shorter) everything is done
again in float64: if every step was exact, as it is meant to be, all logits of all questions agree, bit for bit (64-bit
fingerprints of their bits are compared). Answers whose logits do not are *undecided*: on another machine, or in another
batch, they may be others.
"""

import copy
import time

import numpy as np

from byheart.certificates.judges import contexts as judging
from byheart.certificates.verdict import Verdict
from byheart.networks.transformer.evaluate import answers
from byheart.networks.transformer.network import TransformerNetwork, from_arrays
from byheart.progress import Report
from byheart.tasks.contexts import Contexts
from byheart.tasks.questions import Given

LIBRARIES = ("numpy", "torch")


def asked(network: TransformerNetwork, given: Given) -> Contexts:
    """The contexts of texts or of a next-token task, as far as the network looks back."""
    return judging.asked(network, given, network.spec.vocab, network.spec.sees)


def judge(network: TransformerNetwork, contexts: Contexts, *, report: Report | None = None) -> Verdict:
    """Ask every question, and once more in float64 where the network itself is shorter."""
    began, module = time.perf_counter(), network.module
    once = answers(module, contexts.tokens, contexts.starts, contexts.places, report=report)
    method, other = f"{network.spec.precision}, exhaustive", None
    if network.spec.precision != "float64":
        double = copy.deepcopy(module).double()
        twice = answers(double, contexts.tokens, contexts.starts, contexts.places, report=report)
        other = (once.prints != twice.prints) | (once.labels != twice.labels) | ~(twice.margins > 0)
        method += (
            f"; float64 gives {other.sum():,} others: not exact" if other.any() else "; the same logits in float64"
        )
    return judging.compared(once, contexts, f"as {network.spec.precision} computes it", method, began, other)


def perturbed(network: TransformerNetwork, rng: np.random.Generator, attempt: int) -> tuple[TransformerNetwork, str]:
    """The network with one bit of one weight flipped, with every attempt of twice as many; and where."""
    tensors, place = judging.flipped(network, rng, 2**attempt)
    return from_arrays(network.spec, tensors), place
