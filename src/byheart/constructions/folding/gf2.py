"""Linear systems modulo 2, bit-packed: eliminate once, then solve for many right-hand sides.

Columns without a pivot are free: they get random bits, so that solving again gives another solution. :mod:`.residues`
builds on it for systems modulo any number. Elimination is that of ``gadgets.parities``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.gadgets import parities
from byheart.tasks.arrays import Ids


@dataclass(frozen=True, eq=False)
class EchelonForm:
    """A matrix A [rows, columns] modulo 2 in echelon form."""

    system: parities.BandEchelon

    @property
    def pivots(self) -> Ids:
        """Columns that have a pivot, in order."""
        return np.flatnonzero(self.system.extent)

    @property
    def rank(self) -> int:
        """Number of independent rows."""
        return len(self.system.pivot) - self.deficit

    @property
    def deficit(self) -> int:
        """Number of rows that depend on others: each makes a right-hand side inconsistent half of the time."""
        return self.system.dependent


def pack(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Pack rows of bits [R, C] into words of 64, lowest bit first.

    >>> pack(np.array([[1, 0, 1]], dtype=np.uint8)).tolist()
    [[5]]
    """
    rows, columns = bits.shape
    padded = np.zeros((rows, -(-columns // 64) * 8), dtype=np.uint8)
    padded[:, : -(-columns // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return padded.view(np.uint64)


def reduce(A: NDArray[np.integer]) -> EchelonForm:
    """Eliminate A modulo 2."""
    return EchelonForm(parities.reduce_packed(pack(A.astype(np.uint8) & np.uint8(1)), A.shape[1]))


def solve(system: EchelonForm, e: Ids, free: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """Solve A·t ≡ e modulo 2 with the bits ``free`` [columns] in the free columns; None if there is no solution.

    >>> A = np.array([[1, 1, 0], [0, 1, 1]])
    >>> t = solve(reduce(A), np.array([1, 0]), np.array([0, 0, 1], dtype=np.uint8))
    >>> (A @ t % 2).tolist(), int(t[2])
    ([1, 0], 1)
    """
    return parities.solve(system.system, (e & 1).astype(np.uint8), free)
