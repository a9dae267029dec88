"""Tasks that constructions without positions must refuse, and what they say."""

from byheart.tasks import NextToken, SeqToSeq

ALIKE_UP_TO_ORDER: list[tuple[NextToken | SeqToSeq, str]] = [
    (
        SeqToSeq(tokens=[[1, 2], [3, 3]], labels=[[0, 0], [0, 1]]),
        "example 1, position 0 and example 1, position 1 are equal tokens in equal sequences up to order: "
        "asked for label 0 and label 1; --positions makes order matter",
    ),
    (
        NextToken(vectors=[[[0.0], [1.0]], [[1.0], [-0.0]]], labels=[0, 1]),
        "example 0 and example 1 are equal sequences up to order: asked for label 0 and label 1; "
        "--positions makes order matter",
    ),
]
