"""What a softmax network outputs, enclosed: ball arithmetic (python-flint's ``arb``) on the weights as they are.

Every weight and every coordinate of a vector is a float64 and so an exact dyadic number. The evaluation follows the
definition in :mod:`byheart.networks.softmax.network`, each operation on balls [m ± r] that contain the true value; so
do the outputs. With more bits the radii shrink; nothing is ever sampled or assumed.

Two shortcuts, both exact identities: W_Kʰ W_Qʰᵀ and W_Vʰ W_Oʰ are multiplied out once, and a softmax is taken of scores
less a number near their maximum. A context that all examples share is multiplied once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from byheart.networks.softmax.network import Floats, Inputs, SoftmaxNetwork, check_inputs

Ball = Any
"""An ``arb``; python-flint has no types."""
Matrix = Any
"""An ``arb_mat``."""
Report = Callable[[int, int], None]
CHUNK = 64
"""Examples whose balls are in memory at a time."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Calculate with this many bits; python-flint keeps the number in one global place, which is put back."""
    from flint import ctx

    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def matrix(array: npt.NDArray[Any]) -> Matrix:
    """A float64 array [a, b] as balls of radius zero."""
    from flint import arb_mat

    return arb_mat(array.shape[0], array.shape[1], array.ravel().tolist())


def enclose(
    network: SoftmaxNetwork, inputs: Inputs, *, bits: int, report: Report | None = None
) -> Iterator[list[list[Ball]]]:
    """The outputs of ``network`` as balls, CHUNK examples at a time: lists of examples, each a list of C balls.

    >>> one = np.ones((1, 1, 1))
    >>> network = SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=one)
    >>> [[[output]]] = enclose(network, (np.array([[[0.0], [1.0]]]), np.array([[1.0]])), bits=64)
    >>> print(output.str(10))
    [0.7310585786 +/- 3.01e-11]
    """
    check_inputs(network, inputs)
    sequences, queries = inputs
    with precision(bits):
        layer = _Layer(network, _shared(sequences, queries))
    for start in range(0, len(sequences), CHUNK):
        chosen = slice(start, start + CHUNK)
        with precision(bits):
            if queries is None:
                rows = layer.on_tokens(sequences[chosen])
            else:
                rows = layer.on_queries(sequences[chosen], queries[chosen])
        yield rows
        if report is not None:
            report(min(start + CHUNK, len(sequences)), len(sequences))


def _shared(sequences: npt.NDArray[Any], queries: Floats | None) -> Floats | None:
    """The context [n, d] that all examples have, if it is one array repeated."""
    return sequences[0] if queries is not None and sequences.strides[0] == 0 else None


class _Layer:
    """The network's matrices as balls, multiplied out as far as they can be."""

    def __init__(self, network: SoftmaxNetwork, shared: Floats | None) -> None:
        self.network = network
        heads = range(len(network.W_Q))
        # [d, d] a head, transposed: asked · product gives the direction that tokens are compared with.
        self.products = [matrix(network.W_Q[h]) * matrix(network.W_K[h]).transpose() for h in heads]
        self.values = [matrix(network.W_V[h]) * matrix(network.W_O[h]) for h in heads]
        self.W_in = None if network.W_in is None else matrix(network.W_in)
        self.b_in = None if network.b_in is None else matrix(network.b_in[None]).entries()
        self.W_U = None if network.W_U is None else matrix(network.W_U)
        self.shared = None if shared is None else matrix(shared)
        if self.shared is not None:
            self.shared_values = [self.shared * value for value in self.values]

    def on_queries(self, contexts: Floats, queries: Floats) -> list[list[Ball]]:
        asked = matrix(queries)
        directions = [asked * product for product in self.products]
        if self.shared is not None:
            scores = [direction * self.shared.transpose() for direction in directions]
            weights = [_softmax_rows(score) for score in scores]
            mixed = [weight * value for weight, value in zip(weights, self.shared_values, strict=True)]
            return self._after(_total(mixed))
        return self._after(self._own([matrix(context) for context in contexts], directions))

    def on_tokens(self, tokens: npt.NDArray[np.int64]) -> list[list[Ball]]:
        network = self.network
        assert network.W_E is not None
        assert network.W_pos is not None
        positions = matrix(network.W_pos)
        contexts = [matrix(network.W_E[row]) + positions for row in tokens]
        asked = _stacked([context.table()[-1] for context in contexts])
        z = self._own(contexts, [asked * product for product in self.products])
        return self._after(z + asked if network.skip else z)

    def _own(self, contexts: list[Matrix], directions: list[Matrix]) -> Matrix:
        """z for examples with contexts of their own; ``directions``: one [examples, d] a head."""
        tables = [direction.table() for direction in directions]
        rows = []
        for example, context in enumerate(contexts):
            asked = _stacked([table[example] for table in tables])
            averages = (_softmax_rows(asked * context.transpose()) * context).table()
            mixed = [_stacked([average]) * value for average, value in zip(averages, self.values, strict=True)]
            rows.append(_total(mixed).entries())
        return _stacked(rows)

    def _after(self, z: Matrix) -> list[list[Ball]]:
        if self.W_in is not None:
            assert self.b_in is not None
            raised = (z * self.W_in).table()
            z = _stacked([[(x + b).tanh() for x, b in zip(row, self.b_in, strict=True)] for row in raised])
        rows: list[list[Ball]] = (z if self.W_U is None else z * self.W_U).table()
        return rows


def _softmax_rows(scores: Matrix) -> Matrix:
    return _stacked([softmax(row) for row in scores.table()])


def softmax(scores: list[Ball]) -> list[Ball]:
    """softmax of balls; the scores may be of any size."""
    largest = max(scores, key=float).mid()
    raised = [(score - largest).exp() for score in scores]
    total = sum(raised[1:], raised[0])
    return [value / total for value in raised]


def _stacked(rows: list[list[Ball]]) -> Matrix:
    from flint import arb_mat

    return arb_mat(rows)


def _total(matrices: list[Matrix]) -> Matrix:
    return sum(matrices[1:], matrices[0])
