"""Bits per parameter that trained models hold: measured, not proved; neither an upper nor a lower bound.

A model of N log₂C / b parameters learns N labels out of C (N log₂C bits), where b is the measured number of bits per
parameter. The papers count bits; N and C are ours.

**Allen-Zhu & Li 2024: 2 bits of knowledge.** Language models of many shapes were trained on synthetic facts (a person,
an attribute, its value) in sentences, each seen a thousand times. The bits of knowledge per parameter then peak at
about 2, also after rounding to 8-bit integers. With a hundred exposures they peak at about 1.

**Morris et al. 2025: about 3.6 bits.** GPT-style models of 5·10⁵ to 1.5·10⁹ parameters were trained on uniformly random
sequences until they memorized no more. Other sizes, data and training may reach less (``byheart lab capacity`` gives
our own figures).
"""

import math
from functools import partial

from byheart.bounds.bound import Bound

ALLEN_ZHU_LI_BITS = 2.0
MORRIS_BITS = 3.6


def parameters(bits: float, examples: int, labels: int) -> float:
    """Return N log₂C / b.

    >>> round(parameters(MORRIS_BITS, examples=1000, labels=10))
    923
    """
    return examples * math.log2(labels) / bits


_bound = partial(Bound, setting="next-token", side="upper", kind="measured")

BOUNDS = (
    _bound(
        name="allen-zhu-li-2024-trained",
        paper="Allen-Zhu & Li 2024",
        source="Physics of Language Models: Part 3.3, Knowledge Capacity Scaling Laws, arXiv:2404.05405",
        model="language models, trained on facts",
        expression="N log₂C / 2",
        hypotheses=("examples are facts in sentences, each seen a thousand times", "trained as theirs were"),
        formula=partial(parameters, ALLEN_ZHU_LI_BITS),
    ),
    _bound(
        name="morris-2025-trained",
        paper="Morris et al. 2025",
        source="How much do language models memorize?, arXiv:2505.24832",
        model="GPT-style Transformers, trained",
        expression="N log₂C / 3.6",
        hypotheses=("5·10⁵ parameters or more, trained as theirs were", "random labels"),
        formula=partial(parameters, MORRIS_BITS),
    ),
)
