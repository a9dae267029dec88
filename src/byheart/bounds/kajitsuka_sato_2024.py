"""Kajitsuka & Sato 2024: one layer, one head of rank one, and a wide feed-forward network: O(d(2nN + d)), seq-to-seq.

Statement: softmax attention with rank-one weights gives every (token, sequence) pair of a token-wise (r, δ)-separated
dataset its own context id, through the Boltzmann operator Σᵢ aᵢ softmax(a)ᵢ; a ReLU network with at most 2nN hidden
units then maps the at most nN ids to labels. One *hardmax* layer of this form cannot do it.

- Letters: the paper's N, n, d, C, r, δ are ours.
- Order only: the 2 is the paper's, but it stands inside an O(·). Exact counts come from building the network.
- Not checked here: separation and consistency. The ids lie about (log n)² e^{−2r} apart, far below what floats
  resolve.
"""

from byheart.bounds.bound import Bound


def sufficient(examples: int, length: int, dim: int) -> float:
    """Return d(2nN + d), the expression inside O(·).

    >>> sufficient(examples=100, length=4, dim=8)
    6464
    """
    return dim * (2 * length * examples + dim)


BOUNDS = (
    Bound(
        name="kajitsuka-sato-2024-seq-to-seq",
        paper="Kajitsuka & Sato 2024",
        source=(
            "Are Transformers with One Layer Self-Attention Using Low-Rank Weight Matrices Universal Approximators?, "
            "ICLR 2024"
        ),
        setting="seq-to-seq",
        model="one layer, one softmax head with rank-one weights, ReLU feed-forward network with 2nN hidden units",
        side="upper",
        kind="order",
        expression="O(d(2nN + d))",
        hypotheses=(
            "tokens are (r, δ)-separated: norm at most r, different tokens at least δ apart",
            "sequences that are permutations of each other ask for permuted labels",
            "softmax attention: one hardmax layer is not enough",
        ),
        formula=sufficient,
    ),
)
