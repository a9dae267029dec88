"""Small tasks, another optimiser, and what an encoder says of itself, computed again."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from byheart.constructions.gadgets.encoder import ContextDistributions, Encoder, balanced, divergence

Reals = NDArray[np.float64]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_task(contexts: int, vocab: int, seed: int = 0, concentration: float = 1.0) -> tuple[Reals, Reals]:
    draw = rng(seed)
    return draw.dirichlet(np.full(vocab, concentration), size=contexts), draw.dirichlet(np.full(contexts, 5.0))


def judged(P: Reals, weights: Reals, W_U: Reals, encodings: Reals) -> Encoder:
    """Any encoder, W_U [d, ω] and encodings [N, d], balanced."""
    return balanced(ContextDistributions.checked(P, weights), encodings @ W_U, len(W_U))


def plain_divergence(L: torch.Tensor, P: Reals, weights: Reals) -> torch.Tensor:
    """Σ π (Σ p log p − Σ p log softmax), as the definition says it; no zeros in P."""
    target = torch.from_numpy(P)
    return (torch.from_numpy(weights)[:, None] * target * (target.log() - L.log_softmax(dim=1))).sum()


def minimised(loss: Callable[[], torch.Tensor], tensors: list[torch.Tensor]) -> float:
    """Another optimiser: PyTorch's L-BFGS."""
    optimiser = torch.optim.LBFGS(
        tensors, max_iter=400, tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        return value

    optimiser.step(closure)
    return loss().item()


def tensor(values: object) -> torch.Tensor:
    return torch.tensor(np.array(values), dtype=torch.float64, requires_grad=True)


def is_consistent(found: Encoder, P: Reals, weights: Reals) -> None:
    """What an encoder says of itself, computed again."""
    assert found.encodings.shape == (len(P), found.dim)
    assert found.W_U.shape == (found.dim, P.shape[1])
    assert found.divergence == pytest.approx(divergence(found.logits, P, weights), abs=1e-14)
    assert found.logits.sum(axis=1) == pytest.approx(0, abs=1e-8 * max(1, found.norm))
    assert found.norm == pytest.approx(np.linalg.norm(found.logits, 2), rel=1e-9, abs=1e-12)
    assert 0 <= found.lower <= found.divergence + 1e-15
    assert 0 <= found.encodings_gap <= found.divergence
    assert 0 <= found.unembedding_gap <= found.divergence
