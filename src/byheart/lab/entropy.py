"""How many bits of the labels are in a network: the entropy method of Morris et al. 2025.

A label costs H bits to tell without the network, and −log₂ p bits with it, where p is the probability that the network
gives to the right label. What is saved, summed over all N examples, is what the network has memorized:

    Σᵢ (H − (−log₂ pᵢ)) = N·H − Σᵢ −log₂ pᵢ.

H is log₂ C for labels drawn uniformly out of C; for others take the entropy H₀ of their frequencies. Nothing is cut off
at zero: a network that is confidently wrong somewhere pays for it. The inputs are given, so bits of them do not count.
"""

import math

import numpy as np
import torch
from torch.nn import functional

from byheart.tasks.checks import Ids


def surprises(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """−log₂ p of the right label for each example, float64 [N], from logits [N, C] and labels [N].

    >>> surprises(torch.zeros(2, 8), torch.tensor([0, 5]))
    tensor([3., 3.], dtype=torch.float64)
    """
    return functional.cross_entropy(logits.double(), labels, reduction="none") / math.log(2)


def label_entropy(labels: Ids) -> float:
    """H₀ of labels [N], in bits for each: the entropy of the frequencies with which they occur.

    >>> label_entropy(np.array([0, 0, 1, 2]))
    1.5
    """
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(shares * np.log2(shares)).sum())


def memorized_bits(surprise: torch.Tensor, prior_bits: float) -> float:
    """N · ``prior_bits`` − Σ of the surprises [N].

    >>> memorized_bits(torch.tensor([0.0, 1.0, 2.5]), prior_bits=2)
    2.5
    """
    return len(surprise) * prior_bits - surprise.double().sum().item()
