"""Changing one memory: the one table that the question reads is solved for again, and no other weight changes.

Where questions read is read off the network itself: the codes of its tokens are in the embedding, the weights of the
hash in its first layers. All that they give must be the network as it is, bit for bit, but for the tables: a folder may
say anything of itself.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.built import Built
from byheart.constructions.reciting.codes import Code, code_of_lengths, is_code
from byheart.constructions.reciting.experts.address import Addresses, addresses, stride_of
from byheart.constructions.reciting.experts.features import Features
from byheart.constructions.reciting.experts.qwen import assembled, chosen, questions_of
from byheart.constructions.reciting.experts.sizes import BITS, CODES, Sizes, grids
from byheart.constructions.reciting.experts.table import Tables
from byheart.constructions.reciting.rectangular import NAME, Settings
from byheart.constructions.reciting.uniform.address import CARRIED, GRAIN, Hash, hashed
from byheart.constructions.reciting.uniform.looking import distances
from byheart.constructions.reciting.uniform.tokens import Tokens
from byheart.errors import BadInput
from byheart.networks.stock.network import StockNetwork
from byheart.tasks.contexts import Contexts

_STRANGE = "the network is not as `byheart compile --layout experts` makes it; compile the texts anew"


@dataclass(frozen=True, eq=False)
class Written:
    """A network of experts, understood again."""

    network: StockNetwork
    sizes: Sizes
    code: Code
    hashing: Hash
    tokens: Tokens

    @property
    def labels(self) -> int:
        """How many there are."""
        return len(self.code.lengths)


def lengths_of(network: StockNetwork) -> NDArray[np.int64]:
    """Of the labels' code words, as config.json has them; BadInput if there is no such code."""
    lengths = network.about.get("code_lengths")
    if not isinstance(lengths, list) or not is_code(tuple(lengths), min(BITS) - 1):
        raise BadInput("config.json: about.code_lengths is no code; expected a network that `byheart compile` has made")
    return np.array(lengths, dtype=np.int64)


def understood(network: StockNetwork, contexts: Contexts) -> Written:
    """How a network was made; BadInput unless making it again gives every weight that is no word."""
    config = network.config
    rows, width = config.get("moe_intermediate_size", 0), config["hidden_size"]
    pair, looks = grids(rows), distances(contexts.window)
    if pair is None or len(looks) >= config["num_hidden_layers"]:
        raise BadInput(_STRANGE)
    sizes = Sizes(width, *pair, rows, config["num_experts"], config["intermediate_size"], config["num_hidden_layers"])
    code, tokens = code_of_lengths(lengths_of(network), contexts.labels), Tokens(contexts)
    at = Features(width)
    weights = network.weights
    codes = weights["model.embed_tokens.weight"][:, at.codes].astype(np.float64) * 2.0**GRAIN
    mixes = [weights[f"model.layers.{step}.self_attn.o_proj.weight"][at.codes, :CARRIED] for step in range(len(looks))]
    hashing = Hash(_whole(codes), _whole(np.array(mixes).reshape(len(looks), CODES, CARRIED)))
    empty = np.zeros((sizes.experts, sizes.rows, sizes.words), dtype=np.int64)
    made, again = assembled(sizes, code, hashing, looks, tokens, Tables(empty, empty, empty), contexts.label_count)
    same = made.keys() == weights.keys() and all(
        np.array_equal(tensor, weights[name]) for name, tensor in made.items() if ".experts." not in name
    )
    if not same or any(config.get(name) != value for name, value in again.items()):
        raise BadInput(_STRANGE)
    return Written(network, sizes, code, hashing, tokens)


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    """As integers; what is none, or too large, is changed, and found out when the network is made again."""
    found: NDArray[np.int64] = np.clip(values, -(2.0**40), 2.0**40).astype(np.int64)
    return found


def rewritten(written: Written, contexts: Contexts, question: int, draw: int) -> Built:
    """The network with the one table solved for again that ``question`` reads; raises Unsolvable.

    ``draw`` numbers the ways to fill the bits that no question asks for.
    """
    from byheart.constructions.reciting.experts.solving import solve
    from byheart.constructions.reciting.experts.table import negative

    began = time.perf_counter()
    sizes, code = written.sizes, written.code
    looks = distances(contexts.window)
    codes = hashed(contexts, written.hashing, looks, written.tokens.first or 0)
    found: Addresses = addresses(codes, sizes, stride_of(code))
    expert, kind = int(found.expert[question]), int(found.kind[question])
    index = np.flatnonzero((found.expert == expert) & (found.kind == kind))
    questions = questions_of(found, index, code, contexts.labels, sizes, expert, kind)
    words = solve(questions, kind, negative(sizes).ravel(), np.random.default_rng([draw, question]))
    tables = [np.zeros((sizes.experts, sizes.rows, sizes.words), dtype=np.int64) for _ in BITS]
    tables[kind][expert] = words.reshape(sizes.rows, sizes.words)
    made, _ = assembled(sizes, code, written.hashing, looks, written.tokens, Tables(*tables), contexts.label_count)
    part = ("up", "down", "gate")[kind]
    name = next(name for name in made if name.endswith(f".experts.{expert}.{part}_proj.weight"))
    network = replace(written.network, weights={**written.network.weights, name: made[name]}, digest=None)
    seed = network.about.get("seed")
    noted = chosen(contexts, code, sizes, written.tokens.count, attempts=1)
    settings, seconds = Settings(layout="experts"), time.perf_counter() - began
    return Built(NAME, settings, network, seconds, seed if type(seed) is int and seed >= 0 else 0, contexts, noted)
