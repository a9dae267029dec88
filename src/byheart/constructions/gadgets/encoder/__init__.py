"""The best sequence encoder of Dana, Pydi & Chevaleyre 2025: how near rank-d logits can come to given distributions.

**Problem.** N contexts with weights π_t ask for the distributions p_t on ω tokens. A sequence encoder of dimension d
answers softmax(L_t) with L = E W_U, E ∈ R^{N×d}, W_U ∈ R^{d×ω}. No Transformer of embedding dimension d does better:

    min over L of rank ≤ d of Σ_t π_t KL(p_t ‖ softmax(L_t)),        in nats.

**Gauge.** Softmax ignores a constant in a row, and centring the rows (L J, J = I − 11ᵀ/ω) does not raise the rank; as a
projection it gives the smallest ‖L − c1ᵀ‖₂ over all c. Returned logits are centred, and balanced: L = UΣVᵀ is cut into
E = U√Σ, W_U = √ΣVᵀ.

**In closed form.** d = 0: the logits are 0, all answers uniform (no bias: the best constant answer needs d = 1).
Centred log p of rank ≤ d, hence always for d ≥ min(N, ω − 1): L = log p, divergence 0.

**In between** it is not convex. With the span of W_U fixed every context has a convex problem of its own, solved by
damped Newton steps (:mod:`.point`); what is left is a function on the Grassmannian of d-planes in 1^⊥ ⊂ R^ω, minimised
by Newton steps in a trust region (:mod:`.descent`), from several starts (:mod:`.search`). **The global minimum is not
certified.** Known:

- ``encodings_gap``: with this W_U no encodings are better by more.
- ``unembedding_gap``: with these encodings no W_U is better by more. Both by weak duality, see :mod:`.gaps`.
- ``lower``: no encoder of this dimension has a smaller divergence; proved at :func:`lower_bound`. Usually weak.

All three in float64. ``gradient`` and ``reached``, where every start ended, are evidence and no certificates.

**Zero probabilities** are allowed, though the infimum then need not be attained. While solving, W_U is orthonormal and
every context's loss has a term ρ‖e_t‖²/2, at last with ρ = 10⁻¹⁰; hence ‖e_t‖² ≤ 2·10¹⁰·log ω whatever p is. Closed
forms use log max(p, 10⁻¹⁵). ``divergence`` is always what the returned matrices have, without that term, and what the
last ρ costs is in ``encodings_gap``. Few dimensions and many zeros are hard: starts differ, and steps may run out.
"""

from byheart.constructions.gadgets.encoder.contexts import divergence
from byheart.constructions.gadgets.encoder.judge import Encoder, judged
from byheart.constructions.gadgets.encoder.lower import lower_bound
from byheart.constructions.gadgets.encoder.search import best_encoder

__all__ = ["Encoder", "best_encoder", "divergence", "judged", "lower_bound"]
