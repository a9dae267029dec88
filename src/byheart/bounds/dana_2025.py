"""Dana, Pydi & Chevaleyre 2025: attention alone memorizes H d_h + d associations, for any context length.

**Associations** (their Corollary 1): a one-layer attention-only Transformer with embedding dimension d, H heads of
dimension d_h ≤ d and S positions has d(S + 2ω + 4 d_h H) parameters: embedding and unembedding, positions, W_Q, W_K,
W_V, W_O. Its features, the last token's embedding beside the H heads' values, have d + H d_h coordinates and are
independent for generic weights unless the contexts are degenerate, so T₀ ≤ H d_h + d associations (context → next
token) are fitted by one linear solve. For d > 2 the unembedding rows must span R^d; for d = 2 they are ω points on a
circle.

**Distributions** (their bottleneck, counted here): with W_U ∈ R^{ω×d} the logits of N contexts have rank at most d,
while the log-ratios log p(i)/p(ω) of N arbitrary distributions form an arbitrary N × (ω − 1) matrix. So exact
interpolation needs d ≥ min(N, ω − 1), and the unembedding alone has ω · min(N, ω − 1) entries. For N ≥ ω − 1 this is
their "every distribution iff d ≥ ω − 1".

**Rank one** (their Remark 2): queries and keys of width 1 are enough, so W_Q and W_K have d entries per head each:
d(S + 2ω + 2(d_h + 1)H) parameters for the same associations.

**Almost look-up tables** (ours, after their Theorem 2): every context t has a token y_t of probability 1 − η_t. There
are ω vectors u_i ∈ {±1}^d/√d with |u_i·u_j| ≤ c = C/2, C = √(32 log(ω + 1)/d): by Hoeffding and a union bound random
signs fail with probability at most ω²·e^{−dc²/2} ≤ ω²/(ω + 1)⁴. With the logits λ u_i·u_{y_t}, λ at y_t and at most λc
elsewhere, KL ≤ η_t λ(1 + c) + log(1 + (ω − 1)e^{−λ(1 − c)}) − H(p_t); averaged, and at the best λ, this is
:func:`almost_lookup`, h(ρ) + ρ log(ω − 1) − H with ρ = η(1 + c)/(1 − c): Fano's inequality with a larger error.

**Their Theorem 2** (:func:`entropy_matched`): codes w_i with |w_i·w_j − [i = j]| ≤ c, c = √(32 log(ω + 1)/d), logits
λ_t w_i·w_{y_t}, and λ_t such that the entropy H_t of p_t is matched. Then KL ≤ η_t Λ_t (1 + 2c + c·TV)/(1 − 2c) with
Λ_t = log((ω − 1)/(e^{H_t} − 1)) and TV the total variation between the wrong tokens' distribution and the uniform one.
*Proof, of more* (without c·TV): y's logit exceeds the others by λ(1 − 2c) at least, and by λ(1 + 2c) at most. So

    KL = log Σ_i exp(logit_i − logit_y) − H_t + Σ_i p_i (logit_y − logit_i)
       ≤ log(1 + (ω − 1)e^{−λ(1 − 2c)}) − H_t + η_t λ(1 + 2c),

and for λ = Λ_t/(1 − 2c) the first two terms are 0 together. ∎ It needs c < 1/2, so d > 128 log(ω + 1), and is of use
for d < ω − 1 only, so from ω = 869 on.

- Letters: their N is our ω (dictionary), their S our n (context length), their T₀ our N (associations).
- Exact: both numbers, for dense matrices without biases.
- Hypothesis that sizes do not show: all contexts that end in the same token share the last token's embedding, so its
  block has rank d only if the contexts end in at least d different tokens. Otherwise d in the capacity shrinks to the
  number of these tokens.
- Hypotheses that sizes do show: n ≥ 2, because with S = 1 every head repeats the embedding; and d_h counts only up to
  ω + n − 2, because a head's average has no more free coordinates.
- Not checked here: these hypotheses, and that the contexts differ.
"""

import math
from functools import partial

from byheart.bounds.bound import Bound, Condition, may_differ
from byheart.errors import BadInput


def capacity(heads: int, head_dim: int, dim: int) -> int:
    """Return H d_h + d, the number of associations that fit.

    >>> capacity(heads=20, head_dim=10, dim=10)
    210
    """
    return heads * head_dim + dim


def heads_needed(examples: int, head_dim: int, dim: int) -> int:
    """Return the fewest heads with H d_h + d ≥ N, at least one: without attention only the last token is seen.

    >>> heads_needed(examples=210, head_dim=10, dim=10), heads_needed(examples=211, head_dim=10, dim=10)
    (20, 21)
    """
    return max(1, -(-(examples - dim) // head_dim))


def bottleneck_dim(examples: int, vocab: int) -> int:
    """Return min(N, ω − 1), the smallest embedding dimension that can be exact on any N distributions.

    >>> bottleneck_dim(examples=1000, vocab=50)
    49
    """
    return min(examples, vocab - 1)


def sufficient(examples: int, length: int, vocab: int, model_dim: int = 2, head_dim: int = 1) -> int:
    """Return d(n + 2ω + 4 d_h H) with H = ⌈(N − d)/d_h⌉. The default dimensions give the smallest count.

    >>> sufficient(examples=210, length=3, vocab=50, model_dim=10, head_dim=10)
    9030
    """
    if not 1 <= head_dim <= model_dim:
        raise BadInput(f"head_dim is {head_dim} and model_dim is {model_dim}; expected 1 ≤ d_h ≤ d")
    if model_dim < 2:
        raise BadInput(f"model_dim is {model_dim}; expected at least 2: on a line argmax tells only two tokens apart")
    if length < 2:
        raise BadInput(f"length is {length}; expected at least 2: a head that sees one token adds nothing to it")
    heads = heads_needed(examples, head_dim, model_dim)
    return model_dim * (length + 2 * vocab + 4 * head_dim * heads)


def sufficient_rank_one(examples: int, length: int, vocab: int, model_dim: int = 2, head_dim: int = 2) -> int:
    """Return d(n + 2ω + 2(d_h + 1)H) with H = ⌈(N − d)/d_h⌉: queries and keys of width 1, smallest by default.

    >>> sufficient_rank_one(examples=210, length=3, vocab=50, model_dim=10, head_dim=10)
    5430
    """
    with_queries = sufficient(examples, length, vocab, model_dim, head_dim)
    return with_queries - (2 * head_dim - 2) * model_dim * heads_needed(examples, head_dim, model_dim)


def _as_many_tokens(examples: int, vocab: int, model_dim: int = 2) -> bool | None:
    """Return False if min(ω, N) < d, because d different last or next tokens are then impossible; None otherwise."""
    return False if min(examples, vocab) < model_dim else None


def needed_by_distributions(examples: int, vocab: int) -> int:
    """Return ω · min(N, ω − 1), the entries of the smallest unembedding that can be exact.

    >>> needed_by_distributions(examples=1000, vocab=50)
    2450
    """
    return vocab * bottleneck_dim(examples, vocab)


def coherence(vocab: int, dim: int) -> float:
    """Return c = ½√(32 log(ω + 1)/d): ω unit vectors with inner products within ±c exist. It is void if c ≥ 1.

    >>> round(coherence(vocab=1000, dim=400), 4)
    0.3717
    """
    return math.sqrt(8 * math.log(vocab + 1) / dim)


def almost_lookup(vocab: int, dim: int, miss: float, entropy: float) -> float:
    """Return h(ρ) + ρ log(ω − 1) − H, a divergence in nats that some sequence encoder of dimension d does not exceed.

    ``miss`` is η, the mean of 1 − max p_t over the contexts, and ``entropy`` is H, the mean entropy of p_t. If c ≥ 1 or
    ρ ≥ 1 − 1/ω, the result is log ω − H, the divergence of the uniform answer.

    >>> round(almost_lookup(vocab=1000, dim=400, miss=0.01, entropy=0.1), 3)
    0.156
    """
    if vocab < 2 or dim < 1:
        raise BadInput(f"vocab is {vocab} and dim is {dim}; expected at least 2 and 1")
    if not 0 <= miss <= 1 or entropy < 0:
        raise BadInput(f"miss is {miss} and entropy {entropy}; expected 0 ≤ miss ≤ 1 and an entropy of 0 or more")
    c = coherence(vocab, dim)
    rho = miss * (1 + c) / (1 - c) if c < 1 else 1.0
    if rho >= 1 - 1 / vocab:
        return math.log(vocab) - entropy
    h = -rho * math.log(rho) - (1 - rho) * math.log1p(-rho) if rho > 0 else 0.0
    return h + rho * math.log(vocab - 1) - entropy


def entropy_matched(vocab: int, c: float, miss: float, entropy: float, uneven: float) -> float:
    """Return Theorem 2's bound on one context's divergence, in nats, for codes within c of an orthonormal basis.

    ``miss`` is η = 1 − max p, ``entropy`` that of p, ``uneven`` the total variation between the distribution of the
    wrong tokens and the uniform one. The result is infinite for c ≥ 1/2. A bound for dimension d uses c =
    2·:func:`coherence`.

    >>> round(entropy_matched(vocab=1000, c=0.2, miss=0.01, entropy=0.1, uneven=0.5), 3)
    0.229
    """
    if vocab < 2 or not 0 <= miss <= 1 or not 0 <= uneven <= 1 or not 0 <= entropy <= math.log(vocab) + 1e-9 or c < 0:
        got = f"vocab {vocab}, c {c}, miss {miss}, entropy {entropy}, uneven {uneven}"
        raise BadInput(f"got {got}; expected at least 2, 0, numbers from 0 to 1, and an entropy from 0 to log ω")
    if c >= 0.5:
        return math.inf
    if miss == 0:
        return 0.0
    # Rounding may give an entropy of 0 although miss > 0, or more than log ω: avoid an infinite or negative result.
    needed = max(0.0, math.log((vocab - 1) / max(math.expm1(entropy), miss)))
    return miss * (1 + 2 * c + c * uneven) / (1 - 2 * c) * needed


SOURCE = "Memorization in Attention-only Transformers, AISTATS 2025"
PAPER_LETTERS = {"N": "ω, vocab", "S": "n, length", "T₀": "N, examples", "d": "model_dim"}
_bound = partial(Bound, paper="Dana, Pydi & Chevaleyre 2025", kind="proved", paper_letters=PAPER_LETTERS)

_HYPOTHESES = (
    "1 ≤ d_h ≤ d and d ≥ 2",
    "n ≥ 2",
    "the N contexts differ",
    "the contexts end in at least d different tokens",
    "the unembedding rows of the asked tokens span R^d",
)
_CONDITIONS: dict[str, Condition] = {
    "1 ≤ d_h ≤ d and d ≥ 2": lambda model_dim=2, head_dim=1: 1 <= head_dim <= model_dim >= 2,
    "n ≥ 2": lambda length: length >= 2,
    "the N contexts differ": may_differ,
    "the contexts end in at least d different tokens": _as_many_tokens,
    "the unembedding rows of the asked tokens span R^d": _as_many_tokens,
}

BOUNDS = (
    _bound(
        name="dana-2025-next-token",
        source=f"{SOURCE}, Corollary 1",
        setting="next-token",
        model="one attention layer with skip connection, embedding and unembedding, no feed-forward layer",
        side="upper",
        expression="d(n + 2ω + 4d_h⌈(N − d)/d_h⌉)",
        hypotheses=_HYPOTHESES,
        formula=sufficient,
        conditions=_CONDITIONS,
    ),
    _bound(
        name="dana-2025-rank-one",
        source=f"{SOURCE}, Remark 2",
        setting="next-token",
        model="the same, with queries and keys of width 1",
        side="upper",
        expression="d(n + 2ω + 2(d_h + 1)⌈(N − d)/d_h⌉)",
        hypotheses=_HYPOTHESES,
        formula=sufficient_rank_one,
        conditions=_CONDITIONS,
    ),
    _bound(
        name="dana-2025-bottleneck",
        source=f"{SOURCE}, the rank-d bottleneck for distributions; entries of the unembedding counted here",
        setting="next-token-distribution",
        model="any network that ends in a dense unembedding W_U ∈ R^{ω×d} and a softmax",
        side="lower",
        expression="ω · min(N, ω − 1)",
        hypotheses=("the same N contexts may ask for any N distributions", "they are interpolated exactly"),
        formula=needed_by_distributions,
    ),
)
