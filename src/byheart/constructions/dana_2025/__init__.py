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

from byheart.constructions.dana_2025.build import CONSTRUCTION
from byheart.constructions.dana_2025.sizes import Demand, Settings, demand, plan, worst_demand

__all__ = ["CONSTRUCTION", "Demand", "Settings", "demand", "plan", "worst_demand"]
