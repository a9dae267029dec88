import torch

from byheart.lab.losses import losses, rights


def test_losses_of_transposed_outputs_and_of_distributions_are_the_same():
    outputs = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    answers = torch.tensor([[0, 1, 2, 3, 0], [3, 2, 1, 0, 1]])
    expected = torch.nn.functional.cross_entropy(outputs.flatten(0, 1), answers.flatten(), reduction="none").view(2, 5)
    turned = outputs.mT.contiguous().mT
    for given in (outputs, turned):
        torch.testing.assert_close(losses(given, answers, "cross-entropy"), expected)
    certain = torch.nn.functional.one_hot(answers, 4).float()
    torch.testing.assert_close(losses(outputs, certain, "cross-entropy"), expected)
    assert torch.equal(rights(outputs, certain, "cross-entropy"), rights(outputs, answers, "cross-entropy"))
