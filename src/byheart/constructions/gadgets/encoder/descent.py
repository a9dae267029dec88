"""Down the Grassmannian: Newton steps in a trust region, by Steihaug's conjugate gradients."""

import numpy as np

from byheart.constructions.gadgets.encoder.point import NOISE, EncoderPoint, plane
from byheart.tasks.arrays import Floats

MOST_IDLE = 3


def descend(point: EncoderPoint, small: float, most: int) -> EncoderPoint:
    """At most ``most`` steps, until the gradient is small or nothing decreases any more."""
    radius, idle = 1.0, 0
    for _ in range(most):
        if np.linalg.norm(point.steepest) <= small or idle == MOST_IDLE:
            break
        Y, predicted = _newton_step(point, radius)
        columns = point.W + Y @ point.scale
        W = plane(columns)
        trial = EncoderPoint.over(point.contexts, W, point.E @ (columns.T @ W), point.ridge)
        idle = idle + 1 if predicted <= NOISE else 0
        ratio = (point.value - trial.value + NOISE) / (predicted + NOISE)
        if ratio < 0.25:
            radius = np.linalg.norm(Y).item() / 4
        elif ratio > 0.75 and np.linalg.norm(Y) > 0.9 * radius:
            radius *= 3
        if ratio > 0.01:
            point = trial
    return point


def _newton_step(point: EncoderPoint, radius: float) -> tuple[Floats, float]:
    """The step Y [ω, d] with |Y| ≤ radius, and the decrease that the model predicts.

    A step of conjugate gradients is size/curvature long, or leads to the boundary if that is nearer. The two are
    compared as products: the curvature may be 0, negative, or so small that the quotient overflows.
    """
    Y, residual = np.zeros_like(point.W), -point.steepest
    along, curved_Y = residual, np.zeros_like(point.W)
    size = float((residual * residual).sum())
    enough = size * min(0.1, size**0.5)
    for _ in range(Y.size + 10):
        curved = point.curved(along)
        curvature, boundary = float((along * curved).sum()), _to_boundary(Y, along, radius)
        inside = size < boundary * curvature
        step = size / curvature if inside else boundary
        Y, curved_Y, residual = Y + step * along, curved_Y + step * curved, residual - step * curved
        size, before = float((residual * residual).sum()), size
        if not inside or size <= enough:
            break
        along = residual + size / before * along
    return Y, -float((point.steepest * Y).sum() + (Y * curved_Y).sum() / 2)


def _to_boundary(Y: Floats, along: Floats, radius: float) -> float:
    """The positive step with |Y + step·along| = radius."""
    a, b, c = float((along * along).sum()), float((Y * along).sum()), float((Y * Y).sum()) - radius**2
    return float((-b + np.sqrt(max(0.0, b * b - a * c))) / a)
