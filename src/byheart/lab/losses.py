"""Losses and accuracies of outputs [M, B, …, C] for every example, [M, B]."""

import torch

from byheart.lab.member import Loss


def losses(outputs: torch.Tensor, answers: torch.Tensor, loss: Loss) -> torch.Tensor:
    """[M, B]; an example's loss is the mean over its answers. Real answers of a cross-entropy are distributions.

    >>> losses(torch.zeros(1, 2, 4), torch.tensor([[0, 3]]), "cross-entropy")
    tensor([[1.3863, 1.3863]])
    """
    if loss == "mean-square":
        each = (outputs - answers.reshape(outputs.shape)).square()
    elif answers.is_floating_point():
        each = -(outputs.log_softmax(dim=-1) * answers).sum(dim=-1)
    elif outputs.dim() == 3 and outputs.stride(-1) != 1:  # a transposed view, and a softmax would copy it
        each = -outputs.mT.log_softmax(dim=1).gather(1, answers.unsqueeze(1)).squeeze(1)
    else:
        each = -outputs.log_softmax(dim=-1).gather(-1, answers.unsqueeze(-1)).squeeze(-1)
    return each.flatten(2).mean(dim=2) if each.dim() > 2 else each


def rights(outputs: torch.Tensor, answers: torch.Tensor, loss: Loss) -> torch.Tensor:
    """Share of right answers of each example, [M, B]; real answers of a mean square are never right or wrong: NaN.

    >>> rights(torch.eye(3)[None], torch.tensor([[0, 1, 1]]), "cross-entropy")
    tensor([[1., 1., 0.]])
    """
    if loss == "mean-square":
        return outputs.new_full(outputs.shape[:2], torch.nan)
    wanted = answers.argmax(dim=-1) if answers.is_floating_point() else answers
    right = (outputs.argmax(dim=-1) == wanted).to(outputs.dtype)
    return right.flatten(2).mean(dim=2) if right.dim() > 2 else right
