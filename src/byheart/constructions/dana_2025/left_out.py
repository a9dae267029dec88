"""Answer omitted contexts no worse than uniformly: improve the attention by descent, or shrink the logits.

The theorem holds for almost every attention, but for random attention its constant C is large: with as many features as
held contexts, C depends on the inverse of a square random matrix. This module is ours, not part of the paper. From a
random draw it descends (L-BFGS, gradients through the linear system) on the divergence of the omitted contexts, until
they are answered as well as uniformly, or for a few hundred steps. Held contexts stay exact, for every attention.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from byheart.constructions.dana_2025.features import DRAWN, Passed
from byheart.constructions.dana_2025.solving import Asked
from byheart.constructions.gadgets.encoder import divergence
from byheart.constructions.gadgets.encoder.distributions import log_softmax
from byheart.networks.softmax import SoftmaxNetwork, evaluate
from byheart.tasks import NextTokenDistribution
from byheart.tasks.arrays import Floats

MOST_STEPS, FEW_STEPS = 300, 100
"""Largest numbers of steps of a descent for at most ``FEW`` held contexts, and for more."""
FEW = 100
"""Number of held contexts up to which a descent may take ``MOST_STEPS`` steps."""
MOST_HELD = 1000
"""Largest number of held contexts for which a descent is tried: with more, every step takes seconds."""


def descended(drawn: SoftmaxNetwork, asked: Asked) -> SoftmaxNetwork:
    """Return the drawn network with an attention that answers the omitted contexts better."""
    from scipy.optimize import minimize

    others = asked.others
    logs = np.log(np.where(others.probabilities > 0, others.probabilities, 1))
    entropy = -float(others.likelihoods @ (others.probabilities * logs).sum(axis=1))

    def stop(intermediate_result: object) -> None:
        if getattr(intermediate_result, "fun", np.inf) - entropy <= others.uniform:
            raise StopIteration

    start = np.concatenate([getattr(drawn, name).ravel() for name in DRAWN])
    options = {"maxiter": MOST_STEPS if len(asked.tokens) <= FEW else FEW_STEPS}
    minimum = minimize(_loss, start, (drawn, asked), "L-BFGS-B", jac=True, callback=stop, options=options)
    return _with(drawn, minimum.x) if np.isfinite(minimum.x).all() else drawn


def _with(drawn: SoftmaxNetwork, flat: Floats) -> SoftmaxNetwork:
    """Return the network with the weights DRAWN taken from one flat array."""
    shapes = [getattr(drawn, name).shape for name in DRAWN]
    parts = np.split(flat, np.cumsum([np.prod(shape) for shape in shapes])[:-1])
    new: dict[str, Any] = {name: part.reshape(shape) for name, part, shape in zip(DRAWN, parts, shapes, strict=True)}
    return replace(drawn, **new)


def _loss(flat: Floats, drawn: SoftmaxNetwork, asked: Asked) -> tuple[float, Floats]:
    """Return the cross-entropy of the omitted contexts for the W of least norm, and its gradient.

    With F⁺ = QR⁻ᵀ from the factors Fᵀ = QR of the held contexts' features, W = F⁺Y, and a change dF changes W by
    −F⁺ dF W + (I − QQᵀ) dFᵀ (F⁺)ᵀW.
    """
    from scipy.linalg import solve_triangular

    held, others = len(asked.tokens), asked.others
    passed = Passed.through(_with(drawn, flat), np.vstack([asked.tokens, others.tokens]))
    F, rest = passed.features[:held], passed.features[held:]
    Q, R = np.linalg.qr(F.T)
    if not np.isfinite(R).all() or np.abs(np.diag(R)).min() < 1e-12 * np.abs(R).max():
        return np.inf, np.zeros_like(flat)
    W = Q @ solve_triangular(R, asked.targets, trans=1)
    logs = log_softmax(rest @ W @ asked.W_U)
    loss = -float(others.likelihoods @ (others.probabilities * logs).sum(axis=1))
    outputs = ((np.exp(logs) - others.probabilities) * others.likelihoods[:, None]) @ asked.W_U.T
    values = rest.T @ outputs
    through, along = solve_triangular(R, Q.T @ values), solve_triangular(R, Q.T @ W)
    slope = np.vstack([along @ (values - Q @ (Q.T @ values)).T - through @ W.T, outputs @ W.T])
    gradient = passed.back(np.asarray(slope, np.float64))
    return loss, np.concatenate([gradient[name].ravel() for name in DRAWN])


def shrunk(network: SoftmaxNetwork, task: NextTokenDistribution) -> tuple[SoftmaxNetwork, float]:
    """Return the network with W_U times the best factor from 0 to 1, and the factor; 1 unless uniform is better.

    The divergence is convex in the logits, and at factor 0 it is that of uniform answers. So the result is at most
    that, and at most the network's own.
    """
    from scipy.optimize import minimize_scalar

    assert task.tokens is not None
    assert network.W_U is not None
    logits = evaluate(network, (task.tokens, None))

    def diverges(factor: float) -> float:
        return divergence(factor * logits, task.probabilities, task.likelihoods)

    if diverges(1.0) <= diverges(0.0):
        return network, 1.0
    factor = float(minimize_scalar(diverges, bounds=(0, 1), method="bounded").x)
    factor = min((factor, 0.0), key=diverges)
    return network.with_tensor("W_U", factor * network.W_U), factor
