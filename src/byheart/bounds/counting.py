"""Counting: W parameters of b bits are 2^{Wb} networks, and C^N labellings need as many: W·b ≥ N log₂ C.

Statement: fix a network's shape and its arithmetic, and store each of its W parameters in b bits. There are at most
2^{Wb} such networks, and each gives one labelling of the N inputs. If every one of the C^N labellings is to be
reached, then W·b ≥ N log₂ C. In seq-to-seq every position of every sequence has a label: W·b ≥ nN log₂ C, if all nN
(token, sequence) pairs differ, so that no two of their labels are tied.

- Exact for every model and every arithmetic; float networks meet this bound. The square-root bounds of the other
  modules do not contradict it: their weights have about √N bits.
- The number is rounded up to an integer. An irrational log₂ C is first multiplied by 1 − 2⁻⁴⁸, so that a float error
  can never claim one parameter too many.
- Not checked here: that the inputs differ.
"""

import math
from functools import partial

from byheart.bounds.bound import Bound, may_differ
from byheart.errors import BadInput

FLOAT_MARGIN = 2.0**-48  # exceeds the joint error of a logarithm, a product and a quotient in floats


def bits_needed(answers: int, labels: int) -> float:
    """Return a lower bound on the bits of ``answers`` free choices among C labels, exact if C is a power of two.

    >>> bits_needed(answers=1000, labels=8)
    3000
    """
    if labels & (labels - 1) == 0:
        return answers * (labels.bit_length() - 1)
    return answers * math.log2(labels) * (1 - FLOAT_MARGIN)


def needed(examples: int, labels: int, bits: int) -> int:
    """Return ⌈N log₂ C / b⌉.

    >>> needed(examples=1000, labels=10, bits=32)
    104
    """
    return math.ceil(bits_needed(examples, labels) / bits)


def needed_seq_to_seq(examples: int, length: int, labels: int, bits: int) -> int:
    """Return ⌈nN log₂ C / b⌉.

    >>> needed_seq_to_seq(examples=1000, length=5, labels=10, bits=32)
    520
    """
    return needed(length * examples, labels, bits)


def most(parameters: int, labels: int, bits: int) -> int:
    """Return the largest N with N log₂ C ≤ W·b, the most inputs whose labellings can all be reached.

    >>> most(parameters=104, labels=10, bits=32), needed(examples=1001, labels=10, bits=32)
    (1001, 104)
    """
    if labels < 2:
        raise BadInput(f"labels is {labels}; expected at least 2: with one there is nothing to memorize")
    return int(parameters * bits // bits_needed(1, labels))


def pairs_may_differ(examples: int, length: int, vocab: int) -> bool | None:
    """Decide whether all nN (token, sequence) pairs can differ: False if a sequence must repeat a token (n > ω)."""
    return False if length > vocab else may_differ(examples, length, vocab)


HYPOTHESES = (
    "the shape and the arithmetic are fixed before the labels are known",
    "every parameter is stored in b bits",
    "every labelling may be asked for",
)
_bound = partial(Bound, paper="counting", model="any, b bits per parameter", side="lower", kind="proved")

BOUNDS = (
    _bound(
        name="counting",
        source="pigeonhole: 2^{Wb} networks, C^N labellings",
        setting="any",
        expression="⌈N log₂ C / b⌉",
        hypotheses=(*HYPOTHESES, "the N inputs differ"),
        formula=needed,
        conditions={"the N inputs differ": may_differ},
    ),
    _bound(
        name="counting-seq-to-seq",
        source="pigeonhole: 2^{Wb} networks, C^{nN} labellings",
        setting="seq-to-seq",
        expression="⌈nN log₂ C / b⌉",
        hypotheses=(*HYPOTHESES, "the nN pairs of token and sequence differ"),
        formula=needed_seq_to_seq,
        conditions={"the nN pairs of token and sequence differ": pairs_may_differ},
    ),
)
