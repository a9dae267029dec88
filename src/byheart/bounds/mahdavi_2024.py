"""Mahdavi, Liao & Thrampoulidis 2024: one multi-head attention layer memorizes H(min(n, d_h) − 1) + 1 examples.

Statement (their Theorem 1): an example is a context E ∈ R^{n×d}, a query e ∈ R^d and a target of d_v real numbers. Let
n < d and r = min(n, d_h). If every n queries are linearly independent (Kruskal rank ≥ n) and every context has rank n,
then a layer of H heads fits any N ≤ H(r − 1) + 1 targets. The layer has Θ(H d (d_h + d_v)) parameters, so O(d²N/n)
suffice. Where the queries' Kruskal rank Q is less than n, the same holds with r = min(n, d_h, Q).

- Letters: their T is our N (examples); n, d, H, d_h, d_v are the same. A sequence of the task is the context; the
  query is given beside it. A label is one real number, so that d_v = 1 is enough.
- Exact: the number of heads, and the count below, every entry of W_Q, W_K ∈ R^{d×d_h}, W_V ∈ R^{d×v} and W_O ∈
  R^{v×d_v} in every head, v = min(d, d_v), no biases.
- Not checked here: the two assumptions on ranks. The Kruskal rank is NP-hard to compute.

What "tight" means. If all examples share one context, a head is n values mixed with weights that sum to one. So with
the attention fixed the outputs of N examples lie in a space of dimension H(n − 1) + 1 (:func:`feature_rank`), and no
choice of attention gives the features a larger rank. This limits every construction that fixes the attention and then
solves for the values. It is not a lower bound on parameters, because labels may choose the attention: one head with n
= 2, d_h = 1 and weights sigmoid(qᵀe) fits d independent queries, whatever the d targets are.
"""

from byheart.bounds.bound import Bound
from byheart.errors import BadInput


def capacity(heads: int, context: int, head_dim: int, kruskal: int | None = None) -> int:
    """Return H(r − 1) + 1, the examples that certainly fit; r = min(n, d_h, Q) for Kruskal rank Q.

    >>> capacity(heads=20, context=32, head_dim=16), capacity(heads=20, context=32, head_dim=16, kruskal=3)
    (301, 41)
    """
    return heads * (min(context, head_dim, kruskal or context) - 1) + 1


def feature_rank(heads: int, context: int) -> int:
    """Return H(n − 1) + 1, the largest rank of the heads' features over examples that share their context.

    >>> feature_rank(heads=20, context=32)
    621
    """
    return heads * (context - 1) + 1


def heads_needed(examples: int, context: int, head_dim: int) -> int:
    """Return ⌈(N − 1)/(r − 1)⌉, the fewest heads for which the theorem promises N examples; r = min(n, d_h).

    >>> heads_needed(examples=301, context=32, head_dim=16), heads_needed(examples=302, context=32, head_dim=16)
    (20, 21)
    """
    if examples == 1:
        return 1
    rank = min(context, head_dim)
    if rank < 2:
        raise BadInput(f"min(n, d_h) is {rank}; expected at least 2: with 1 the theorem promises one example only")
    return -(-(examples - 1) // (rank - 1))


def sufficient(examples: int, length: int, dim: int, head_dim: int, value_dim: int = 1) -> int:
    """Return H(2 d d_h + (d + d_v) min(d, d_v)) with H = ⌈(N − 1)/(min(n, d_h) − 1)⌉.

    >>> sufficient(examples=301, length=32, dim=64, head_dim=16)
    42260
    """
    if length >= dim:
        raise BadInput(f"length is {length} and dim is {dim}; expected n < d")
    heads = heads_needed(examples, length, head_dim)
    return heads * (2 * dim * head_dim + (dim + value_dim) * min(dim, value_dim))


BOUNDS = (
    Bound(
        name="mahdavi-2024-next-token",
        paper="Mahdavi, Liao & Thrampoulidis 2024",
        source="Memorization Capacity of Multi-Head Attention in Transformers, ICLR 2024, Theorem 1",
        setting="next-token",
        model="one multi-head softmax attention layer, d_v real outputs (d_v = 1 for labels), no feed-forward layer",
        side="upper",
        kind="proved",
        expression="⌈(N − 1)/(min(n, d_h) − 1)⌉ · (2dd_h + (d + d_v)·min(d, d_v))",
        hypotheses=(
            "n < d",
            "every n queries are linearly independent (Kruskal rank at least n)",
            "every context has rank n",
        ),
        paper_letters={
            "T": "N, examples",
            "E⁽ᵗ⁾": "a sequence: n tokens",
            "e⁽ᵗ⁾": "the query token, beside the sequence",
        },
        formula=sufficient,
        conditions={"n < d": lambda length, dim: length < dim},
    ),
)
