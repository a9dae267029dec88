"""The words of a rectangular table: equations of all questions, sorted so that they form banded systems."""

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.planes import Equations, check_dependent, count_dependent, solve_planes
from byheart.compiler.rectangular.address import TableAddresses
from byheart.compiler.rectangular.dimensions import AHEAD, LANES, TableSizes
from byheart.progress import Report


def sort_questions(
    sizes: TableSizes,
    code: Code,
    address: TableAddresses,
    labels: NDArray[np.int64],
    prints: NDArray[np.int64] | None = None,
) -> Equations:
    """Return the equations of all questions, sorted by the first row that each reads.

    A question has to find its print, if there are prints, and then the code word of its label. Unknown
    (row·6 + lane)·columns + column is a word; a null column is no unknown.
    """
    rows, columns, kind = address.rows, address.columns, address.kind
    first = rows.min(axis=1)
    short = first.astype(np.min_scalar_type(sizes.rows))  # NumPy sorts short integers by counting
    order = np.argsort(short, kind="stable")
    lanes = np.arange(LANES)
    cells = (np.repeat(rows, LANES // 2, axis=1) * LANES + lanes) * sizes.columns + columns
    cells[columns >= sizes.columns] = -1
    words, lengths = code.words[labels[order]], code.lengths[labels[order]]
    return Equations(
        cells=cells[order],
        offset=address.offset[order],
        word=words if prints is None else (prints[order] << lengths) + words,
        length=code.refuse + lengths,
        bits=sizes.word,
        wraps=not sizes.aligned,
        exponent=sizes.exponent,
        exponent_first=None if kind is None else (kind < sizes.exponent_share)[order],
        base=(first[order] * LANES * sizes.columns) >> 6,
        band=sizes.band,
    )


def solve(
    equations: Equations,
    sizes: TableSizes,
    rng: np.random.Generator,
    threads: int = AHEAD,
    report: Report | None = None,
) -> NDArray[np.int64]:
    """Return words as integers [rows, 6, columns], the exponents above the ``word`` bits; raises Unsolvable."""
    check_addresses(equations)
    planes = solve_planes(equations, sizes.words, rng, threads=threads, report=report)
    return planes.words.reshape(sizes.rows, LANES, sizes.columns)


def check_addresses(equations: Equations) -> None:
    """Raise Unsolvable if counting shows that too many equations of the lowest plane depend on others."""
    members, _ = equations.asked(0)
    check_dependent(count_dependent(equations.cells[members]), len(members))
