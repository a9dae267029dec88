"""Allen-Zhu & Li 2024: trained language models hold 2 bits of knowledge per parameter. Measured, not proved.

Models of many shapes were trained on synthetic facts (a person, an attribute, its value), each seen a thousand times.
The bits of knowledge per parameter then peak at about 2, also after rounding to 8-bit integers. With a hundred
exposures they peak at about 1. Conversely, a model of N log₂C / 2 parameters knows N answers out of C (N log₂C bits).

- Letters: the paper counts bits of knowledge; N and C are ours.
- Measured on facts in sentences, with the paper's training. Neither an upper nor a lower bound.
"""

import math

from byheart.bounds.bound import Bound

BITS_PER_PARAMETER = 2.0


def held(examples: int, labels: int) -> float:
    """Return N log₂C / 2.

    >>> held(examples=1000, labels=16)
    2000.0
    """
    return examples * math.log2(labels) / BITS_PER_PARAMETER


BOUNDS = (
    Bound(
        name="allen-zhu-li-2024-trained",
        paper="Allen-Zhu & Li 2024",
        source="Physics of Language Models: Part 3.3, Knowledge Capacity Scaling Laws, arXiv:2404.05405",
        setting="next-token",
        model="language models, trained on facts",
        side="upper",
        kind="measured",
        expression="N log₂C / 2",
        hypotheses=("examples are facts in sentences, each seen a thousand times", "trained as theirs were"),
        formula=held,
    ),
)
