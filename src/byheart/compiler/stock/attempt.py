"""Questions in, a stock model that answers them all out: what both layouts have in common."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code, make_code
from byheart.compiler.rectangular.dimensions import Unsolvable
from byheart.compiler.rectangular.recipe import NAME, CompilerSettings
from byheart.compiler.stock import draft as network
from byheart.compiler.stock.address import Addresses
from byheart.compiler.stock.config import shared
from byheart.compiler.stock.dimensions import BITS, GATE, MANY, UP, StockSizes
from byheart.compiler.stock.front import Hash
from byheart.compiler.stock.looking import POSITIONS, REACH, distances
from byheart.compiler.stock.settling import settled
from byheart.compiler.stock.solve import StockEquations, solve
from byheart.compiler.stock.stream_map import Features
from byheart.compiler.stock.table import Tables, negative
from byheart.compiler.stock.tokens import Tokens
from byheart.compiler.stock.units import Layer, tensors
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.networks.stock.stock_network import StockNetwork
from byheart.progress import Report
from byheart.tasks.contexts import Contexts

ROUNDS = 20
DRAWS = 2
THREADS = 2
BYTES_A_QUESTION = 500
"""Memory that compiling takes beside the questions (measured: 494 at 10⁶, 317 at 4·10⁶)."""
Name = Literal["uniform", "experts"]
Named = dict[str, NDArray[np.float64]]


class StockLayout(Protocol):
    """What is special about one stock architecture."""

    name: ClassVar[Name]
    """As in ``CompilerSettings.layout``."""
    called: ClassVar[str]
    """In sentences."""

    def plan(self, bits: int, questions: int, vocab: int, steps: int, deviations: float) -> StockSizes:
        """The smallest network; see ``planning``."""

    def sizes_of(self, config: Mapping[str, Any], steps: int) -> StockSizes | None:
        """Those of a network with this configuration; None if there are none."""

    def tables(self, sizes: StockSizes, at: Features) -> list[Layer]:
        """The layers that hold tables: their attention."""

    def blocks(self, sizes: StockSizes, at: Features, tables: Tables, place: int) -> dict[int, Named]:
        """Their feed-forward blocks, by the numbers of layers, from ``place`` on, and by the names within them."""

    def matrix(self, place: int, block: int, part: str) -> str:
        """The name of the tensor that is one table; ``part`` is up, down or gate."""

    def config(self, sizes: StockSizes, place: int) -> dict[str, Any]:
        """Arguments of the configuration, but for those that all have."""

    def noted(self, sizes: StockSizes) -> dict[str, object]:
        """Sizes that are worth knowing."""


def compile_stock(
    layout: StockLayout,
    contexts: Contexts,
    settings: CompilerSettings,
    *,
    seed: int = 0,
    files: Mapping[str, bytes] | None = None,
    report: Report | None = None,
) -> Built:
    """A stock model that gives every question of ``contexts`` its answer; ``files`` are a tokenizer's."""
    began = time.perf_counter()
    if settings.precision != "float32" or settings.words is not None:
        raise BadInput(f"the layout {layout.name} is for float32 and words of its own sizes; omit precision and words")
    code, tokens, looks = code_of(layout, contexts), Tokens(contexts), distances(contexts.window)
    check_memory(BYTES_A_QUESTION * len(contexts), f"to compile {len(contexts):,} questions into {layout.called}")
    attempts = 0
    for round_ in range(ROUNDS):
        sizes = layout.plan(code.total, len(contexts), tokens.count, len(looks), deviations(round_))
        for number in range(DRAWS):
            attempts += 1
            rng = np.random.default_rng([seed, round_, number])
            try:
                hashing, found = settled(contexts, code, sizes, tokens.count, tokens.first or 0, rng)
                tables = _tables(found, code, contexts.labels, sizes, rng, report)
            except Unsolvable:
                continue
            weights, config, _ = assembled(layout, sizes, code, hashing, contexts, tables)
            about = {"code_lengths": code.lengths.tolist(), **contexts.notes}
            made = StockNetwork(config, weights, about=about, files=files or {})
            noted = chosen(layout, contexts, code, sizes, attempts)
            return Built(NAME, settings, made, time.perf_counter() - began, seed, contexts, noted)
    raise BadInput(f"no table was found in {attempts} attempts; another --seed may do")


def deviations(round_: int) -> float:
    """Standard deviations above the mean that a bit plane has room for."""
    return 0.9 + 0.2 * round_


def code_of(layout: StockLayout, contexts: Contexts) -> Code:
    """That of the labels; BadInput if the questions do not fit into such a network, whatever its size."""
    if not len(contexts):
        raise BadInput("there is no question to answer; expected at least one")
    code = make_code(contexts.labels, contexts.label_count)
    if contexts.window > 2 * REACH:
        raise BadInput(f"the window is {contexts.window}; expected at most {2 * REACH} in {layout.called}")
    if code.low or code.longest > BITS[GATE] - 1:
        used = f"{len(np.unique(contexts.labels)):,} different labels"
        raise BadInput(f"{used} are too many for {layout.called}; expected at most 2,048")
    if contexts.longest >= POSITIONS:
        raise BadInput(f"a text has {contexts.longest} tokens; expected less than {POSITIONS}")
    return code


def planned_parameters(layout: StockLayout, contexts: Contexts, *, times: float = 1.0) -> int:
    """Parameters of the network that :func:`compile_stock` tries first; nothing is solved.

    For so many ``times`` as many questions as there are: of a sample, say. They are the network's own if one of the
    first hashes leaves every question with an answer.
    """
    code, tokens = code_of(layout, contexts).repeated(times), Tokens(contexts)
    questions, looks = round(times * len(contexts)), len(distances(contexts.window))
    return layout.plan(code.total, questions, tokens.count, looks, deviations(0)).parameters(tokens.count)


def chosen(layout: StockLayout, contexts: Contexts, code: Code, sizes: StockSizes, attempts: int) -> dict[str, object]:
    """What is worth knowing of a network, and what was planned."""
    planned = sizes.parameters(Tokens(contexts).count)
    return {
        "window": contexts.window,
        "load": code.total / (sum(BITS) * sizes.blocks * sizes.cells),
        "words": len(BITS) * sizes.blocks * sizes.cells,
        "layers": sizes.layers,
        "units": sizes.units,
        **layout.noted(sizes),
        "parameters_planned": planned,
        "bits_per_parameter_planned": contexts.order0_bits / planned,
        "attempts": attempts,
    }


def assembled(
    layout: StockLayout, sizes: StockSizes, code: Code, hashing: Hash, contexts: Contexts, tables: Tables
) -> tuple[dict[str, NDArray[Any]], dict[str, Any], int]:
    """The tensors and the configuration, and which layer is the first with tables."""
    at, tokens, looks = Features(sizes.width), Tokens(contexts), distances(contexts.window)
    between = layout.tables(sizes, at)
    layers, place = network.layers(sizes, at, code, hashing, looks, between, marked=tokens.first is not None)
    assert len(layers) == sizes.layers
    embedding = network.embedding(sizes, at, code, hashing, contexts.label_count, tokens.first)
    blocks = layout.blocks(sizes, at, tables, place)
    weights = tensors(layers, embedding, sizes.units, (at.answer, at.bias), blocks)
    common = shared(width=sizes.width, units=sizes.units, layers=sizes.layers, tokens=tokens)
    return weights, {**layout.config(sizes, place), **common}, place


def _tables(
    found: Addresses,
    code: Code,
    labels: NDArray[np.int64],
    sizes: StockSizes,
    rng: np.random.Generator,
    report: Report | None,
) -> Tables:
    """Solve every table of every block; raises Unsolvable. Among many, one that has no solution is solved anew."""
    count = len(BITS) * sizes.blocks
    shelf = len(BITS) * found.block + found.kind
    order = np.argsort(shelf, kind="stable")
    ends = np.searchsorted(shelf[order], np.arange(count + 1))
    less = negative(sizes).ravel()

    def solved(number: int, stream: np.random.Generator) -> NDArray[np.int64]:
        index = order[ends[number] : ends[number + 1]]
        block, kind = divmod(number, len(BITS))
        asked = questions_of(found, index, code, labels, sizes, block, kind)
        return solve(asked, less, stream, times=1 + sizes.blocks // MANY)

    words = np.zeros((count, sizes.cells), dtype=np.int64)
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for number, table in enumerate(pool.map(solved, range(count), rng.spawn(count))):
                words[number] = table
                if report is not None:
                    report(number + 1, count)
        except Unsolvable:
            pool.shutdown(cancel_futures=True)
            raise
    up, down, gate = words.reshape(sizes.blocks, len(BITS), sizes.rows, sizes.words).transpose(1, 0, 2, 3)
    return Tables(up, down, gate)


def questions_of(
    found: Addresses,
    index: NDArray[np.int64],
    code: Code,
    labels: NDArray[np.int64],
    sizes: StockSizes,
    block: int,
    kind: int,
) -> StockEquations:
    """What the questions ``index``, all those of one table, ask of it."""
    in_total = kind == UP and not sizes.layered
    return StockEquations(
        cells=found.cells(sizes, index),
        before=np.full(len(index), (block - sizes.blocks // 2) * in_total),
        offset=found.offset[index],
        word=code.words[labels[index]],
        length=code.lengths[labels[index]],
        kind=kind,
    )
