import math

import numpy as np
import pytest
import torch

from byheart.lab.entropy import label_entropy, memorized_bits, surprises

LOGITS = torch.log(torch.tensor([[0.5, 0.25, 0.125, 0.125], [0.25, 0.25, 0.25, 0.25], [0.125, 0.75, 0.0625, 0.0625]]))


def test_by_hand():
    """Right labels of probability 1/2, 1/4 and 1/16: 1 + 2 + 4 bits, where 3 · 2 were due without a network."""
    surprise = surprises(LOGITS, torch.tensor([0, 3, 2]))
    assert surprise.tolist() == pytest.approx([1, 2, 4], abs=1e-6)
    assert memorized_bits(surprise, prior_bits=2) == pytest.approx(-1, abs=1e-6)


def test_logits_may_be_shifted():
    labels = torch.tensor([1, 2, 1])
    assert torch.allclose(surprises(LOGITS, labels), surprises(LOGITS + 7, labels), atol=1e-5)


def test_tiny_losses_are_kept():
    """1 − p is far below float32's resolution at 1; the sum over many examples must not lose it."""
    surprise = surprises(torch.tensor([[30.0, 0.0]]), torch.tensor([0]))
    assert surprise.item() == pytest.approx(math.exp(-30) / math.log(2), rel=1e-2)


def test_entropy_of_labels():
    assert label_entropy(np.array([5, 5, 5])) == 0
    assert label_entropy(np.arange(256)) == pytest.approx(8)
    assert label_entropy(np.array([0, 1, 1, 1])) == pytest.approx(2 - 0.75 * math.log2(3))
