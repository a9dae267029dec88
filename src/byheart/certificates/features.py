"""Proofs about attention that hold for every choice of its values: full rank, and targets out of reach.

Let Φ ∈ R^{N×F} be the features of a softmax network on queries: its outputs are Φ V, with V the values. All of Φ is
enclosed in balls, from the saved weights (:func:`enclose_features`).

**Rank.** If ‖I − Φ R‖ < 1 for some matrix R, then Φ R is regular and Φ has rank N: any targets can be reached. Φ holds
the heads' averages. If all examples share a context of rank n (exactly), Φ holds the heads' weights instead, because
E W_V is then arbitrary. R is a float64 pseudo-inverse; nothing is assumed of it. If the condition number is beyond
float64 and Φ is square, Φ is proved regular by solving with more and more bits. A minor of Φ is an analytic function of
the weights. So if one choice of weights has full rank on this data, almost every choice has.

**Out of reach.** If all examples share a context, Φ has F = H(n − 1) + 1 columns, whatever the attention. Take F + 1
examples. If the first F rows are regular, there is exactly one λ with λ_F = 1 and Σ_t λ_t Φ_t = 0; it is enclosed. So
Σ_t λ_t output_t = 0 for *all* values, and no values reach targets with Σ_t λ_t target_t ≠ 0 with this attention.
(F does not depend on the attention. So almost all targets are out of reach of each given attention. An attention that
is itself fitted to the targets is not ruled out.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.judges.layered import MOST_BITS, inputs_of
from byheart.certificates.verdict import doubling
from byheart.errors import BadInput
from byheart.networks.balls import Ball, Matrix, averages, matrix, precision, softmax, stacked
from byheart.networks.softmax import Inputs, SoftmaxNetwork
from byheart.tasks import QueryTargets, QueryTask, Task
from byheart.tasks.ranks import context_ranks

FEWEST_BITS = 64
"""Precision of the first attempt at a proof of full rank."""


def enclose_features(network: SoftmaxNetwork, inputs: Inputs, *, bits: int, by_weights: bool) -> Matrix:
    """Return Φ as balls, one row per example: outputs are Φ times the values.

    The rows are the heads' averages, H·d columns, and the values are W_V. If ``by_weights``, for a context that all
    examples share, the rows are the heads' weights, H(n − 1) + 1 columns, and the values are E W_V. The last weight of
    each head but the first is left out, because every head's weights sum to one; the span is the same.
    """
    network.check_inputs(inputs)
    contexts, queries = inputs
    assert queries is not None
    with precision(bits):
        asking = matrix(queries)
        heads = [asking * matrix(Q) * matrix(K).transpose() for Q, K in zip(network.W_Q, network.W_K, strict=True)]
        if by_weights:
            shared = matrix(contexts[0]).transpose()
            first, *rest = ([softmax(row) for row in (directions * shared).table()] for directions in heads)
            return stacked([[*row, *(x for table in rest for x in table[i][:-1])] for i, row in enumerate(first)])
        tables = [directions.table() for directions in heads]
        rows = []
        for example, context in enumerate(map(matrix, contexts)):
            rows.append(averages(stacked([table[example] for table in tables]), context, context).entries())
        return stacked(rows)


@dataclass(frozen=True)
class FullRank:
    """A proof that Φ has rank N: the number of bits, and the method ``by`` which it was proved."""

    rank: int
    bits: int
    by: str

    def __str__(self) -> str:
        return f"rank {self.rank}, proved in ball arithmetic ({self.by}, {self.bits} bits)"


@dataclass(frozen=True)
class OutOfReach:
    """A proof that λ·outputs = 0 for all values, but λ·targets lies between ``low`` and ``high``, which exclude 0."""

    examples: int
    low: float
    high: float
    bits: int

    def __str__(self) -> str:
        return (
            f"whatever the values are, one combination of the outputs of the first {self.examples} examples is 0, "
            f"and of their targets it is {self._number()}, not 0 (proved in ball arithmetic, {self.bits} bits)"
        )

    def _number(self) -> str:
        low, high = f"{self.low:.6g}", f"{self.high:.6g}"
        return low if low == high else f"between {low} and {high}"


def prove_rank(network: SoftmaxNetwork, task: QueryTask, *, most_bits: int = MOST_BITS) -> FullRank | None:
    """Prove that the features of all examples are independent; return None if no proof was found.

    >>> two = np.eye(2)[None]
    >>> network = SoftmaxNetwork(W_Q=two, W_K=two, W_V=two, W_O=np.ones((1, 2, 1)))
    >>> task = QueryTargets(contexts=np.eye(2), queries=[[0.0, 0.0], [1.0, 2.0]], targets=[0, 1])
    >>> print(prove_rank(network, task))
    rank 2, proved in ball arithmetic (approximate inverse, 64 bits)
    """
    _check(network)
    inputs = inputs_of(task)
    full = task.shared and len(task.queries) > 1 and context_ranks(task.contexts).ranks[0] >= task.size.length
    features = enclose_features(network, inputs, bits=FEWEST_BITS, by_weights=full)
    rows, columns = features.nrows(), features.ncols()
    if rows > columns:
        return None
    inverse = _pseudo_inverse(features)
    with precision(FEWEST_BITS):
        if inverse is not None and _close_to_one(features * matrix(inverse)):
            return FullRank(rows, FEWEST_BITS, "approximate inverse")
    for bits in doubling(2 * FEWEST_BITS, most_bits) if rows == columns else ():
        more = enclose_features(network, inputs, bits=bits, by_weights=full)
        if _solved(more, [1.0] * rows, bits) is not None:
            return FullRank(rows, bits, "regular")
    return None


def prove_out_of_reach(network: SoftmaxNetwork, task: QueryTargets, *, most_bits: int = MOST_BITS) -> OutOfReach | None:
    """Prove that no values reach the targets with this attention; return None if no proof was found."""
    _check(network)
    if not task.shared:
        raise BadInput("the examples have contexts of their own; expected one that all share")
    heads, length = len(network.W_Q), task.size.length
    columns = heads * (length - 1) + 1
    if task.size.examples <= columns:
        raise BadInput(f"the task has {task.size.examples} examples; expected more than H(n − 1) + 1 = {columns}")
    few = columns + 1
    vectors, queries = inputs_of(task)
    assert queries is not None
    for bits in doubling(2 * FEWEST_BITS, most_bits):
        features = enclose_features(network, (vectors[:few], queries[:few]), bits=bits, by_weights=True)
        with precision(bits):
            rows = features.table()
            combination = _solved(stacked(rows[:columns]).transpose(), [-x for x in rows[columns]], bits)
            if combination is not None:
                for targets in task.coordinates[:few].T.tolist():  # one coordinate out of reach is enough
                    total = sum((x * y for x, y in zip(combination, targets, strict=False)), targets[columns])
                    if total > 0 or total < 0:
                        return OutOfReach(few, float(total.lower()), float(total.upper()), bits)
    return None


def impossible(network: SoftmaxNetwork, task: Task) -> str:
    """Return the end of a sentence that says that real targets are proved out of reach; "" if no proof applies."""
    if not isinstance(task, QueryTargets) or not task.shared:
        return ""
    if task.size.examples <= len(network.W_Q) * (task.size.length - 1) + 1:
        return ""
    proof = prove_out_of_reach(network, task)
    return "" if proof is None else f". Impossible with this attention: {proof}"


def _check(network: SoftmaxNetwork) -> None:
    if network.W_in is not None:
        raise BadInput("the network has units after its attention; expected outputs that are linear in the values")


def _solved(square: Matrix, wanted: list[Ball], bits: int) -> list[Ball] | None:
    """Solve a system in balls, which proves the matrix regular; return None if regularity was not shown."""
    with precision(bits):
        try:
            solution: list[Ball] = square.solve(stacked([[x] for x in wanted])).entries()
        except ZeroDivisionError:
            return None
    return solution


def _pseudo_inverse(features: Matrix) -> NDArray[np.float64] | None:
    middle = np.array([float(x) for x in features.entries()]).reshape(features.nrows(), features.ncols())
    try:
        return np.asarray(np.linalg.pinv(middle, rcond=1e-15), np.float64)
    except np.linalg.LinAlgError:
        return None


def _close_to_one(product: Matrix) -> bool:
    """Return True if ‖I − product‖ < 1 for certain; the norm is the largest sum of a row's magnitudes."""
    for index, row in enumerate(product.table()):
        row[index] -= 1
        if not sum((abs(x) for x in row[1:]), abs(row[0])) < 1:
            return False
    return True
