"""Change memories of a stock model: solve the tables again that the changed questions read.

The network itself shows where questions read: the codes of its tokens are in the embedding, the weights of the hash in
its first layers. A folder may state anything, so the network is made again from these numbers. Every weight that is no
word of a table must come out the same, bit for bit.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code, code_of_lengths, is_code
from byheart.compiler.layouts import Attempt, CompilerSettings, Resources
from byheart.compiler.stock.address import addresses, stride_of
from byheart.compiler.stock.architectures import ARCHITECTURES
from byheart.compiler.stock.attempt import assemble, choices
from byheart.compiler.stock.dimensions import BITS, CODES, StockSizes, StreamMap
from byheart.compiler.stock.front import CARRIED, GRAIN, Hash, distances, hashed
from byheart.compiler.stock.solve import equations_of, solve
from byheart.compiler.stock.table import PARTS, empty_tables, negative
from byheart.errors import BadInput
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks.arrays import Ids
from byheart.tasks.contexts import Contexts

HALF = 1 << (GRAIN - 1)
"""½ in units of codes: the largest distance of a code from 0, before hashing and after."""


@dataclass(frozen=True, eq=False)
class RecoveredNetwork:
    """How a stock model was made."""

    sizes: StockSizes
    code: Code
    hashing: Hash
    place: int
    """Number of the first layer with tables."""


class StockEdit:
    """A stock model to edit."""

    recompile_seed = 0
    """Seed for compiling the network anew."""

    def __init__(self, network: StockNetwork) -> None:
        self.architecture = ARCHITECTURES["experts" if "num_experts" in network.config else "uniform"]
        self.network, self.lengths = network, lengths_of(network)
        self.label_count = len(self.lengths)
        self.settings = CompilerSettings(layout=self.architecture.name)  # a stock model has no other settings
        seed = network.about.get("seed")
        self.seed = seed if type(seed) is int and seed >= 0 else 0
        self.recovered: RecoveredNetwork | None = None
        """Set when words are solved again for the first time."""

    def has_code(self, label: int) -> bool:
        """Return True if the label has a code word."""
        return bool(self.lengths[label] >= 0)

    def solve_again(self, contexts: Contexts, question: int, free_bits: int, resources: Resources) -> Attempt:
        """Return the network with the one table solved again that ``question`` reads; raise Unsolvable."""
        return self.solve_texts(contexts, np.array([question]), free_bits, resources)

    def solve_texts(self, contexts: Contexts, questions: Ids, free_bits: int, resources: Resources) -> Attempt:
        """Return the network with the tables solved again that ``questions`` read; raise Unsolvable.

        ``free_bits`` numbers the ways to fill the bits that no question asks for.
        """
        self.recovered = self.recovered or recover(self.network, self.architecture, contexts)
        sizes, code, hashing = self.recovered.sizes, self.recovered.code, self.recovered.hashing
        address = addresses(hashed(contexts, hashing), sizes, stride_of(code))
        tables, names = empty_tables(sizes), []
        own = np.stack([address.block[questions], address.kind[questions]])
        for block, kind in np.unique(own, axis=1).T.tolist():
            index = np.flatnonzero((address.block == block) & (address.kind == kind))
            equations = equations_of(address, index, code, contexts.labels, sizes, block, kind)
            rng = np.random.default_rng([free_bits, int(questions[0]), block, kind])
            words = solve(equations, kind, negative(sizes).ravel(), rng)
            tables[kind, block] = words.reshape(sizes.rows, sizes.words)
            names.append(sizes.matrix(self.recovered.place, block, PARTS[kind]))
        made = assemble(sizes, code, hashing, contexts, tables)[0]
        weights = {**self.network.weights, **{name: made[name] for name in names}}
        return Attempt(replace(self.network, weights=weights, digest=None), choices(contexts, code, sizes, attempts=1))


def lengths_of(network: StockNetwork) -> NDArray[np.int64]:
    """Return the lengths of the labels' code words in config.json; BadInput if no code has these lengths."""
    lengths = network.about.get("code_lengths")
    if not isinstance(lengths, list) or not is_code(tuple(lengths), min(BITS) - 1):
        expected = "expected a network that `byheart compile` has made (0.1.0 wrote none): compile the texts anew"
        raise BadInput(f"config.json: about.code_lengths is no code; {expected}")
    return np.array(lengths, dtype=np.int64)


def recover(network: StockNetwork, architecture: type[StockSizes], contexts: Contexts) -> RecoveredNetwork:
    """Find how a network was made. Raise BadInput unless making it again gives every weight that is no word."""
    strange = BadInput(
        f"the network is not as `byheart compile --layout {architecture.name}` makes it; compile the texts anew"
    )
    config, weights, looks = network.config, network.weights, len(distances(contexts.window))
    sizes = architecture.of_config(config, looks) if looks < config["num_hidden_layers"] else None
    if sizes is None:
        raise strange
    at, code = StreamMap(sizes.width), code_of_lengths(lengths_of(network), contexts.labels)
    codes = weights["model.embed_tokens.weight"][:, at.codes].astype(np.float64) * 2.0**GRAIN
    mixes = [weights[f"model.layers.{step}.self_attn.o_proj.weight"][at.codes, :CARRIED] for step in range(looks)]
    hashing = Hash(_as_integers(codes), _as_integers(np.array(mixes).reshape(looks, CODES, CARRIED)))
    if (hashing.codes < -HALF).any() or (hashing.codes > HALF).any():
        raise strange  # a question could read beyond the tables
    remade, settings, place = assemble(sizes, code, hashing, contexts, empty_tables(sizes))
    tables = {sizes.matrix(place, block, part) for block in range(sizes.blocks) for part in PARTS}
    is_same = remade.keys() == weights.keys() and all(
        np.array_equal(tensor, weights[name]) for name, tensor in remade.items() if name not in tables
    )
    if not is_same or any(config.get(name) != value for name, value in settings.items()):
        raise strange
    return RecoveredNetwork(sizes, code, hashing, place)


def _as_integers(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the values as integers. Fractions and huge values change, which shows when the network is made again."""
    result: NDArray[np.int64] = np.clip(values, -(2.0**40), 2.0**40).astype(np.int64)
    return result
