import pytest
import torch

from byheart.lab.models.averages import averages, plain_averages


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("B", "H", "n"), [(256, 20, 32), (100, 3, 5), (33, 60, 60), (7, 1, 1)])
def test_kernels_give_what_plain_operations_give_in_float64(B, H, n, own):
    generator = torch.Generator("cuda").manual_seed(0)
    scores = 3 * torch.randn(2, B, H, n, device="cuda", generator=generator)
    values = torch.randn(2, B if own else 1, n, H, device="cuda", generator=generator).transpose(2, 3)
    gradient = torch.randn(2, B, H, device="cuda", generator=generator)
    found = _with_gradients(averages, scores, values, gradient)
    expected = _with_gradients(plain_averages, scores.double(), values.double(), gradient.double())
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


def test_values_may_be_shared_by_the_examples():
    generator = torch.Generator().manual_seed(0)
    scores, values = torch.randn(2, 5, 3, 4, generator=generator), torch.randn(2, 1, 3, 4, generator=generator)
    for m, b, h in torch.cartesian_prod(torch.arange(2), torch.arange(5), torch.arange(3)).tolist():
        expected = scores[m, b, h].softmax(dim=0) @ values[m, 0, h]
        assert averages(scores, values)[m, b, h].item() == pytest.approx(expected.item(), abs=1e-6)


def _with_gradients(function, scores, values, gradient):
    leaves = [tensor.detach().requires_grad_() for tensor in (scores, values)]
    out = function(*leaves)
    return out.detach(), *torch.autograd.grad((out * gradient).sum(), leaves)
