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
    """Return Z_k + W_O W_V · mean of the Z_j with the largest score (W_K Z_j)·(W_Q Z_k).

    What is added depends on the sequence and on W_Q Z_k only, if the layer is not causal, so equal ones share it.
    """
    queries = batch.columns(slice(length - 1, None, length)) if last else batch
    keys = LimbProgram((linear(layer.W_K),))(batch)
    scored = LimbProgram((linear(layer.W_Q),))(queries)
    if keys.width == 1:
        scored = _signs(scored)
    places = np.arange(queries.batch)
    sequence = places if last else places // length
    seen = 1 + places % length if layer.causal and not last else np.full(queries.batch, length)
    used = np.concatenate(
        [scored.limbs[start : start + size] for start, size in zip(scored.start, scored.length, strict=True)]
    )
    first, index = _distinct(np.concatenate([np.stack([sequence, seen]), used]))
    scored, sequence = scored.columns(first), sequence[first]
    ties = (_scalar_ties if keys.width == 1 else _ties)(scored, keys, sequence, seen[first], length)
    counts = ties.sum(axis=1)
    results, order = [], []
    for count in np.unique(counts).tolist():
        asking = np.flatnonzero(counts == count)
        chosen = sequence[asking, None] * length + np.nonzero(ties[asking])[1].reshape(len(asking), count)
        rows = np.flatnonzero(counts[index] == count)
        sums = total(batch.columns(chosen.ravel()), count).columns(np.searchsorted(asking, index[rows]))
        results.append(add(queries.columns(rows), sums, integers(layer.W_O @ layer.W_V), count))
        order.append(rows)
    return concatenate(results).columns(np.argsort(np.concatenate(order)))


def _signs(numbers: Limbs) -> Limbs:
    """Return −1, 0 or 1 for single numbers. Scores q·k are in the order of the k, or in the reverse order."""
    limbs = numbers.limbs[: numbers.length[0]]
    negative, nonzero = limbs[-1] < 0, limbs.any(axis=0)
    return Limbs(np.where(negative, -1, nonzero)[None].astype(np.int32), np.array([0]), np.array([1]))


def _distinct(rows: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a place of each different column, in the columns' order, and the index of every column among them."""
    order = np.lexsort(rows[::-1])
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (rows[:, order[1:]] != rows[:, order[:-1]]).any(axis=0)
    index = np.empty(len(order), dtype=np.int64)
    index[order] = np.cumsum(new) - 1
    return order[new], index


def add(batch: Limbs, other: Limbs, matrix: Integers, divisor: int = 1) -> Limbs:
    """Return batch + matrix · other / divisor."""
    weights = np.concatenate([identity(batch.width, divisor), matrix], axis=1)
    result = LimbProgram((linear(weights),))(stack(batch, other))
    return Limbs(result.limbs, result.start, result.length, result.exponent, result.divisor * divisor)


def _scalar_ties(
    signs: Limbs, keys: Limbs, sequence: NDArray[np.int64], seen: NDArray[np.int64], length: int
) -> NDArray[np.bool_]:
    """Return the ties of single numbers: the largest key if the query is above 0, the smallest if below, else all."""
    # Keys become their ranks, [sequences, n]. All have the same number of limbs, and the highest carries the sign.
    _, ranks = _distinct(keys.limbs[: keys.length[0]][::-1])
    scores = signs.limbs[0][:, None] * ranks.astype(np.int32).reshape(-1, length)[sequence]
    scores[np.arange(length) >= seen[:, None]] = np.iinfo(np.int32).min
    ties: NDArray[np.bool_] = scores == scores.max(axis=1, keepdims=True)
    return ties


def _ties(
    queries: Limbs, keys: Limbs, sequence: NDArray[np.int64], seen: NDArray[np.int64], length: int
) -> NDArray[np.bool_]:
    """Return for every query those of the first ``seen`` positions that have the largest score, as flags [B_q, n]."""
    places = int(queries.length.max() + keys.length.max()) + 2
    # All scores of one batch share their denominators, so comparing numerators is comparing scores.
    first, second = (queries.limbs, queries.start, queries.length), (keys.limbs, keys.start, keys.length)
    ties: NDArray[np.bool_] = _compare(*first, *second, sequence * length, seen, length, places)
    return ties


@jit
def _compare(q_limbs, q_start, q_length, k_limbs, k_start, k_length, begins, seen, length, places):  # type: ignore[no-untyped-def]
    """Return the ties of exact scores, whose limbs are compared from the highest one down."""
    batch = q_limbs.shape[1]
    ties = np.zeros((batch, length), dtype=np.bool_)
    best = np.zeros(places, dtype=np.int64)
    score = np.zeros((places, 1), dtype=np.int64)
    for query in range(batch):
        winner = 0
        for j in range(seen[query]):
            score[:] = 0
            for unit in range(len(q_start)):
                for a in range(q_length[unit]):
                    factor = np.int64(q_limbs[q_start[unit] + a, query])
                    for c in range(k_length[unit]):
                        score[a + c, 0] += factor * k_limbs[k_start[unit] + c, begins[query] + j]
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
                winner = j
                best[:] = score[:, 0]
            ties[query, j] = order >= 0
        ties[query, :winner] = False
    return ties
