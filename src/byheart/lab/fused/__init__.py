"""Training steps of Mahdavi's and Madden's models in a few Triton kernels, for float32 on a GPU.

Out of PyTorch's operations a step of :class:`~byheart.lab.models.mahdavi.QueryAttention` is some seventy kernels:
products of 64-wide matrices that fill a quarter of the chip, and between them tensors that are written and read again.
Here it is seven (one context for all examples) or ten (a context for each), and gradients stay where they are made:
the program that has a head's gradient ends with Adam for its weights. A step of
:class:`~byheart.lab.models.madden.Decoder` is fifteen kernels, twenty with its attention trained.

What is computed is what the models and :mod:`byheart.lab.adam` say, in float32; a product is put together out of three
of TF32, which is about as exact, or of halves, which is less so (:mod:`byheart.lab.fused.halves` says by how much).
Tests compare with float64. :func:`step_for` says for which stacks there is such a step; all others go the plain way:
CPUs, float64, other models and sizes, gradients that are cut, machines without Triton (it comes with PyTorch for CUDA).
"""

from functools import cache
from types import ModuleType
from typing import Protocol

import torch

from byheart.lab.member import ANSWERS, Architecture, State, Tensors, Training
from byheart.lab.models.madden import ATTENDED, Decoder
from byheart.lab.models.mahdavi import QueryAttention

DIM = 64
MOST_HEADS, MOST_TOKENS, MOST_LABELS = 64, 64, 128
"""Sides of tiles that fit into a processor's registers."""
DECODER_DIM, MOST_PLACES, MOST_WORDS = 16, 16, 4096
"""Of Madden's models: a context, and a row of logits, are what a program has."""


class Fused(Protocol):
    """A step in kernels. ``whole``: a batch is all examples, and a plan's places are not read."""

    whole: bool

    def train(self, plan: Tensors, told: tuple[torch.Tensor, torch.Tensor]) -> None:
        """The step that the plan's ``at`` says; losses are told, and accuracies if a training asks for its last."""

    def measure(self, places: torch.Tensor, some: list[int]) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Losses and right answers at places [m, rows] of some members; None: it has no kernels for this."""


def step_for(
    architecture: Architecture,
    training: Training,
    data: Tensors,
    state: State,
    *,
    whole: bool = False,
) -> Fused | None:
    """The step of a stack whose weights and moments are ``state``, if there is one.

    ``whole``: every batch is all of the data, for all members.
    """
    flat = state[0]
    if not flat.is_cuda or flat.dtype != torch.float32 or training.largest_norm is not None:
        return None
    try:
        if isinstance(architecture, QueryAttention) and _has_heads(architecture, training, data, flat):
            from byheart.lab.fused.step import Step

            return Step(architecture, data, state, training.betas)
        if isinstance(architecture, Decoder) and whole and _has_units(architecture, training, data, flat):
            from byheart.lab.fused.decoder import DecoderStep

            return DecoderStep(architecture, data, state, training.betas)
    except ImportError:  # no Triton
        return None
    return None


def _has_heads(model: QueryAttention, training: Training, data: Tensors, flat: torch.Tensor) -> bool:
    """Whether there is such a step of Mahdavi's models."""
    answers = data[ANSWERS]
    labels = training.loss == "cross-entropy" and not answers.is_floating_point()
    targets = training.loss == "mean-square" and model.labels == 1
    small = (
        model.model_dim == model.dim == DIM
        and model.head_dim <= DIM
        and model.heads <= MOST_HEADS
        and model.length <= MOST_TOKENS
        and model.labels <= MOST_LABELS
    )
    return small and flat.shape[1] == model.parameters and answers.dim() == 1 and (labels or targets)


def _has_units(model: Decoder, training: Training, data: Tensors, flat: torch.Tensor) -> bool:
    """Whether there is such a step of Madden's models."""
    small = model.model_dim == DECODER_DIM and model.length <= MOST_PLACES and model.vocab <= MOST_WORDS
    trained = model.parameters if ATTENDED not in data else model.parameters - model.attention_parameters
    counts = training.loss == "summed-cross-entropy" and data[ANSWERS].is_floating_point() and data[ANSWERS].dim() == 2
    return small and flat.shape[1] == trained and counts and not training.last_batches


def kernels_for(tensor: torch.Tensor) -> ModuleType | None:
    """:mod:`byheart.lab.fused.operations`, if they can be used on a tensor: float32, on a GPU, and with Triton there.

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
