"""Ravfogel, Yehudai, Bruna & Bietti 2026: facts in the embeddings; their dimension need only be logarithmic.

Statement: S subjects and R relations, each relation a random bijection from subjects to one set of attributes. A
Transformer of one layer whose subjects' embeddings are sums of attribute vectors recalls all facts with embeddings of
dimension O(R log S). A small MLP selects the requested attribute and stores no facts. Chains of relations ("the
mother of the wife of") trade width against depth, or against a chain of thought.

- Letters: their subjects S times R are our N, examples; R is ``relations``.
- Order only. In parameters, S embeddings of that dimension are N log S numbers: linear in the facts up to the
  logarithm, in agreement with counting.
- Not checked here: that relations are bijections onto the same attributes.
"""

import math

from byheart.bounds.bound import Bound, Statement
from byheart.errors import BadInput

PAPER = "Ravfogel, Yehudai, Bruna & Bietti 2026"
SOURCE = "Geometric Factual Recall in Transformers, arXiv:2605.12426"
HYPOTHESES = (
    "examples are facts: each of N/R subjects with each of R relations",
    "relations are random bijections onto one set of attributes",
)
MODEL = "one layer with learned embeddings and a small MLP"


def dimension(examples: int, relations: int) -> float:
    """Return R log(N/R), the expression inside O(·).

    >>> round(dimension(examples=1000, relations=4), 2)
    22.09
    """
    if relations > examples:
        raise BadInput(f"relations is {relations} and examples {examples}; expected R ≤ N, a subject or more")
    return relations * math.log(examples / relations)


def sufficient(examples: int, relations: int) -> float:
    """Return N log(N/R), the entries of N/R embeddings of dimension R log(N/R).

    >>> round(sufficient(examples=1000, relations=4))
    5521
    """
    return examples / relations * dimension(examples, relations)


BOUNDS = (
    Bound(
        name="ravfogel-2026-facts",
        paper=PAPER,
        source=SOURCE + "; stated for the dimension, multiplied here by the subjects",
        setting="next-token",
        model=MODEL,
        side="upper",
        kind="order",
        expression="O(N log(N/R)) in the embedding table",
        hypotheses=HYPOTHESES,
        formula=sufficient,
        paper_letters={"R": "relations"},
    ),
)
STATEMENTS = (
    Statement(
        name="ravfogel-2026-dimension",
        paper=PAPER,
        source=SOURCE,
        setting="next-token",
        model=MODEL,
        kind="order",
        says="embeddings of dimension O(R log(N/R)) are enough for R relations of N/R subjects",
        counts="embedding dimension",
        hypotheses=HYPOTHESES,
        formula=dimension,
    ),
)
