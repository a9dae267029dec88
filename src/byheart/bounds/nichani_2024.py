"""Nichani, Lee & Bietti 2024: facts in attention or in the MLP, either of them linear in the facts up to logarithms.

Statement: a fact is a subject and a relation with their answer, somewhere in a sequence of noise. One layer of
self-attention followed by an MLP recalls all facts as soon as the parameters of the attention, *or* those of the MLP,
are linear in the number of facts up to logarithmic factors: one can be traded for the other.

- Letters: their S subjects times R relations are our N, examples.
- Order only: the power of the logarithm is left out. The paper's lower bounds match up to logarithms; with b bits per
  parameter the lower bound is :mod:`.counting`.
- Not checked here: that embeddings are random, and that sequences have the form that the theorem assumes.
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
        name="nichani-2024-facts",
        paper="Nichani, Lee & Bietti 2024",
        source="Understanding Factual Recall in Transformers via Associative Memories, arXiv:2412.06538",
        setting="next-token",
        model="one layer of self-attention and an MLP; the facts in either of the two",
        side="upper",
        kind="order",
        expression="Õ(N)",
        hypotheses=("examples are facts: a subject and a relation among noise", "random embeddings"),
        formula=sufficient,
        paper_letters={"SR": "N, examples: subjects times relations"},
    ),
)
