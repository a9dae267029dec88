import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.lab.ensemble import Member, Training, train
from byheart.lab.models.gpt import HEAD_DIMS, MOST_LAYERS, SmallGPT, gpt_with

from .gpt_module import GPT

SMALL = SmallGPT(vocab=11, labels=7, length=5, layers=2, model_dim=16, heads=2, hidden=20, tied=True)


def made(shape=SMALL, seed=0):
    """Weights of one model, float64, far from the start, where attention is nearly uniform."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: 0.5 * torch.randn(1, *size, dtype=torch.float64, generator=generator)
        for name, size in shape.shapes.items()
    }


def logits(shape, weights, rows):
    return shape.outputs(weights, {"tokens": rows[None]})[0]


def tokens(shape=SMALL, rows=6):
    return torch.randint(shape.vocab, (rows, shape.length), generator=torch.Generator().manual_seed(1))


@given(
    vocab=st.integers(1, 40),
    labels=st.integers(1, 40),
    length=st.integers(1, 9),
    layers=st.integers(1, 4),
    heads=st.integers(1, 3),
    hidden=st.integers(1, 30),
    tied=st.booleans(),
)
def test_parameters_are_counted(vocab, labels, length, layers, heads, hidden, tied):
    shape = SmallGPT(vocab, labels, length, layers, model_dim=8 * heads, heads=heads, hidden=hidden, tied=tied)
    assert shape.parameters == sum(weights.numel() for weights in GPT(shape).parameters())


@given(
    parameters=st.integers(3000, 200_000),
    vocab=st.integers(1, 300),
    labels=st.integers(1, 256),
    layers=st.none() | st.integers(1, MOST_LAYERS),
    tied=st.booleans(),
)
def test_never_too_many_and_nearly_all(parameters, vocab, labels, layers, tied):
    try:
        shape = gpt_with(parameters, vocab, labels, 8, layers=layers, tied=tied)
    except BadInput:
        assert (
            SmallGPT(vocab, labels, 8, layers or 1, model_dim=8, heads=1, hidden=1, tied=tied).parameters > parameters
        )
        return
    assert (shape.vocab, shape.labels, shape.length, shape.tied) == (vocab, labels, 8, tied)
    assert layers in (None, shape.layers)
    assert shape.model_dim // shape.heads in HEAD_DIMS
    a_neuron_a_layer = shape.layers * (2 * shape.model_dim + 1)
    assert parameters - a_neuron_a_layer < shape.parameters <= parameters


@pytest.mark.parametrize("labels", [256, 100])
def test_the_shape_that_the_benchmark_uses(labels):
    shape = gpt_with(40_000, vocab=257, labels=labels, length=8)
    assert (shape.layers, shape.model_dim, shape.heads, shape.hidden) == (3, 32, 4, 95)


def test_attention_entry_by_entry_is_attention_by_matrices(monkeypatch):
    found = []
    for most in (0, SMALL.length**2):
        monkeypatch.setattr("byheart.lab.models.parts.MAX_PAIRS", most)
        found.append(logits(SMALL, made(), tokens()))
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)
    assert not torch.equal(found[0], found[0].flip(0)), "some logits differ, or anything would agree"


def test_order_matters():
    turned = tokens()[:, [1, 0, 2, 3, 4]]
    assert not torch.allclose(logits(SMALL, made(), tokens()), logits(SMALL, made(), turned), atol=1e-3)


def test_attention_by_hand():
    """One layer whose feed-forward part is off: the stream is the embedding and the values, weighted by softmax."""
    shape = SmallGPT(vocab=3, labels=3, length=2, layers=1, model_dim=2, heads=1, hidden=1, tied=True)
    weights = {name: torch.zeros(1, *size) for name, size in shape.shapes.items()}
    table = torch.tensor([[2.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    weights |= {name: torch.ones(1, 2) for name in ("norm.weight", "blocks.0.norm_1.weight")}
    weights |= {"tokens.weight": table[None]}
    weights |= {f"blocks.0.W_{part}.weight": torch.eye(2)[None] for part in "QO"}
    weights["blocks.0.W_KV.weight"] = torch.cat([torch.eye(2), 3 * torch.eye(2)])[None]
    # The norm makes (1, -1) and (-1, 1) of tokens 0 and 1: the scores of the second position are ∓2 / √2.
    here = torch.sigmoid(torch.tensor(4 / 2**0.5))
    mixed = 3 * (here - (1 - here)) * torch.tensor([-1.0, 1.0])
    last = torch.tensor([0.0, 2.0]) + mixed
    sign = torch.sign(last - last.mean())
    assert torch.allclose(logits(shape, weights, torch.tensor([[0, 1]]))[0], table @ sign, atol=1e-3)
    assert sign.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda: SmallGPT(3, 3, 2, 1, 9, 2, 1, True), "model_dim is 9; expected a multiple of heads = 2"),
        (lambda: SmallGPT(3, 3, 2, 0, 8, 2, 1, True), "layers is 0; expected at least 1"),
        (lambda: gpt_with(0, 3, 3, 2), "parameters is 0; expected at least 1"),
        (lambda: gpt_with(99, 3, 3, 2, layers=5), "layers is 5; expected at most 4"),
        (lambda: gpt_with(99, 3, 3, 2, layers=2), "parameters is 99; expected at least 682 with 2 layers"),
        (lambda: gpt_with(368, 3, 3, 2), "parameters is 368; expected at least 369 with 1 layers"),
    ],
)
def test_refusals(refused, message):
    with pytest.raises(BadInput) as caught:
        refused()
    assert str(caught.value) == message


SHAPES = [
    SmallGPT(vocab=9, labels=5, length=4, layers=2, model_dim=8, heads=1, hidden=16, tied=True),
    SmallGPT(vocab=5, labels=7, length=3, layers=1, model_dim=8, heads=2, hidden=5, tied=False),
]


@pytest.mark.parametrize("shape", SHAPES, ids=["tied", "untied"])
@pytest.mark.parametrize("models", [1, 3])
def test_outputs_are_those_of_modules(shape: SmallGPT, models: int) -> None:
    each = [made(shape, seed) for seed in range(models)]
    weights = {name: torch.cat([own[name] for own in each]) for name in each[0]}
    rows = torch.randint(shape.vocab, (models, 6, shape.length), generator=torch.Generator().manual_seed(9))
    found = shape.outputs(weights, {"tokens": rows})
    for index, own in enumerate(each):
        alone = GPT(shape).double()
        alone.load_state_dict({name: tensor[0] for name, tensor in own.items()})
        torch.testing.assert_close(found[index], alone(rows[index])[:, -1], rtol=0, atol=1e-10)


def test_first_weights_are_of_these_shapes_and_each_seed_has_its_own():
    first, other = (SMALL.init(torch.Generator().manual_seed(seed)) for seed in range(2))
    assert {name: tuple(tensor.shape) for name, tensor in first.items()} == SMALL.shapes
    assert not torch.equal(first["tokens.weight"], other["tokens.weight"])
    assert first["norm.weight"].tolist() == [1.0] * 16
    assert first["blocks.1.norm_2.bias"].tolist() == [0.0] * 16
    spread = SmallGPT(**vars(SMALL) | {"hidden": 400}).init(torch.Generator())
    assert spread["blocks.0.W_in.weight"].std().item() == pytest.approx(0.02, rel=0.05)
    assert spread["blocks.0.W_out.weight"].std().item() == pytest.approx(0.01, rel=0.05)


def test_an_ensemble_of_them_memorizes() -> None:
    shape = SmallGPT(vocab=8, labels=8, length=1, layers=1, model_dim=8, heads=1, hidden=16, tied=True)
    examples = {"tokens": torch.arange(8)[:, None], "answers": torch.randperm(8, generator=torch.Generator())}
    training = Training(batch=8, steps=300, learning_rate=1e-2, schedule="warm-up-cosine")
    outcomes = train([Member(shape, training, seed, examples) for seed in range(3)])
    assert [outcome.accuracy for outcome in outcomes] == [1.0, 1.0, 1.0]
