"""Training steps by kernels, on a GPU or in Triton's interpreter, against plain operations in float64."""

from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch

from byheart.lab import fused as gate
from byheart.lab.fused import step_for
from byheart.lab.models.madden import MaddenDecoder
from byheart.lab.stack import Stack
from byheart.papers.mahdavi_2024 import MahdaviConfig, members

from .kernels import DEVICE, ON_GPU, needs_kernels, off

EXAMPLES, BATCH, STEPS = (300, 256, 20) if ON_GPU else (26, 18, 2)
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


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Without a GPU, batches are small, and so are tiles: a batch still takes several."""
    if not ON_GPU and find_spec("triton") is not None:
        from byheart.lab.fused import attention_steps

        monkeypatch.setattr(attention_steps, "ROWS", 8)


@needs_kernels
@pytest.mark.parametrize("shape", SHAPES + (LARGE if ON_GPU else []))
def test_steps_are_those_of_plain_operations_in_float64(shape):
    expected, plain, fused = (_stack(shape, dtype) for dtype in (torch.float64, torch.float32, torch.float32))
    plain.fused = None
    losses = expected.advance(STEPS)[0]
    plain.advance(STEPS)
    _use_kernels(fused)
    fused.losses.fill_(7.0)
    assert off(fused.advance(STEPS)[0], losses) < 1e-5
    for exact, near, ours in zip(expected.moments, plain.moments, fused.moments, strict=True):
        assert off(ours, exact) < 4 * off(near, exact) + 1e-6  # as near as PyTorch's own float32
    assert off(fused.flat, expected.flat) < 1e-6


@needs_kernels
@pytest.mark.parametrize("shape", SHAPES[:2] + (LARGE if ON_GPU else []))
def test_measuring_all_members_or_some_gives_what_plain_operations_give(shape):
    expected, fused = (_stack(shape, dtype) for dtype in (torch.float64, torch.float32))
    step = _use_kernels(fused)
    loss, right = expected.measure()
    measured = fused.measure()
    assert off(measured[0], loss) < 1e-5
    assert torch.allclose(measured[1], right, equal_nan=True)
    places = fused.rows.starts[:, None] + torch.arange(EXAMPLES // 2, device=DEVICE)
    both = step.measure(places, range(2))[0].clone()
    assert off(step.measure(places[1:], [1])[0][0], both[1]) < 1e-6


@needs_kernels
def test_stacks_without_kernels_take_plain_steps(monkeypatch):
    stack = _stack(SHAPES[0], torch.float32)
    data, state = stack.rows.tensors | stack.constants, (stack.flat, *stack.moments)
    assert (step_for(stack.architecture, stack.training, data, state) is not None) == ON_GPU
    monkeypatch.setattr(gate, "kernels_for", lambda tensor: gate if tensor.dtype == torch.float32 else None)
    assert step_for(stack.architecture, stack.training, data, state) is not None
    for change in ({"largest_norm": 1.0}, {"loss": "summed-cross-entropy"}):
        assert step_for(stack.architecture, replace(stack.training, **change), data, state) is None
    for change in ({"length": 65}, {"heads": 65}, {"head_dim": 65}, {"labels": 129}, {"model_dim": 32}):
        assert step_for(replace(stack.architecture, **change), stack.training, data, state) is None
    assert step_for(stack.architecture, stack.training, data, (stack.flat[:, 1:], *stack.moments)) is None
    assert step_for(stack.architecture, stack.training, data, (stack.flat.double(), *stack.moments)) is None
    assert step_for(MaddenDecoder(vocab=9, hidden=4), stack.training, data, state) is None


def _stack(shape, dtype):
    answers, context, heads, length, head_dim = shape
    configs = [
        MahdaviConfig(answers, context, EXAMPLES, length, heads, head_dim, seed, steps=1000, batch=BATCH)
        for seed in (0, 1)
    ]
    return Stack(members(configs), configs[0].architecture, DEVICE, dtype, graph=False)


def _use_kernels(stack):
    from byheart.lab.fused.attention_steps import AttentionStep

    data = stack.rows.tensors | stack.constants
    stack.fused = AttentionStep(stack.architecture, data, (stack.flat, *stack.moments), stack.training.betas)
    return stack.fused
