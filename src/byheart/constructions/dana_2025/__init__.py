"""Dana, Pydi & Chevaleyre 2025: attention alone memorizes H·d_h + d associations, for contexts of any length.

The model: T(t_1…t_n) = W_Uᵀ(x_n + Σ_h W_Oʰᵀ W_Vʰᵀ Aʰ), x_s = W_E[t_s] + W_pos[s], Aʰ the average that head h takes. Our
letters: their N is our ω, their S our n, their T₀ our N.

**Associations** (their Corollary 1). Draw embeddings x′, query-key products and values W_V′ at random, d_h ≤ d. The
features F_t = [x′_n; W_V′¹A¹; …; W_V′ᴴAᴴ] ∈ R^{d + H·d_h} of N ≤ d + H·d_h contexts are, as a rule, independent for
almost every draw (not so for contexts (t, t), where a head adds n − 1 dimensions at most), so Σ F_t W = target_t has a
solution W. The skip connection, which adds x_n as it is, costs nothing: let M be the block of W that x′_n is multiplied
with. With x = x′M, that is

    W_E = W_E′M,  W_pos = W_pos′M,  W_Q = M⁻¹W_Q′,  W_K = M⁻¹W_K′,  W_V = M⁻¹W_V′,  W_Oʰ = the block of head h,

all scores, weights and values are what they were, and x_n itself is the first part of the answer. Exactly, if M is
regular; for that the targets have to span R^d.

*Targets.* The rows of W_U are unit vectors, for d = 2 points on a circle; a context that asks for token y gets a random
multiple, between 1 and 2, of row y, and a little noise: y's logit stays the largest (‖noise‖ < ‖Δ‖/8, Δ the smallest
difference of rows, moves a gap of at least ‖Δ‖²/2 by at most ‖Δ‖²/8), and the targets span R^d whatever is asked for.

**Queries of width 1** (their Remark 2, ``query_dim=1``): a head's scores are then (x_s·k)(x_n·q), and the features are
still independent for almost every draw; (2d_h − 2)·H·d parameters fewer.

**Guesses** (their Corollary 2, ``hold``): of N contexts only some are held; the others get whatever comes out. Promised
is an accuracy of 1/C + (1 − 1/C)·held/N: all of those held and one in C of the others. The paper argues by
expectation; here draws are tried until one keeps the promise, in float64, and the certificate counts (``at_least``).

**Distributions** (their Theorem 1). No network of dimension d beats the best *sequence encoder*, logits WE of rank d
(:mod:`.gadgets.encoder`). Its encodings are the targets, on the likeliest contexts, as many as it takes for a
probability of 1 − ε. For these, W_O is the paper's, by a singular value decomposition (:class:`.solving.Spread`, with
its constant C). Then

    KL(p ‖ T) ≤ KL(p ‖ encoder) + √2·C·ε·‖WE‖₂.

*Proof.* On a context t left out the logits are off by Δ, ‖Δ‖₂ ≤ C‖WE‖₂, and KL changes by (q − p)·Δ with q a softmax on
the way (the mean value theorem), at most ‖q − p‖₂‖Δ‖₂ ≤ √2‖Δ‖₂. Their probabilities add up to ε. ∎ The theorem is
stated with 1 in place of √2 (the appendix has 2, in its equation 13); for this W_O and some features 1 is too little,
as a case by hand in the tests shows, but no network built so far has come near. The γ of the theorem is part of the
encoder's divergence.

*Ours, not the paper's*: of several draws that is taken which answers the contexts left out best; where it answers them
worse than uniformly, its attention is led to do better (:mod:`.left_out`); where features are to spare, W_O may be one
that brings them nearer by least squares (``solve_by="near"``, if that is better); and if all of this does not help, all
logits are shrunk, only then at the cost of the contexts held. So the network is never worse than uniform.

**Zeros** (their Theorem 3, ``smooth``): with probabilities of 0 the best logits are infinite. Encoded are then the
distributions mixed with a little, δ, of the uniform one: logits grow like log(1/δ), and with δ = ε the excess
should fall like ε log(1/ε): measured, in benchmarks/dana_theory.py, not proved here. Without ``smooth`` logarithms are
of probabilities raised to 10⁻¹⁵.

Three hypotheses beyond the paper's, which its count needs: contexts end in at least d different tokens (else d in the
capacity is their number), n ≥ 2, and d_h ≤ ω + n − 2 (a head's average mixes ω token and n position vectors, with
weights that sum to one in both: it has no more free coordinates). Contexts may be degenerate in other ways. Checked:
the rank, in floating point, and with it all of this. Whether the answers are right the certificate says, from the saved
weights.
"""

from byheart.constructions.dana_2025.build import CONSTRUCTION
from byheart.constructions.dana_2025.sizes import DanaDemand, DanaSettings, demand, plan, worst_demand

__all__ = ["CONSTRUCTION", "DanaDemand", "DanaSettings", "demand", "plan", "worst_demand"]
