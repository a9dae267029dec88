"""A training step of Mahdavi's models in a few Triton kernels, for float32 on a GPU.

Out of PyTorch's operations a step of :class:`~byheart.lab.models.mahdavi.QueryAttention` is some seventy kernels:
products of 64-wide matrices that fill a quarter of the chip, and between them tensors that are written and read again.
Here it is five (one context for all examples) or seven (a context for each), and gradients stay where they are made:
the program that has a head's gradient ends with Adam for its weights.

What is computed is what the model and :mod:`byheart.lab.adam` say, in float32; a product is put together out of three
of TF32, which is about as exact. Tests compare with float64. :func:`step_for` says for which stacks there is such a
step; all others go the plain way: CPUs, float64, other models and sizes, frozen tensors, gradients that are cut,
machines without Triton (it comes with PyTorch for CUDA).
"""

from typing import TYPE_CHECKING

import torch

from byheart.lab.member import ANSWERS, Architecture, Tensors, Training
from byheart.lab.models.mahdavi import QueryAttention

if TYPE_CHECKING:
    from byheart.lab.fused.step import Step

DIM = 64
MOST_HEADS, MOST_TOKENS, MOST_LABELS = 64, 64, 128
"""Sides of tiles that fit into a processor's registers."""


def step_for(
    architecture: Architecture,
    training: Training,
    data: Tensors,
    state: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> "Step | None":
    """The step of a stack whose weights and moments are ``state``, if there is one."""
    flat = state[0]
    if not flat.is_cuda or flat.dtype != torch.float32 or not isinstance(architecture, QueryAttention):
        return None
    answers = data[ANSWERS]
    labels = training.loss == "cross-entropy" and not answers.is_floating_point()
    targets = training.loss == "mean-square" and architecture.labels == 1
    small = (
        architecture.model_dim == architecture.dim == DIM
        and architecture.head_dim <= DIM
        and architecture.heads <= MOST_HEADS
        and architecture.length <= MOST_TOKENS
        and architecture.labels <= MOST_LABELS
    )
    whole = flat.shape[1] == architecture.parameters and training.largest_norm is None
    if not (small and whole and answers.dim() == 1 and (labels or targets)):
        return None
    try:
        from byheart.lab.fused.step import Step
    except ImportError:  # no Triton
        return None
    return Step(architecture, data, state, training.betas)
