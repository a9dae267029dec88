"""As test_step.py, for Madden's models: kernels on a GPU or in Triton's interpreter."""

from dataclasses import replace
from functools import reduce

import pytest
import torch

from byheart.lab.fused import step_for
from byheart.lab.stack import Stack
from byheart.papers.madden_2024 import MaddenConfig, contexts, data_of, member_of, stories

from .kernels import DEVICE, ON_GPU, needs_kernels, off

STEPS = 20 if ON_GPU else 2
TENSOR_CORES = 1e-5 if ON_GPU else 1e-6  # they cut sums off, where others round
TEXTS = ("a b c d e f g h i j", "a b c d e f g h i k", "a b x d e f g h i k", "x y x y x y x y x y")
SHAPES = [((40,), False), ((4, 9), True)]
LARGE = [((512,), False), ((4, 8, 16, 32), False), ((300,), False), ((64,), True), ((512,), True)]


@needs_kernels
@pytest.mark.parametrize("shape", SHAPES + (LARGE if ON_GPU else []))
def test_steps_are_those_of_plain_operations_in_float64(shape, monkeypatch):
    from byheart.lab.fused import decoder_steps as decoder

    monkeypatch.setattr(decoder, "CUT", 300 if ON_GPU else 10)
    expected, plain, fused = (_stack(shape, dtype) for dtype in (torch.float64, torch.float32, torch.float32))
    fused.fused = decoder.DecoderStep(fused.architecture, fused.rows.tensors, _state(fused), fused.training.betas)
    losses = expected.advance(STEPS)[0]
    plain.fused = None
    plain.advance(STEPS)
    assert off(fused.advance(STEPS)[0], losses) < 1e-6
    for exact, near, ours in zip(expected.moments, plain.moments, fused.moments, strict=True):
        assert off(ours, exact) < 4 * off(near, exact) + TENSOR_CORES
    moved = _moved(expected)  # b_K has no gradient, and Adam takes rounding for one
    assert off(fused.flat * moved, expected.flat * moved) < 1e-6
    assert off(_stack(shape, torch.float32).flat, expected.flat) > 1e-5, "and they do move"


@needs_kernels
@pytest.mark.parametrize("shape", SHAPES)
def test_units_and_weights_may_be_large_or_small(shape):
    """Units of 10⁶ are more than halves can say, and weights of 10⁻⁷ less."""
    from byheart.lab.fused import decoder_steps as decoder

    stacks = [_stack(shape, dtype) for dtype in (torch.float64, torch.float32)]
    for stack in stacks:
        for name in ("W_in", "b_in"):
            stack.weights[name].data.mul_(1e6)
        for name in ("W_U", "b_U"):
            stack.weights[name].data.mul_(1e-6)
    expected, fused = stacks
    fused.fused = decoder.DecoderStep(fused.architecture, fused.rows.tensors, _state(fused), fused.training.betas)
    assert off(fused.advance(1)[0], expected.advance(1)[0]) < 1e-5
    assert off(fused.moments[0], expected.moments[0]) < 1e-5


@needs_kernels
def test_places_of_a_token_are_summed_in_pieces(monkeypatch):
    from byheart.lab.fused import decoder_steps as decoder

    ids, lengths = torch.tensor([[1, 0, 0], [1, 1, 2], [1, 0, 0]]), torch.tensor([1, 3, 2])
    monkeypatch.setattr(decoder, "PIECE", 2)
    tables = {name: table.tolist() for name, table in decoder._pieces(ids, lengths, 4).items()}
    assert tables == {
        "token_places": [7, 0, 3, 4, 6, 5],
        "piece_starts": [0, 1, 3, 5, 6],
        "token_pieces": [0, 1, 3, 4, 4],
    }


def test_what_has_no_such_step_goes_the_plain_way():
    stack = _stack(SHAPES[0], torch.float32)
    data, state = stack.rows.tensors, _state(stack)
    known = step_for(stack.architecture, stack.training, data, state, whole_batches=True)
    assert (known is not None) == ON_GPU
    assert step_for(stack.architecture, stack.training, data, state) is None, "a batch is not all contexts"
    for change in ({"vocab": 5000}, {"length": 17}, {"model_dim": 32}):
        model = replace(stack.architecture, **change)
        assert step_for(model, stack.training, data, state, whole_batches=True) is None


def _stack(shape, dtype):
    hidden, frozen = shape
    data = data_of(100) if ON_GPU else contexts(stories(TEXTS, len(TEXTS)))
    members = [member_of(MaddenConfig(100, m, frozen, steps=1000), data) for m in hidden]
    model = reduce(lambda one, other: one.join(other), (member.architecture for member in members))
    return Stack(members, model, DEVICE, dtype, graph=False)


def _state(stack):
    return stack.flat, *stack.moments


def _moved(stack):
    """1 where there is a gradient to speak of."""
    return (stack.moments[0].abs() > 1e-12).to(stack.flat.dtype)
