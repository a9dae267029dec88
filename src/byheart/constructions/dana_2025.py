"""Dana, Pydi & Chevaleyre 2025: attention alone memorizes H·d_h + d associations, for contexts of any length.

The model: T(t_1…t_n) = W_Uᵀ(x_n + Σ_h W_Oʰᵀ W_Vʰᵀ Aʰ), x_s = W_E[t_s] + W_pos[s], Aʰ the average that head h takes. Our
letters: their N is our ω, their S our n, their T₀ our N.

**Associations** (their Corollary 1). Draw embeddings x′, query-key products and values W_V′ at random, d_h ≤ d. The
features F_t = [x′_n; W_V′¹A¹; …; W_V′ᴴAᴴ] ∈ R^{d + H·d_h} of N ≤ d + H·d_h contexts are independent for almost every
draw, so Σ F_t W = target_t has a solution W. The skip connection, which adds x_n as it is, costs nothing: let M be the
block of W that x′_n is multiplied with. With x = x′M, that is

    W_E = W_E′M,  W_pos = W_pos′M,  W_Q = M⁻¹W_Q′,  W_K = M⁻¹W_K′,  W_V = M⁻¹W_V′,  W_Oʰ = the block of head h,

all scores, weights and values are what they were, and x_n itself is the first part of the answer. Exactly, if M is
regular; for that the targets have to span R^d.

*Targets.* The rows of W_U are unit vectors, for d = 2 points on a circle; a context that asks for token y gets a random
multiple, between 1 and 2, of row y, and a little noise: y's logit stays the largest (‖noise‖ < ‖Δ‖/8, Δ the smallest
difference of rows, moves a gap of at least ‖Δ‖²/2 by at most ‖Δ‖²/8), and the targets span R^d whatever is asked for.

**Distributions** (their Theorem 1). No network of dimension d beats the best *sequence encoder*, logits of rank d
(:mod:`.gadgets.encoder`). Its encodings are the targets, on the likeliest contexts, as many as it takes
for a probability of 1 − ε. Where heads are left, the others are brought as near to theirs as least squares can; where
not, what the network says of them is whatever comes out. The excess over the encoder is theirs, bounded in the paper by
C·ε·‖WE‖₂ + γ; every term is measured (:func:`terms`).

Three hypotheses beyond the paper's, which its count needs: contexts end in at least d different tokens (else d in the
capacity is their number), n ≥ 2, and d_h ≤ ω + n − 2 (a head's average mixes ω token and n position vectors, with
weights that sum to one in both: it has no more free coordinates). Checked: the rank, in floating point, and with it all
three. Whether the answers are right the certificate says, from the saved weights.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from byheart.bounds.dana_2025 import almost_lookup, capacity
from byheart.constructions.construction import Construction, Made
from byheart.constructions.gadgets.encoder import Encoder, best_encoder, divergence
from byheart.constructions.gadgets.hypotheses import BeyondCapacity, over_ids
from byheart.constructions.gadgets.linear import Factored, check_system, factor
from byheart.constructions.plan import Part, Plan
from byheart.errors import BadInput
from byheart.networks.softmax import SoftmaxNetwork, evaluate
from byheart.networks.softmax.network import attention, embedded
from byheart.progress import Report
from byheart.size import Size
from byheart.tasks import NextToken, NextTokenDistribution, Task
from byheart.tasks.checks import Floats, Ids
from byheart.tasks.distinct import distinct
from byheart.tasks.theorems import Hypothesis, one_answer

NAME = "dana-2025"
SHARPNESS = (4.0, 8.0, 16.0)
"""Spreads of the scores that random heads are tried with."""
ROUNDS, FEW = 2, 300
"""How often all of them are tried if there are few contexts, and how many are few."""
SINGULAR = 1e9
"""A change of basis with a condition number beyond this is not used."""
TAME = 1e-4
"""Omitted contexts are not moved along directions that take larger weights than 1/TAME."""


@dataclass(frozen=True)
class Settings:
    """The sizes of the network."""

    model_dim: int | None = None
    """d: dimension of the stream. None: 2 for labels, the fewest parameters; ω − 1 for distributions, all in reach."""
    head_dim: int | None = None
    """d_h ≤ d; None: d."""
    heads: int | None = None
    """H; None: the fewest with which all contexts (or 1 − epsilon of them) are held."""
    epsilon: float = 0.0
    """ε: distributions only; the probability of the contexts that may be omitted."""
    restarts: int = 8
    """Distributions only: random starts of the search for the best encoder, which has local minima."""


@dataclass(frozen=True)
class Demand:
    """What the size of the network depends on."""

    size: Size
    held: int
    """Contexts whose answers are exact: all different ones, or the likeliest."""
    last_tokens: int
    """Different tokens that these end in."""
    distributions: bool = False


def demand(task: Task, kept: Ids) -> Demand:
    """Count what ``task`` demands if the answers of the examples ``kept`` are to be exact."""
    assert task.tokens is not None
    last_tokens = len(np.unique(task.tokens[kept, -1]))
    return Demand(task.size, len(kept), last_tokens, isinstance(task, NextTokenDistribution))


def worst_demand(size: Size) -> Demand:
    """The hardest labelled task of a size: every context counts, and all end in one token."""
    if size.dim is not None:
        raise BadInput(f"{NAME} reads token ids; the tokens are vectors of dimension {size.dim}")
    return Demand(size, size.examples, 1)


def plan(demand: Demand, settings: Settings) -> Plan:
    """Every tensor's shape: d(n + ω + C + 4 d_h H) entries."""
    size, (d, d_h, H) = demand.size, _dimensions(demand, settings)
    read, write = (H, d, d_h), (H, d_h, d)
    parts: tuple[Part, ...] = (
        ("embedding", (("W_E", (size.vocab, d)),)),
        ("positions", (("W_pos", (size.length, d)),)),
        ("attention", (("W_Q", read), ("W_K", read), ("W_V", read), ("W_O", write))),
        ("unembedding", (("W_U", (d, size.labels)),)),
    )
    return Plan(parts, depth=3, width=max(d, size.labels))


def _dimensions(demand: Demand, settings: Settings) -> tuple[int, int, int]:
    """d, d_h and H."""
    d = settings.model_dim
    if d is None:
        d = max(1, demand.size.labels - 1) if demand.distributions else 2
    if d < 1 or (d < 2 and demand.size.labels > 2 and not demand.distributions):
        raise BadInput(f"model_dim is {d}; expected at least 2: on a line argmax tells only two tokens apart")
    d_h = d if settings.head_dim is None else settings.head_dim
    if not 1 <= d_h <= d:
        raise BadInput(f"head_dim is {d_h}; expected 1 ≤ d_h ≤ d = {d}: more than d gains nothing")
    if not 0 <= settings.epsilon < 1:
        raise BadInput(f"epsilon is {settings.epsilon}; expected 0 ≤ ε < 1")
    H = settings.heads
    if H is None:
        # A head's average is a mixture of token and one of position vectors: ω + n − 2 free coordinates, whatever d is.
        free = max(1, min(d_h, demand.size.vocab + demand.size.length - 2))
        H = max(1, -(-(demand.held - min(d, demand.last_tokens)) // free))
    if H < 1:
        raise BadInput(f"heads is {H}; expected at least 1: without attention only the last token is seen")
    return d, d_h, H


def build(task: Task, settings: Settings, rng: np.random.Generator, report: Report | None = None) -> Made:
    """The network; for distributions every term of the bound is among what was chosen."""
    kept = _held(task, settings)
    needs = demand(task, kept)
    dimensions, planned = _dimensions(needs, settings), plan(needs, settings)
    check_system(NAME, len(kept))
    planned.check_memory(NAME)
    asked = _asked(task, kept, dimensions[0], settings.restarts, rng)
    network, factored, basis = _fitted(needs, dimensions, asked, rng)
    chosen: dict[str, object] = {"heads": dimensions[2], "head_dim": dimensions[1], "held": len(kept)}
    chosen |= {"rank": factored.rank, "condition": _short(factored.condition), "basis_condition": _short(basis)}
    if asked.encoder is not None:
        assert isinstance(task, NextTokenDistribution)
        chosen |= terms(network, task, asked.encoder, kept).as_json()
    return Made(network, planned, chosen)


def hypotheses(task: Task, _: Settings) -> list[Hypothesis]:
    """What the corollary, and its count, ask of a task."""
    if not isinstance(task, NextToken | NextTokenDistribution) or task.tokens is None:
        raise BadInput(f"{NAME} is about next-token tasks over token ids; the task is {task.kind}")
    n, last = task.size.length, len(np.unique(task.tokens[:, -1]))
    enough = f"in {last}; all of H·d_h + d is had up to d = {last}"
    return [
        one_answer(task, positions=True, what="context"),
        Hypothesis.told("at least two tokens in a context", n > 1, f"n = {n}"),
        Hypothesis.told("contexts end in at least d different tokens", last > 1, enough),
    ]


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is asked of the stream: W_U [d, C], contexts and their targets, and omitted contexts and theirs."""

    W_U: Floats
    tokens: Ids
    targets: Floats
    other_tokens: Ids
    other_targets: Floats
    encoder: Encoder | None = None


def _asked(task: Task, kept: Ids, d: int, restarts: int, rng: np.random.Generator) -> _Asked:
    assert task.tokens is not None
    tokens, others = task.tokens[kept], np.setdiff1d(distinct(task.tokens).first, kept)
    if isinstance(task, NextTokenDistribution):
        encoder = best_encoder(task.probabilities, task.likelihoods, d, rng=rng, restarts=restarts)
        encodings = encoder.encodings
        return _Asked(encoder.W_U, tokens, encodings[kept], task.tokens[others], encodings[others], encoder)
    assert isinstance(task, NextToken)
    W_U, targets = _labels_as_targets(task.labels[kept], task.label_count, d, rng)
    return _Asked(W_U, tokens, targets, task.tokens[others], np.zeros((0, d)))


def _fitted(
    needs: Demand, dimensions: tuple[int, int, int], asked: _Asked, rng: np.random.Generator
) -> tuple[SoftmaxNetwork, Factored, float]:
    """The network, its features' factors, and the condition of its change of basis: the best of several draws.

    Rounding is magnified by the features' condition number, and by that of the basis in keys and queries both.
    """
    fitted: list[tuple[SoftmaxNetwork, Factored, float]] = []
    poor: tuple[SoftmaxNetwork, Factored] | None = None
    for sharpness in SHARPNESS * (ROUNDS if needs.held <= FEW else 1):
        drawn = _draw(asked.tokens, needs.size, dimensions, asked.W_U, sharpness, rng)
        factored = factor(features(drawn, asked.tokens))
        if factored.rank < needs.held:
            poor = (drawn, factored) if poor is None or factored.rank > poor[1].rank else poor
            continue
        network, basis = _rebased(drawn, factored, asked, rng)
        if network is not None:
            fitted.append((network, factored, basis))
    if fitted:
        return min(fitted, key=lambda one: one[1].condition * one[2] ** 2)
    if poor is not None:
        raise BeyondCapacity(_beyond(needs, dimensions, poor[1].rank), poor[0], poor[1].rank)
    raise BadInput(f"{NAME}: no draw has a regular change of basis; take another --model-dim or --seed")


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _held(task: Task, settings: Settings) -> Ids:
    """The examples whose answers will be exact: one of each different context, the likeliest ones up to 1 − ε."""
    checked, tokens = over_ids(NAME, task)
    different = distinct(tokens)
    if isinstance(checked, NextToken):
        if settings.epsilon:
            raise BadInput(f"epsilon is {settings.epsilon}; expected 0: only distributions may omit contexts")
        return different.first
    likelihoods = np.bincount(different.ids, weights=checked.likelihoods)
    order = np.argsort(-likelihoods, kind="stable")
    enough = int(np.searchsorted(np.cumsum(likelihoods[order]), 1 - settings.epsilon - 1e-12)) + 1
    return np.sort(different.first[order[: min(enough, len(order))]])


def _labels_as_targets(labels: Ids, label_count: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """W_U [d, C] and the targets [N, d] of these labels."""
    if d == 2:
        angles = 2 * np.pi * np.arange(label_count) / label_count
        rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    elif d == 1:
        rows = np.array([[1.0], [-1.0]])[:label_count]
    else:
        rows = rng.standard_normal((label_count, d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    noise = rng.standard_normal((len(labels), d))
    noise *= _smallest_difference(rows) / 8 / np.linalg.norm(noise, axis=1, keepdims=True)
    targets: Floats = rows[labels] * rng.uniform(1, 2, (len(labels), 1)) + noise
    return rows.T.copy(), targets


def _smallest_difference(rows: Floats) -> float:
    """The smallest distance of two rows; 1 if there is one row."""
    products = rows @ rows.T
    np.fill_diagonal(products, -1.0)
    return float(np.sqrt(max(2 - 2 * products.max(), 1e-12))) if len(rows) > 1 else 1.0


def _draw(
    tokens: Ids, size: Size, dimensions: tuple[int, int, int], W_U: Floats, sharpness: float, rng: np.random.Generator
) -> SoftmaxNetwork:
    """The primed network: everything at random, W_O zero; scores spread by ``sharpness`` in each head."""
    d, d_h, H = dimensions
    network = SoftmaxNetwork(
        W_E=rng.standard_normal((size.vocab, d)),
        W_pos=rng.standard_normal((size.length, d)),
        W_Q=rng.standard_normal((H, d, d_h)),
        W_K=rng.standard_normal((H, d, d_h)),
        W_V=rng.standard_normal((H, d, d_h)) / np.sqrt(d),
        W_O=np.zeros((H, d_h, d)),
        W_U=W_U,
        skip=True,
    )
    vectors, asked = embedded(network, (tokens, None))
    scores = np.einsum("hdk,hek,te->thd", network.W_K, network.W_Q, asked, optimize=True) @ vectors.transpose(0, 2, 1)
    spread = scores.std(axis=2).mean(axis=0)
    # Heads differ in sharpness, up to a factor of two either way: in few dimensions they differ in little else.
    wanted = sharpness * 2.0 ** rng.uniform(-1, 1, H)
    scale = np.where(spread > 0, wanted / np.where(spread > 0, spread, 1), 1)
    return network.with_tensor("W_Q", network.W_Q * scale[:, None, None])


def features(network: SoftmaxNetwork, tokens: Ids) -> Floats:
    """F [N, d + H·d_h]: the last token's vector beside the heads' values."""
    vectors, asked = embedded(network, (tokens, None))
    averages = attention(network, vectors, asked) @ vectors
    values = np.einsum("thd,hdk->thk", averages, network.W_V)
    return np.hstack([asked, values.reshape(len(tokens), -1)])


def _rebased(
    drawn: SoftmaxNetwork, factored: Factored, asked: _Asked, rng: np.random.Generator
) -> tuple[SoftmaxNetwork | None, float]:
    """The network with W solved for and the skip connection's block M made a change of basis, None if M is singular."""
    H, d, d_h = drawn.W_V.shape
    W = factored.solve(_spanning(asked.targets, drawn, rng))
    if len(asked.other_tokens) and factored.rank < len(W):
        W = W + _towards(features(drawn, asked.other_tokens), asked.other_targets, W, factored)
    if np.linalg.cond(W[:d]) > SINGULAR:
        W = W + factored.invisible(np.abs(W).max() * rng.standard_normal(W.shape))
    M, condition = W[:d], float(np.linalg.cond(W[:d]))
    if condition > SINGULAR:
        return None, condition
    assert drawn.W_E is not None
    assert drawn.W_pos is not None
    W_Q, W_K, W_V = (np.asarray(np.linalg.solve(M, W), np.float64) for W in (drawn.W_Q, drawn.W_K, drawn.W_V))
    W_O, W_E, W_pos = W[d:].reshape(H, d_h, d), drawn.W_E @ M, drawn.W_pos @ M
    return replace(drawn, W_E=W_E, W_pos=W_pos, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O), condition


def _towards(others: Floats, wanted: Floats, W: Floats, factored: Factored) -> Floats:
    """What to add to W so that no held context changes, and features ``others`` come nearest to ``wanted``."""
    free = factored.invisible(others.T).T
    left, singular, right = np.linalg.svd(free, full_matrices=False)
    firm = singular > TAME * np.linalg.norm(others, 2)
    return np.asarray(right[firm].T @ ((left[:, firm].T @ (wanted - others @ W)) / singular[firm, None]), np.float64)


def _spanning(targets: Floats, drawn: SoftmaxNetwork, rng: np.random.Generator) -> Floats:
    """The targets, and, where they do not span R^d, something that W_U does not see added to them."""
    d = targets.shape[1]
    if np.linalg.matrix_rank(targets) == d:
        return targets
    assert drawn.W_U is not None
    left, singular, _ = np.linalg.svd(drawn.W_U)
    unseen = left[:, int((singular > 1e-12 * singular[0]).sum()) :]
    size = max(1.0, float(np.abs(targets).max()))
    added: Floats = size * rng.standard_normal((len(targets), unseen.shape[1])) @ unseen.T
    return targets + added


def _beyond(demand: Demand, dimensions: tuple[int, int, int], rank: int) -> str:
    d, d_h, H = dimensions
    why = f"H·d_h + d = {capacity(H, d_h, d)}"
    if demand.last_tokens < d:
        why += f", less {d - demand.last_tokens} as the contexts end in {demand.last_tokens} different tokens only"
    free = demand.size.vocab + demand.size.length - 2
    if d_h > free:
        why += f", where a head counts {free} at most: ω + n − 2"
    if demand.size.length == 1:
        why = "with one token in a context a head only repeats it"
    return (
        f"{NAME}: the features of the {demand.held} contexts have rank {rank}; expected {demand.held}. What H = {H} "
        f"heads of d_h = {d_h} in d = {d} hold: {why}. Take more heads or a larger model_dim"
    )


@dataclass(frozen=True)
class Terms:
    """The terms of the bound on a distribution's divergence, as they are measured (in nats)."""

    divergence: float
    """Σ_t π_t KL(p_t ‖ T_t) of the network, over all contexts."""
    encoder: float
    """The same of the best sequence encoder known: no network of this dimension is known to do better."""
    encoder_gap: float
    """γ: with its unembedding no encodings, and with its encodings no unembedding, are better by more than this."""
    encoder_lower: float
    """Proved: no encoder of this dimension, and so no network, has a smaller divergence. Weak, but a theorem."""
    closed_bound: float
    """Some encoder of this dimension has at most this: their Theorem 2, useful for almost look-up tables."""
    left_out: float
    """ε: the probability of the contexts that were omitted."""
    norm: float
    """‖WE‖₂, the largest singular value of the encoder's logits."""

    @property
    def excess(self) -> float:
        """How much worse the network is than the encoder."""
        return self.divergence - self.encoder

    @property
    def constant(self) -> float | None:
        """C in excess = C·ε·‖WE‖₂, None where nothing was omitted."""
        return self.excess / (self.left_out * self.norm) if self.left_out > 0 and self.norm > 0 else None

    def as_json(self) -> dict[str, object]:
        """The terms by name."""
        names = [field.name for field in fields(self)] + ["excess", "constant"]
        return {name: None if (value := getattr(self, name)) is None else float(f"{value:.6g}") for name in names}


def terms(network: SoftmaxNetwork, task: NextTokenDistribution, encoder: Encoder, held: Ids) -> Terms:
    """Measure every term of the bound, in float64."""
    assert task.tokens is not None
    outside = ~np.isin(distinct(task.tokens).representatives, held)
    logits = evaluate(network, (task.tokens, None))
    return Terms(
        divergence=divergence(logits, task.probabilities, task.likelihoods),
        encoder=encoder.divergence,
        encoder_gap=max(encoder.encodings_gap, encoder.unembedding_gap),
        encoder_lower=encoder.lower,
        closed_bound=_closed_bound(task, encoder.dim),
        left_out=float(task.likelihoods[outside].sum()),
        norm=encoder.norm,
    )


def _closed_bound(task: NextTokenDistribution, dim: int) -> float:
    p, likelihoods = task.probabilities, task.likelihoods
    if p.shape[1] < 2 or dim < 1:
        return 0.0
    entropies = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1)
    miss, entropy = float(likelihoods @ (1 - p.max(axis=1))), float(likelihoods @ entropies)
    return almost_lookup(p.shape[1], dim, min(1.0, max(0.0, miss)), max(0.0, entropy))


CONSTRUCTION = Construction(
    name=NAME,
    paper="Dana, Pydi & Chevaleyre 2025",
    summary="attention alone, any context length: H·d_h + d associations, or distributions",
    kind="softmax",
    settings=Settings,
    build=build,
    covers=("next-token",),
    plan=lambda size, _, settings: plan(worst_demand(size), settings),
    orders=dict.fromkeys(("next-token", "next-token-distribution"), "O(d(n + ω + N))"),
    hypotheses=hypotheses,
    colour="#7f8c1d",
    flags="--model-dim 10 --heads 20",
)
