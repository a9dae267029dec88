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

from byheart.compiler.codes import Code, code_of_lengths, is_code
from byheart.compiler.rectangular.recipe import NAME, CompilerSettings
from byheart.compiler.stock.address import addresses, stride_of
from byheart.compiler.stock.attempt import StockLayout, assembled, chosen, questions_of
from byheart.compiler.stock.dimensions import BITS, CODES, StockSizes
from byheart.compiler.stock.front import CARRIED, GRAIN, Hash, hashed
from byheart.compiler.stock.looking import distances
from byheart.compiler.stock.solve import solve
from byheart.compiler.stock.stream_map import Features
from byheart.compiler.stock.table import PARTS, Tables, negative
from byheart.compiler.stock.tokens import Tokens
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks.contexts import Contexts

HALF = 1 << (GRAIN - 1)
"""½, in units of codes: no code of a token is further from 0, and none that is hashed."""


@dataclass(frozen=True, eq=False)
class Written:
    """A stock model, understood again."""

    network: StockNetwork
    layout: StockLayout
    sizes: StockSizes
    code: Code
    hashing: Hash
    place: int
    """The first layer with tables."""

    def with_tables(self, contexts: Contexts, tables: Tables) -> dict[str, NDArray[Any]]:
        """All tensors of the same network with these tables."""
        return assembled(self.layout, self.sizes, self.code, self.hashing, contexts, tables)[0]


def lengths_of(network: StockNetwork) -> NDArray[np.int64]:
    """Of the labels' code words, as config.json has them; BadInput if there is no such code."""
    lengths = network.about.get("code_lengths")
    if not isinstance(lengths, list) or not is_code(tuple(lengths), min(BITS) - 1):
        expected = "expected a network that `byheart compile` has made (0.1.0 wrote none): compile the texts anew"
        raise BadInput(f"config.json: about.code_lengths is no code; {expected}")
    return np.array(lengths, dtype=np.int64)


def understood(network: StockNetwork, layout: StockLayout, contexts: Contexts) -> Written:
    """How a network was made; BadInput unless making it again gives every weight that is no word."""
    strange = BadInput(
        f"the network is not as `byheart compile --layout {layout.name}` makes it; compile the texts anew"
    )
    config, weights, looks = network.config, network.weights, distances(contexts.window)
    sizes = layout.sizes_of(config, len(looks)) if len(looks) < config["num_hidden_layers"] else None
    if sizes is None:
        raise strange
    at, code = Features(sizes.width), code_of_lengths(lengths_of(network), contexts.labels)
    codes = weights["model.embed_tokens.weight"][:, at.codes].astype(np.float64) * 2.0**GRAIN
    mixes = [weights[f"model.layers.{step}.self_attn.o_proj.weight"][at.codes, :CARRIED] for step in range(len(looks))]
    hashing = Hash(_whole(codes), _whole(np.array(mixes).reshape(len(looks), CODES, CARRIED)))
    if (hashing.codes < -HALF).any() or (hashing.codes > HALF).any():
        raise strange  # nobody may read beyond the tables
    made, again, place = assembled(layout, sizes, code, hashing, contexts, Tables.empty(sizes))
    tables = {layout.matrix(place, block, part) for block in range(sizes.blocks) for part in PARTS}
    same = made.keys() == weights.keys() and all(
        np.array_equal(tensor, weights[name]) for name, tensor in made.items() if name not in tables
    )
    if not same or any(config.get(name) != value for name, value in again.items()):
        raise strange
    return Written(network, layout, sizes, code, hashing, place)


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    """As integers; what is none, or too large, is changed, and found out when the network is made again."""
    found: NDArray[np.int64] = np.clip(values, -(2.0**40), 2.0**40).astype(np.int64)
    return found


def rewritten(written: Written, contexts: Contexts, question: int, draw: int) -> Built:
    """The network with the one table solved for again that ``question`` reads; raises Unsolvable.

    ``draw`` numbers the ways to fill the bits that no question asks for.
    """
    began = time.perf_counter()
    layout, sizes, code = written.layout, written.sizes, written.code
    codes = hashed(contexts, written.hashing, distances(contexts.window), Tokens(contexts).first or 0)
    found = addresses(codes, sizes, stride_of(code))
    block, kind = int(found.block[question]), int(found.kind[question])
    index = np.flatnonzero((found.block == block) & (found.kind == kind))
    questions = questions_of(found, index, code, contexts.labels, sizes, block, kind)
    words = solve(questions, negative(sizes).ravel(), np.random.default_rng([draw, question]))
    tables = Tables.empty(sizes)
    getattr(tables, PARTS[kind])[block] = words.reshape(sizes.rows, sizes.words)
    name = layout.matrix(written.place, block, PARTS[kind])
    weights = {**written.network.weights, name: written.with_tables(contexts, tables)[name]}
    network = replace(written.network, weights=weights, digest=None)
    seed, noted = network.about.get("seed"), chosen(layout, contexts, code, sizes, attempts=1)
    settings, seconds = CompilerSettings(layout=layout.name), time.perf_counter() - began
    return Built(NAME, settings, network, seconds, seed if type(seed) is int and seed >= 0 else 0, contexts, noted)
