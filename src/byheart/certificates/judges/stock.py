"""Stock Llamas: every question, asked of the weights as transformers runs them."""

import time

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
    """The contexts of texts or of a next-token task, as far as the network looks back."""
    return judging.asked(network, given, network.config["vocab_size"])


def judge(network: StockNetwork, contexts: Contexts, *, report: Report | None = None) -> Verdict:
    """Ask every question, in float32, of Hugging Face's own code."""
    began = time.perf_counter()
    once = answers(network, contexts.tokens, contexts.starts, contexts.places, contexts.window, report)
    return judging.compared(once, contexts, "float32, exhaustive, by transformers' LlamaForCausalLM", began)


def perturbed(network: StockNetwork, rng: np.random.Generator, _: int) -> tuple[StockNetwork, str]:
    """The network with one bit of one weight flipped, and where that is."""
    sized = [(name, tensor, network.entry_bits(name)) for name, tensor in network.tensors()]
    name, changed, place = judging.flipped(sized, rng)
    return network.with_tensor(name, changed), place
