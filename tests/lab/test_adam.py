import numpy as np
import pytest
import torch

from byheart.lab.adam import adam_, root_corrections, step_sizes

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize(("columns", "betas"), [(7, (0.9, 0.999)), (1500, (0.8, 0.99))])
def test_each_model_goes_as_far_as_it_goes_alone(device, dtype, close, columns, betas):
    rates = np.array([1e-2, 3e-4, 0.0])
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(3, columns, generator=generator, dtype=torch.float64).to(device, dtype)
    alone = [row.clone().requires_grad_() for row in weights]
    optimizers = [torch.optim.Adam([row], lr=rate, betas=betas) for row, rate in zip(alone, rates, strict=True)]
    moments = torch.zeros_like(weights), torch.zeros_like(weights)
    for step in range(20):
        gradients = torch.randn(3, columns, generator=generator, dtype=torch.float64).to(device, dtype)
        now = np.array([float(step)])
        numbers = step_sizes(rates, now, betas[0]), root_corrections(now, betas[1])
        sizes, roots = (torch.from_numpy(values).to(device, dtype)[:, None] for values in numbers)
        adam_(weights, gradients, moments, (sizes, roots), betas)
        for row, gradient, optimizer in zip(alone, gradients, optimizers, strict=True):
            row.grad = gradient.clone()
            optimizer.step()
    torch.testing.assert_close(weights, torch.stack(alone).detach(), rtol=close, atol=close)
