"""The judge of float Transformers: it asks every question, and proves that every step of the answer is exact.

A label is right if its logit is the largest, strictly. The network is run as it is. It is then run again with a proof
that no product and no sum, in any order, is rounded in its format (:mod:`byheart.networks.transformer.forced`). So
every machine that follows IEEE 754 gives the same logits. Answers without that proof are *undecided*: they may differ
on another machine, or in another batch.
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


def asked(network: TransformerNetwork, source: QuestionsLike) -> Contexts:
    """Return the contexts of texts or of a next-token task, as long as the network looks back."""
    return judging.asked(network, source, network.spec.vocab, max(network.window, network.spec.sees))


def judge(network: TransformerNetwork, contexts: Contexts, options: JudgeOptions) -> Verdict:
    """Ask every question, and again with a proof: on the executor, or here on the chosen device."""
    executor, device, report = options.executor, options.device or "cpu", options.report
    if executor is not None and device != "cpu":
        raise BadInput(f"device is {device!r}, and an executor is given; expected one of them: a device works here")
    began, precision, where = time.perf_counter(), network.spec.precision, find_device(device, PROOF_DEVICES)
    places = judging.places(contexts, network.spec.sees)
    asking, tally = (contexts.tokens, contexts.starts, places), Tally(contexts, places)
    if where.type == "cpu":
        parts = stretches.answer_in_parts(network, *asking, executor or Workplace(), report)
    else:
        parts = stretches.answer_on_gpu(where, network, *asking, report)
    for part in parts:
        tally.add(*part)
    exact = f"{tally.doubtful:,} not proved to be exact" if tally.doubtful else "every step proved to be exact"
    within = f"whatever the order in which {precision} adds"
    method = f"{precision}, exhaustive{device_suffix(where)}; {exact}"
    return judging.verdict(network, tally, contexts, within, method, began)


def perturbed(network: TransformerNetwork, rng: np.random.Generator, attempt: int) -> tuple[TransformerNetwork, str]:
    """Return the network with one bit flipped in each of 2^``attempt`` weights, and their place."""
    tensors, place = judging.flipped(network, rng, 2**attempt)
    return from_arrays(network.spec, tensors), place
