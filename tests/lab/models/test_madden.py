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


def defined(weights, context, model=MODEL):
    """Logits of one model for one context, as the module's docstring defines them."""
    d, w = model.model_dim, weights
    rows = [[(math.sin, math.cos)[i % 2](s / 10000 ** (i // 2 * 2 / d)) for i in range(d)] for s in range(len(context))]
    p = torch.tensor(rows, dtype=torch.float64)
    x = w["W_E"][context] + p
    q = w["W_Q"].T @ x[-1] + w["b_Q"]
    scores = torch.stack([q @ (w["W_K"].T @ x_s + w["b_K"]) for x_s in x]) / math.sqrt(d)
    average = sum(a_s * (w["W_V"].T @ x_s + w["b_V"]) for a_s, x_s in zip(scores.softmax(dim=0), x, strict=True))
    z = w["W_O"].T @ average + w["b_O"]
    return w["W_U"].T @ functional.gelu(w["W_in"].T @ z + w["b_in"]) + w["b_U"]


def batch_of(stories, places):
    """The same stories for all models, and the same places."""
    return {"stories": torch.as_tensor(stories)[None], "places": torch.as_tensor(places).expand(M, -1)}


def test_every_place_gets_what_the_definition_gives_its_context():
    weights, shuffled = stacked(), torch.randperm(20, generator=torch.Generator().manual_seed(2))
    stories = torch.randint(13, (M, 4, 5), generator=torch.Generator().manual_seed(1))
    for own in (stories, stories[:1]):  # each model's own stories, and stories of all models
        actual = MODEL.outputs(weights, {"stories": own, "places": shuffled.expand(M, -1)})
        for m in range(M):
            tensors, its = {name: tensor[m] for name, tensor in weights.items()}, own[m % len(own)]
            expected = [defined(tensors, its[place // 5, : place % 5 + 1]) for place in shuffled]
            torch.testing.assert_close(actual[m], torch.stack(expected), rtol=1e-10, atol=1e-10)


def test_counts_of_distinct_contexts_give_the_loss_and_gradients_of_all_places():
    weights = {name: tensor[:1] for name, tensor in stacked().items()}
    stories = torch.tensor([[1, 2, 3, 4, 5], [1, 2, 7, 4, 5], [1, 2, 3, 4, 9]])
    following = torch.tensor([[2, 3, 4, 5, 0], [2, 7, 4, 5, 1], [2, 3, 4, 9, 2]])
    plain = {name: tensor[0].clone().requires_grad_() for name, tensor in weights.items()}
    logits = torch.stack([defined(plain, story[:length]) for story in stories for length in range(1, 6)])
    expected = functional.cross_entropy(logits, following.flatten(), reduction="sum")
    expected.backward()

    seen: dict[tuple[int, ...], torch.Tensor] = {}
    places = []
    for place, token in enumerate(following.flatten().tolist()):
        context = tuple(stories[place // 5, : place % 5 + 1].tolist())
        if context not in seen:
            seen[context] = torch.zeros(13, dtype=torch.float64)
            places.append(place)
        seen[context][token] += 1
    assert len(seen) == 9  # of 15 places
    ours = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
    outputs = MODEL.outputs(ours, {"stories": stories[None], "places": torch.tensor([places])})
    loss = -(outputs.log_softmax(dim=-1)[0] * torch.stack(list(seen.values()))).sum()
    gradients = torch.autograd.grad(loss, list(ours.values()), materialize_grads=True)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    for name, gradient in zip(ours, gradients, strict=True):
        torch.testing.assert_close(gradient[0], plain[name].grad, rtol=1e-9, atol=1e-11)


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
    batch = {"stories": torch.tensor([[[3, 1, 4, 1, 5]]]), "places": torch.tensor([[3]])}
    out = large.outputs(padded, batch)
    torch.testing.assert_close(out, MODEL.outputs(small, batch), rtol=1e-12, atol=1e-12)
    out[0, 0, 3].backward()
    assert padded["W_in"].grad[:, :, 6:].abs().max() == 0
    assert padded["W_U"].grad[:, 6:].abs().max() == 0


def test_what_attention_gives_may_stand_for_the_tokens():
    weights = stacked()
    batch = batch_of([[3, 1, 4, 1, 5], [2, 7, 0, 0, 0]], [3, 6])
    z = MODEL.attended(weights, batch)
    units = {name: tensor for name, tensor in weights.items() if name not in FROZEN}
    assert torch.equal(MODEL.outputs(units, {ATTENDED: z}), MODEL.outputs(weights, batch))
    assert not torch.allclose(MODEL.outputs(units, {ATTENDED: z.flip(1)}), MODEL.outputs(weights, batch))


def test_frozen_tensors_stay_and_others_move():
    examples = {"places": torch.tensor([1, 0]), "answers": torch.tensor([4, 5])}
    constants = {"stories": torch.tensor([[1, 2, 0, 0, 0]])}
    training = Training(batch=2, steps=5, learning_rate=1e-2)
    member = Member(MODEL, training, 3, examples, constants, frozen=FROZEN)
    (outcome,) = train([member], keep_weights=True, dtype=torch.float64)
    first = MODEL.init(torch.Generator().manual_seed(3))
    moved = {name for name, tensor in outcome.weights.items() if not torch.equal(tensor, first[name])}
    assert moved == {"W_in", "b_in", "W_U", "b_U"}
