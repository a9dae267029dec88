import math

import pytest
import torch
from torch.nn import functional

from byheart.errors import BadInput
from byheart.lab.models.mahdavi import QueryAttention

M, B = 3, 7
SMALL = {"heads": 4, "head_dim": 3, "length": 5, "labels": 6, "model_dim": 8, "dim": 10}


def stacked(model, dtype=torch.float64, models=M):
    drawn = [model.init(torch.Generator().manual_seed(seed)) for seed in range(models)]
    return {name: torch.stack([one[name] for one in drawn]).to(dtype) for name in model.shapes}


def batch_of(model, dtype=torch.float64, models=M, examples=B, seed=9):
    generator = torch.Generator().manual_seed(seed)
    shape = (model.length, model.dim) if model.fixed else (examples, model.length, model.dim)
    queries = torch.rand(models, examples, model.dim, generator=generator, dtype=torch.float64)
    contexts = torch.rand(models, *shape, generator=generator, dtype=torch.float64)
    return {"queries": queries.to(dtype), "contexts": contexts.to(dtype)}


def all_positions(model, weights, queries, contexts):
    """The authors' way, for one model: keys, queries and values of all n + 1 tokens, all positions; and the softmax."""
    tokens = torch.cat([queries[:, None], contexts.expand(len(queries), -1, -1)], dim=1)
    d = model.model_dim
    stream = functional.linear(tokens, weights["W_E"].T, weights["b_E"])
    table = torch.zeros(model.length + 1, d, dtype=torch.float64)
    for s in range(model.length + 1):
        for i in range(0, d, 2):
            table[s, i], table[s, i + 1] = math.sin(s / 10000 ** (i / d)), math.cos(s / 10000 ** (i / d))
    stream = stream + table.to(stream.dtype)
    Q, K = (stream[:, None] @ weights[name] for name in ("W_Q", "W_K"))
    V = stream[:, None] @ weights["W_V"][:, :, None]
    scores = Q @ K.transpose(2, 3) / math.sqrt(d)
    scores[..., 0] = -torch.inf
    attention = scores.softmax(dim=-1)
    heads = (attention @ V).transpose(1, 2).flatten(2)
    logits = functional.linear(heads @ weights["W_O"], weights["W_U"].T, weights["b_U"])
    return logits, attention


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-6), (torch.float64, 1e-10)])
@pytest.mark.parametrize("sizes", [SMALL, {"heads": 20}, {"heads": 1, "length": 1, "labels": 1}])
def test_the_query_position_is_what_all_positions_give(fixed, dtype, close, sizes):
    model = QueryAttention(fixed=fixed, **sizes)
    weights, batch = stacked(model, dtype), batch_of(model, dtype)
    found = model.outputs(weights, batch)
    assert found.dtype == dtype
    for m in range(M):
        ours = {name: tensor[m] for name, tensor in weights.items()}
        plain, _ = all_positions(model, ours, batch["queries"][m], batch["contexts"][m])
        torch.testing.assert_close(found[m], plain[:, 0], rtol=close, atol=close)


@pytest.mark.parametrize("fixed", [True, False])
def test_gradients_are_those_of_all_positions(fixed):
    model = QueryAttention(fixed=fixed, **SMALL)
    weights, batch = stacked(model, models=1), batch_of(model, models=1)
    answers = torch.arange(B) % model.labels
    ours = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
    plain = {name: tensor[0].clone().requires_grad_() for name, tensor in weights.items()}
    functional.cross_entropy(model.outputs(ours, batch)[0], answers).backward()
    logits, _ = all_positions(model, plain, batch["queries"][0], batch["contexts"][0])
    functional.cross_entropy(logits[:, 0], answers).backward()
    for name in weights:
        torch.testing.assert_close(ours[name].grad[0], plain[name].grad, rtol=1e-9, atol=1e-12)


def test_twenty_heads_have_177060_parameters():
    model = QueryAttention(heads=20)
    embedding, decoder = 64 * 64 + 64, 64 * 100 + 100
    attention = 20 * (64 * 64 + 64 * 64 + 64 * 1) + 20 * 64
    assert embedding + attention + decoder == 177_060
    assert model.parameters == 177_060
    drawn = model.init(torch.Generator())
    assert sum(tensor.numel() for tensor in drawn.values()) == 177_060


def test_weights_start_as_the_authors_draw_them():
    model = QueryAttention(heads=60, head_dim=16)
    drawn = model.init(torch.Generator().manual_seed(0))
    bounds = {"W_Q": (6 / 80) ** 0.5, "W_V": (6 / 65) ** 0.5, "W_O": (6 / 124) ** 0.5, "W_E": 1 / 8, "b_U": 1 / 8}
    for name, bound in bounds.items():
        assert 0.95 * bound < drawn[name].abs().max() <= bound
        assert drawn[name].dtype == torch.float64
    again = model.init(torch.Generator().manual_seed(0))
    assert all(torch.equal(drawn[name], again[name]) for name in drawn)


@pytest.mark.parametrize("fixed", [True, False])
def test_attention_is_that_of_the_first_token(fixed):
    model = QueryAttention(fixed=fixed, **SMALL)
    weights, batch = stacked(model), batch_of(model)
    found = model.attention(weights, batch)
    ours = {name: tensor[1] for name, tensor in weights.items()}
    _, attention = all_positions(model, ours, batch["queries"][1], batch["contexts"][1])
    torch.testing.assert_close(found[1], attention[:, :, 0, 1:], rtol=1e-10, atol=1e-10)


def test_saturated_heads_are_counted_example_by_example():
    model = QueryAttention(**SMALL)
    weights, batch = stacked(model), batch_of(model)
    assert model.saturated(weights, batch).max() == 0
    weights["W_Q"][:, :2] *= 1e5  # two heads that put everything on one token
    counts = model.saturated(weights, batch)
    assert counts.shape == (M, B)
    assert counts.unique().tolist() == [2]


def test_sizes_are_counts():
    with pytest.raises(BadInput, match="heads is 0"):
        QueryAttention(heads=0)
