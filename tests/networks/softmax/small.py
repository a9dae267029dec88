"""Small random softmax networks of every kind, and inputs that they read."""

import numpy as np

from byheart.networks.softmax import Inputs, SoftmaxNetwork
from byheart.tasks import QueryTargets

KINDS = ["shared", "own", "skip", "units", "plain"]
"""Contexts and queries (shared: with a W_U); token ids with the skip connection, with units, or with neither."""


def drawn(kind: str, *, seed: int = 0, examples: int = 5, scale: float = 1.0) -> tuple[SoftmaxNetwork, Inputs]:
    """H = 2, n = 3, d = 4, d_h = 2, d_v = 3; no two sizes of one tensor are equal where they may differ."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal
    attention = {"W_Q": scale * normal((2, 4, 2)), "W_K": normal((2, 4, 2)), "W_V": normal((2, 4, 3))}
    if kind == "shared":
        network = SoftmaxNetwork(**attention, W_O=normal((2, 3, 2)), W_U=normal((2, 5)))
        task = QueryTargets(contexts=normal((3, 4)), queries=normal((examples, 4)), targets=np.zeros(examples))
        return network, (task.vectors, task.queries)
    if kind == "own":
        network = SoftmaxNetwork(**attention, W_O=normal((2, 3, 1)))
        return network, (normal((examples, 3, 4)), normal((examples, 4)))
    tokens = rng.integers(0, 6, size=(examples, 3))
    read = {"W_E": normal((6, 4)), "W_pos": normal((3, 4))}
    if kind == "skip":
        return SoftmaxNetwork(**attention, **read, W_O=normal((2, 3, 4)), W_U=normal((4, 5)), skip=True), (tokens, None)
    if kind == "units":
        units = {"W_in": normal((2, 7)), "b_in": normal(7), "W_U": normal((7, 5))}
        return SoftmaxNetwork(**attention, **read, W_O=normal((2, 3, 2)), **units), (tokens, None)
    assert kind == "plain"
    return SoftmaxNetwork(**attention, **read, W_O=normal((2, 3, 2))), (tokens, None)


def one_head(**tensors: float | list[float]) -> SoftmaxNetwork:
    """One head, all dimensions 1, all weights 1 but those given; W_U is a row of outputs."""
    weights = {name: np.full((1, 1, 1), float(tensors.get(name, 1))) for name in ("W_Q", "W_K", "W_V", "W_O")}
    if "W_U" in tensors:
        weights["W_U"] = np.array([tensors["W_U"]], dtype=np.float64)
    return SoftmaxNetwork(**weights)
