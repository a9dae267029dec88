"""Find the best sequence encoder of Dana, Pydi & Chevaleyre 2025: rank-d logits close to N distributions.

**Problem.** N contexts with weights π_t have the target distributions p_t on ω tokens. A sequence encoder of dimension
d predicts softmax(L_t) with L = E W_U, E ∈ R^{N×d}, W_U ∈ R^{d×ω}. No Transformer of embedding dimension d does better:

    min over L of rank ≤ d of Σ_t π_t KL(p_t ‖ softmax(L_t)),        in nats.

**Gauge.** Softmax ignores a constant in a row, and centring the rows (L J, J = I − 11ᵀ/ω) does not raise the rank.
Centring is a projection, so it gives the smallest ‖L − c1ᵀ‖₂ over all c. Returned logits are centred and balanced:
L = UΣVᵀ is split into E = U√Σ and W_U = √ΣVᵀ.

**Closed forms.** For d = 0 the logits are 0 and all predictions are uniform (there is no bias: the best constant
prediction needs d = 1). If the centred log p has rank ≤ d, as it always has for d ≥ min(N, ω − 1), then L = log p has
divergence 0.

**All other cases** are not convex. With the span of W_U fixed, every context has its own convex problem, solved by
damped Newton steps. What remains is a function on the Grassmannian of d-planes in 1^⊥ ⊂ R^ω. It is minimized by Newton
steps in a trust region, from several starts (:mod:`.descent`). **The global minimum is not
certified.** The encoder states three bounds, computed in float64:

- ``encodings_gap``: for this W_U, other encodings improve the divergence by at most this (:mod:`.judge`).
- ``unembedding_gap``: for these encodings, another W_U improves the divergence by at most this (:mod:`.judge`).
- ``lower``: no encoder of this dimension has a smaller divergence. It is proved, and usually weak (:mod:`.judge`).

``gradient``, and ``reached`` (the divergences at which the starts ended) are evidence, but no certificates.

**Zero probabilities** are allowed, though the infimum then need not be attained. While solving, W_U is orthonormal and
every context's loss has a term ρ‖e_t‖²/2, finally with ρ = 10⁻¹⁰; hence ‖e_t‖² ≤ 2·10¹⁰·log ω for any p. Closed forms
use log max(p, 10⁻¹⁵). ``divergence`` always belongs to the returned matrices, without that term, and ``encodings_gap``
includes the cost of the last ρ. Few dimensions and many zeros are hard: starts differ, and steps may run out.
"""

from byheart.constructions.gadgets.encoder.descent import best_encoder
from byheart.constructions.gadgets.encoder.distributions import divergence
from byheart.constructions.gadgets.encoder.judge import Encoder

__all__ = ["Encoder", "best_encoder", "divergence"]
