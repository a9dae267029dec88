"""The plain interpolator, the baseline of all tables: a Transformer with one hidden unit per question.

The front is that of :mod:`.gadgets.contextual`. The label stage is a zigzag through all keys. The token stage, which
exists if tokens are vectors or have positions, is a sum of spikes.

**Zigzag.** Sort the keys z_1 < … < z_N. A function with slopes +S, −S, +S, … that turns once between any two neighbours
can pass through all (z_i, y_i). Between z_i and z_(i+1), a gap of G, it turns after a steps, where
±S·a ∓ S·(G − a) = y_(i+1) − y_i, so a = G/2 ± (y_(i+1) − y_i)/2S, which lies in [0, G] for S ≥ C. The network is
S·z + const + Σ_i ∓relu(2S·z − 2S·z_i − S·G ∓ Δy), with integer weights, N hidden units and 3N + 1 parameters.

**Spikes** answer 0 on all integers that are not keys, as token codes need. For each key k there are three units:
y·(relu(z − k + 1) − 2·relu(z − k) + relu(z − k − 1)).

>>> from byheart.sizes import Size
>>> plan = CONSTRUCTION.plan(Size(examples=1000, length=32, labels=10, vocab=200), "next-token", SequenceReading())
>>> plan.dense - plan.embedding
3003
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.construction import SequenceReading
from byheart.constructions.gadgets import contextual
from byheart.constructions.gadgets.contextual import Engine
from byheart.constructions.plan import TokenwiseShape
from byheart.networks.exact import Affine, Integers, integers
from byheart.tasks.arrays import Ids


@dataclass(frozen=True)
class Zigzag:
    """Sizes of a zigzag through ``keys`` points."""

    keys: int
    labels: int

    @property
    def shape(self) -> TokenwiseShape:
        """Layers behind the unit that holds the key."""
        return TokenwiseShape((("turns", self.keys, 1), ("answer", 1, self.keys)))

    def layers(self, keys: NDArray[np.generic], labels: Integers) -> list[Affine]:
        """Build the layers through (keys [N], labels [N]); keys are different non-negative integers."""
        order = sorted(range(len(keys)), key=lambda i: int(keys[i]))
        z, y = [int(keys[i]) for i in order], [int(labels[i]) for i in order]
        S = self.labels
        slopes, biases, signs = [S], [0], [1]
        for i in range(len(z) - 1):
            sign = 1 if i % 2 == 0 else -1
            slopes.append(2 * S)
            biases.append(-(S * (z[i] + z[i + 1]) + sign * (y[i + 1] - y[i])))
            signs.append(-sign)
        return [
            Affine(integers([[slope] for slope in slopes]), integers(biases), role="turns"),
            Affine(integers([signs]), integers([y[0] - S * z[0]]), role="answer", relu=False),
        ]


@dataclass(frozen=True)
class Spikes:
    """Sizes of a sum of ``keys`` spikes. Unless ``own_bits`` is 0, the key is passed on in that many low bits."""

    keys: int
    labels: int
    own_bits: int

    @property
    def shape(self) -> TokenwiseShape:
        """Layers behind the unit that holds the key."""
        units = 3 * self.keys + (1 if self.own_bits else 0)
        return TokenwiseShape((("spikes", units, 1), ("answer", 1, units)))

    def layers(self, keys: Ids, labels: Integers) -> list[Affine]:
        """Build the layers that answer labels [N] on keys [N] and 0 on every other integer."""
        biases, row = [], []
        for key, label in zip(keys.tolist(), labels.tolist(), strict=True):
            biases += [1 - key, -key, -1 - key]
            row += [label << self.own_bits, -(label << self.own_bits) * 2, label << self.own_bits]
        if self.own_bits:
            biases.append(0)
            row.append(1)
        return [
            Affine(integers([[1]] * len(biases)), integers(biases), role="spikes"),
            Affine(integers([row]), integers([0]), role="answer", relu=False),
        ]


INTERPOLATION = Engine(
    label_stage=lambda keys, labels, *_: Zigzag(keys, labels),
    token_stage=lambda keys, labels, _, own_bits, __: Spikes(keys, labels, own_bits),
    fold_labels=False,
)


CONSTRUCTION = contextual.construction(
    lambda _: INTERPOLATION,
    name="interpolate",
    summary="the plain one-hidden-layer interpolator: 3 parameters per label, every table's baseline",
    settings=SequenceReading,
    orders=dict.fromkeys(("next-token", "seq-to-seq"), "naive: 3 per label"),
    colour="#8c8c8c",
)
