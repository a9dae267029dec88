"""The network that computes only what is read, against the usual one that computes everything."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from byheart.errors import BadInput
from byheart.lab.models.dana import AttentionOnly

NETWORKS = [
    AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=6),
    AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=2),
    AttentionOnly(vocab=7, model_dim=4, head_dim=3, heads=5),
    AttentionOnly(vocab=7, model_dim=3, head_dim=5, heads=2),
    AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=1, hidden=6),
    AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=1, hidden=0),
    AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=5, layers=3),
    AttentionOnly(vocab=7, model_dim=4, head_dim=2, heads=2, layers=3, hidden=5),
]
NETWORKS += [replace(network, text=True) for network in NETWORKS]


def weights_of(network, members=2):
    firsts = [network.init(torch.Generator().manual_seed(seed)) for seed in range(members)]
    factor = 3 if network.layers == 1 else 1.2  # attention is neither even nor saturated
    return {name: factor * torch.stack([first[name] for first in firsts]) for name in firsts[0]}


def tokens_of(network, members=2, batch=9):
    return torch.randint(network.vocab, (members, batch, 2), generator=torch.Generator().manual_seed(5))


def plain(network, weights, tokens):
    """Logits [B, ω] of one model: all positions, all heads one by one, a mask and a softmax."""
    stream = weights["embedding"][tokens]
    if network.text:
        stream = stream + weights["positions"]
    future = torch.ones(2, 2, dtype=torch.bool).triu(1)
    for layer in range(network.layers):
        own = {name.removeprefix(f"{layer}."): tensor for name, tensor in weights.items()}
        seen = stream
        if network.compressed:
            seen = seen @ own["compression"].T
        if not network.text:
            seen = seen + own["positions"]
        added = torch.zeros_like(seen)
        for W_Q, W_K, W_V, W_O in zip(own["W_Q"], own["W_K"], own["W_V"], own["W_O"], strict=True):
            scores = (seen @ W_Q.T) @ (seen @ W_K.T).mT / network.head_dim**0.5
            added = added + scores.masked_fill(future, -torch.inf).softmax(dim=-1) @ (seen @ W_V.T) @ W_O.T
        stream = stream + (added @ own["decompression"].T if network.compressed else added)
        if network.hidden is not None:
            stream = stream + functional.gelu(stream @ own["W_in"].T + own["b_in"]) @ own["W_out"].T
    return stream[:, 1] @ weights["unembedding"].T


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_outputs_and_gradients_are_those_of_the_usual_network(network):
    weights, tokens = weights_of(network), tokens_of(network)
    leaves = {name: tensor.requires_grad_() for name, tensor in weights.items()}
    outputs = network.outputs(leaves, {"tokens": tokens})
    expected = torch.stack([plain(network, {n: t[m] for n, t in leaves.items()}, tokens[m]) for m in range(2)])
    torch.testing.assert_close(outputs, expected, rtol=1e-10, atol=1e-10)
    probe = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found, wanted = (
        torch.autograd.grad((values * probe).sum(), list(leaves.values()), materialize_grads=True)
        for values in (outputs, expected)
    )
    for one, other in zip(found, wanted, strict=True):
        assert (one - other).norm() <= 1e-10 * other.norm()


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_parameters_are_counted(network):
    assert network.parameters == sum(tensor.numel() for tensor in network.init(torch.Generator()).values())


def test_parameters_by_hand():
    """Embedding and unembedding 2·50·10, positions 2·10, four matrices of 10·10 in each of 20 heads."""
    assert AttentionOnly(vocab=50, model_dim=10, head_dim=10, heads=20).parameters == 1000 + 20 + 8000
    # Three layers: positions, compression and decompression are there once.
    assert AttentionOnly(vocab=50, model_dim=10, head_dim=5, heads=20, layers=3).parameters == 1000 + 10 + 6000 + 100
    # With d_h = 5: positions 2·5, four matrices of 5·5 a head, compression and decompression 2·50.
    assert AttentionOnly(vocab=50, model_dim=10, head_dim=5, heads=20).parameters == 1000 + 10 + 2000 + 100


def test_first_weights_are_in_the_ranges_of_the_authors():
    first = AttentionOnly(vocab=50, model_dim=8, head_dim=6, heads=40).init(torch.Generator().manual_seed(0))
    bounds = {"embedding": 8**-0.5, "positions": 6**-0.5, "0.W_Q": (6 / 24) ** 0.5, "0.W_O": 6**-0.5}
    for name, bound in bounds.items():
        assert 0.8 * bound < first[name].abs().max() <= bound, name
    assert first["0.W_V"].std().item() == pytest.approx(0.5 / 3**0.5, rel=0.05)


def test_joined_networks_hold_both():
    one, other = AttentionOnly(7, 4, 4, 6, hidden=3), AttentionOnly(7, 4, 4, 2, hidden=5)
    assert one.family == other.family
    assert one.join(other) == AttentionOnly(7, 4, 4, 6, hidden=5)
    assert one.family != AttentionOnly(7, 4, 4, 6).family
    assert one.family != replace(one, head_dim=3).family


def test_hidden_neurons_of_zeros_stay_zero():
    small, large = (AttentionOnly(7, 4, 4, 1, hidden=width) for width in (3, 5))
    weights = weights_of(small)
    padded = {
        name: functional.pad(tensor, [0, 2]) if name in ("0.b_in", "0.W_out") else tensor
        for name, tensor in weights.items()
    }
    padded["0.W_in"] = functional.pad(weights["0.W_in"], [0, 0, 0, 2])
    leaves = {name: tensor.requires_grad_() for name, tensor in padded.items()}
    outputs = large.outputs(leaves, {"tokens": tokens_of(small)})
    torch.testing.assert_close(outputs, small.outputs(weights, {"tokens": tokens_of(small)}))
    gradients = dict(zip(leaves, torch.autograd.grad(outputs.square().sum(), list(leaves.values())), strict=True))
    assert not gradients["0.W_in"][:, 3:].any()
    assert not gradients["0.b_in"][:, 3:].any()
    assert not gradients["0.W_out"][:, :, 3:].any()


def test_impossible_sizes_are_refused():
    with pytest.raises(BadInput, match="heads is 0; expected at least 1"):
        AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=0)
    with pytest.raises(BadInput, match="hidden is -1; expected 0 or more, or None for no MLP"):
        AttentionOnly(vocab=7, model_dim=4, head_dim=4, heads=1, hidden=-1)
