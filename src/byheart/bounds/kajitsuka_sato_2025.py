"""Kajitsuka & Sato 2025: √N for next-token, √(nN) for seq-to-seq, optimal up to logarithms.

**Sufficient**: feed-forward network · one layer of *uniform* attention · feed-forward network, of constant width.
Tokens get codes, uniform attention sums them to a sequence id, and a ReLU network looks up the label with Õ(√keys)
parameters. The keys are N sequence ids (next-token) or at most nN pairs of token and id (seq-to-seq). So the length n
is almost free in next-token prediction, and the feed-forward network is the bottleneck in seq-to-seq.

**Why Ω(√N) is needed**: take N sequences, each of n equal tokens, all N tokens different. Attention averages equal
vectors, whatever its weights, so on these sequences the Transformer is a feed-forward ReLU network with the same
parameters. With W of them its VC dimension is O(W²) (Goldberg & Jerrum 1995). To memorize every labelling is to
shatter the N tokens, hence N ≤ O(W²).

**Why √(nN/log(nN))**: the same count with nN tokens, one label each; comparisons inside hardmax cost the logarithm.
The paper proves it for hardmax; for softmax in seq-to-seq the question is open.

- Letters: the paper's N, n, d, C, r, δ are ours.
- Order only, on both sides: Õ hides constants and logarithms of n, N, C, d and r/δ. Explicit counts come from
  building the network; :mod:`byheart.bounds.vc` has lower bounds with constants, for uniform attention and for
  constant sequences.
- Not checked here: separation, and that the N sequences differ as multisets (without positions).
- The upper bounds need weights of about √keys bits. With b bits per weight, :mod:`byheart.bounds.counting` is stronger.
"""

import math
from functools import partial

from byheart.bounds.bound import Bound, may_differ


def next_token(examples: int) -> float:
    """Return √N, the expression inside Õ(·) and Ω(·).

    >>> next_token(examples=10_000)
    100.0
    """
    return math.sqrt(examples)


def sufficient_seq_to_seq(examples: int, length: int) -> float:
    """Return √(nN), the expression inside Õ(·).

    >>> sufficient_seq_to_seq(examples=10_000, length=4)
    200.0
    """
    return math.sqrt(length * examples)


def needed_seq_to_seq(examples: int, length: int) -> float:
    """Return √(nN / log(nN)), the expression inside Ω(·), with a logarithm of at least 1.

    >>> round(needed_seq_to_seq(examples=10_000, length=4), 2)
    61.44
    """
    return math.sqrt(length * examples / max(1.0, math.log(length * examples)))


SOURCE = "On the Optimal Memorization Capacity of Transformers, ICLR 2025"
MODEL = "feed-forward network, one layer of uniform attention, feed-forward network; constant width, ReLU"
SEPARATED = "tokens are (r, δ)-separated: norm at most r, different tokens at least δ apart"
DISTINCT = "the N sequences are not permutations of each other (or positions are encoded)"
BITS = "weights have as many bits as they need, about the square root of the number of keys"
_bound = partial(Bound, paper="Kajitsuka & Sato 2025", kind="order")

BOUNDS = (
    _bound(
        name="kajitsuka-sato-2025-next-token-upper",
        source=f"{SOURCE}, upper bound for next-token prediction",
        setting="next-token",
        model=MODEL,
        side="upper",
        expression="Õ(√N)",
        hypotheses=(SEPARATED, DISTINCT, BITS),
        formula=next_token,
        conditions={DISTINCT: may_differ},
    ),
    _bound(
        name="kajitsuka-sato-2025-next-token-lower",
        source=f"{SOURCE}, lower bound for next-token prediction (by Goldberg & Jerrum 1995)",
        setting="next-token",
        model="any Transformer with ReLU feed-forward layers",
        side="lower",
        expression="Ω(√N)",
        hypotheses=("one network shape memorizes every dataset of N sequences, among them those with equal tokens",),
        formula=next_token,
    ),
    _bound(
        name="kajitsuka-sato-2025-seq-to-seq-upper",
        source=f"{SOURCE}, upper bound for seq-to-seq prediction",
        setting="seq-to-seq",
        model=MODEL,
        side="upper",
        expression="Õ(√(nN))",
        hypotheses=(SEPARATED, "sequences that are permutations of each other ask for permuted labels", BITS),
        formula=sufficient_seq_to_seq,
    ),
    _bound(
        name="kajitsuka-sato-2025-seq-to-seq-lower",
        source=f"{SOURCE}, lower bound for seq-to-seq prediction",
        setting="seq-to-seq",
        model="any Transformer with hardmax attention and ReLU feed-forward layers",
        side="lower",
        expression="Ω(√(nN / log(nN)))",
        hypotheses=("hardmax attention", "one network shape memorizes every dataset of N sequences of n tokens"),
        formula=needed_seq_to_seq,
    ),
)
