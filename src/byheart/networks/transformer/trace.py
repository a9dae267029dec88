"""The stream of a float Transformer after every sublayer, as exact numbers."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from byheart.networks.transformer.transformer_network import TransformerNetwork

if TYPE_CHECKING:
    import torch

Rows = list[list[int | Fraction]]
"""Numbers of every token: one list per token."""


def trace(network: TransformerNetwork, tokens: Sequence[int]) -> Iterator[tuple[str, Rows]]:
    """Yield names and numbers: the tokens, the features that each sublayer has written, and the answers.

    An answer is the label with the largest logit; there is one after every token.
    """
    import torch

    module, spec = network.module, network.spec
    seen: dict[str, Any] = {}

    def keep(layer: Any, _: object, out: Any) -> None:
        stream = out[0] if isinstance(out, tuple) else out
        seen[layer.spec.name] = stream.clone()  # the next sublayer writes into the same one

    hooks = [getattr(module, sublayer.name).register_forward_hook(keep) for sublayer in spec.sublayers]
    try:
        with torch.no_grad():
            given = torch.tensor([[int(token) for token in tokens]])
            answers = module(given)[0].argmax(-1)
    finally:
        for hook in hooks:
            hook.remove()
    yield "input", [[int(token)] for token in tokens]
    yield "embedding", _rows(module.embedding.W_E.detach()[given[0]].T, range(len(spec.embeds)))
    for sublayer in spec.sublayers:
        yield sublayer.name, _rows(seen[sublayer.name], sorted(set(sublayer.writes)))
    yield "answer", [[int(answer)] for answer in answers]


def _rows(stream: "torch.Tensor", features: Sequence[int]) -> Rows:
    """Return some features of a stream [D, T], token by token."""
    columns = stream[list(features)].T.tolist()
    return [[_exact(value) for value in column] for column in columns]


def _exact(value: float) -> int | Fraction:
    """Return the exact value of a float.

    >>> _exact(3.0), _exact(0.75)
    (3, Fraction(3, 4))
    """
    return int(value) if value.is_integer() else Fraction(value)
