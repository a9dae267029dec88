"""Uniform and hardmax attention, and sums, over exact sequences, batch by batch.

Sequences come as :class:`.exact.limbs.Limbs` whose columns are the positions of one sequence after those of
another. With ``last`` only the output at the last position of each sequence is computed.
"""

import math

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit
from byheart.networks.exact.exact_layers import HardmaxAttention, Integers, UniformAttention, identity, integers, linear
from byheart.networks.exact.kernels import UNRESOLVED, resolve
from byheart.networks.exact.limbs import LimbProgram, Limbs, concatenate, stack, total


def uniform(layer: UniformAttention, batch: Limbs, length: int, last: bool) -> Limbs:
    """Return Z_k + W_O W_V (1/n) Σ_j Z_j at the last position or at all positions.

    The factor 1/n is cancelled against W_O W_V as far as possible: what is left of n joins the batch's divisor.
    """
    matrix = layer.W_O @ layer.W_V
    common = math.gcd(length, *(int(entry) for entry in matrix.ravel()))
    return add(*_with_sums(batch, length, last), integers(matrix // common), length // common)


def token_sum(batch: Limbs, length: int, last: bool) -> Limbs:
    """Return Z_k + 2 Σ_j Z_j at the last position or at all positions."""
    return add(*_with_sums(batch, length, last), identity(batch.width, 2))


def _with_sums(batch: Limbs, length: int, last: bool) -> tuple[Limbs, Limbs]:
    """Return the last position of every sequence, or all positions, and the sum of the sequence for each of them."""
    sums = total(batch, length)
    if last:
        return batch.columns(slice(length - 1, None, length)), sums
    return batch, sums.columns(np.repeat(np.arange(sums.batch), length))


def hardmax(layer: HardmaxAttention, batch: Limbs, length: int, last: bool) -> Limbs:
    """Return Z_k + W_O W_V · mean of the Z_j with the largest score (W_K Z_j)·(W_Q Z_k)."""
    queries = batch.columns(slice(length - 1, None, length)) if last else batch
    scored, keys = LimbProgram((linear(layer.W_Q),))(queries), LimbProgram((linear(layer.W_K),))(batch)
    ties = _ties(scored, keys, length, layer.causal)
    counts = ties.sum(axis=1)
    groups = [np.flatnonzero(counts == count) for count in np.unique(counts)]
    results = []
    for rows in groups:
        count = int(counts[rows[0]])
        sequence = rows // (queries.batch * length // batch.batch)
        chosen = sequence[:, None] * length + np.nonzero(ties[rows])[1].reshape(len(rows), count)
        sums = total(batch.columns(chosen.ravel()), count)
        results.append(add(queries.columns(rows), sums, integers(layer.W_O @ layer.W_V), count))
    return concatenate(results).columns(np.argsort(np.concatenate(groups)))


def add(batch: Limbs, other: Limbs, matrix: Integers, divisor: int = 1) -> Limbs:
    """Return batch + matrix · other / divisor."""
    weights = np.concatenate([identity(batch.width, divisor), matrix], axis=1)
    result = LimbProgram((linear(weights),))(stack(batch, other))
    return Limbs(result.limbs, result.start, result.length, result.exponent, result.divisor * divisor)


def _ties(queries: Limbs, keys: Limbs, length: int, causal: bool) -> NDArray[np.bool_]:
    """Return for every query the positions that it sees and that have the largest score, as flags [B_q, n]."""
    per_sequence = queries.batch * length // keys.batch
    if keys.width == 1:
        # Scores q·k are in the order of the k, or in the reverse order: no products are needed.
        query_limbs, key_limbs = (np.ascontiguousarray(side.limbs[: side.length[0]]) for side in (queries, keys))
        ordered: NDArray[np.bool_] = _compare_scalars(query_limbs, key_limbs, length, per_sequence, causal)
        return ordered
    places = int(queries.length.max() + keys.length.max()) + 2
    # All scores of one batch share their denominators, so comparing numerators is comparing scores.
    first, second = (queries.limbs, queries.start, queries.length), (keys.limbs, keys.start, keys.length)
    ties: NDArray[np.bool_] = _compare(*first, *second, length, per_sequence, places, causal)
    return ties


@jit
def _compare_scalars(q_limbs, k_limbs, length, per_sequence, causal):  # type: ignore[no-untyped-def]
    """Return the ties of single integers: the largest key if the query is above 0, the smallest if below, else all."""
    batch, top = q_limbs.shape[1], q_limbs.shape[0] - 1
    places = k_limbs.shape[0]
    ties = np.zeros((batch, length), dtype=np.bool_)
    for query in range(batch):
        first = query // per_sequence * length
        seen = query % per_sequence + 1 if causal and per_sequence == length else length
        sign = 1 if q_limbs[top, query] >= 0 else -1
        zero = True
        for k in range(top + 1):
            zero = zero and q_limbs[k, query] == 0
        best = first
        for j in range(seen):
            order = 0
            if not zero:
                for k in range(places - 1, -1, -1):
                    difference = k_limbs[k, first + j] - k_limbs[k, best]
                    if difference != 0:
                        order = sign if difference > 0 else -sign
                        break
            if order == 1:
                for before in range(j):
                    ties[query, before] = False
                best = first + j
            ties[query, j] = order >= 0
    return ties


@jit
def _compare(q_limbs, q_start, q_length, k_limbs, k_start, k_length, length, per_sequence, places, causal):  # type: ignore[no-untyped-def]
    """Return the ties of exact scores, whose limbs are compared from the highest one down."""
    batch = q_limbs.shape[1]
    ties = np.zeros((batch, length), dtype=np.bool_)
    best = np.zeros(places, dtype=np.int64)
    score = np.zeros((places, 1), dtype=np.int64)
    for query in range(batch):
        first = query // per_sequence * length
        # Where a sequence has one query only, it is the last position's, which sees everything.
        seen = query % per_sequence + 1 if causal and per_sequence == length else length
        for j in range(seen):
            score[:] = 0
            for unit in range(len(q_start)):
                for a in range(q_length[unit]):
                    factor = np.int64(q_limbs[q_start[unit] + a, query])
                    for c in range(k_length[unit]):
                        score[a + c, 0] += factor * k_limbs[k_start[unit] + c, first + j]
                    # Every limb of the query adds at most one product of 2⁴⁸ to a limb of the score.
                    if (a + 1) % (UNRESOLVED // 2) == 0:
                        resolve(score)
                resolve(score)
            order = 1 if j == 0 else 0
            if j > 0:
                for k in range(places - 1, -1, -1):
                    if score[k, 0] != best[k]:
                        order = 1 if score[k, 0] > best[k] else -1
                        break
            if order == 1:
                ties[query, :] = False
                best[:] = score[:, 0]
            if order >= 0:
                ties[query, j] = True
    return ties
