"""Query-key products for attention over contexts with queries, head by head: at random, or saturating.

Letters as in :mod:`byheart.constructions.mahdavi_2024`. Contexts are [n, d], shared, or [N, n, d]; queries [N, d]. A
head is a pair W_Q, W_K ∈ R^{d×d_h}; the scores of example t are E_t W_K W_Qᵀ e_t.
"""

import numpy as np

from byheart.errors import BadInput
from byheart.tasks.arrays import Floats, Ids

Head = tuple[Floats, Floats]
"""W_Q and W_K, both [d, d_h]."""


class Dependent(BadInput):
    """Queries that a head needs to be independent are not."""


SATURATION = 40.0
"""By how much the score of the token that a saturated head chooses exceeds all others: e⁻⁴⁰ is below float64's ε."""
DRAWS = 32


def scores_of(contexts: Floats, directions: Floats) -> Floats:
    """Scores [N, n] of contexts against directions [N, d], one per example."""
    if contexts.ndim == 2:
        return directions @ contexts.T
    return np.asarray(np.einsum("tnd,td->tn", contexts, directions), np.float64)


def random_head(contexts: Floats, queries: Floats, d_h: int, sharpness: float, rng: np.random.Generator) -> Head:
    """A random head whose scores have a standard deviation of about ``sharpness`` around each example's mean.

    The queries' common part is taken out of W_Q: it would turn all examples the same way, and tell none apart. Heads
    differ in sharpness, up to a factor of two either way: in few dimensions they differ in little else.
    """
    dim = queries.shape[1]
    W_Q, W_K = rng.standard_normal((2, dim, d_h))
    common = queries.mean(axis=0)
    without = W_Q - np.outer(common, common @ W_Q) / max(common @ common, np.finfo(np.float64).tiny)
    if dim > 1 and len(queries) > 1 and np.abs(queries @ without).max() > 1e-6 * np.abs(queries @ W_Q).max():
        W_Q = without
    scores = scores_of(contexts, queries @ W_Q @ W_K.T)
    spread = float(np.sqrt(((scores - scores.mean(axis=1, keepdims=True)) ** 2).mean()))
    sharpness *= 2.0 ** rng.uniform(-1, 1)
    return W_Q * (sharpness / spread if spread > 0 else 1.0), W_K


def saturating_head(contexts: Floats, queries: Floats, held: Ids, d_h: int, rng: np.random.Generator) -> Head:
    """A head that is free on the examples ``held`` (fewer than d_h) and saturated on all others.

    W_Q = [u, q_1, q_2, …] and W_K = [c·a, k_1, k_2, …]. The q_i are dual to the held queries, q_i·e_j = 1 if i = j and
    else 0, and u is orthogonal to all of them. So a held example's scores are E k_i, chosen at will, and another's are
    c (u·e) E a + Σ_i (q_i·e) E k_i: for c large the first term decides, and one token gets all the weight, the first
    in the order of E a if u·e > 0, the last if u·e < 0. It exists because held queries are independent, and no other
    query lies in their span (Kruskal rank).
    """
    others = np.setdiff1d(np.arange(len(queries)), held)
    duals = _duals(queries, held)
    u = _orthogonal(queries, held, others, rng)
    keys = np.stack([_focused(contexts, i, order, rng) for order, i in enumerate(held)]) if len(held) else duals
    direction, gaps = _ordering(contexts, rng)
    W_Q, W_K = np.zeros((2, queries.shape[1], d_h))
    W_Q[:, 1 : 1 + len(held)], W_K[:, 1 : 1 + len(held)] = duals.T, keys.T
    W_Q[:, 0] = u
    if len(others):
        steer = (queries @ u)[others]
        noise = scores_of(contexts, (queries @ W_Q[:, 1:]) @ W_K[:, 1:].T)[others]
        first, last = (np.broadcast_to(gap, len(queries))[others] for gap in gaps)
        needed = (SATURATION + np.ptp(noise, axis=1)) / (np.where(steer > 0, first, last) * np.abs(steer))
        W_K[:, 0] = direction * float(needed.max())
    return W_Q, W_K


def _duals(queries: Floats, held: Ids) -> Floats:
    """[held, d]: rows q_i in the span of the held queries with q_i·e_j = 1 if i = j and else 0."""
    chosen = queries[held]
    if not len(held):
        return np.zeros((0, queries.shape[1]))
    if np.linalg.matrix_rank(chosen) < len(held):
        names = ", ".join(map(str, held[:8])) + (", …" if len(held) > 8 else "")
        raise Dependent(f"the queries of examples {names} are dependent; expected every n queries independent")
    return np.asarray(np.linalg.pinv(chosen).T, np.float64)


def _orthogonal(queries: Floats, held: Ids, others: Ids, rng: np.random.Generator) -> Floats:
    """Return u orthogonal to the held queries, and as far as possible from orthogonal to all others."""
    dim = queries.shape[1]
    basis = np.linalg.qr(queries[held].T)[0] if len(held) else np.zeros((dim, 0))
    drawn = rng.standard_normal((DRAWS, dim))
    drawn -= (drawn @ basis) @ basis.T
    drawn -= (drawn @ basis) @ basis.T  # twice is enough: orthogonal to the last bit or so
    if not len(others):
        return np.array(drawn[0])
    norms = np.linalg.norm(queries[others], axis=1)
    if not norms.all():
        raise BadInput(f"the query of example {others[norms.argmin()]} is 0; expected every n queries independent")
    steer = np.abs(drawn @ queries[others].T) / norms
    smallest = steer.min(axis=1)
    best = int(smallest.argmax())
    if smallest[best] < 1e-10 * np.linalg.norm(drawn[best]):
        stray = int(others[steer[best].argmin()])
        raise Dependent(f"the query of example {stray} depends on {len(held)} others; expected every n independent")
    return np.asarray(drawn[best], np.float64)


def _focused(contexts: Floats, example: int, order: int, rng: np.random.Generator) -> Floats:
    """Return k with E k random, and 1 + log n more at one token, each held example another."""
    context = contexts if contexts.ndim == 2 else contexts[example]
    wanted = rng.standard_normal(len(context))
    wanted[(order + 1) % len(context)] += 1 + np.log(len(context))
    return np.asarray(np.linalg.lstsq(context, wanted, rcond=None)[0], np.float64)


def _ordering(contexts: Floats, rng: np.random.Generator) -> tuple[Floats, tuple[Floats, Floats]]:
    """A direction a, and by how much the first, and the last, of each example's tokens in its order stands out."""
    if contexts.ndim == 2:
        wanted = np.zeros(len(contexts))
        wanted[0], wanted[-1] = 1.0, -1.0
        drawn = np.linalg.lstsq(contexts, wanted, rcond=None)[0][None]
    else:
        drawn = rng.standard_normal((DRAWS, contexts.shape[2]))
    best, widest = None, -1.0
    for direction in drawn:
        ordered = np.sort(np.atleast_2d(contexts @ direction), axis=1)
        if ordered.shape[1] == 1:
            return direction, (np.ones(1), np.ones(1))
        gaps = ordered[:, -1] - ordered[:, -2], ordered[:, 1] - ordered[:, 0]
        narrowest = min(gaps[0].min(), gaps[1].min()) / np.linalg.norm(direction)
        if narrowest > widest:
            best, widest = (direction, gaps), narrowest
    assert best is not None
    if widest <= 0:
        raise BadInput("a context holds two equal tokens; expected every context of rank n")
    return best
