"""Operations of stacked models by kernels, on a GPU or in Triton's interpreter, against plain ones in float64."""

from itertools import product

import pytest
import torch

from byheart.lab.models import gpt
from byheart.lab.models.gpt import SmallGPT

from .kernels import DEVICE, ON_GPU, needs_kernels, off

MODELS, ROWS = (3, 4001) if ON_GPU else (2, 9)
SHAPES = [  # places, layers, dimension, heads, units, tokens and labels, tied
    SmallGPT(vocab=7, labels=5, length=4, layers=2, model_dim=16, heads=2, hidden=20, tied=True),
    SmallGPT(vocab=70, labels=3, length=2, layers=1, model_dim=20, heads=1, hidden=70, tied=False),
    SmallGPT(vocab=9, labels=9, length=5, layers=1, model_dim=36, heads=4, hidden=3, tied=True),
]
LARGE = [
    SmallGPT(vocab=64, labels=64, length=4, layers=3, model_dim=16, heads=2, hidden=36, tied=True),
    SmallGPT(vocab=64, labels=64, length=4, layers=3, model_dim=48, heads=6, hidden=165, tied=True),
    SmallGPT(vocab=300, labels=64, length=70, layers=2, model_dim=96, heads=3, hidden=300, tied=True),
]


@needs_kernels
@pytest.mark.parametrize("shape", SHAPES + (LARGE if ON_GPU else []))
def test_logits_and_gradients_are_those_of_plain_operations_in_float64(shape, monkeypatch):
    from byheart.lab.fused import operations

    monkeypatch.setattr(operations, "PROGRAMS", PROGRAMS := 12)  # so that rows are cut
    assert operations._divided(1000, PROGRAMS // MODELS)[0] > 1
    monkeypatch.setattr(gpt, "kernels_for", lambda tensor: None)
    expected, plain = (_computed(shape, dtype) for dtype in (torch.float64, torch.float32))
    monkeypatch.setattr(gpt, "kernels_for", lambda tensor: operations)
    for name, tensor in _computed(shape, torch.float32).items():
        assert off(tensor, expected[name]) < 4 * off(plain[name], expected[name]) + 2e-6, name


@needs_kernels
def test_rows_are_shared_out_and_none_twice():
    from byheart.lab.fused import operations

    for rows, programs in product((1, 63, 64, 65, 3733), (0, 1, 5, 1000)):
        chunks, chunk = operations._divided(rows, programs)
        assert chunk % operations.SIDE == 0
        assert (chunks - 1) * chunk < rows <= chunks * chunk
        assert chunks <= max(1, programs)


def _computed(shape, dtype):
    """Return logits and the gradients of their weighted sum, for models that are far from their first weights."""
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: (0.5 * torch.randn(MODELS, *size, dtype=torch.float64, generator=generator)).to(DEVICE, dtype)
        for name, size in shape.shapes.items()
    }
    tokens = torch.randint(shape.vocab, (MODELS, ROWS, shape.length), generator=generator).to(DEVICE)
    passed = torch.randn(MODELS, ROWS, shape.labels, dtype=torch.float64, generator=generator).to(DEVICE, dtype)
    for tensor in weights.values():
        tensor.requires_grad_()
    logits = shape.outputs(weights, {"tokens": tokens})
    gradients = torch.autograd.grad(logits, list(weights.values()), passed)
    return {"logits": logits.detach(), **dict(zip(weights, gradients, strict=True))}
