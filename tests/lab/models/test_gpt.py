import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.lab.ensemble import Member, Training, train
from byheart.lab.models.gpt import GPT, HEAD_DIMS, MOST_LAYERS, SmallGPT, gpt_with

SMALL = SmallGPT(vocab=11, labels=7, length=5, layers=2, model_dim=16, heads=2, hidden=20, tied=True)


def made(shape=SMALL, seed=0):
    torch.manual_seed(seed)
    model = GPT(shape)
    for weights in model.parameters():  # far from the start, where attention is nearly uniform
        torch.nn.init.normal_(weights, std=0.5)
    return model


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


@pytest.mark.parametrize("tied", [True, False])
def test_later_tokens_change_nothing_earlier(tied):
    shape = SmallGPT(**vars(SMALL) | {"tied": tied})
    model, before = made(shape), tokens(shape)
    for place in range(shape.length):
        after = before.clone()
        after[:, place] = (after[:, place] + 1) % shape.vocab
        change = (model(after) - model(before)).abs().amax(dim=(0, 2))
        assert (change[:place] == 0).all()
        assert (change[place:] > 1e-3).all()


@pytest.mark.parametrize("layers", [1, 3])
def test_the_short_way_to_the_last_logits_is_the_long_one(layers):
    model = made(SmallGPT(**vars(SMALL) | {"layers": layers}))
    assert torch.allclose(model(tokens(), last=True), model(tokens())[:, -1], atol=1e-5)


@pytest.mark.parametrize("last", [True, False])
def test_attention_entry_by_entry_is_attention_by_matrices(last, monkeypatch):
    model = made()
    found = []
    for most in (0, SMALL.length**2):
        monkeypatch.setattr("byheart.lab.models.gpt.MOST_PAIRS", most)
        found.append(model(tokens(), last=last))
    assert torch.allclose(*found, atol=1e-5)
    assert not torch.equal(found[0], found[0].flip(0)), "some logits differ, or anything would agree"


def test_order_matters():
    model = made()
    turned = tokens()[:, [1, 0, 2, 3, 4]]
    assert not torch.allclose(model(tokens(), last=True), model(turned, last=True), atol=1e-3)


def test_attention_by_hand():
    """One layer whose feed-forward part is off: the stream is the embedding and the values, weighted by softmax."""
    shape = SmallGPT(vocab=3, labels=3, length=2, layers=1, model_dim=2, heads=1, hidden=1, tied=True)
    model = GPT(shape)
    block = model.blocks[0]
    with torch.no_grad():
        for weights in model.parameters():
            weights.zero_()
        for norm in (model.norm, block.norm_1):
            norm.weight.fill_(1)
        model.tokens.weight.copy_(torch.tensor([[2.0, 0.0], [0.0, 2.0], [3.0, 1.0]]))
        block.W_Q.weight.copy_(torch.eye(2))
        block.W_KV.weight.copy_(torch.cat([torch.eye(2), 3 * torch.eye(2)]))
        block.W_O.weight.copy_(torch.eye(2))
    # The norm makes (1, -1) and (-1, 1) of tokens 0 and 1: the scores of the second position are ∓2 / √2.
    here = torch.sigmoid(torch.tensor(4 / 2**0.5))
    mixed = 3 * (here - (1 - here)) * torch.tensor([-1.0, 1.0])
    last = torch.tensor([0.0, 2.0]) + mixed
    sign = torch.sign(last - last.mean())
    assert torch.allclose(model(torch.tensor([[0, 1]]), last=True)[0], model.tokens.weight @ sign, atol=1e-3)
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
def test_outputs_are_those_of_the_module(shape: SmallGPT, models: int) -> None:
    firsts = [shape.init(torch.Generator().manual_seed(seed)) for seed in range(models)]
    assert sum(tensor.numel() for tensor in firsts[0].values()) == shape.parameters
    assert models == 1 or not torch.equal(firsts[0]["tokens.weight"], firsts[1]["tokens.weight"])
    weights = {name: torch.stack([first[name] for first in firsts]) for name in firsts[0]}
    tokens = torch.randint(shape.vocab, (models, 6, shape.length), generator=torch.Generator().manual_seed(9))
    found = shape.outputs(weights, {"tokens": tokens})
    for index, first in enumerate(firsts):
        alone = GPT(shape).double()
        alone.load_state_dict(first)
        torch.testing.assert_close(found[index], alone(tokens[index], last=True), rtol=0, atol=1e-12)


def test_the_first_weights_leave_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    SHAPES[0].init(torch.Generator().manual_seed(0))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_an_ensemble_of_them_memorizes() -> None:
    shape = SmallGPT(vocab=8, labels=8, length=1, layers=1, model_dim=8, heads=1, hidden=16, tied=True)
    examples = {"tokens": torch.arange(8)[:, None], "answers": torch.randperm(8, generator=torch.Generator())}
    training = Training(batch=8, steps=300, learning_rate=1e-2, schedule="warm-up-cosine")
    outcomes = train([Member(shape, training, seed, examples) for seed in range(3)])
    assert [outcome.accuracy for outcome in outcomes] == [1.0, 1.0, 1.0]
