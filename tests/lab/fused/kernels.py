"""Where kernels are tested: on a GPU, or in Triton's interpreter, which is slow, so with fewer and smaller shapes."""

from importlib.util import find_spec

import pytest
import torch

ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
needs_kernels = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not made for this platform")


def off(actual: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the distance of a tensor from the exact one, relative to the norm of the latter."""
    return ((actual.double() - exact.double()).norm() / exact.double().norm()).item()
