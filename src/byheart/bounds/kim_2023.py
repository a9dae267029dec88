"""Kim, Kim & Mozafari 2023: the first memorization bound for Transformers, Õ(d + n + √(nN)), seq-to-seq.

Statement: for every consistent, token-wise (r, δ)-separated dataset of N sequences of n tokens in R^d with labels in
[C]^n there is a deep Transformer of constant width with Õ(d + n + √(nN)) parameters that maps each token of each
sequence to its label. It builds an id of the sequence in n rounds of attention, then a ReLU network looks up (token,
id).

- Letters: the paper's N, n, d, C are ours.
- Order only: Õ hides constants and logarithms (of n, N, C, d and r/δ).
- Not checked here: separation, and that the dataset is consistent.
"""

import math

from byheart.bounds.bound import Bound


def sufficient(examples: int, length: int, dim: int) -> float:
    """Return d + n + √(nN), the expression inside Õ(·).

    >>> sufficient(examples=100, length=4, dim=8)
    32.0
    """
    return dim + length + math.sqrt(length * examples)


BOUNDS = (
    Bound(
        name="kim-2023-seq-to-seq",
        paper="Kim, Kim & Mozafari 2023",
        source="Provable Memorization Capacity of Transformers, ICLR 2023",
        setting="seq-to-seq",
        model="deep Transformer of constant width, softmax or hardmax attention, ReLU feed-forward layers",
        side="upper",
        kind="order",
        expression="Õ(d + n + √(nN))",
        hypotheses=(
            "tokens are (r, δ)-separated: norm at most r, different tokens at least δ apart",
            "sequences that are permutations of each other ask for permuted labels (or positions are encoded)",
            "weights have as many bits as they need",
        ),
        formula=sufficient,
    ),
)
