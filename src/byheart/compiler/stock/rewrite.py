"""Change one memory of a stock model: solve the one table again that the question reads.

Where questions read follows from the network itself: the codes of its tokens are in the embedding, the weights of the
hash in its first layers. A folder may state anything, so the network is made again from these, and every weight that is
no word of a table must come out the same, bit for bit.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code, code_of_lengths, is_code
from byheart.compiler.layouts import Attempt, CompilerSettings, Resources
from byheart.compiler.stock.address import addresses, stride_of
from byheart.compiler.stock.architecture import Architecture
from byheart.compiler.stock.attempt import choices, equations_of
from byheart.compiler.stock.dimensions import BITS, CODES, StockSizes
from byheart.compiler.stock.draft import Tokens, assemble
from byheart.compiler.stock.front import CARRIED, GRAIN, Hash, hashed
from byheart.compiler.stock.looking import distances
from byheart.compiler.stock.recipe import ARCHITECTURES
from byheart.compiler.stock.solve import solve
from byheart.compiler.stock.stream_map import StreamMap
from byheart.compiler.stock.table import PARTS, Tables, negative
from byheart.errors import BadInput
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks.contexts import Contexts

HALF = 1 << (GRAIN - 1)
"""½ in units of codes: the largest distance of a code from 0, before hashing and after."""


@dataclass(frozen=True, eq=False)
class RecoveredNetwork:
    """A stock model, and how it was made."""

    network: StockNetwork
    architecture: Architecture
    sizes: StockSizes
    code: Code
    hashing: Hash
    place: int
    """Number of the first layer with tables."""

    def with_tables(self, contexts: Contexts, tables: Tables) -> dict[str, NDArray[Any]]:
        """Return all tensors of the same network with these tables."""
        return assemble(self.architecture, self.sizes, self.code, self.hashing, contexts, tables)[0]


class StockEdit:
    """A stock model to edit."""

    def __init__(self, network: StockNetwork) -> None:
        self.architecture = ARCHITECTURES["experts" if "num_experts" in network.config else "uniform"]
        self.network, self.lengths = network, lengths_of(network)
        self.label_count = len(self.lengths)
        self.recovered: RecoveredNetwork | None = None
        """Known from the first time on that words are solved again."""

    @property
    def settings(self) -> CompilerSettings:
        """The layout; a stock model has no other settings."""
        return CompilerSettings(layout=self.architecture.name)

    @property
    def seed(self) -> int:
        """The seed that the folder states; 0 if it states none."""
        seed = self.network.about.get("seed")
        return seed if type(seed) is int and seed >= 0 else 0

    recompile_seed = 0
    """Seed for compiling the network anew."""

    def has_code(self, label: int) -> bool:
        """Return True if the label has a code word."""
        return bool(self.lengths[label] >= 0)

    def solve_again(self, contexts: Contexts, question: int, free_bits: int, resources: Resources) -> Attempt:
        """Return the network with new words, after the answer to ``question`` has changed; raises Unsolvable."""
        self.recovered = self.recovered or recover(self.network, self.architecture, contexts)
        return rewrite(self.recovered, contexts, question, free_bits)


def lengths_of(network: StockNetwork) -> NDArray[np.int64]:
    """Return the lengths of the labels' code words in config.json; BadInput if no code has these lengths."""
    lengths = network.about.get("code_lengths")
    if not isinstance(lengths, list) or not is_code(tuple(lengths), min(BITS) - 1):
        expected = "expected a network that `byheart compile` has made (0.1.0 wrote none): compile the texts anew"
        raise BadInput(f"config.json: about.code_lengths is no code; {expected}")
    return np.array(lengths, dtype=np.int64)


def recover(network: StockNetwork, architecture: Architecture, contexts: Contexts) -> RecoveredNetwork:
    """Find how a network was made. Raise BadInput unless making it again gives every weight that is no word."""
    strange = BadInput(
        f"the network is not as `byheart compile --layout {architecture.name}` makes it; compile the texts anew"
    )
    config, weights, looks = network.config, network.weights, distances(contexts.window)
    sizes = architecture.sizes_of(config, len(looks)) if len(looks) < config["num_hidden_layers"] else None
    if sizes is None:
        raise strange
    at, code = StreamMap(sizes.width), code_of_lengths(lengths_of(network), contexts.labels)
    codes = weights["model.embed_tokens.weight"][:, at.codes].astype(np.float64) * 2.0**GRAIN
    mixes = [weights[f"model.layers.{step}.self_attn.o_proj.weight"][at.codes, :CARRIED] for step in range(len(looks))]
    hashing = Hash(_as_integers(codes), _as_integers(np.array(mixes).reshape(len(looks), CODES, CARRIED)))
    if (hashing.codes < -HALF).any() or (hashing.codes > HALF).any():
        raise strange  # a question could read beyond the tables
    remade, settings, place = assemble(architecture, sizes, code, hashing, contexts, Tables.empty(sizes))
    tables = {architecture.matrix(place, block, part) for block in range(sizes.blocks) for part in PARTS}
    is_same = remade.keys() == weights.keys() and all(
        np.array_equal(tensor, weights[name]) for name, tensor in remade.items() if name not in tables
    )
    if not is_same or any(config.get(name) != value for name, value in settings.items()):
        raise strange
    return RecoveredNetwork(network, architecture, sizes, code, hashing, place)


def _as_integers(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the values as integers. Fractions and huge values change, which shows when the network is made again."""
    result: NDArray[np.int64] = np.clip(values, -(2.0**40), 2.0**40).astype(np.int64)
    return result


def rewrite(recovered: RecoveredNetwork, contexts: Contexts, question: int, free_bits: int) -> Attempt:
    """Return the network with the one table solved again that ``question`` reads; raises Unsolvable.

    ``free_bits`` numbers the ways to fill the bits that no question asks for.
    """
    architecture, sizes, code = recovered.architecture, recovered.sizes, recovered.code
    codes = hashed(contexts, recovered.hashing, distances(contexts.window), Tokens(contexts).first or 0)
    address = addresses(codes, sizes, stride_of(code))
    block, kind = int(address.block[question]), int(address.kind[question])
    index = np.flatnonzero((address.block == block) & (address.kind == kind))
    equations = equations_of(address, index, code, contexts.labels, sizes, block, kind)
    words = solve(equations, kind, negative(sizes).ravel(), np.random.default_rng([free_bits, question]))
    tables = Tables.empty(sizes)
    getattr(tables, PARTS[kind])[block] = words.reshape(sizes.rows, sizes.words)
    name = architecture.matrix(recovered.place, block, PARTS[kind])
    weights = {**recovered.network.weights, name: recovered.with_tables(contexts, tables)[name]}
    network = replace(recovered.network, weights=weights, digest=None)
    return Attempt(network, choices(architecture, contexts, code, sizes, attempts=1))
