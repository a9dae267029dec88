"""Results of papers about widths, dimensions or prompts, or without a number.

- **Egosi, Yehudai & Shamir 2025.** Points are δ apart, and a network has to be right on a ball around each. If the
  radius is a fixed part of δ, whatever N is, a width of order log N is necessary and sufficient. (Without robustness a
  constant width is enough: :mod:`.vardi_2022`.) In d dimensions no more than a width of order d is ever needed, so the
  number is min(d, log N). The parameters depend on the depth. Not checked here: the separation.
- **Meyer, Michelessa, Chaux & Tan 2025.** Keep a Transformer's weights and choose only the prompt. The amount memorized
  by the prompt grows at most linearly with the prompt's length; its tokens are vectors of a fixed dimension and
  precision. Moreover, a Transformer forgets in long contexts, whatever its prompt says.
- **Park, Park & Hwang 2026.** With floating-point parameters and operations, Transformers represent all
  permutation-equivariant functions of sequences of bounded length, and do not for long ones; and some functions that
  are not equivariant, even without positional codes, because sums depend on their order. How long is long depends on
  the format. Byheart's float networks avoid the question: every sum is shown to be exact in any order (``verify.py``),
  so that rounding has no part in what they answer.
- **Ravfogel, Yehudai, Bruna & Bietti 2026.** :mod:`.facts` has the theorem, and its count of parameters.
- **Xu et al. 2026.** A LoRA adapter of rank r takes ΔL = C·r^α·ℓ^−β + b off the loss of a text of ℓ tokens. This is a
  curve through measurements; its constants belong to two models of eight billion parameters and to the texts. A token
  that is predicted with a probability above ½ is recalled, whatever else: that much is certain.
"""

import math

from byheart.bounds.bound import Statement
from byheart.bounds.facts import RAVFOGEL_HYPOTHESES, dimension, linear


def width(examples: int, dim: int) -> float:
    """Return min(d, log N), the expression inside Θ(·).

    >>> round(width(examples=1000, dim=64), 2), width(examples=1000, dim=3)
    (6.91, 3)
    """
    return min(dim, math.log(examples))


STATEMENTS = (
    Statement(
        name="egosi-2025-width",
        paper="Egosi, Yehudai & Shamir 2025",
        source="Logarithmic Width Suffices for Robust Memorization, arXiv:2502.11162",
        setting="points",
        model="feed-forward ReLU network",
        kind="order",
        says="a width of Θ(log N) is necessary and sufficient for a robust radius that does not depend on N",
        counts="width",
        hypotheses=("points are pairwise at least δ apart", "the radius is a fixed part of δ"),
        formula=width,
    ),
    Statement(
        name="meyer-2025-prompt",
        paper="Meyer, Michelessa, Chaux & Tan 2025",
        source="Memory Limitations of Prompt Tuning in Transformers, arXiv:2509.00421",
        setting="next-token",
        model="any Transformer whose weights are kept, with a tuned prompt",
        kind="order",
        says="a prompt of Ω(N) tokens is needed: what a prompt memorizes is at most linear in its length",
        counts="tokens of the prompt",
        hypotheses=("the weights are fixed before the labels are known", "every labelling may be asked for"),
        formula=linear,
    ),
    Statement(
        name="park-2026-floats",
        paper="Park, Park & Hwang 2026",
        source="On the Expressive Power of Floating-Point Transformers, arXiv:2601.16450",
        setting="seq-to-seq",
        model="Transformer with floating-point parameters and operations",
        kind="proved",
        says="floats represent all equivariant functions of bounded length, and not all of long sequences",
        hypotheses=("the length is bounded, by a number that depends on the format",),
    ),
    Statement(
        name="ravfogel-2026-dimension",
        paper="Ravfogel, Yehudai, Bruna & Bietti 2026",
        source="Geometric Factual Recall in Transformers, arXiv:2605.12426",
        setting="next-token",
        model="one layer with learned embeddings and a small MLP",
        kind="order",
        says="embeddings of dimension O(R log(N/R)) are enough for R relations of N/R subjects",
        counts="embedding dimension",
        hypotheses=RAVFOGEL_HYPOTHESES,
        formula=dimension,
    ),
    Statement(
        name="xu-2026-adapters",
        paper="Xu et al. 2026",
        source="How LoRA Remembers? A Parametric Memory Law for LLM Finetuning, arXiv:2605.30260",
        setting="next-token",
        model="a language model with an adapter of rank r, finetuned on texts of ℓ tokens",
        kind="fitted",
        says="an adapter takes ΔL = C·r^α·ℓ^−β + b off the loss, with constants fitted to each model",
        hypotheses=("the models and texts are theirs",),
    ),
)
