"""Stacked GPTs are the GPT, one by one."""

import pytest
import torch

from byheart.lab.ensemble import Member, Training, train
from byheart.lab.gpt import GPT, Shape
from byheart.lab.models.gpt import SmallGPT

SHAPES = [
    Shape(vocab=9, labels=5, length=4, layers=2, width=8, heads=1, hidden=16, tied=True),
    Shape(vocab=5, labels=7, length=3, layers=1, width=8, heads=2, hidden=5, tied=False),
]


@pytest.mark.parametrize("shape", SHAPES, ids=["tied", "untied"])
def test_outputs_are_those_of_the_module(shape: Shape) -> None:
    architecture = SmallGPT(shape)
    firsts = [architecture.init(torch.Generator().manual_seed(seed)) for seed in range(3)]
    assert sum(tensor.numel() for tensor in firsts[0].values()) == architecture.parameters
    assert not torch.equal(firsts[0]["tokens.weight"], firsts[1]["tokens.weight"])
    weights = {name: torch.stack([first[name] for first in firsts]) for name in firsts[0]}
    tokens = torch.randint(shape.vocab, (3, 6, shape.length), generator=torch.Generator().manual_seed(9))
    found = architecture.outputs(weights, {"tokens": tokens})
    for index, first in enumerate(firsts):
        alone = GPT(shape).double()
        alone.load_state_dict(first)
        torch.testing.assert_close(found[index], alone(tokens[index], last=True), rtol=0, atol=1e-12)


def test_the_first_weights_leave_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    SmallGPT(SHAPES[0]).init(torch.Generator().manual_seed(0))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_an_ensemble_of_them_memorizes() -> None:
    shape = Shape(vocab=8, labels=8, length=1, layers=1, width=8, heads=1, hidden=16, tied=True)
    examples = {"tokens": torch.arange(8)[:, None], "answers": torch.randperm(8, generator=torch.Generator())}
    training = Training(batch=8, steps=300, learning_rate=1e-2, schedule="warm-up-cosine")
    outcomes = train([Member(SmallGPT(shape), training, seed, examples) for seed in range(3)])
    assert [outcome.accuracy for outcome in outcomes] == [1.0, 1.0, 1.0]
