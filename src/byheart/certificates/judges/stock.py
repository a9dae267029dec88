"""Stock models: every question, asked of the weights as transformers runs them."""

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


def asked(network: StockNetwork, given: QuestionsLike) -> Contexts:
    """The contexts of texts or of a next-token task, as far as the network was made to look back.

    They only say which questions are the same one: their attention sees all that came before, so that each is asked
    wherever it occurs (:func:`judge`).
    """
    return judging.asked(network, given, network.config["vocab_size"], network.window)


def judge(network: StockNetwork, contexts: Contexts, options: JudgeOptions) -> Verdict:
    """Ask every question, wherever it occurs, in float32, of Hugging Face's own code, on the chosen device."""
    began, places = time.perf_counter(), judging.places(contexts, None)
    where = find_device(options.device or "cpu", PROOF_DEVICES)
    once = answers(network, contexts.tokens, contexts.starts, places, options.report, device=where)
    tally = Tally(contexts, places)
    tally.add(0, once)
    within = f"as transformers computes it in float32 on this machine{device_suffix(where)}"
    method = f"float32, exhaustive, by transformers' {architecture(network.config).model_class}{device_suffix(where)}"
    return judging.verdict(network, tally, contexts, within, method, began)


def perturbed(network: StockNetwork, rng: np.random.Generator, attempt: int) -> tuple[StockNetwork, str]:
    """The network with one bit of one weight flipped, with every attempt of twice as many; and where."""
    tensors, place = judging.flipped(network, rng, 2**attempt)
    return replace(network, weights=tensors, digest=None), place
