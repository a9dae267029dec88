"""The kernels, on a GPU; or in Triton's interpreter (``make kernels``), which is slow: fewer and smaller shapes."""

from dataclasses import replace

import pytest
import torch

from byheart.lab.experiments.mahdavi_2024 import Config, members
from byheart.lab.fused import step_for
from byheart.lab.stack import Stack

from .kernels import DEVICE, ON_GPU, needs_kernels, off

BATCH, STEPS = (256, 20) if ON_GPU else (40, 2)
SHAPES = [
    ("labels", "fixed", 3, 5, 64),
    ("labels", "random", 3, 5, 64),
    ("targets", "fixed", 1, 1, 64),
    ("targets", "random", 2, 17, 10),
]
LARGE = [
    ("labels", "fixed", 17, 33, 30),
    ("labels", "random", 20, 32, 64),
    ("labels", "random", 60, 60, 64),
    ("targets", "fixed", 60, 60, 64),
    ("labels", "fixed", 30, 32, 15),
    ("labels", "random", 1, 1, 64),
]


@needs_kernels
@pytest.mark.parametrize("shape", SHAPES + (LARGE if ON_GPU else []))
def test_steps_are_those_of_plain_operations_in_float64(shape):
    expected, plain, fused = (_stack(shape, dtype) for dtype in (torch.float64, torch.float32, torch.float32))
    plain.fused = None
    losses = expected.advance(STEPS)[0]
    plain.advance(STEPS)
    _use_kernels(fused)
    fused.losses.fill_(7.0)
    found = fused.advance(STEPS)[0]
    assert off(found, losses) < 1e-5
    for exact, near, ours in zip(expected.moments, plain.moments, fused.moments, strict=True):
        assert off(ours, exact) < 4 * off(near, exact) + 1e-6  # as near as PyTorch's own float32
    assert off(fused.flat, expected.flat) < 1e-6


@needs_kernels
@pytest.mark.parametrize("shape", SHAPES[:2] + (LARGE if ON_GPU else []))
def test_measuring_all_members_or_some_gives_what_plain_operations_give(shape):
    expected, fused = (_stack(shape, dtype) for dtype in (torch.float64, torch.float32))
    fused_too = _use_kernels(fused)
    loss, right = expected.measure()
    found = fused.measure()
    assert off(found[0], loss) < 1e-5
    assert torch.allclose(found[1], right, equal_nan=True)
    places = fused.rows.starts[:, None] + torch.arange(100, device=DEVICE)
    whole = fused_too.measure(places, range(2))[0].clone()
    assert torch.equal(fused_too.measure(places[1:], [1])[0][0], whole[1])


def test_what_has_no_such_step_goes_the_plain_way():
    stack = _stack(SHAPES[0], torch.float32)
    data, state = stack.rows.tensors | stack.constants, (stack.flat, *stack.moments)
    known = step_for(stack.architecture, stack.training, data, state)
    assert (known is not None) == ON_GPU
    for training in (replace(stack.training, largest_norm=1.0), replace(stack.training, loss="summed-cross-entropy")):
        assert step_for(stack.architecture, training, data, state) is None
    assert step_for(replace(stack.architecture, length=65), stack.training, data, state) is None
    assert step_for(stack.architecture, stack.training, data, (stack.flat.double(), *stack.moments)) is None


def _stack(shape, dtype):
    answers, context, heads, length, head_dim = shape
    configs = [Config(answers, context, 300, length, heads, head_dim, seed, steps=1000, batch=BATCH) for seed in (0, 1)]
    return Stack(members(configs), configs[0].architecture, DEVICE, dtype, graph=False)


def _use_kernels(stack):
    from byheart.lab.fused.step import Step

    data = stack.rows.tensors | stack.constants
    stack.fused = Step(stack.architecture, data, (stack.flat, *stack.moments), stack.training.betas)
    return stack.fused
