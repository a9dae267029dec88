"""RMSNorm does nothing, SiLU is ReLU where it matters, and rounding rounds: the tricks that a stock model allows."""

import numpy as np
import torch
from torch.nn.functional import silu

from byheart.compiler.stock.units import HUGE, ONE, StockLayer, norm, ones


def test_rmsnorm_is_the_identity() -> None:
    rng = np.random.default_rng(0)
    for width in (64, 128, 256):
        stream = torch.tensor(rng.normal(size=(500, width)) * 2.0 ** rng.integers(-20, 34, size=(500, width)))
        stream = stream.float()
        stream[:, : ones(width)] = HUGE
        plain, one = norm(width)
        found = stream * torch.rsqrt(stream.pow(2).mean(-1, keepdim=True) + 1e-6)
        assert torch.equal(found[:, ones(width) :] * plain, stream[:, ones(width) :])
        assert (found[:, ONE] * one == 1).all()


def value(weights: dict[int, float], stream: dict[int, float]) -> float:
    return float(sum(np.float32(weight) * np.float32(stream[feature]) for feature, weight in weights.items()))


def units(layer: StockLayer, stream: dict[int, float]) -> dict[int, float]:
    """What the units of a layer add to a stream, in float32."""
    added: dict[int, float] = {}
    for gate, up, down in layer.units:
        hidden = float(silu(torch.tensor(value(gate, stream)))) * value(up, stream)
        for feature, weight in down.items():
            added[feature] = added.get(feature, 0.0) + weight * hidden
    return added


def test_a_feature_goes_back_to_zero() -> None:
    layer = StockLayer()
    layer.cancel(1)
    for x in (-(2.0**20), -0.5, 0.0, 3.0):
        assert units(layer, {ONE: 1, 1: x}) == {1: -x}
