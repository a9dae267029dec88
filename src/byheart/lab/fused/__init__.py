"""Triton kernels for float32 on a GPU: training steps of Mahdavi's models, operations of GPTs and decoders.

With PyTorch's operations, a step of :class:`~byheart.lab.models.mahdavi.QueryAttention` takes about seventy kernels:
products of 64-wide matrices, which fill a quarter of the chip, and tensors between them that are written and read
again. Here a step takes seven kernels if all examples share a context, and ten otherwise, and gradients stay where they
are computed: the program that owns a head's gradient also updates the head's weights.

The kernels compute what the models and :mod:`byheart.lab.adam` define. A float32 product is computed by three TF32
products, which is about as exact. Everything else runs without kernels: CPUs, float64, other models and sizes,
clipped gradients, and machines without Triton, which comes with PyTorch for CUDA.
"""

from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from byheart.lab.member import ANSWERS, MemberArchitecture, State, Tensors, Training
from byheart.lab.models.mahdavi import QueryAttention

if TYPE_CHECKING:  # it needs Triton
    from byheart.lab.fused.attention_steps import AttentionStep

DIM = 64
"""The one width of stream, queries and tokens that has kernels."""
MAX_HEADS, MAX_TOKENS, MAX_LABELS = 64, 64, 128
"""Largest sides of tiles that fit into a processor's registers."""


def step_for(
    architecture: MemberArchitecture, training: Training, data: Tensors, state: State
) -> "AttentionStep | None":
    """Return the kernels' step for a stack with weights and moments ``state``, or None if it has to do without."""
    if kernels_for(state[0]) is None or training.largest_norm is not None:
        return None
    if not isinstance(architecture, QueryAttention) or not _fits(architecture, training, data[ANSWERS], state[0]):
        return None
    from byheart.lab.fused.attention_steps import AttentionStep

    return AttentionStep(architecture, data, state, training.betas)


def _fits(model: QueryAttention, training: Training, answers: torch.Tensor, flat: torch.Tensor) -> bool:
    """Return True if Mahdavi's model has sizes and a loss with kernels, and all its tensors are trained."""
    has_labels = training.loss == "cross-entropy" and not answers.is_floating_point()
    has_targets = training.loss == "mean-square" and model.labels == 1
    fits = (
        model.model_dim == model.dim == DIM
        and model.head_dim <= DIM
        and model.heads <= MAX_HEADS
        and model.length <= MAX_TOKENS
        and model.labels <= MAX_LABELS
    )
    return fits and flat.shape[1] == model.parameters and answers.dim() == 1 and (has_labels or has_targets)


def kernels_for(tensor: torch.Tensor) -> ModuleType | None:
    """Return :mod:`byheart.lab.fused.operations` for float32 tensors on a GPU if Triton is installed, else None.

    >>> kernels_for(torch.zeros(1)) is None
    True
    """
    return _operations() if tensor.is_cuda and tensor.dtype == torch.float32 else None


@cache
def _operations() -> ModuleType | None:
    try:
        from byheart.lab.fused import operations
    except ImportError:  # no Triton
        return None
    return operations
