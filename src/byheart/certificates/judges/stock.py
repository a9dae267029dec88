"""The judge of stock models: Hugging Face's transformers library runs the weights on every question."""

import time
from dataclasses import replace

import numpy as np

from byheart.certificates.claim import JudgeOptions
from byheart.certificates.judges import contexts as judging
from byheart.certificates.judges.tally import Tally
from byheart.certificates.verdict import Verdict
from byheart.devices import PROOF_DEVICES, device_suffix, find_device
from byheart.networks.stock.config import architecture
from byheart.networks.stock.running import answers
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks.contexts import Contexts
from byheart.tasks.questions import QuestionsLike

LIBRARIES = ("numpy", "torch", "transformers")


def asked(network: StockNetwork, source: QuestionsLike) -> Contexts:
    """Return the contexts of texts or of a next-token task, as long as the window that the network was made for.

    They only say which questions are equal. A stock model sees all that came before, so :func:`judge` asks each
    question at every place where it occurs.
    """
    return judging.asked(network, source, network.config["vocab_size"], network.window)


def judge(network: StockNetwork, contexts: Contexts, options: JudgeOptions) -> Verdict:
    """Ask every question, wherever it occurs, in float32 on the chosen device."""
    began, places = time.perf_counter(), judging.places(contexts, None)
    where = find_device(options.device or "cpu", PROOF_DEVICES)
    once = answers(network, contexts.tokens, contexts.starts, places, options.report, device=where)
    tally = Tally(contexts, places)
    tally.add(0, once)
    within = f"as transformers computes it in float32 on this machine{device_suffix(where)}"
    method = f"float32, exhaustive, by transformers' {architecture(network.config).model_class}{device_suffix(where)}"
    return judging.verdict(network, tally, contexts, within, method, began)


def perturbed(network: StockNetwork, rng: np.random.Generator, attempt: int) -> tuple[StockNetwork, str]:
    """Return the network with one bit flipped in each of 2^``attempt`` weights, and their place."""
    tensors, place = judging.flipped(network, rng, 2**attempt)
    return replace(network, weights=tensors, digest=None), place
