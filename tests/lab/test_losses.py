import torch

from byheart.lab.losses import Counted, losses, rights


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


def counts(seed: int, density: float) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    some = torch.rand(5, 7, generator=generator, dtype=torch.float64) < density
    some[:, seed] = True  # every context occurs
    return torch.randint(1, 4, (5, 7), generator=generator).double() * some


def test_the_closed_form_is_what_autograd_finds():
    answers = torch.stack([counts(0, 0.2), counts(1, 0.6)])  # so that one has more places than the other
    answers[0, 3] = torch.nn.functional.one_hot(torch.tensor(2), 7)  # occurs once
    logits = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64, requires_grad=True)
    each = losses(logits, answers, "summed-cross-entropy")
    (expected,) = torch.autograd.grad(each.sum(), logits)
    for given in (logits.detach(), logits.detach().mT.contiguous().mT):
        mean, gradient = Counted(answers)(given)
        torch.testing.assert_close(mean, each.mean(dim=1), rtol=1e-12, atol=0)
        torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-14)
    _, other = Counted(answers.roll(1, dims=2))(logits.detach())
    assert (other - expected).abs().max() > 0.1, "other counts have another gradient"


def test_what_is_all_but_impossible_has_a_finite_loss_and_the_right_gradient():
    logits = torch.tensor([[[0.0, 1000.0]]])
    mean, gradient = Counted(torch.tensor([[[1.0, 0.0]]]))(logits)
    assert 87 < mean.item() < 1000, "of the smallest normal number: the true loss is 1000"
    assert gradient.tolist() == [[[-1.0, 1.0]]]
