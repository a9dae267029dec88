"""Dana, Pydi & Chevaleyre 2025: attention alone memorizes H d_h + d associations, for any context length.

**Associations** (their Corollary 1, for d = 2; their Theorem 1 at ε = 0 for any d): a one-layer attention-only
Transformer with embedding dimension d, H heads of dimension d_h ≤ d and S positions has d(S + 2ω + 4 d_h H) parameters:
embedding and unembedding, positions, W_Q, W_K, W_V, W_O. Its features, the last token's embedding beside the H heads'
values, have d + H d_h coordinates. If the features of T₀ contexts are independent, all T₀ associations (context → next
token) are fitted by one linear solve.

**Their Lemma 2 is false as printed.** It says that T₀ contexts, whichever they are, have min(T₀, H d_h) independent
values. But for constant contexts (t, …, t) every head's average is x_n + Σ_s a_s (pos_s − pos_n), so that the rank of
all features is at most d + H·min(d_h, n − 1). In general, let r be the rank of the vectors x_n of some contexts, and D
that of the differences x_s − x_n, s < n. Then the rank of their features is at most

    r + H·min(d_h, D),

because a head's value is that of x_n, which the other features hold already, plus a combination of values of x_s − x_n.

**A lemma that holds** (ours). *Let n ≥ 2, d ≥ 2, d_h = 1, let N contexts differ and end in L different tokens. For
almost all weights, queries and keys of any width, the features have rank min(N, min(d, L) + H).* So heads of dimension
1, which together take no more parameters than wider ones, hold H + d contexts if L ≥ d: the count above is proved.

*Proof.* More is impossible, by counting columns. Minors of the features are analytic in the weights, so one choice of
weights is enough. (1) A head's value at a context t is f_t(θ), θ its query-key matrix B and its v = W_V. If the N
functions f_t are linearly independent, there are heads that each raise the rank by one until it is N: while it is less,
some c ≠ 0 is orthogonal to all columns, and Σ c_t f_t(θ) ≠ 0 for some θ. The last token's vectors begin with rank
min(d, L). (2) The f_t are independent, even for B = λ·k·qᵀ of rank one, k and q the first two coordinates, v = k. Let
κ(j) and κ_s be the first coordinates of token j and position s, and μ_i the second coordinate of the last vector if it
has token i. Choose almost any embeddings with all μ_i > 0, and κ_1 so large that position 1 has the largest score in
all contexts. The products μ_i κ(j) and μ_i κ_s are then independent over the rational numbers. For λ > 0, with
y_s = exp(−λ μ_i (κ(t_1) + κ_1 − κ(t_s) − κ_s)), the average is (x_1 + Σ_{s>1} y_s x_s)/(1 + Σ y_s), for large λ a
convergent series in the y_s with the coefficient ±(|r|!/Πr_s!)(x_1 − Σ r_s x_s/|r|) at Πy_s^{r_s}, |r| = Σ r_s > 0.
Take r_s = 2^{s−2}. From the exponent of e^{−λ} at this term, by independence over the rational numbers, one reads off i
and |r| (from μ_i κ_1), every r_s (from μ_i κ_s), and for every token j the number Σ_s r_s ([t_1 = j] − [t_s = j]). If
one of them is positive, then j = t_1, and the binary digits of the others say where each token stands; if all are 0,
every token is i. So no other context, and no other term, has this exponent. A sum Σ c_t f_t that vanishes for all λ has
the coefficient 0 there, and v·(x_1 − Σ r_s x_s/|r|) > 0: so c_t = 0. ∎

*Wider heads.* For d_h > 1 the bound above, taken for any part of the contexts, is necessary. In all small cases tried
it was also reached, which is not proved: the build checks the rank.

*From the rank to a network.* If the features Φ of some draw have rank N, then ΦW = Y has a solution for all targets Y,
and the block M of W that the skip connection adds (:mod:`byheart.constructions.dana_2025`) is regular for almost all Y
and almost all solutions: (Y, the free part) ↦ W is one to one and onto, and det M is a polynomial in W that is not 0.
The targets of a label are an open set, so that neither the number of answers nor that of last tokens matters any more.

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
- Hypotheses that sizes do not show: the contexts differ; they end in at least d different tokens (otherwise min(d, L)
  replaces d); and for d_h > 1 the features of some draw have rank N.
- Hypothesis that sizes do show: n ≥ 2, because with S = 1 every head repeats the embedding.
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


def _may_be_independent(examples: int, length: int, vocab: int, model_dim: int = 2, head_dim: int = 1) -> bool | None:
    """Return True if d_h = 1, False if no N contexts of these sizes have independent features; None otherwise."""
    if head_dim == 1:
        return True
    # A head's average mixes ω token and n position vectors, with weights that sum to one in both.
    most = model_dim + heads_needed(examples, head_dim, model_dim) * min(head_dim, vocab + length - 2)
    return False if most < examples else None


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
RANK = "d_h = 1, or the features of a draw have rank N, which build checks"
_CONDITIONS: dict[str, Condition] = {
    "1 ≤ d_h ≤ d and d ≥ 2": lambda model_dim=2, head_dim=1: 1 <= head_dim <= model_dim >= 2,
    "n ≥ 2": lambda length: length >= 2,
    "the N contexts differ": may_differ,
    "the contexts end in at least d different tokens": _as_many_tokens,
    "the unembedding rows of the asked tokens span R^d": _as_many_tokens,
    RANK: partial(_may_be_independent, head_dim=1),
}
_HYPOTHESES = tuple(_CONDITIONS)

BOUNDS = (
    _bound(
        name="dana-2025-next-token",
        source=f"{SOURCE}, Theorem 1 at ε = 0 (Corollary 1: d = 2); with our lemma in place of their Lemma 2",
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
        conditions=_CONDITIONS | {RANK: partial(_may_be_independent, head_dim=2)},
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
