"""The layers of exact Transformers.

Every weight is an integer (:func:`integers`), and every layer may divide by a power of two, so every value in the
network is a rational number that is known exactly. Only softmax attention makes real numbers of them, which
:mod:`byheart.networks.exact.enclose` encloses. A sequence is ``[n, d_model]``; token-wise layers act on each row, and
mixing layers act across rows.

=====================  ==========  =========================================================================
layer                  token-wise  map
=====================  ==========  =========================================================================
:class:`Embedding`     yes         token id t ↦ W_E[t]
:class:`Positions`     yes         Z_k ↦ Z_k + W_pos[k]
:class:`FeedForward`   yes         a chain of :class:`Affine` maps, with or without residual
:class:`Residual`      yes         a chain of :class:`Block`, Z ↦ Z + W_out relu(W_in Z + b_in)
:class:`UniformAttention`   no     Z_k ↦ Z_k + W_O W_V · mean(Z), the layer of Kajitsuka & Sato 2025
:class:`HardmaxAttention`   no     Z_k ↦ Z_k + W_O W_V · mean of the Z_j that maximise (W_K Z_j)·(W_Q Z_k)
:class:`SoftmaxAttention`   no     Z_k ↦ Z_k + W_O W_V · Σ_j a_kj Z_j, a_k = softmax of these scores; scaled by 2^−shift
:class:`TokenSum`      no          Z_k ↦ Z_k + 2 Σ_j Z_j: Deep Sets in its place, without weights
:class:`Flatten`       no          the n rows become one row of n·d_model entries (networks on points)
=====================  ==========  =========================================================================
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput

Integers: TypeAlias = NDArray[np.object_]
"""An object array whose every entry is a Python ``int``."""


def integers(values: Iterable[object] | NDArray[np.generic], shape: tuple[int, ...] | None = None) -> Integers:
    """Return ``values`` as exact integers, refusing anything that is not one.

    >>> integers([[1, 2**100], [0, -3]]).shape
    (2, 2)
    >>> integers([0.5])
    Traceback (most recent call last):
    byheart.errors.BadInput: entry 0 of an exact matrix is 0.5 (float); expected an integer
    """
    array = values.astype(object) if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    flat = array.ravel()
    for position, value in enumerate(flat):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise BadInput(
                f"entry {position} of an exact matrix is {value!r} ({type(value).__name__}); expected an integer"
            )
        flat[position] = int(value)
    result = flat.reshape(array.shape if shape is None else shape)
    result.flags.writeable = False
    return result


def identity(width: int, factor: int = 1) -> Integers:
    """Return ``factor`` times the identity matrix."""
    return integers(factor * np.eye(width, dtype=object))


def expect(condition: bool, message: str) -> None:
    """Raise BadInput with ``message`` unless ``condition`` holds."""
    if not condition:
        raise BadInput(message)


MOST_SHIFT = 1 << 22
"""Largest sum of all shifts of a network: a number may take half a megabyte, and no sum of shifts leaves 64 bits."""


def check_shift(name: str, key: str, value: object) -> None:
    """Raise BadInput unless ``value`` is a whole number that a layer may be shifted by."""
    fits = type(value) is int and 0 <= value <= MOST_SHIFT
    expect(fits, f"{name}: {key} is {value!r}; expected an integer, 0 or more and at most {MOST_SHIFT:,}")


@dataclass(frozen=True, eq=False)
class Affine:
    """x ↦ (W x + b) / 2^shift, then the ReLU if ``relu``; W is [out, in], b is [out].

    ``role`` is the layer's purpose in a word or two; it becomes part of the tensors' names.
    """

    W: Integers
    b: Integers
    shift: int = 0
    relu: bool = True
    role: str = "affine"

    def __post_init__(self) -> None:
        expect(self.W.ndim == 2, f"{self.role}: W has shape {self.W.shape}; expected [out, in]")
        expect(
            self.b.shape == self.W.shape[:1], f"{self.role}: b has shape {self.b.shape}; expected {self.W.shape[:1]}"
        )
        check_shift(self.role, "shift", self.shift)


def linear(matrix: Integers) -> Affine:
    """Return the linear map of ``matrix`` [out, in], without bias and ReLU."""
    return Affine(integers(matrix), integers([0] * len(matrix)), relu=False)


@dataclass(frozen=True, eq=False)
class Embedding:
    """Token id t ↦ W_E[t]; W_E is [vocab, d_model]."""

    W_E: Integers
    name: str = "embedding"


@dataclass(frozen=True, eq=False)
class Positions:
    """Z_k ↦ Z_k + W_pos[k]; W_pos is [n, d_model]."""

    W_pos: Integers
    name: str = "positions"


@dataclass(frozen=True, eq=False)
class FeedForward:
    """Affine layers applied in order to every token; with ``residual`` the input is added to the result."""

    layers: tuple[Affine, ...]
    residual: bool = False
    name: str = "feed_forward"

    def __post_init__(self) -> None:
        expect(len(self.layers) > 0, f"{self.name}: expected at least one layer")
        for before, after in pairwise(self.layers):
            expect(
                after.W.shape[1] == before.W.shape[0],
                f"{self.name}: {after.role} reads {after.W.shape[1]} values; {before.role} gives {before.W.shape[0]}",
            )
        if self.residual:
            expect(
                self.layers[0].W.shape[1] == self.layers[-1].W.shape[0],
                f"{self.name}: a residual needs as many outputs as inputs",
            )


@dataclass(frozen=True, eq=False)
class Block:
    """Z ↦ Z + W_out relu(W_in Z + b_in): W_in is [d_ff, d_model], W_out is [d_model, d_ff]; there is no second bias."""

    W_in: Integers
    b_in: Integers
    W_out: Integers
    role: str = "block"

    def __post_init__(self) -> None:
        expect(self.W_in.ndim == 2, f"{self.role}: W_in has shape {self.W_in.shape}; expected [d_ff, d_model]")
        d_ff, d_model = self.W_in.shape
        fits = self.b_in.shape == (d_ff,) and self.W_out.shape == (d_model, d_ff)
        expect(
            fits, f"{self.role}: W_in {self.W_in.shape}, b_in {self.b_in.shape}, W_out {self.W_out.shape} do not fit"
        )


@dataclass(frozen=True, eq=False)
class Residual:
    """Residual feed-forward blocks, applied in order to every token."""

    blocks: tuple[Block, ...]
    name: str = "residual"

    def __post_init__(self) -> None:
        expect(len(self.blocks) > 0, f"{self.name}: expected at least one block")
        for before, after in pairwise(self.blocks):
            widths = before.W_in.shape[1], after.W_in.shape[1]
            expect(
                widths[0] == widths[1],
                f"{self.name}: {after.role} reads {widths[1]} values; the stream has {widths[0]}",
            )


@dataclass(frozen=True, eq=False)
class UniformAttention:
    """Z_k ↦ Z_k + W_O W_V (1/n) Σ_j Z_j; W_V is [d_head, d_model], W_O is [d_model, d_head].

    This is softmax attention with W_Q = 0. As in the paper it has no W_Q and W_K to count.
    """

    W_V: Integers
    W_O: Integers
    name: str = "attention"


@dataclass(frozen=True, eq=False)
class HardmaxAttention:
    """Z_k ↦ Z_k + W_O W_V · (mean of the Z_j whose score (W_K Z_j)·(W_Q Z_k) is the largest).

    W_Q and W_K are [d_head, d_model], W_V is [d_value, d_model], W_O is [d_model, d_value]. Ties share the attention
    equally: the limit of softmax attention as its scores grow. With ``causal`` position k sees the j ≤ k only.
    """

    W_Q: Integers
    W_K: Integers
    W_V: Integers
    W_O: Integers
    causal: bool = False
    name: str = "attention"


@dataclass(frozen=True, eq=False)
class SoftmaxAttention:
    """Z_k ↦ Z_k + W_O W_V Σ_j a_kj Z_j / 2^shift, a_k = softmax_j((W_K Z_j)·(W_Q Z_k) / 2^score_shift).

    The shapes are those of :class:`HardmaxAttention`. The outputs are real numbers: they are enclosed, never rounded.
    """

    W_Q: Integers
    W_K: Integers
    W_V: Integers
    W_O: Integers
    score_shift: int = 0
    shift: int = 0
    name: str = "attention"

    def __post_init__(self) -> None:
        for key in ("score_shift", "shift"):
            check_shift(self.name, key, getattr(self, key))


@dataclass(frozen=True)
class TokenSum:
    """Z_k ↦ Z_k + 2 Σ_j Z_j: the sum of all tokens is added to every token, as in Deep Sets; there are no weights.

    The factor 2 lets integers tell their own row from the sum: modulo 2, the result is Z_k.
    """

    name: str = "sum"


@dataclass(frozen=True)
class Flatten:
    """All rows of a sequence concatenated to one row: [n, d_model] ↦ [1, n·d_model]."""

    name: str = "flatten"


Attention: TypeAlias = UniformAttention | HardmaxAttention | SoftmaxAttention
Layer: TypeAlias = Embedding | Positions | FeedForward | Residual | Attention | TokenSum | Flatten
TOKEN_WISE = (Embedding, Positions, FeedForward, Residual)
