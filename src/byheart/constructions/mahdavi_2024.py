"""Mahdavi, Liao & Thrampoulidis 2024: one multi-head attention layer memorizes contexts with queries.

Statement (their Theorem 1): let an example be a context E_t ∈ R^{n×d} and a query e_t ∈ R^d, n < d, r = min(n, d_h). If
every context has rank n and every n queries are independent, H heads fit any N = H(r − 1) + 1 targets in R^{d_v}, with
Θ(H d (d_h + d_v)) parameters. If only every Q < n queries are independent (Kruskal rank), r = min(n, d_h, Q).

Letters: their T is our N. Head h gives example t the weights aʰ_t = softmax(E_t W_Kʰ W_Qʰᵀ e_t) ∈ R^n and the average
E_tᵀ aʰ_t ∈ R^d; the output is Σ_h (E_tᵀ aʰ_t)ᵀ W_Vʰ W_Oʰ. Two ways:

- ``saturated``, the way of the proof. Example 0 is left over; each head *holds* the next r − 1 examples. On all other
  examples the head saturates: one token gets all the weight (:func:`saturating_head` justifies the
  weights). Let B be example 0 and the examples held by the heads before head h. By induction their features under
  those heads have rank |B|. A newly held example's features are a combination Σ_b α_b of these. The new head adds to
  the rank its weights minus Σ_b α_b times the saturated weights: a point inside the simplex minus one on an edge. There
  are r − 1 of these, independent for almost every choice of the scores, so the rank grows by r − 1. The construction
  first tries r = min(n, d_h), because a head only needs that its own queries are independent and span no other query.
  If they do not, r falls to the upper bound of the Kruskal rank (:mod:`byheart.tasks.kruskal`) and further, at most to
  its certified lower bound, up to rounding. The lower bound alone would waste heads (at d = 64, n = 32, N = 301 it
  certifies 5 of 32).
- ``generic``: random query-key products. The features' minors are analytic functions of the weights; if one choice has
  full rank, almost all have. This goes beyond the theorem. With a shared context the features are a head's n weights,
  which sum to one, so the rank is at most H(n − 1) + 1, *and this is reached for d_h < n as well* (the softmax is not
  linear). With a context per example, or a shared one of rank less than n, the features are the averages, and the rank
  is at most H·d, which is also reached (with a context per example).

Then one linear system (:mod:`.gadgets.linear_system`) gives the values, for all d_v coordinates at once: as W_V ∈
R^{d×d_v} with W_O the identity, or, if d_v > d, the other way round, so that a head has at most (d + d_v)·min(d, d_v)
values. Labels are represented by points on a circle, (cos 2πy/C, sin 2πy/C), which a W_U with the same points reads:
d_v = 2.

Checked: the hypotheses (``saturated``), that equal questions have equal answers, and the rank, in floating point. The
certificate, not this module, establishes that the saved weights answer correctly, and
:mod:`byheart.certificates.features` proves the rank. Not checked: that *every* n queries are independent (NP-hard); the
subsets that the construction uses are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from byheart.bounds.mahdavi_2024 import capacity, feature_rank, heads_needed
from byheart.constructions.construction import QUERIES, Construction, Made, Theorem
from byheart.constructions.gadgets.hypotheses import check_consistent
from byheart.constructions.gadgets.linear_system import BeyondCapacity, Factored, check_system, factor, refine
from byheart.constructions.plan import Part, Plan
from byheart.errors import BadInput
from byheart.networks.balls import precision
from byheart.networks.softmax import Inputs, SoftmaxNetwork, attention
from byheart.networks.trained.enclose import enclose
from byheart.progress import Report
from byheart.tasks import QueryLabels, QueryTargets, QueryTask, Task
from byheart.tasks.arrays import Floats, Ids
from byheart.tasks.conditions import first_equal
from byheart.tasks.kruskal import kruskal
from byheart.tasks.ranks import context_ranks, numerical_rank
from byheart.tasks.theorems import Hypothesis, full_ranks, general_position, independent, one_answer

Head = tuple[Floats, Floats]
"""W_Q and W_K, both [d, d_h]."""


class Dependent(BadInput):
    """Error for dependent queries that a head needs to be independent."""


SATURATION = 40.0
"""Smallest difference of the scores of a saturated head's chosen token and of any other; e⁻⁴⁰ is below float64's ε."""
DRAWS = 32
"""Number of random directions to choose from."""


def scores_of(contexts: Floats, directions: Floats) -> Floats:
    """Return scores [N, n] of contexts along directions [N, d], one direction per example."""
    if contexts.ndim == 2:
        return directions @ contexts.T
    return np.asarray(np.einsum("tnd,td->tn", contexts, directions), np.float64)


def random_head(contexts: Floats, queries: Floats, d_h: int, sharpness: float, rng: np.random.Generator) -> Head:
    """Draw a random head whose scores have a standard deviation of about ``sharpness`` around each example's mean.

    The queries' common part is removed from W_Q, because it would turn all examples the same way and tell none apart.
    Heads differ in sharpness by a random factor between ½ and 2: in few dimensions they differ in little else.
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
    """Return a head that is free on the examples ``held`` (fewer than d_h) and saturated on all others.

    1. Let W_Q = [u, q_1, q_2, …] and W_K = [c·a, k_1, k_2, …]. The q_i are dual to the held queries: q_i·e_j = 1 if
       i = j, else 0. The vector u is orthogonal to all held queries.
    2. So a held example's scores are E k_i, chosen at will. Any other example's are c (u·e) E a + Σ_i (q_i·e) E k_i.
    3. For large c the first term decides, and one token gets all the weight: the one with the largest entry of E a if
       u·e > 0, the one with the smallest if u·e < 0.

    The head exists because the held queries are independent, and no other query lies in their span (Kruskal rank).
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
    """Return rows q_i [held, d] in the span of the held queries with q_i·e_j = 1 if i = j, else 0."""
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
    """Draw a direction a; return it, and the gaps of each example's largest and smallest entries of E a to the next."""
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


NAME = "mahdavi-2024"
RESIDUAL_BITS = 128
"""Precision with which residuals are computed."""
Way = Literal["saturated", "generic"]
_REMEDY = "take more heads or a larger head_dim"
FIRM = 1e-8
"""Smallest singular value of a context that is inverted, relative to its largest."""
SHARPNESS = (2.0, 4.0, 8.0)
"""Spreads of the scores to try for random heads; the best conditioned features are taken."""


@dataclass(frozen=True)
class MahdaviSettings:
    """Settings for the number and dimension of heads, and the choice of their attention."""

    heads: int | None = None
    """H: number of heads (default: the fewest that are sure to be enough)."""
    head_dim: int | None = None
    """d_h: dimension of a head (default: n, beyond which the theorem gains nothing, or d if that is smaller)."""
    way: Way = "saturated"
    """Choice of attention: saturated, one group of examples per head as in the proof, or generic, random heads."""


@dataclass(frozen=True)
class MahdaviSizes:
    """The sizes that follow from a task and the settings."""

    examples: int
    length: int
    dim: int
    heads: int
    head_dim: int
    rank: int
    """r: each head holds r − 1 examples (saturated)."""
    outputs: int
    """d_v: number of outputs of the attention layer."""
    labels: int | None
    """C, or None for real targets, which need no unembedding."""

    @property
    def promised(self) -> int:
        """Number of examples that the theorem promises, H(r − 1) + 1."""
        return capacity(self.heads, self.length, self.head_dim, self.rank)


def _different(task: Task) -> QueryTask:
    """Return the task without repeated questions; BadInput if a question has two answers."""
    if not isinstance(task, QueryTask):
        raise BadInput(f"{NAME} memorizes contexts with queries (query-labels, query-targets); the task is {task.kind}")
    check_consistent(NAME, task, positions=False)
    kept = np.unique(first_equal(task, positions=False))
    if len(kept) == len(task.queries):
        return task
    contexts = task.contexts if task.shared else task.contexts[kept]
    if isinstance(task, QueryTargets):
        return QueryTargets(contexts=contexts, queries=task.queries[kept], targets=task.targets[kept])
    assert isinstance(task, QueryLabels)
    labels = task.labels[kept]
    return QueryLabels(contexts=contexts, queries=task.queries[kept], labels=labels, label_count=task.label_count)


def _sizes(task: QueryTask, settings: MahdaviSettings, rank: int | None = None) -> MahdaviSizes:
    """Return the network's sizes, with r = ``rank`` or min(n, d_h); BadInput if the settings do not fit the task."""
    N, n, d = task.size.examples, task.size.length, task.size.dim
    assert d is not None
    d_h = settings.head_dim if settings.head_dim is not None else min(n, d)
    if not 1 <= d_h <= d:
        raise BadInput(f"head_dim is {d_h}; expected 1 ≤ d_h ≤ d = {d}: more than d gains nothing")
    r = min(n, d_h) if rank is None else rank
    H = _fewest_heads(N, n, d, r, settings.way, task.shared) if settings.heads is None else settings.heads
    if H < 1:
        raise BadInput(f"heads is {H}; expected at least 1")
    targets = isinstance(task, QueryTargets)
    outputs, labels = (task.label_count, None) if targets else (2, task.label_count)
    return MahdaviSizes(N, n, d, H, d_h, rank=r, outputs=outputs, labels=labels)


def _fewest_heads(N: int, n: int, d: int, r: int, way: str, shared: bool) -> int:
    if way == "saturated":
        return heads_needed(N, n, r)
    if not shared:
        return max(1, -(-N // d)) if n > 1 else 1
    return heads_needed(N, n, n)


def plan(sizes: MahdaviSizes) -> Plan:
    """Plan every tensor: H(2 d d_h + (d + k) min(d, k)) entries for k outputs, and k·C to read labels."""
    H, d, k = sizes.heads, sizes.dim, sizes.outputs
    read, v = (H, d, sizes.head_dim), min(d, k)
    attention: Part = ("attention", (("W_Q", read), ("W_K", read), ("W_V", (H, d, v)), ("W_O", (H, v, k))))
    if sizes.labels is None:
        return Plan((attention,), depth=1, width=max(d, k))
    unembedding: Part = ("unembedding", (("W_U", (k, sizes.labels)),))
    return Plan((attention, unembedding), depth=2, width=max(d, k, sizes.labels))


def build(task: Task, settings: MahdaviSettings, rng: np.random.Generator, report: Report | None = None) -> Made:
    """Build a network that has memorized ``task``, and report rank, condition number and residual."""
    task = _different(task)
    initial = _sizes(task, settings)
    _check_task(task, initial, settings)
    check_system(NAME, initial.examples)
    sizes, network, factored = _of_found_rank(task, initial, settings, rng)
    if factored.rank < sizes.examples:
        raise BeyondCapacity(_beyond(task, sizes, settings, factored.rank), network, factored.rank)
    targets, W_U = _targets(task)
    assert task.vectors is not None
    inputs = (task.vectors, task.queries)
    values, missing = refine(
        factored, targets, lambda values: residual(_with_values(network, values, task), inputs, targets)
    )
    if missing > _tolerance(task) * max(1.0, float(np.abs(targets).max())):
        reason = f"the features' condition number is {factored.condition:.2g}"
        raise BadInput(f"{NAME}: the values miss by {missing:.2g}: {reason}, too much for float64; {_REMEDY}")
    finished = _with_values(network, values, task)
    chosen = {
        **{"way": settings.way, "heads": sizes.heads, "head_dim": sizes.head_dim, "rank": factored.rank},
        **({"r": sizes.rank} if settings.way == "saturated" else {}),
        **{"condition": float(f"{factored.condition:.3g}"), "residual": float(f"{missing:.2g}")},
    }
    return Made(finished if W_U is None else finished.with_tensor("W_U", W_U), plan(sizes), chosen)


def hypotheses(task: Task, _: MahdaviSettings) -> list[Hypothesis]:
    """Check the hypotheses of Theorem 1, and general position, the hypothesis of earlier proofs."""
    if not isinstance(task, QueryTask):
        raise BadInput(f"{NAME} is about contexts with queries; the task is {task.kind}")
    n, d = task.size.length, task.queries.shape[1]
    return [
        one_answer(task, positions=False, what="context with its query"),
        Hypothesis.decided("n < d", n < d, f"n = {n}, d = {d}"),
        full_ranks(task),
        independent("every n queries are independent", task.queries, n),
        general_position(task),
    ]


def _check_task(task: QueryTask, sizes: MahdaviSizes, settings: MahdaviSettings) -> None:
    if settings.way == "generic":
        return
    if sizes.length >= sizes.dim:
        raise BadInput(f"{NAME} (saturated) needs n < d; got n = {sizes.length}, d = {sizes.dim}; try --way generic")
    if sizes.examples > sizes.promised:
        need = heads_needed(sizes.examples, sizes.length, sizes.head_dim)
        raise BadInput(
            f"{NAME} (saturated) promises H(min(n, d_h) − 1) + 1 = {sizes.promised} examples; "
            f"the task has {sizes.examples}: take --heads {need}, or --way generic, which goes as far as the rank does"
        )
    ranks = np.atleast_1d(context_ranks(task.contexts).ranks)
    if (ranks < sizes.length).any():
        poor = int((ranks < sizes.length).argmax())
        which = "the shared context" if task.shared else f"the context of example {poor}"
        needs = f"{NAME} needs rank n = {sizes.length}"
        raise BadInput(f"{which} has rank {ranks[poor]}; {needs}: its tokens are dependent")
    _, first, counts = np.unique(task.queries, axis=0, return_index=True, return_counts=True)
    if (counts > 1).any() and sizes.length > 1:
        repeated = int(first[(counts > 1).argmax()])
        i, j = np.flatnonzero((task.queries == task.queries[repeated]).all(axis=1))[:2]
        raise BadInput(f"examples {i} and {j} have the same query; {NAME} needs every n queries independent")


def _of_found_rank(
    task: QueryTask, sizes: MahdaviSizes, settings: MahdaviSettings, rng: np.random.Generator
) -> tuple[MahdaviSizes, SoftmaxNetwork, Factored]:
    """Return sizes and attention for the largest r at which the queries that each head needs are independent."""
    first_error: Dependent | None = None
    for rank in _ranks(task.queries, sizes.rank):
        candidate = sizes if first_error is None else _sizes(task, settings, rank)
        if first_error is not None and candidate.examples > candidate.promised:
            need = heads_needed(candidate.examples, candidate.length, rank)
            holds = f"{NAME} holds {candidate.promised} with {candidate.heads} heads"
            raise BadInput(
                f"{first_error}. With r = min(n, d_h, Kruskal rank) = {rank} or less {holds}: "
                f"take --heads {need}, or --way generic"
            ) from first_error
        plan(candidate).check_memory(NAME)
        try:
            return candidate, *_best_attention(task, candidate, settings, rng)
        except Dependent as error:
            first_error = first_error or error
    assert first_error is not None
    raise first_error


def _ranks(queries: Floats, most: int) -> Iterator[int]:
    """Yield the r to try: ``most`` first, then from the upper bound of the queries' Kruskal rank downwards."""
    yield most
    yield from range(min(most - 1, kruskal(queries, wanted=most).upper), 1, -1)


def _best_attention(
    task: QueryTask, sizes: MahdaviSizes, settings: MahdaviSettings, rng: np.random.Generator
) -> tuple[SoftmaxNetwork, Factored]:
    """Draw a few attention layers, and return the one with the best conditioned features. Its values are zero."""
    best: tuple[SoftmaxNetwork, Factored] | None = None
    for sharpness in SHARPNESS:
        network = _attention(task, sizes, settings, sharpness, rng)
        factored = factor(features(network, task))
        if best is None or (-factored.rank, factored.condition) < (-best[1].rank, best[1].condition):
            best = network, factored
    assert best is not None
    return best


def _attention(
    task: QueryTask, sizes: MahdaviSizes, settings: MahdaviSettings, sharpness: float, rng: np.random.Generator
) -> SoftmaxNetwork:
    contexts, queries, d_h = task.contexts, task.queries, sizes.head_dim
    if settings.way == "generic":
        heads = [random_head(contexts, queries, d_h, sharpness, rng) for _ in range(sizes.heads)]
    else:
        free = sizes.rank - 1
        groups = [np.arange(1 + h * free, min(1 + (h + 1) * free, sizes.examples)) for h in range(sizes.heads)]
        heads = [saturating_head(contexts, queries, group, d_h, rng) for group in groups]
    H, d, k = sizes.heads, sizes.dim, sizes.outputs
    identity, values = np.tile(np.eye(min(d, k)), (H, 1, 1)), np.zeros((H, d, k))
    W_V, W_O = (values, identity) if k <= d else (identity, values)
    return SoftmaxNetwork(np.stack([W_Q for W_Q, _ in heads]), np.stack([W_K for _, W_K in heads]), W_V, W_O)


def features(network: SoftmaxNetwork, task: QueryTask) -> Floats:
    """Return Φ [N, F]: the heads' averages (F = H·d), or for a shared context of rank n their weights (F = H·n)."""
    assert task.vectors is not None
    weights = attention(network, task.vectors, task.queries)
    return (weights if _by_weights(task) else weights @ task.vectors).reshape(len(weights), -1)


def _tolerance(task: QueryTask) -> float:
    """Return the allowed error relative to the largest target: 10⁻⁶, or a tenth of the gap between two labels."""
    return 1e-6 if isinstance(task, QueryTargets) else 0.1 * (1 - np.cos(2 * np.pi / max(2, task.label_count)))


def _by_weights(task: QueryTask) -> bool:
    """Return True if a head can give every token any value: E W_V is arbitrary if all share an E of rank n."""
    return task.shared and numerical_rank(task.contexts, FIRM).rank == task.size.length


def residual(network: SoftmaxNetwork, inputs: Inputs, targets: Floats) -> Floats:
    """Return ``targets`` − outputs [N, k], subtracted before they are rounded to float64."""
    result = np.empty(targets.shape)
    for example, row in enclose(network, inputs, bits=RESIDUAL_BITS):
        with precision(RESIDUAL_BITS):
            result[example] = [float(target - x) for target, x in zip(targets[example].tolist(), row, strict=True)]
    return result


def _with_values(network: SoftmaxNetwork, values: Floats, task: QueryTask) -> SoftmaxNetwork:
    """Return the network with ``values`` [F, k]: W_VʰW_Oʰ is a block of them, or E⁺ times it if Φ holds weights."""
    heads, dim, _ = network.W_V.shape
    k = network.outputs
    name, blocks = "W_V" if k <= dim else "W_O", values.reshape(heads, -1, k)
    # By weights E has full row rank n, so E W_V = block is solvable.
    return network.with_tensor(name, np.linalg.pinv(task.contexts) @ blocks if _by_weights(task) else blocks)


def _targets(task: QueryTask) -> tuple[Floats, Floats | None]:
    """Return the targets of the outputs [N, k], and the W_U that reads labels from them (None for real targets)."""
    if isinstance(task, QueryTargets):
        return task.coordinates, None
    assert isinstance(task, QueryLabels)
    angles = 2 * np.pi * np.arange(task.label_count) / task.label_count
    circle = np.stack([np.cos(angles), np.sin(angles)])
    return circle.T[task.labels], circle


def _beyond(task: QueryTask, sizes: MahdaviSizes, settings: MahdaviSettings, rank: int) -> str:
    limit, reason = _limit(task, sizes)
    has = f"{NAME} ({settings.way}): the features of the {sizes.examples} examples have rank {rank}"
    if sizes.examples <= limit:
        return f"{has} in float64; expected {sizes.examples}, and {limit} are possible: {_REMEDY}"
    most = f"With {sizes.heads} heads no attention gives more than {reason}"
    return f"{has}; expected {sizes.examples}. {most}. Take more heads"


def _limit(task: QueryTask, sizes: MahdaviSizes) -> tuple[int, str]:
    """Return the largest possible rank of features under any attention, and its explanation in words."""
    H, n, d = sizes.heads, sizes.length, sizes.dim
    if n == 1:
        return d, f"d = {d}: with one token in a context a head only repeats it"
    if not task.shared:
        return H * d, f"H·d = {H * d}: a head's average has d coordinates"
    if _by_weights(task):
        return feature_rank(H, n), f"H(n − 1) + 1 = {feature_rank(H, n)}: a head's n weights sum to one"
    rank = numerical_rank(task.contexts, FIRM).rank
    limit = min(H * rank, feature_rank(H, len(np.unique(task.contexts, axis=0))))
    return limit, f"{limit}: the context's tokens are dependent, of rank {rank}"


THEOREMS = (
    Theorem(
        "Theorem 1",
        says="H heads fit any H(r − 1) + 1 targets in R^{d_v}, r = min(n, d_h): Θ(H d (d_h + d_v)) parameters",
        assumes="n < d, every context of rank n, every n queries independent (every Q < n: r = min(n, d_h, Q))",
        limits="one attention layer of H heads, no feed-forward layer",
        task=QUERIES,
        stated={"way": "saturated"},
        ours={"way": "generic"},
    ),
    Theorem(
        "tightness",
        says="with one context for all examples no attention gives its features a rank above H(n − 1) + 1",
        assumes="all examples share their context",
        limits="one attention layer of H heads",
        shown_by="byheart build mahdavi-2024 --way generic --heads 4 on H(n − 1) + 2 examples, which is refused",
    ),
)
CONSTRUCTION = Construction(
    name=NAME,
    paper="Mahdavi, Liao & Thrampoulidis 2024",
    summary="one attention layer on contexts with queries: H(min(n, d_h) − 1) + 1 examples",
    kind="softmax",
    settings=MahdaviSettings,
    build=build,
    orders=dict.fromkeys(("query-labels", "query-targets"), "O(d²N/n)"),
    hypotheses=hypotheses,
    theorems=THEOREMS,
    colour="#4f7f9f",
    flags="--heads 20 --way generic",
)
