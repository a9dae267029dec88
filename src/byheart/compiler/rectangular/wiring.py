"""Put a float Transformer together: features of the stream, sublayers, and tensors that the format holds exactly.

Comparisons are saturated sigmoids: σ(SHARP·x) is exactly 1 for x ≥ ½ and exactly 0 for x ≤ −½, in float32 and in
float64, on any machine: exp(−2048) is 0 and exp(2048) is infinite in both.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from byheart.networks.transformer import GatedBlocks, WindowAttention
from byheart.networks.transformer.spec import Features, Sublayer

SHARP = 2.0**12
"""σ(±SHARP/2) is exactly 1 or 0."""

Array = npt.NDArray[np.float64]


@dataclass
class Wiring:
    """A network in the making."""

    precision: np.dtype[Any]
    stream: int = 0
    sublayers: list[Sublayer] = field(default_factory=list)
    tensors: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    def features(self, count: int) -> Features:
        """Return ``count`` new features of the stream, which start at zero."""
        self.stream += count
        return tuple(range(self.stream - count, self.stream))

    def add(self, sublayer: Sublayer, **tensors: npt.ArrayLike) -> None:
        """Append a sublayer with its tensors; every entry must be exact in the network's precision."""
        self.sublayers.append(sublayer)
        for name, shape in sublayer.shapes().items():
            self.tensor(f"{sublayer.name}.{name}", np.asarray(tensors.pop(name, 0.0), dtype=np.float64), shape)
        assert not tensors, f"{sublayer.name} has no tensors {sorted(tensors)}"

    def tensor(self, name: str, value: Array, shape: tuple[int, ...]) -> None:
        """Set the tensor ``name``, broadcast to ``shape``. Every entry must be exact in the network's precision."""
        converted = np.ascontiguousarray(np.broadcast_to(value, shape).astype(self.precision))
        assert np.array_equal(converted.astype(np.float64), np.broadcast_to(value, shape)), f"{name} is not exact"
        self.tensors[name] = converted

    def steps(
        self,
        name: str,
        reads: Features,
        writes: Features,
        thresholds: npt.ArrayLike,
        weights: npt.ArrayLike,
        *,
        gap: float = 0.5,
    ) -> None:
        """Add ``weights`` [G, p, units] times [x ≥ threshold] for the thresholds [G, units] of each group.

        A threshold of −∞ gives a unit that is always on. Thresholds must be at least ``gap`` away from every value of
        x: integers are compared with half-integers.
        """
        limits = np.atleast_2d(np.asarray(thresholds, dtype=np.float64))
        groups, units = limits.shape
        always = np.isneginf(limits)
        sharp = SHARP * 0.5 / gap
        W = np.where(always, 0.0, sharp)
        b = np.where(always, SHARP, -sharp * np.where(always, 0.0, limits))
        W_out = np.asarray(weights, dtype=np.float64).reshape(groups, -1, units)
        ffn = GatedBlocks(name, "sigmoid", reads, writes, units=units, groups=groups)
        self.add(ffn, W_in=W[:, :, None], b_in=b, W_out=W_out)

    def attention(self, name: str, reads: Features, writes: Features, dilation: int, mix: Array) -> None:
        """Add attention: head k copies features from k·dilation positions ago; ``mix`` [writes, window, reads] weighs.

        The bias is 0 at offset k and −10⁴ elsewhere: softmax is exactly one-hot, since exp(−10⁴) is 0.
        """
        out, window, width = mix.shape
        layer = WindowAttention(name, reads, writes, window, dilation, heads=window, d_head=width)
        W_V = np.tile(np.eye(width), (window, 1))
        self.add(layer, W_V=W_V, W_O=mix.reshape(out, -1), bias=np.where(np.eye(window) > 0, 0.0, -1e4))
