"""Solve for the words of the tables, so that all sums are exact in every order.

There are no more equations than words in a plane, and those of random cells are independent, or nearly. If some sum is
not exact in every order, the highest bits that no question asks for are drawn again.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.layouts import Unsolvable
from byheart.compiler.planes import Equations, solve_planes
from byheart.compiler.stock.address import Addresses
from byheart.compiler.stock.dimensions import BITS, GATE, GROUPS, LANES, MANY, UP, StockSizes
from byheart.compiler.stock.table import negative
from byheart.progress import Report

Integers = NDArray[np.int64]
LARGEST = 1 << 24
"""Sums of integers up to this are exact in float32."""
TRIES = 40
"""Number of draws of the highest free bits."""
THREADS = 2
"""Number of tables that are solved at a time."""


def solve_tables(
    addresses: Addresses,
    code: Code,
    labels: Integers,
    sizes: StockSizes,
    rng: np.random.Generator,
    report: Report | None,
) -> Integers:
    """Solve every table [classes, blocks, rows, words]; raise Unsolvable.

    Among many blocks, a table that fails is solved anew.
    """
    count = len(BITS) * sizes.blocks
    table_of = len(BITS) * addresses.block + addresses.kind
    order = np.argsort(table_of, kind="stable")
    ends = np.searchsorted(table_of[order], np.arange(count + 1))
    is_negative = negative(sizes).ravel()

    def solve_table(number: int, stream: np.random.Generator) -> Integers:
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
    return words.reshape(sizes.blocks, len(BITS), sizes.rows, sizes.words).swapaxes(0, 1)


def equations_of(
    addresses: Addresses, index: Integers, code: Code, labels: Integers, sizes: StockSizes, block: int, kind: int
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


def solve(
    equations: Equations, kind: int, is_negative: NDArray[np.bool_], rng: np.random.Generator, *, times: int = 1
) -> Integers:
    """Return the words of a table, below 2^bits each, after at most ``times`` attempts; raise Unsolvable.

    ``kind`` is UP, DOWN or GATE. The network holds the words of ``is_negative`` [unknowns] less 2^bits, unless the
    table is W_gate.
    """
    for _ in range(times - 1):
        try:
            return _solve_once(equations, kind, is_negative, rng)
        except Unsolvable:
            continue
    return _solve_once(equations, kind, is_negative, rng)


def _solve_once(equations: Equations, kind: int, is_negative: NDArray[np.bool_], rng: np.random.Generator) -> Integers:
    planes = solve_planes(equations, len(is_negative), rng)
    if kind == GATE:
        return planes.words
    for _ in range(TRIES):
        signed = planes.words - (is_negative.astype(np.int64) << equations.bits)
        if exact(signed, planes.sums, equations, kind):
            return signed
        planes.shake()
    raise Unsolvable("no sums were found that are exact in every order")


def is_own_negative(sums: Integers, bits: int) -> NDArray[np.bool_]:
    """Return where a sum is 2^(bits − 1) modulo 2^bits, its own negative: centring may give it either sign."""
    result: NDArray[np.bool_] = (sums & ((1 << bits) - 1)) == 1 << (bits - 1)
    return result


def exact(words: Integers, sums: Integers, equations: Equations, kind: int) -> bool:
    """Return True if no sum of W_up or W_down can pass 2²⁴ on the way, and none is its own negative modulo 2²²."""
    if is_own_negative(sums, equations.bits).any():
        return False
    read = np.append(words, 0)[equations.cells].reshape(-1, GROUPS, LANES)
    if kind == UP:
        assert equations.before is not None
        totals = read.sum(axis=(1, 2))
        return bool((np.abs(totals) + np.abs(equations.before) <= LARGEST).all())
    columns = read.sum(axis=1)
    least, most = np.minimum(columns, 0).sum(axis=1), np.maximum(columns, 0).sum(axis=1)
    return bool((most <= LARGEST).all() and (least >= -LARGEST).all())
