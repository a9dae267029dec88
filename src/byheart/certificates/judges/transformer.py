"""Float Transformers: every question, asked of the weights, and every step on the way proved to be exact.

A label is right if its logit is the largest, strictly. The network is run as it is; then once more with the proof that
no product and no sum, in whatever order, can be rounded in its format (:mod:`byheart.networks.transformer.forced`), so
that every machine that follows IEEE 754 gives the same logits. Answers for which that is not proved are *undecided*: on
another machine, or in another batch, they may be others.
"""

import time

import numpy as np

from byheart.certificates.claim import JudgeOptions
from byheart.certificates.judges import contexts as judging
from byheart.certificates.judges import stretches
from byheart.certificates.judges.tally import Tally
from byheart.certificates.verdict import Verdict
from byheart.devices import PROOF_DEVICES, device_suffix, find_device
from byheart.errors import BadInput
from byheart.executors import Workplace
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays
from byheart.tasks.contexts import Contexts
from byheart.tasks.questions import QuestionsLike

LIBRARIES = ("numba", "numpy", "torch")


def asked(network: TransformerNetwork, given: QuestionsLike) -> Contexts:
    """The contexts of texts or of a next-token task, as far as the network looks back."""
    return judging.asked(network, given, network.spec.vocab, max(network.window, network.spec.sees))


def judge(network: TransformerNetwork, contexts: Contexts, options: JudgeOptions) -> Verdict:
    """Ask every question, and once more with a proof; where the executor says, or here on the chosen device."""
    executor, device, report = options.executor, options.device or "cpu", options.report
    if executor is not None and device != "cpu":
        raise BadInput(f"device is {device!r}, and an executor is given; expected one of them: a device works here")
    began, precision, where = time.perf_counter(), network.spec.precision, find_device(device, PROOF_DEVICES)
    places = judging.places(contexts, network.spec.sees)
    asking, tally = (contexts.tokens, contexts.starts, places), Tally(contexts, places)
    if where.type == "cpu":
        parts = stretches.asked(network, *asking, executor or Workplace(), report)
    else:
        parts = stretches.asked_on(where, network, *asking, report)
    for part in parts:
        tally.add(*part)
    exact = f"{tally.doubtful:,} not proved to be exact" if tally.doubtful else "every step proved to be exact"
    within = f"whatever the order in which {precision} adds"
    method = f"{precision}, exhaustive{device_suffix(where)}; {exact}"
    return judging.verdict(network, tally, contexts, within, method, began)


def perturbed(network: TransformerNetwork, rng: np.random.Generator, attempt: int) -> tuple[TransformerNetwork, str]:
    """The network with one bit of one weight flipped, with every attempt of twice as many; and where."""
    tensors, place = judging.flipped(network, rng, 2**attempt)
    return from_arrays(network.spec, tensors), place
