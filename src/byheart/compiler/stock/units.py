"""Put a stock model together unit by unit: one width, equal layers, no biases, RMSNorm that does nothing.

**RMSNorm is the identity.** The features ``ONE`` hold 2⁵² for every token, and nothing is ever added to them. The
squares of all other features add up to less than 2⁷⁹, half a unit in the last place of 2¹⁰⁴. In whatever order float32
adds, the sum of squares is exactly 2¹⁰⁴ (2¹⁰⁵ with two such features), its mean an even power of two, its inverse root
a power of two, and ε vanishes. The norm's weights undo it: features come out as they are, and ``ONE`` as 1, the bias of
every layer.

**SiLU is ReLU** at multiples of ``ON``: silu(x) = x for x ≥ 32, since 1 + e^−x is 1; it is 0 for x ≤ −128, since e^128
is infinite. A unit with gate ON·(1 − (x − i)²) is ON for x = i and 0 for other integers; with gate ``LINE`` it is
linear.

**Sums.** In a dot product all partial sums are multiples of some power of two u and at most 2²⁴·u: no order changes
them. The exception is *rounding* on purpose: x + ROUND, two terms and zeros otherwise, is one correctly rounded
addition in any order, and gives the integer next to x, plus ROUND (|x| < 2²²).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import EXACT, LOUDNESS, Code

Weights = Mapping[int, float]
"""Features of the stream, and their weights."""
Named = dict[str, NDArray[np.float64]]
"""Tensors by name."""
Unit = tuple[Weights, Weights, Weights]
"""Gate, up and down of a SwiGLU's unit."""

ONE = 0
HUGE = 2.0**52
"""Value of ``ONE``. A word of W_down, 2⁻⁷⁵ (:mod:`.table`), is still a normal number after RMSNorm has divided by the
root of the mean, at most 2⁵⁰."""
ON = 256.0
"""Gate of a unit that is on."""
LINE = 64.0
"""Gate of a linear unit."""
ROUND = 1.5 * 2.0**23
"""Summand that rounds to an integer."""
HEAD = 4
"""Number of dimensions of the one head."""


@dataclass
class StockLayer:
    """A layer: queries, keys, values and outputs of its head, and the units of its SwiGLU."""

    Q: dict[int, Weights] = field(default_factory=dict)
    K: dict[int, Weights] = field(default_factory=dict)
    V: list[Weights] = field(default_factory=list)
    adds: list[Weights] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)

    def carry(self, value: Weights, adds: Weights) -> None:
        """Use one dimension of the head: read ``value`` where the head looks, and add it to ``adds``."""
        assert len(self.V) < HEAD
        self.V.append(value)
        self.adds.append(adds)

    def unit(self, gate: Weights, up: Weights, down: Weights) -> None:
        """Add silu(gate·x) · (up·x) to ``down``."""
        self.units.append((gate, up, down))

    def linear(self, up: Weights, down: Weights) -> None:
        """Add (up·x)·down."""
        self.unit({ONE: LINE}, up, {feature: weight / LINE for feature, weight in down.items()})

    def rounded(self, ups: Mapping[int, Weights], downs: Mapping[int, Weights]) -> None:
        """Add the integer next to up·x (one term), for each key, times its ``down``."""
        for key, up in ups.items():
            self.linear({**up, ONE: ROUND}, downs[key])
        self.linear({ONE: ROUND}, {feature: -weight for down in downs.values() for feature, weight in down.items()})

    def cancel(self, feature: int) -> None:
        """Set the feature back to 0."""
        self.linear({feature: 1}, {feature: -1})


def answering(z: int, answer: int, longest: int) -> StockLayer:
    """Return the layer that computes Y − 2^(L−1) from z = Y / 2^L."""
    layer = StockLayer()
    layer.carry({z: 2.0**longest, ONE: ROUND}, {answer: 1})
    layer.carry({ONE: ROUND}, {answer: -1})
    return layer


def write_lines(table: NDArray[np.float64], code: Code, labels: int, answer: int, bias: int) -> None:
    """Write the lines of :mod:`..codes` into the embedding, for Y from −2^(L−1) on.

    Tokens that are no labels get a line below all others.
    """
    slope, height = code.lines()
    table[:labels, answer] = slope[:, 0]
    table[:, bias] = -(2.0 ** (EXACT - 1))
    table[:labels, bias] = height + slope[:, 0] * 2.0 ** (code.longest - 1)


def ones(width: int) -> int:
    """Return how many features must be HUGE, so that the mean of squares is an even power of two.

    >>> [ones(width) for width in (48, 64, 80, 96, 128, 256)]
    [3, 1, 5, 6, 2, 1]
    """
    while width % 4 == 0:
        width //= 4
    return width


def norm(width: int) -> tuple[float, float]:
    """Return the weights of RMSNorm, for ordinary features and for ``ONE``."""
    root = HUGE * math.sqrt(ones(width) / width)
    return root, root / HUGE


def tensors(
    layers: list[StockLayer],
    embedding: NDArray[np.float64],
    units: int,
    answers: tuple[int, ...],
    instead: Mapping[int, Named],
) -> dict[str, NDArray[Any]]:
    """Return all tensors by Hugging Face's names. The last norm lets only ``answers`` pass, and makes the logits loud.

    So the unembedding may be the embedding. ``instead`` holds, by the number of the layer, tensors that replace its
    SwiGLU, named within the layer.
    """
    width = embedding.shape[1]
    plain, one = norm(width)
    gain = np.full(width, plain)
    gain[: ones(width)] = one
    kept = {"model.embed_tokens.weight": embedding}
    for number, layer in enumerate(layers):
        name = f"model.layers.{number}"
        assert len(layer.units) <= units
        kept[f"{name}.input_layernorm.weight"] = gain
        kept[f"{name}.self_attn.q_proj.weight"] = _rows([layer.Q.get(i, {}) for i in range(HEAD)], HEAD, width)
        kept[f"{name}.self_attn.k_proj.weight"] = _rows([layer.K.get(i, {}) for i in range(HEAD)], HEAD, width)
        kept[f"{name}.self_attn.v_proj.weight"] = _rows(layer.V, HEAD, width)
        kept[f"{name}.self_attn.o_proj.weight"] = _rows(layer.adds, HEAD, width).T
        kept[f"{name}.post_attention_layernorm.weight"] = gain
        if number in instead:
            kept |= {f"{name}.{part}": value for part, value in instead[number].items()}
            continue
        kept[f"{name}.mlp.gate_proj.weight"] = _rows([unit[0] for unit in layer.units], units, width)
        kept[f"{name}.mlp.up_proj.weight"] = _rows([unit[1] for unit in layer.units], units, width)
        kept[f"{name}.mlp.down_proj.weight"] = _rows([unit[2] for unit in layer.units], units, width).T
    last = np.zeros(width)
    last[list(answers)] = plain * 2.0**LOUDNESS
    kept["model.norm.weight"] = last
    return {name: _exact(name, value) for name, value in kept.items()}


def _rows(weights: list[Weights], count: int, width: int) -> NDArray[np.float64]:
    rows = np.zeros((count, width))
    for row, own in zip(rows, weights, strict=False):
        for feature, weight in own.items():
            row[feature] = weight
    return rows


def _exact(name: str, value: NDArray[np.float64]) -> NDArray[np.float32]:
    kept = np.ascontiguousarray(value, dtype=np.float32)
    looks = name.endswith(("q_proj.weight", "k_proj.weight"))
    assert looks or np.array_equal(kept.astype(np.float64), value), f"{name} is not exact"
    return kept
