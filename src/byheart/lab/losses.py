"""Losses and accuracies of outputs [M, B, …, C] for every example, [M, B].

If a batch is the same at every step and its answers are counts, most of which are zero, the summed cross-entropy and
its gradient have a closed form that reads only the counts that are not zero: :class:`Counted`.
"""

import torch
from torch.nn.utils.rnn import pad_sequence

from byheart.lab.member import Loss


def losses(outputs: torch.Tensor, answers: torch.Tensor, loss: Loss) -> torch.Tensor:
    """Return losses [M, B]; an example's loss is the mean over its answers.

    Real answers of a cross-entropy are distributions.

    >>> losses(torch.zeros(1, 2, 4), torch.tensor([[0, 3]]), "cross-entropy")
    tensor([[1.3863, 1.3863]])
    """
    if loss == "mean-square":
        values = (outputs - answers.reshape(outputs.shape)).square()
    elif answers.is_floating_point():
        values = -(outputs.log_softmax(dim=-1) * answers).sum(dim=-1)
    elif outputs.dim() == 3 and outputs.stride(-1) != 1:  # a transposed view, and a softmax would copy it
        values = -outputs.mT.log_softmax(dim=1).gather(1, answers.unsqueeze(1)).squeeze(1)
    else:
        values = -outputs.log_softmax(dim=-1).gather(-1, answers.unsqueeze(-1)).squeeze(-1)
    return values.flatten(2).mean(dim=2) if values.dim() > 2 else values


def rights(outputs: torch.Tensor, answers: torch.Tensor, loss: Loss) -> torch.Tensor:
    """Return the share of right answers of each example, [M, B], or NaN for real answers of a mean square.

    >>> rights(torch.eye(3)[None], torch.tensor([[0, 1, 1]]), "cross-entropy")
    tensor([[1., 1., 0.]])
    """
    if loss == "mean-square":
        return outputs.new_full(outputs.shape[:2], torch.nan)
    labels = answers.argmax(dim=-1) if answers.is_floating_point() else answers
    right = (outputs.argmax(dim=-1) == labels).to(outputs.dtype)
    return right.flatten(2).mean(dim=2) if right.dim() > 2 else right


class Counted:
    """The summed cross-entropy of constant counts c [M, B, C], and its gradient by the logits.

    With o_b = Σ_j c_bj and p = softmax(logits), the loss of an example is −Σ_j c_bj log p_bj and its gradient
    o_b p_bj − c_bj. Both are computed from p and from the counts that are not zero; only rows of p whose o_b is not 1
    are written again. So logits are read once, while autograd passes over them ten times for log_softmax.
    A probability below the smallest normal number of its type counts in the loss as that number.
    """

    def __init__(self, answers: torch.Tensor) -> None:
        self.examples = answers.shape[1]
        pairs = [(member, member.nonzero()[:, 0]) for member in answers.flatten(1)]
        self.places = pad_sequence([places for _, places in pairs], batch_first=True)
        self.counts = pad_sequence([member[places] for member, places in pairs], batch_first=True)
        often = answers.sum(dim=-1).flatten()
        self.rows = (often != 1).nonzero()[:, 0]
        self.often = often[self.rows, None]

    def __call__(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mean loss of an example, [M], and the gradient of the sum of all losses, [M, B, C].

        >>> mean, gradient = Counted(torch.tensor([[[3.0, 1.0], [0.0, 1.0]]]))(torch.zeros(1, 2, 2))
        >>> mean, gradient.tolist()  # 4 log 2 and log 2
        (tensor([1.7329]), [[[-1.0, 1.0], [0.5, -0.5]]])
        """
        chances = logits.contiguous().softmax(dim=-1)
        members, rows = chances.view(len(chances), -1), chances.view(-1, chances.shape[-1])
        certain = members.gather(1, self.places).clamp(min=torch.finfo(chances.dtype).tiny).log()
        mean = -(certain * self.counts).sum(dim=1) / self.examples
        rows.index_copy_(0, self.rows, rows.index_select(0, self.rows) * self.often)
        members.scatter_add_(1, self.places, -self.counts)
        return mean, chances
