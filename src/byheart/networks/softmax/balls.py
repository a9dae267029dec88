"""What a softmax network outputs, enclosed: ball arithmetic (python-flint's ``arb``) on the weights as they are.

Every weight and every coordinate of a vector is a float64 and so an exact dyadic number. The evaluation follows the
definition in :mod:`.softmax.softmax_network`, each operation on balls [m ± r] that contain the true value; so do the
outputs. With more bits the radii shrink; nothing is ever sampled or assumed.

Two shortcuts, both exact identities: W_Kʰ W_Qʰᵀ and W_Vʰ W_Oʰ are multiplied out once, and a softmax is taken of scores
less a number near their maximum. A context that all examples share is multiplied once.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from byheart.networks.reading import Inputs
from byheart.networks.softmax.softmax_network import Floats, SoftmaxNetwork, check_inputs
from byheart.progress import Report

Ball = Any
"""An ``arb``; python-flint has no types."""
Matrix = Any
"""An ``arb_mat``."""
RESIDUAL_BITS = 128
"""With which a residual is computed."""
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


def rounded_outward(ball: Ball, bits: int) -> tuple[int, int]:
    """Integers low ≤ 2^bits·x ≤ high for every x in the ball; the precision must be ``bits`` at least."""
    from flint import arb, fmpz

    scaled = ball * arb(fmpz(1) << bits)
    return int(scaled.lower().floor().unique_fmpz()), int(scaled.upper().ceil().unique_fmpz())


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


def enclose_features(network: SoftmaxNetwork, inputs: Inputs, *, bits: int, averages: bool = True) -> Matrix:
    """What the values of a network on queries are multiplied with, one row an example, as a matrix of balls.

    The heads' ``averages``, H·d columns, which W_V is multiplied with. Or, with a context that all share, the heads'
    weights, which E W_V is multiplied with, H(n − 1) + 1 columns: as every head's weights sum to one, the last of them
    is left out in all heads but the first, which spans the same.
    """
    check_inputs(network, inputs)
    sequences, queries = inputs
    assert queries is not None
    rows = []
    with precision(bits):
        layer = _Layer(network, None if averages else _shared(sequences, queries))
        for start in range(0, len(sequences), CHUNK):
            chosen = slice(start, start + CHUNK)
            rows += layer.features(sequences[chosen], queries[chosen])
        return stacked(rows)


def _shared(sequences: npt.NDArray[Any], queries: Floats | None) -> Floats | None:
    """The context [n, d] that all examples have, if it is one array repeated."""
    return sequences[0] if queries is not None and len(sequences) > 1 and sequences.strides[0] == 0 else None


class _Layer:
    """The network's matrices as balls, multiplied out as far as they can be."""

    def __init__(self, network: SoftmaxNetwork, shared: Floats | None) -> None:
        self.network = network
        heads = range(len(network.W_Q))
        # [d, d] a head, transposed: asked · product gives the direction that tokens are compared with.
        self.products = [matrix(network.W_Q[h]) * matrix(network.W_K[h]).transpose() for h in heads]
        values = [matrix(network.W_V[h]) * matrix(network.W_O[h]) for h in heads]
        self.W_in = None if network.W_in is None else matrix(network.W_in)
        self.b_in = None if network.b_in is None else matrix(network.b_in[None]).entries()
        self.W_U = None if network.W_U is None else matrix(network.W_U)
        self.shared = None if shared is None else matrix(shared)
        # All heads' values below each other, so that the heads are added up by one product.
        if self.shared is not None:
            values = [self.shared * value for value in values]
        self.values = stacked([row for value in values for row in value.table()])

    def on_queries(self, contexts: Floats, queries: Floats) -> list[list[Ball]]:
        directions = self._directions(matrix(queries))
        if self.shared is not None:
            tables = [weights.table() for weights in self._shared_weights(directions)]
            rows = [[x for table in tables for x in table[index]] for index in range(len(queries))]
            return self._after(stacked(rows) * self.values)
        return self._after(self._own([matrix(context) for context in contexts], directions))

    def features(self, contexts: Floats, queries: Floats) -> list[list[Ball]]:
        directions = self._directions(matrix(queries))
        if self.shared is None:
            return list(self._averages([matrix(context) for context in contexts], directions))
        first, *others = (weights.table() for weights in self._shared_weights(directions))
        return [[*row, *(x for table in others for x in table[index][:-1])] for index, row in enumerate(first)]

    def _directions(self, asked: Matrix) -> list[Matrix]:
        return [asked * product for product in self.products]

    def _shared_weights(self, directions: list[Matrix]) -> list[Matrix]:
        assert self.shared is not None
        return [_softmax_rows(direction * self.shared.transpose()) for direction in directions]

    def on_tokens(self, tokens: npt.NDArray[np.int64]) -> list[list[Ball]]:
        network = self.network
        assert network.W_E is not None
        assert network.W_pos is not None
        positions = matrix(network.W_pos)
        contexts = [matrix(network.W_E[row]) + positions for row in tokens]
        asked = stacked([context.table()[-1] for context in contexts])
        z = self._own(contexts, self._directions(asked))
        return self._after(z + asked if network.skip else z)

    def _averages(self, contexts: list[Matrix], directions: list[Matrix]) -> Iterator[list[Ball]]:
        """The heads' averages [H·d] for examples with contexts of their own; ``directions``: [examples, d] a head."""
        tables = [direction.table() for direction in directions]
        for example, context in enumerate(contexts):
            asked = stacked([table[example] for table in tables])
            yield (_softmax_rows(asked * context.transpose()) * context).entries()

    def _own(self, contexts: list[Matrix], directions: list[Matrix]) -> Matrix:
        """z [examples, k] for examples with contexts of their own."""
        return stacked(list(self._averages(contexts, directions))) * self.values

    def _after(self, z: Matrix) -> list[list[Ball]]:
        if self.W_in is not None:
            assert self.b_in is not None
            raised = (z * self.W_in).table()
            z = stacked([[(x + b).tanh() for x, b in zip(row, self.b_in, strict=True)] for row in raised])
        rows: list[list[Ball]] = (z if self.W_U is None else z * self.W_U).table()
        return rows


def _softmax_rows(scores: Matrix) -> Matrix:
    return stacked([softmax(row) for row in scores.table()])


def softmax(scores: list[Ball]) -> list[Ball]:
    """softmax of balls; the scores may be of any size."""
    largest = max(scores, key=float).mid()
    raised = [(score - largest).exp() for score in scores]
    total = sum(raised[1:], raised[0])
    return [value / total for value in raised]


def stacked(rows: list[list[Ball]]) -> Matrix:
    """Rows of balls as a matrix."""
    from flint import arb_mat

    return arb_mat(rows)


def residual(network: SoftmaxNetwork, inputs: Inputs, wanted: Floats) -> Floats:
    """What is missing of ``wanted`` [N, k]: wanted − output, subtracted before it is rounded to float64."""
    rows = (row for rows in enclose(network, inputs, bits=RESIDUAL_BITS) for row in rows)
    with precision(RESIDUAL_BITS):
        missing = [
            [float(w - x) for w, x in zip(asked, row, strict=True)]
            for asked, row in zip(wanted.tolist(), rows, strict=True)
        ]
    return np.array(missing, dtype=np.float64)


def upper(ball: Ball) -> float:
    """A float64 that no point of ``ball`` is above.

    >>> from flint import arb
    >>> upper(arb("0.5")), upper(arb(2) ** -60 + 1) > 1
    (0.5, True)
    """
    from flint import arb

    value = float(ball.upper())
    return value if arb(value) >= ball.upper() else math.nextafter(value, math.inf)


def lower(ball: Ball) -> float:
    """A float64 that no point of ``ball`` is below."""
    return -upper(-ball)
