"""Dependent sets whose proper subsets are all independent, by Gauss elimination modulo a prime."""

from typing import NamedTuple

import numpy as np

from byheart.tasks.checks import Floats, Ids
from byheart.tasks.ranks import Flags, exact_rank, prime, whole_rows


class _Eliminated(NamedTuple):
    """A basis out of m vectors, r of them, and which of the basis the others need."""

    needed: Flags
    """bool [r, m - r]."""
    basis: Ids
    """int64 [r]: places among the m vectors."""
    others: Ids
    """int64 [m - r]: places among the m vectors."""


class Circuits:
    """Circuits of vectors [N, d], by Gauss elimination modulo a prime; what it hands out is verified exactly."""

    def __init__(self, vectors: Floats, rng: np.random.Generator) -> None:
        self.vectors = vectors
        self.rng = rng
        self._modulus = prime(0)
        self._residues = np.array([[number % self._modulus for number in row] for row in whole_rows(vectors)], np.int64)

    def smallest(self, members: Ids, below: int) -> tuple[int, ...] | None:
        """The smallest circuit met, out of ``members`` [m], if it has less than ``below`` vectors.

        Elimination expresses each member that depends on those before it by a basis out of them, in one way; so it and
        what it needs of the basis are a circuit, modulo the prime.
        """
        needed, basis, others = self.eliminated(members)
        if not len(others):
            return None
        best = int(needed.sum(axis=0).argmin())
        circuit = np.sort(np.append(members[basis[needed[:, best]]], members[others[best]]))
        if len(circuit) >= below or not self._dependent(circuit):
            return None
        return tuple(circuit.tolist())

    def eliminated(self, members: Ids) -> _Eliminated:
        """``members`` [m], expressed in a basis out of them, the first ones that can be, modulo the prime."""
        from flint import nmod_mat

        columns = self._residues[members].T
        reduced, rank = nmod_mat(columns.tolist(), self._modulus).rref()
        entries = np.fromiter(map(int, reduced.entries()), np.int64, columns.size)
        filled = entries.reshape(columns.shape)[:rank] != 0
        basis = filled.argmax(axis=1)
        others = np.setdiff1d(np.arange(len(members)), basis)
        return _Eliminated(filled[:, others], basis, others)

    def _dependent(self, members: Ids) -> bool:
        return len(members) > self.vectors.shape[1] or exact_rank(self.vectors[members]) < len(members)
