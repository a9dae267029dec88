"""One attempt at a stock network: draw a hash, settle it, solve for the words, put the network together."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.layouts import Attempt, Layout, Resources, Unsolvable
from byheart.compiler.planes import Equations
from byheart.compiler.stock.address import Addresses
from byheart.compiler.stock.architecture import Architecture
from byheart.compiler.stock.dimensions import BITS, MANY, UP, StockSizes
from byheart.compiler.stock.draft import Tokens, assemble
from byheart.compiler.stock.recipe import StockRecipe, first_recipe, next_recipe
from byheart.compiler.stock.settling import settle
from byheart.compiler.stock.solve import solve
from byheart.compiler.stock.table import Tables, negative
from byheart.networks.stock.stock_network import StockNetwork
from byheart.progress import Report
from byheart.tasks.contexts import Contexts

THREADS = 2
"""Number of tables that are solved at a time."""


def attempt(recipe: StockRecipe, contexts: Contexts, resources: Resources) -> Attempt:
    """Follow a recipe. Raise Unsolvable if it fails."""
    code, sizes, tokens, rng = recipe.code, recipe.sizes, Tokens(contexts), recipe.rng
    hashing, addresses = settle(contexts, code, sizes, tokens.count, tokens.first or 0, rng)
    tables = solve_tables(addresses, code, contexts.labels, sizes, rng, resources.report)
    weights, config, _ = assemble(recipe.architecture, sizes, code, hashing, contexts, tables)
    about = {"code_lengths": code.lengths.tolist(), **contexts.notes}
    network = StockNetwork(config, weights, about=about, files=resources.files)
    return Attempt(network, choices(recipe.architecture, contexts, code, sizes, recipe.attempt + 1))


STOCK = Layout(first_recipe, attempt, next_recipe)


def choices(
    architecture: Architecture, contexts: Contexts, code: Code, sizes: StockSizes, attempts: int
) -> dict[str, object]:
    """Return the choices that ``Built`` states, and the planned parameters."""
    planned = sizes.parameters(Tokens(contexts).count)
    return {
        "window": contexts.window,
        "load": code.total / (sum(BITS) * sizes.blocks * sizes.cells),
        "words": len(BITS) * sizes.blocks * sizes.cells,
        "layers": sizes.layers,
        "units": sizes.units,
        **architecture.noted(sizes),
        "parameters_planned": planned,
        "bits_per_parameter_planned": contexts.order0_bits / planned,
        "attempts": attempts,
    }


def solve_tables(
    addresses: Addresses,
    code: Code,
    labels: NDArray[np.int64],
    sizes: StockSizes,
    rng: np.random.Generator,
    report: Report | None,
) -> Tables:
    """Solve every table of every block; raise Unsolvable. Among many blocks, a table that fails is solved anew."""
    count = len(BITS) * sizes.blocks
    table_of = len(BITS) * addresses.block + addresses.kind
    order = np.argsort(table_of, kind="stable")
    ends = np.searchsorted(table_of[order], np.arange(count + 1))
    is_negative = negative(sizes).ravel()

    def solve_table(number: int, stream: np.random.Generator) -> NDArray[np.int64]:
        index = order[ends[number] : ends[number + 1]]
        block, kind = divmod(number, len(BITS))
        equations = equations_of(addresses, index, code, labels, sizes, block, kind)
        return solve(equations, kind, is_negative, stream, times=1 + sizes.blocks // MANY)

    words = np.zeros((count, sizes.cells), dtype=np.int64)
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for number, table in enumerate(pool.map(solve_table, range(count), rng.spawn(count))):
                words[number] = table
                if report is not None:
                    report(number + 1, count)
        except Unsolvable:
            pool.shutdown(cancel_futures=True)
            raise
    up, down, gate = words.reshape(sizes.blocks, len(BITS), sizes.rows, sizes.words).transpose(1, 0, 2, 3)
    return Tables(up, down, gate)


def equations_of(
    addresses: Addresses,
    index: NDArray[np.int64],
    code: Code,
    labels: NDArray[np.int64],
    sizes: StockSizes,
    block: int,
    kind: int,
) -> Equations:
    """Return the equations of one table; ``index`` numbers all questions that read it."""
    in_total = kind == UP and not sizes.layered
    return Equations(
        cells=addresses.cells(sizes, index),
        before=np.full(len(index), (block - sizes.blocks // 2) * in_total),
        offset=addresses.offset[index],
        word=code.words[labels[index]],
        length=code.lengths[labels[index]],
        bits=BITS[kind],
        wraps=True,
    )
