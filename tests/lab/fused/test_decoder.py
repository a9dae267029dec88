"""Training steps of Madden's models by kernels, on a GPU or in Triton's interpreter, against float64."""

from functools import reduce

import pytest
import torch

from byheart.lab.models import madden
from byheart.lab.stack import Stack
from byheart.papers.madden_2024 import MaddenConfig, contexts, data_of, member_of, stories

from .kernels import DEVICE, ON_GPU, needs_kernels, off

STEPS = 20 if ON_GPU else 2
TENSOR_CORES = 1e-5 if ON_GPU else 1e-6  # they cut sums off, where others round
TEXTS = ("a b c d e f g h i j", "a b c d e f g h i k", "a b x d e f g h i k", "x y x y x y x y x y")
SHAPES = [((40,), False), ((4, 9), True)]
LARGE = [((512,), False), ((4, 8, 16, 32), False), ((300,), False), ((64,), True), ((512,), True)]


@pytest.fixture(autouse=True)
def kernels(monkeypatch):
    """Float32 tensors have kernels, without a GPU too, and sums over rows are cut."""
    from byheart.lab.fused import operations

    monkeypatch.setattr(operations, "PROGRAMS", 12)
    monkeypatch.setattr(madden, "kernels_for", lambda tensor: operations if tensor.dtype == torch.float32 else None)


@needs_kernels
@pytest.mark.parametrize("shape", SHAPES + (LARGE if ON_GPU else []))
def test_steps_are_those_of_plain_operations_in_float64(shape, monkeypatch):
    expected, plain, fused = (_stack(shape, dtype) for dtype in (torch.float64, torch.float32, torch.float32))
    losses = expected.advance(STEPS)[0]
    assert off(fused.advance(STEPS)[0], losses) < 1e-6
    monkeypatch.setattr(madden, "kernels_for", lambda tensor: None)
    plain.advance(STEPS)
    for exact, near, ours in zip(expected.moments, plain.moments, fused.moments, strict=True):
        assert off(ours, exact) < 4 * off(near, exact) + TENSOR_CORES
    assert off(fused.flat, expected.flat) < 1e-6
    assert off(_stack(shape, torch.float32).flat, expected.flat) > 1e-5, "and they do move"


@needs_kernels
@pytest.mark.parametrize("shape", SHAPES)
def test_units_and_weights_may_be_large_or_small(shape):
    stacks = [_stack(shape, dtype) for dtype in (torch.float64, torch.float32)]
    for stack in stacks:
        for name in ("W_in", "b_in"):
            stack.weights[name].data.mul_(1e6)
        for name in ("W_U", "b_U"):
            stack.weights[name].data.mul_(1e-6)
    expected, fused = stacks
    assert off(fused.advance(1)[0], expected.advance(1)[0]) < 1e-5
    assert off(fused.moments[0], expected.moments[0]) < 1e-5


@needs_kernels
def test_results_are_measured_without_kernels(monkeypatch):
    stack = _stack(SHAPES[0], torch.float32)
    with_kernels = stack.measure()
    monkeypatch.setattr(madden, "kernels_for", lambda tensor: None)
    assert all(map(torch.equal, with_kernels, stack.measure()))


def _stack(shape, dtype):
    hidden, frozen = shape
    data = data_of(100) if ON_GPU else contexts(stories(TEXTS, len(TEXTS)))
    members = [member_of(MaddenConfig(100, m, frozen, steps=1000), data) for m in hidden]
    model = reduce(lambda one, other: one.join(other), (member.architecture for member in members))
    return Stack(members, model, DEVICE, dtype, graph=False)
