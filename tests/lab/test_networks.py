"""What the lab trains, as networks: the same outputs, whatever the architecture and its shape."""

from typing import Any

import numpy as np
import pytest
import torch

from byheart.errors import BadInput
from byheart.lab.models.dana import AttentionOnly
from byheart.lab.models.gpt import SmallGPT
from byheart.lab.models.madden import MaddenDecoder
from byheart.lab.models.mahdavi import QueryAttention
from byheart.lab.saving import as_network
from byheart.networks.trained.evaluate import evaluate

DANA = [
    AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=3),
    AttentionOnly(vocab=7, model_dim=3, head_dim=3, heads=5),
    AttentionOnly(vocab=7, model_dim=5, head_dim=3, heads=6),
    AttentionOnly(vocab=7, model_dim=3, head_dim=5, heads=2),
    AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=2, hidden=6),
    AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=2, hidden=0),
    AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=2, layers=3),
    AttentionOnly(vocab=7, model_dim=4, head_dim=2, heads=2, hidden=5, layers=3),
    AttentionOnly(vocab=7, model_dim=4, head_dim=3, heads=2, text=True),
    AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=5, hidden=3, layers=2, text=True),
]
GPTS = [
    SmallGPT(vocab=9, labels=5, length=4, layers=2, model_dim=8, heads=2, hidden=6, tied=True),
    SmallGPT(vocab=5, labels=9, length=4, layers=1, model_dim=8, heads=1, hidden=6, tied=True),
    SmallGPT(vocab=5, labels=9, length=1, layers=3, model_dim=12, heads=3, hidden=7, tied=False),
]
DECODERS = [MaddenDecoder(vocab=6, hidden=5, length=4, model_dim=6), MaddenDecoder(vocab=3, hidden=1, length=9)]
QUERIES = [
    QueryAttention(heads=3, head_dim=5, length=6, labels=4, fixed=fixed, model_dim=7, dim=3) for fixed in (True, False)
]


def weights_of(shape: Any) -> Any:
    """First weights, with something added to those that are 0 or 1 at first."""
    generator = torch.Generator().manual_seed(5)
    first = shape.init(generator)
    noise = {
        name: torch.randn(tensor.shape, generator=generator, dtype=torch.float64) for name, tensor in first.items()
    }
    return {name: tensor + 0.3 * noise[name] for name, tensor in first.items()}


def said(shape: Any, weights: Any, **batch: Any) -> Any:
    """The lab's own outputs, in float64."""
    stacked = {name: tensor[None] for name, tensor in weights.items()}
    with torch.no_grad():
        return shape.outputs(stacked, {name: torch.as_tensor(rows)[None] for name, rows in batch.items()})[0].numpy()


def same(found: Any, expected: Any) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max()))


@pytest.mark.parametrize("shape", DANA, ids=repr)
def test_dana(shape: AttentionOnly) -> None:
    weights = weights_of(shape)
    tokens = torch.cartesian_prod(torch.arange(7), torch.arange(7)).numpy()
    network = as_network(shape, weights)
    assert same(evaluate(network, (tokens, None)), said(shape, weights, tokens=tokens))
    assert network.account.dense == shape.parameters


@pytest.mark.parametrize("shape", GPTS, ids=repr)
def test_gpt(shape: SmallGPT) -> None:
    weights = weights_of(shape)
    tokens = np.random.default_rng(0).integers(shape.vocab, size=(20, shape.length))
    network = as_network(shape, weights)
    assert same(evaluate(network, (tokens, None)), said(shape, weights, tokens=tokens))
    assert network.account.dense == shape.parameters


@pytest.mark.parametrize("shape", DECODERS, ids=repr)
def test_madden(shape: MaddenDecoder) -> None:
    """Contexts of every length, filled up with a token that is none."""
    weights, rng = weights_of(shape), np.random.default_rng(0)
    tokens, lengths = rng.integers(shape.vocab, size=(30, shape.length)), rng.integers(1, shape.length + 1, size=30)
    places = np.arange(30) * shape.length + lengths - 1
    network = as_network(shape, weights)
    padded = np.where(np.arange(shape.length) < lengths[:, None], tokens, shape.vocab)
    assert same(evaluate(network, (padded, None)), said(shape, weights, stories=tokens, places=places))
    assert network.account.dense == shape.parameters


@pytest.mark.parametrize("shape", QUERIES, ids=repr)
def test_mahdavi(shape: QueryAttention) -> None:
    weights, rng = weights_of(shape), np.random.default_rng(0)
    queries, contexts = rng.random((11, 3)), rng.random((6, 3) if shape.fixed else (11, 6, 3))
    network = as_network(shape, weights)
    found = evaluate(network, (np.broadcast_to(contexts, (11, 6, 3)), queries))
    assert same(found, said(shape, weights, queries=queries, contexts=contexts))
    assert network.account.dense == shape.parameters


def test_one_weight_changed_is_not_the_same() -> None:
    """The checks above can fail."""
    shape = DANA[2]
    weights, tokens = weights_of(shape), np.array([[0, 1]])
    network = as_network(shape, weights)
    weights["compression"][0, 0] += 1e-9
    assert not same(evaluate(network, (tokens, None)), said(shape, weights, tokens=tokens))


def test_float32_stays_float32() -> None:
    network = as_network(DANA[0], {name: tensor.float() for name, tensor in weights_of(DANA[0]).items()})
    assert network.account.max_bits == 32


def test_other_architectures_are_refused() -> None:
    with pytest.raises(BadInput, match=r"object .* AttentionOnly, "):
        as_network(object(), {})  # type: ignore[arg-type]
