"""Morris et al. 2025: trained GPTs hold about 3.6 bits per parameter. Measured, not proved.

GPT-style models of 5·10⁵ to 1.5·10⁹ parameters were trained on uniformly random data until they memorized no more.
They then hold about 3.6 bits per parameter. Conversely, a model of N log₂C / 3.6 parameters learns N labels out of C
(N log₂C bits).

- Letters: the paper counts bits; N and C are ours.
- Measured on random sequences, with the paper's training. Other sizes, data and training may reach less (``byheart lab
  capacity`` gives our own figures). Neither an upper nor a lower bound.
"""

import math

from byheart.bounds.bound import Bound

BITS_PER_PARAMETER = 3.6


def held(examples: int, labels: int) -> float:
    """Return N log₂C / 3.6.

    >>> round(held(examples=1000, labels=10))
    923
    """
    return examples * math.log2(labels) / BITS_PER_PARAMETER


BOUNDS = (
    Bound(
        name="morris-2025-trained",
        paper="Morris et al. 2025",
        source="How much do language models memorize?, arXiv:2505.24832",
        setting="next-token",
        model="GPT-style Transformers, trained",
        side="upper",
        kind="measured",
        expression="N log₂C / 3.6",
        hypotheses=("5·10⁵ parameters or more, trained as theirs were", "random labels"),
        formula=held,
    ),
)
