"""Layers in a row become the network of a task: what it reads, where it answers, how long its sequences are."""

from collections.abc import Mapping, Sequence
from typing import Any

from byheart.networks.exact import ExactNetwork, Layer
from byheart.tasks import NextToken, SeqToSeq


def network_for(
    task: NextToken | SeqToSeq, layers: Sequence[Layer], about: Mapping[str, Any] | None = None
) -> ExactNetwork:
    """The network of ``layers`` that reads the task's tokens and answers where its labels are; ``about`` is noted.

    >>> from byheart.networks.exact import Embedding, integers
    >>> task = SeqToSeq(tokens=[[0, 1]], labels=[[1, 0]])
    >>> network = network_for(task, [Embedding(integers([[1], [0]]))])
    >>> network.inputs, network.outputs, network.length
    ('tokens', 'every', 2)
    """
    size = task.size
    return ExactNetwork(
        tuple(layers),
        inputs="tokens" if size.dim is None else "vectors",
        outputs="last" if isinstance(task, NextToken) else "every",
        length=size.length,
        dim=size.dim or 1,
        about=about or {},
    )
