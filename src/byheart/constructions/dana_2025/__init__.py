"""Dana, Pydi & Chevaleyre 2025: attention alone memorizes H·d_h + d associations, for contexts of any length.

The model: T(t_1…t_n) = W_Uᵀ(x_n + Σ_h W_Oʰᵀ W_Vʰᵀ Aʰ), x_s = W_E[t_s] + W_pos[s], Aʰ the average that head h takes. Our
letters: their N is our ω, their S our n, their T₀ our N. A context is *held* if its answer is solved for.

**Associations** (their Theorem 1 at ε = 0; Corollary 1 is the case d = 2). Draw embeddings x′, query-key products and
values W_V′ at random, d_h ≤ d. If the features F_t = [x′_n; W_V′¹A¹; …; W_V′ᴴAᴴ] ∈ R^{d + H·d_h} of N contexts are
independent, F_t W = target_t has a solution W. Their Lemma 2 says that they always are, which is false: for contexts
(t, …, t) a head adds at most n − 1 dimensions. :mod:`byheart.bounds.dana_2025` proves that heads of dimension 1 have
independent features for all contexts that differ, and a bound on the rank for wider ones. The skip connection, which
adds x_n itself, costs nothing: let M be the block of W that multiplies x′_n, and x = x′M. That is,

    W_E = W_E′M,  W_pos = W_pos′M,  W_Q = M⁻¹W_Q′,  W_K = M⁻¹W_K′,  W_V = M⁻¹W_V′,  W_Oʰ = the block of head h.

Then all scores, weights and values are unchanged, and x_n itself is the first part of the answer. This is exact if M is
regular, for which the targets have to span R^d.

*Targets.* The rows of W_U are unit vectors, for d = 2 points on a circle. The target of a context with label y is a
random multiple, between 1 and 2, of row y, plus a little noise. The logit of y stays the largest: ‖noise‖ < ‖Δ‖/8, with
Δ the smallest difference of rows, moves a gap of at least ‖Δ‖²/2 by at most ‖Δ‖²/8. The targets always span R^d.

**Queries of width 1** (their Remark 2, ``query_dim=1``): a head's scores are then (x_s·k)(x_n·q). For d_h = 1 the
features are proved to be independent all the same; for wider heads the build checks it. This saves (2d_h − 2)·H·d
parameters.

**Guesses** (their Corollary 2, ``hold``): only some of the N contexts are held; the answers to the others are left to
chance. The promised accuracy is 1/C + (1 − 1/C)·held/N: all held contexts and one in C of the others. The paper argues
by expectation; here draws are tried until one keeps the promise in float64, and the certificate counts (``at_least``).

**Distributions** (their Theorem 1). No network of dimension d beats the best *sequence encoder*, logits WE of rank d
(:mod:`.gadgets.encoder`). Its encodings are the targets for the likeliest contexts, which together have a probability
of at least 1 − ε. For them W_O is the paper's, by a singular value decomposition (:class:`.solving.Spread`, with its
constant C). Then

    KL(p ‖ T) ≤ KL(p ‖ encoder) + √2·C·ε·‖WE‖₂.

*Proof.* On an omitted context t the logits are off by Δ, ‖Δ‖₂ ≤ C‖WE‖₂. By the mean value theorem KL changes by
(q − p)·Δ with q an intermediate softmax, so by at most ‖q − p‖₂‖Δ‖₂ ≤ √2‖Δ‖₂. The probabilities of omitted contexts add
up to ε. ∎ The theorem is stated with 1 in place of √2 (the appendix has 2, in its equation 13). For this W_O and some
features 1 is too small, as a case by hand in the tests shows, but no network built so far has come near. The γ of the
theorem is part of the encoder's divergence.

*Ours, not the paper's*: of several draws the one is used that answers the omitted contexts best. If it answers them
worse than uniformly, its attention is improved by descent (:mod:`.omitted`). If there are more features than held
contexts, W_O may be one that brings the omitted ones nearer by least squares (``solve_by="near"``, if that is better).
If none of this suffices, all logits are shrunk, at the cost of the held contexts. So the network is never worse than
uniform.

**Zeros** (their Theorem 3, ``smooth``): with probabilities of 0 the best logits are infinite. The encoder then encodes
distributions mixed with a share δ of the uniform one. The logits grow like log(1/δ), and with δ = ε the excess should
fall like ε log(1/ε); benchmarks/dana_theory.py measures this, and it is not proved here. Without ``smooth``, logarithms
are taken of probabilities raised to 10⁻¹⁵.

The count needs hypotheses beyond the paper's: contexts end in at least d different tokens (otherwise their number
replaces d in the capacity), n ≥ 2, and, if d_h > 1, that the features have rank N. The build checks the rank in
floating point. The certificate establishes from the saved weights whether the answers are right.
"""

from byheart.constructions.dana_2025.associations import (
    CONSTRUCTION,
    DanaDemand,
    DanaSettings,
    demand,
    plan,
    worst_demand,
)

__all__ = ["CONSTRUCTION", "DanaDemand", "DanaSettings", "demand", "plan", "worst_demand"]
