"""Where heads look: at one token, this far back, exactly."""

import pytest
import torch

from byheart.compiler.stock.front import POSITIONS, REACH, THETA, distances, look_back
from byheart.compiler.stock.units import HEAD, ONE, StockLayer


@pytest.mark.parametrize("distance", [0, 1, 2, 5, 32, 333, REACH])
def test_a_head_looks_at_one_token(distance: int) -> None:
    """Scores of float32, at the end of the longest text and at the beginning."""
    layer = StockLayer()
    look_back(layer, distance, first=1)
    speed = 1.0 / (THETA ** (torch.arange(0, HEAD, 2, dtype=torch.float) / HEAD))
    angle = (torch.arange(POSITIONS).float()[:, None] * speed).repeat(1, 2)
    q = torch.tensor([layer.Q[i][ONE] for i in range(HEAD)])
    k = torch.tensor([layer.K[i][ONE] if i in layer.K else 0.0 for i in range(HEAD)]).repeat(POSITIONS, 1)
    k[0] += torch.tensor([layer.K[i][1] if i in layer.K else 0.0 for i in range(HEAD)])

    def turned(x: torch.Tensor) -> torch.Tensor:
        return x * angle.cos() + torch.cat([-x[:, 2:], x[:, :2]], dim=1) * angle.sin()

    turned_q, turned_k = turned(q.repeat(POSITIONS, 1)), turned(k)
    for place in [*range(2 * REACH + 3), 5000, 222222, POSITIONS - 1]:
        scores = (turned_k[: place + 1] @ turned_q[place]) / HEAD**0.5
        weights = scores.softmax(0)
        assert weights[max(0, place - distance)] == 1
        assert weights.count_nonzero() == 1


def test_distances_add_up() -> None:
    for window in range(1, 1025):
        assert sum(distances(window)) == window - 1
        assert max(distances(window), default=0) <= REACH
