"""Sizes of a task, in the letters that the papers share."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """The sizes of a task. Every bound and every plan is a function of them.

    ========  ======  ======================================================
    field     letter  meaning
    ========  ======  ======================================================
    examples  N       sequences to memorize
    length    n       tokens per sequence
    labels    C       different labels
    vocab     ω       different tokens: possible ids, or distinct vectors
    dim       d       token dimension; ``None`` when tokens are ids
    ========  ======  ======================================================

    >>> Size(examples=1000, length=32, labels=10, vocab=200).examples
    1000
    """

    examples: int
    length: int
    labels: int
    vocab: int
    dim: int | None = None
