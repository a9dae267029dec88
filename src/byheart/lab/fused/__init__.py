"""Triton kernels for float32 on a GPU: training steps of Mahdavi's and Madden's models, operations of GPTs, and Adam.

With PyTorch's operations, a step of :class:`~byheart.lab.models.mahdavi.QueryAttention` takes about seventy kernels:
products of 64-wide matrices, which fill a quarter of the chip, and tensors between them that are written and read
again. Here a step takes seven kernels if all examples share a context, and ten otherwise, and gradients stay where they
are computed: the program that owns a head's gradient also updates the head's weights.

The kernels compute what the models and :mod:`byheart.lab.adam` define. A float32 product is computed by three TF32
products, which is about as exact; :mod:`byheart.lab.fused.decoder_kernels` says how exact its own products are.
Everything else runs without kernels: CPUs, float64, other models and sizes, clipped gradients, and machines without
Triton, which comes with PyTorch for CUDA.
"""

from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from byheart.lab.member import ANSWERS, MemberArchitecture, State, Tensors, Training
from byheart.lab.models.madden import ATTENDED, MaddenDecoder
from byheart.lab.models.mahdavi import QueryAttention

if TYPE_CHECKING:  # it needs Triton
    from byheart.lab.fused.attention_steps import AttentionStep
    from byheart.lab.fused.decoder_steps import DecoderStep

DIM = 64
"""The one width of stream, queries and tokens that has kernels."""
MAX_HEADS, MAX_TOKENS, MAX_LABELS = 64, 64, 128
"""Largest sides of tiles that fit into a processor's registers."""
DECODER_DIM, MAX_PLACES, MAX_WORDS = 16, 16, 4096
"""The width of Madden's models that has kernels, and their largest context and vocabulary."""


def step_for(
    architecture: MemberArchitecture, training: Training, data: Tensors, state: State, *, whole_batches: bool = False
) -> "AttentionStep | DecoderStep | None":
    """Return the kernels' step for a stack with weights and moments ``state``, or None if it has to do without.

    With ``whole_batches``, every batch of every member consists of all ``data``.
    """
    if kernels_for(state[0]) is None or training.largest_norm is not None:
        return None
    if isinstance(architecture, QueryAttention) and _fits_attention(architecture, training, data, state[0]):
        from byheart.lab.fused.attention_steps import AttentionStep

        return AttentionStep(architecture, data, state, training.betas)
    if (
        isinstance(architecture, MaddenDecoder)
        and whole_batches
        and _fits_decoder(architecture, training, data, state[0])
    ):
        from byheart.lab.fused.decoder_steps import DecoderStep

        return DecoderStep(architecture, data, state, training.betas)
    return None


def _fits_attention(model: QueryAttention, training: Training, data: Tensors, flat: torch.Tensor) -> bool:
    """Return True if Mahdavi's model has sizes and a loss with kernels, and all its tensors are trained."""
    answers = data[ANSWERS]
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


def _fits_decoder(model: MaddenDecoder, training: Training, data: Tensors, flat: torch.Tensor) -> bool:
    """Return True if there are kernels for the sizes, the loss and the trained tensors of Madden's model."""
    fits = model.model_dim == DECODER_DIM and model.length <= MAX_PLACES and model.vocab <= MAX_WORDS
    trained = model.parameters if ATTENDED not in data else model.parameters - model.attention_parameters
    answers = data[ANSWERS]
    has_counts = training.loss == "summed-cross-entropy" and answers.is_floating_point() and answers.dim() == 2
    return fits and flat.shape[1] == trained and has_counts and not training.last_batches


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
