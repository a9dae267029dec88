"""Dugan et al. 2025: MLPs that store facts, for all embeddings but a set of measure zero.

Statement: keys and values are vectors; an MLP stores a fact if its output at the key has a larger product with the
right value than with any other. They construct such MLPs for all but a null set of keys and values; for values that are
easily told apart after a random projection the parameters meet the information-theoretic order.

- Letters: their facts are our N.
- Order only, up to logarithms. A factor that depends on how well values can be told apart is left out.
- Not checked here: the embeddings.
"""

from byheart.bounds.bound import Bound


def sufficient(examples: int) -> int:
    """Return N, the expression inside Õ(·).

    >>> sufficient(examples=1000)
    1000
    """
    return examples


BOUNDS = (
    Bound(
        name="dugan-2025-facts",
        paper="Dugan et al. 2025",
        source="Constructing Efficient Fact-Storing MLPs for Transformers, arXiv:2512.00207",
        setting="points",
        model="a gated MLP from keys to values, read by the largest product",
        side="upper",
        kind="order",
        expression="Õ(N)",
        hypotheses=(
            "keys and values outside of a set of measure zero",
            "values that a random projection to few dimensions keeps apart",
        ),
        formula=sufficient,
    ),
)
