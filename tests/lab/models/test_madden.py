import math

import pytest
import torch
from torch.nn import functional

from byheart.lab.ensemble import Member, Training, train
from byheart.lab.models.madden import ATTENDED, FROZEN, MaddenDecoder

MODEL = MaddenDecoder(vocab=13, hidden=6, length=5)
M = 2


def stacked(model=MODEL, dtype=torch.float64):
    drawn = [model.init(torch.Generator().manual_seed(seed)) for seed in range(M)]
    return {name: torch.stack([one[name] for one in drawn]).to(dtype) for name in model.shapes}


def every_position(model, weights, tokens):
    """The usual causal Transformer, one model: logits at all positions of sequences [B, n]."""
    d = model.model_dim
    table = torch.zeros(model.length, d, dtype=torch.float64)
    for s in range(model.length):
        for i in range(0, d, 2):
            table[s, i], table[s, i + 1] = math.sin(s / 10000 ** (i / d)), math.cos(s / 10000 ** (i / d))
    stream = weights["W_E"][tokens] + table
    Q, K, V = (stream @ weights[f"W_{name}"] + weights[f"b_{name}"] for name in "QKV")
    scores = Q @ K.transpose(1, 2) / 4
    future = torch.ones(model.length, model.length, dtype=torch.bool).triu(1)
    z = scores.masked_fill(future, -torch.inf).softmax(dim=-1) @ V @ weights["W_O"] + weights["b_O"]
    return functional.gelu(z @ weights["W_in"] + weights["b_in"]) @ weights["W_U"] + weights["b_U"]


def test_a_context_gets_what_its_place_in_the_text_gets():
    weights = stacked()
    texts = torch.randint(13, (4, 5), generator=torch.Generator().manual_seed(1))
    lengths = torch.arange(1, 6).repeat(4)
    contexts = texts.repeat_interleave(5, dim=0)  # what stands behind the context must not matter
    batch = {"tokens": contexts.expand(M, -1, -1), "lengths": lengths.expand(M, -1)}
    found = MODEL.outputs(weights, batch)
    for m in range(M):
        plain = every_position(MODEL, {name: tensor[m] for name, tensor in weights.items()}, texts)
        torch.testing.assert_close(found[m], plain.flatten(0, 1), rtol=1e-10, atol=1e-10)


def test_counts_of_distinct_contexts_give_the_loss_and_gradients_of_all_places():
    weights = {name: tensor[:1] for name, tensor in stacked().items()}
    texts = torch.tensor([[1, 2, 3, 4, 5], [1, 2, 7, 4, 5], [1, 2, 3, 4, 9]])
    following = torch.tensor([[2, 3, 4, 5, 0], [2, 7, 4, 5, 1], [2, 3, 4, 9, 2]])
    plain = {name: tensor[0].clone().requires_grad_() for name, tensor in weights.items()}
    logits = every_position(MODEL, plain, texts)
    expected = functional.cross_entropy(logits.flatten(0, 1), following.flatten(), reduction="sum")
    expected.backward()

    seen: dict[tuple[int, ...], torch.Tensor] = {}
    for text, after in zip(texts.tolist(), following.tolist(), strict=True):
        for length, token in enumerate(after, start=1):
            seen.setdefault(tuple(text[:length]), torch.zeros(13, dtype=torch.float64))[token] += 1
    assert len(seen) == 9  # of 15 places
    tokens = torch.tensor([[*context, *[0] * (5 - len(context))] for context in seen])
    lengths = torch.tensor([len(context) for context in seen])
    ours = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
    outputs = MODEL.outputs(ours, {"tokens": tokens[None], "lengths": lengths[None]})
    loss = -(outputs.log_softmax(dim=-1)[0] * torch.stack(list(seen.values()))).sum()
    loss.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    for name in weights:
        torch.testing.assert_close(ours[name].grad[0], plain[name].grad, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("vocab", "hidden"), [(100, 4), (1788, 512)])
def test_parameters_are_those_of_the_paper(vocab, hidden):
    model = MaddenDecoder(vocab=vocab, hidden=hidden)
    assert model.parameters == vocab * (17 + hidden) + 1088 + 17 * hidden
    assert model.parameters == sum(tensor.numel() for tensor in model.init(torch.Generator()).values())


def test_hidden_units_of_zeros_change_nothing_and_stay_zeros():
    large = MODEL.join(MaddenDecoder(vocab=13, hidden=9, length=5))
    assert large.hidden == 9
    assert large.family == MODEL.family
    assert MaddenDecoder(vocab=13, hidden=128).family != MaddenDecoder(vocab=13, hidden=256).family
    small = {name: tensor[:1] for name, tensor in stacked().items()}
    padded = {name: torch.zeros(1, *shape, dtype=torch.float64) for name, shape in large.shapes.items()}
    for name, tensor in small.items():
        padded[name][tuple(slice(size) for size in tensor.shape)] = tensor
    padded = {name: tensor.requires_grad_() for name, tensor in padded.items()}
    batch = {"tokens": torch.tensor([[[3, 1, 4, 1, 5]]]), "lengths": torch.tensor([[4]])}
    out = large.outputs(padded, batch)
    torch.testing.assert_close(out, MODEL.outputs(small, batch), rtol=1e-12, atol=1e-12)
    out[0, 0, 3].backward()
    assert padded["W_in"].grad[:, :, 6:].abs().max() == 0
    assert padded["W_U"].grad[:, 6:].abs().max() == 0


def test_what_attention_gives_may_stand_for_the_tokens():
    weights = stacked()
    batch = {"tokens": torch.tensor([[[3, 1, 4, 1, 5], [2, 7, 0, 0, 0]]] * M), "lengths": torch.tensor([[4, 2]] * M)}
    z = MODEL.attended(weights, batch)
    units = {name: tensor for name, tensor in weights.items() if name not in FROZEN}
    assert torch.equal(MODEL.outputs(units, {ATTENDED: z}), MODEL.outputs(weights, batch))
    assert not torch.allclose(MODEL.outputs(units, {ATTENDED: z.flip(1)}), MODEL.outputs(weights, batch))


def test_frozen_tensors_stay_and_others_move():
    examples = {
        "tokens": torch.tensor([[1, 2, 0, 0, 0], [1, 0, 0, 0, 0]]),
        "lengths": torch.tensor([2, 1]),
        "answers": torch.tensor([4, 5]),
    }
    training = Training(batch=2, steps=5, learning_rate=1e-2)
    (outcome,) = train([Member(MODEL, training, 3, examples, frozen=FROZEN)], keep_weights=True, dtype=torch.float64)
    first = MODEL.init(torch.Generator().manual_seed(3))
    moved = {name for name, tensor in outcome.weights.items() if not torch.equal(tensor, first[name])}
    assert moved == {"W_in", "b_in", "W_U", "b_U"}
