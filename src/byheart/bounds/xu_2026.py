"""Xu et al. 2026: what low-rank adapters memorize, as a curve through measurements.

Fitted: the loss that a LoRA adapter of rank r takes off a text of ℓ tokens is ΔL = C·r^α·ℓ^−β + b, with constants of
the model and the texts (two models of eight billion parameters). A token that is predicted with a probability above ½
is recalled, whatever else: that much is certain.

- No number here: C, α, β and b belong to their models.
"""

from byheart.bounds.bound import Statement

STATEMENTS = (
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
