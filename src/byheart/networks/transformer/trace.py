"""The numbers that a float Transformer writes into its stream, sublayer by sublayer, as exact numbers."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from byheart.networks.transformer.transformer_network import TransformerNetwork

if TYPE_CHECKING:
    import torch

Rows = list[list[int | Fraction]]
"""Numbers of every token: one list per token."""


def trace(network: TransformerNetwork, tokens: Sequence[int]) -> Iterator[tuple[str, Rows]]:
    """Yield names and numbers: the tokens, the features that each sublayer writes, and the answers.

    An answer is the label with the largest logit; there is one after every token.
    """
    import torch

    spec, ids = network.spec, [int(token) for token in tokens]
    with torch.no_grad():
        logits, (embedded, *streams) = network.module.watched(torch.tensor([ids]))
    yield "input", [[token] for token in ids]
    yield "embedding", _rows(embedded[0], spec.embeds)
    for sublayer, stream in zip(spec.sublayers, streams, strict=True):
        yield sublayer.name, _rows(stream[0], sorted(set(sublayer.writes)))
    yield "answer", [[answer] for answer in logits[0].argmax(-1).tolist()]


def _rows(stream: "torch.Tensor", features: Sequence[int]) -> Rows:
    """Return some features of a stream [T, D], token by token."""
    return [[_exact(value) for value in row] for row in stream[:, list(features)].tolist()]


def _exact(value: float) -> int | Fraction:
    """Return the exact value of a float.

    >>> _exact(3.0), _exact(0.75)
    (3, Fraction(3, 4))
    """
    return int(value) if value.is_integer() else Fraction(value)
