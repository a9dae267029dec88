"""Madden, Fox & Thrampoulidis 2024: next-token distributions cost Θ(ωN), and no model does better.

**Needed**: a model that can interpolate any N next-token distributions over ω tokens has at least N(ω − 1)
parameters. The targets are the interior of a set of dimension N(ω − 1), and a locally Lipschitz map (any network of
matrix products, softmax and ordinary activations) from R^W with W < N(ω − 1) has an image of measure zero in it.

**Sufficient**: O(ωN) with one decoder layer. The paper states the order. Its argument already works in embedding
dimension one, where everything can be counted; this is the count that the module gives, ωN + 2N + ω + n + 4:

1. ω token and n position numbers, x_j = e(t_j) + p_j.
2. One head without skip connection, 4 numbers: z = Σ_j softmax_j(a x_n x_j) x_j. For almost all e, p, a it is
   injective on any finite set of contexts of length n: a difference of two contexts' z is analytic in (e, p, a), so
   it is zero almost nowhere unless it vanishes identically. At a = 0, z is the mean, which tells different multisets
   apart. For reorderings take the derivative at a = 0, x_n Var(x). If the last tokens agree, Var changes by
   (2/n) Σ p_j (e(t_j) − e(t'_j)) ≠ 0. If they do not, choose x_n = 0 for one context and, for the other, x'_n ≠ 0 and
   Var(x') ≠ 0.
3. N hidden units σ(w_i z + b_i), 2N numbers: for σ not a polynomial some w, b make the N × N matrix on N different z
   invertible (Pinkus 1999, Theorem 5.1).
4. N × ω output weights: solve for the N log-probability vectors, exactly.

- Letters: their n is our N (contexts), their ζ our ω (vocabulary), their k the number of parameters.
- Exact: both numbers. Their gap is 3N + ω + n + 4, so their ratio tends to one as N and ω grow.
- Not checked here: that the contexts differ. Zero probabilities are reached only in the limit.
"""

from functools import partial

from byheart.bounds.bound import Bound, may_differ


def needed(examples: int, vocab: int) -> int:
    """Return N(ω − 1), the dimension of N arbitrary distributions over ω tokens.

    >>> needed(examples=100, vocab=50)
    4900
    """
    return examples * (vocab - 1)


def sufficient(examples: int, length: int, vocab: int) -> int:
    """Return ωN + 2N + ω + n + 4: output layer, hidden layer, token numbers, position numbers, one head.

    >>> sufficient(examples=100, length=8, vocab=50)
    5262
    """
    return vocab * examples + 2 * examples + vocab + length + 4


SOURCE = "Next-token prediction capacity: general upper bounds and a lower bound for transformers, arXiv:2405.13718"
PAPER_LETTERS = {"n": "N, examples", "ζ": "ω, vocab", "k": "number of parameters"}
_bound = partial(Bound, paper="Madden, Fox & Thrampoulidis 2024", kind="proved", paper_letters=PAPER_LETTERS)

BOUNDS = (
    _bound(
        name="madden-2024-distribution-upper",
        source=SOURCE + "; stated as O(ωN), counted here for embedding dimension 1",
        setting="next-token-distribution",
        model="one decoder layer: one softmax head without skip connection, N hidden units, embedding dimension 1",
        side="upper",
        expression="ωN + 2N + ω + n + 4",
        hypotheses=(
            "the N contexts differ",
            "every probability is positive",
            "the activation is analytic and not a polynomial",
            "real parameters",
        ),
        formula=sufficient,
        conditions={"the N contexts differ": may_differ},
    ),
    _bound(
        name="madden-2024-distribution-lower",
        source=SOURCE,
        setting="next-token-distribution",
        model="any model whose output is a locally Lipschitz function of real parameters",
        side="lower",
        expression="N(ω − 1)",
        hypotheses=(
            "the same N contexts may ask for any N distributions",
            "they are interpolated exactly",
            "the output is a locally Lipschitz function of the parameters",
        ),
        formula=needed,
    ),
)
