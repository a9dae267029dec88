"""Where kernels are tested: on a GPU, or in Triton's interpreter (``make kernels``), which is slow."""

import os

import pytest
import torch

ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
needs_kernels = pytest.mark.skipif(
    not ON_GPU and os.environ.get("TRITON_INTERPRET") != "1", reason="no GPU, and not in Triton's interpreter"
)


def off(found: torch.Tensor, exact: torch.Tensor) -> float:
    """How far a tensor is from the exact one, relative to the whole."""
    return ((found.double() - exact.double()).norm() / exact.double().norm()).item()
