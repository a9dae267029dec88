"""Stock Llamas: every question, asked of the weights as transformers runs them."""

import time
from dataclasses import replace

import numpy as np

from byheart.certificates.judges import contexts as judging
from byheart.certificates.verdict import Verdict
from byheart.networks.stock.evaluate import answers
from byheart.networks.stock.network import StockNetwork
from byheart.progress import Report
from byheart.tasks.contexts import Contexts
from byheart.tasks.questions import Given

LIBRARIES = ("numpy", "torch", "transformers")


def asked(network: StockNetwork, given: Given) -> Contexts:
    """The contexts of texts or of a next-token task, as far as the network was made to look back.

    Not checked: that nothing farther back changes an answer, which Llama's attention would allow.
    """
    return judging.asked(network, given, network.config["vocab_size"], network.window)


def judge(network: StockNetwork, contexts: Contexts, *, report: Report | None = None) -> Verdict:
    """Ask every question, in float32, of Hugging Face's own code."""
    began = time.perf_counter()
    once = answers(network, contexts.tokens, contexts.starts, contexts.places, contexts.window, report)
    within = f"as float32 computes it, if nothing but the last {contexts.window:,} tokens changes an answer"
    return judging.compared(once, contexts, within, "float32, exhaustive, by transformers' LlamaForCausalLM", began)


def perturbed(network: StockNetwork, rng: np.random.Generator, attempt: int) -> tuple[StockNetwork, str]:
    """The network with one bit of one weight flipped, with every attempt of twice as many; and where."""
    tensors, place = judging.flipped(network, rng, 2**attempt)
    return replace(network, weights=tensors, digest=None), place
