"""Several dimensions: a larger one is never worse."""

import numpy as np
import pytest

from byheart.constructions.gadgets.encoder import best_encoder, search, sweep

from .small import Reals, is_consistent, random_task, rng


def test_sweep_is_monotone_and_converged() -> None:
    P, weights = random_task(40, 8)
    found = sweep(P, weights, range(8), rng=rng())
    values = [found[dim].divergence for dim in range(8)]
    assert values == sorted(values, reverse=True)
    assert values[7] < 1e-28
    for one in found.values():
        is_consistent(one, P, weights)
        assert one.encodings_gap < 1e-13
        assert one.unembedding_gap < 1e-13
    assert all(found[dim].gradient < 1e-8 for dim in range(1, 8))
    assert all(found[dim].lower > 0 for dim in range(7))


def test_sweep_with_holes_and_sparse_rows() -> None:
    P = np.eye(6)[rng().integers(6, size=30)]
    found = sweep(P, np.full(30, 1 / 30), [5, 1, 3, 1], rng=rng(), restarts=1)
    assert list(found) == [1, 3, 5]
    assert found[1].divergence >= found[3].divergence >= found[5].divergence


def test_sweep_falls_back_on_the_smaller_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """From dimension 3 on all starts end badly: at no plane at all, with uniform answers."""
    P, weights = random_task(40, 8)

    def bad(*given: object) -> Reals:
        return np.eye(8)[:, :2] if given[-1] == 2 else np.zeros((8, 3))

    for name in ("_svd_plane", "_widened"):
        monkeypatch.setattr(search, name, bad)
    monkeypatch.setattr(search, "FULLY", (1e-9, 0))
    monkeypatch.setattr(search, "ROUGHLY", (1e-5, 0))
    alone = best_encoder(P, weights, 3, rng=rng(), restarts=0)
    found = sweep(P, weights, [2, 3], rng=rng(), restarts=0)
    assert alone.divergence > found[2].divergence
    assert found[3].divergence == pytest.approx(found[2].divergence, abs=1e-14)
    assert found[3].W_U.shape == (3, 8)
    is_consistent(found[3], P, weights)


def test_sweep_beyond_what_is_needed() -> None:
    P, weights = random_task(9, 4)
    found = sweep(P, weights, [0, 2, 3, 4, 12], rng=rng(), restarts=0)
    assert found[12].W_U.shape == (12, 4)
    assert found[12].divergence <= found[4].divergence <= found[3].divergence < 1e-28
    assert not found[12].W_U[3:].any()
