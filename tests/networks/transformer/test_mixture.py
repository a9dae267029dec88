"""Mixtures: what they are, worked out by hand; the module, the proof, the decoder and the second opinion agree."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from byheart.errors import BadInput
from byheart.networks.transformer import GatedBlocks, Mixture, Spec
from byheart.networks.transformer.answers import answers
from byheart.networks.transformer.proved import Proved, proved_answers
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays

from .small import proved_logits

MIXTURE = Mixture("table", "relu", reads=(0,), routes=(1,), writes=(2,), units=2, experts=3)
SPEC = Spec(4, 2, 1, 3, "float32", embeds=(0, 1), unembeds=(2,), sublayers=(MIXTURE,))
TENSORS: dict[str, Any] = {
    "embedding.W_E": [[5, 0], [5, 1], [5, 2], [-1, 1]],
    "table.W_in": [[[1], [-1]]],
    "table.b_in": [[0, 2]],
    "table.W_route": [[0], [2], [4]],
    "table.b_route": [0, -1, -4],  # 0, 2x − 1, 4x − 4: from 0, from 1, from 2 on
    "table.W_out.0": [[[1, 0]]],
    "table.W_out.1": [[[10, 7]]],
    "table.W_out.2": [[[100, 0]]],
    "unembedding.W_U": [[1], [-1]],
    "unembedding.b_U": [0, 100],
}
WANTED = [[5, 95], [50, 50], [500, -400], [21, 79]]
"""relu(5) = 5 times 1, 10 and 100; of −1, units 0 and 3: 10·0 + 7·3."""


def network_of(spec: Spec = SPEC, **others: Any) -> TransformerNetwork:
    tensors = TENSORS | {f"table.{name.replace('__', '.')}": tensor for name, tensor in others.items()}
    return from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})


def test_by_hand() -> None:
    network = network_of()
    assert network.module(torch.arange(4)[None])[0].tolist() == WANTED
    assert network.module(torch.tensor([[2, 0, 2, 3, 1, 0]]))[0].tolist() == [WANTED[k] for k in (2, 0, 2, 3, 1, 0)]
    # 4·2 codes, 2 + 2 units, 3 + 3 of the router, 3·2 second, 2 + 2
    assert network.account.dense == 8 + 4 + 6 + 6 + 4
    assert (network.depth, network.width) == (4, 3)
    assert network.padded == 2 * 3 * (1 + 3) + 2 + 3 * (3 + 1) + (4 + 2) * 3 + 2
    assert Spec.from_json(SPEC.as_json()) == SPEC


def test_all_ways_to_run_it_agree() -> None:
    network = network_of()
    proof = Proved(network.module)
    stream, _ = proof.mix(torch.arange(4)[None], None)
    assert proof.answer(stream[0]).tolist() == WANTED
    for lanes in (1, 3, 32):
        assert proved_logits(network.program, [0, 1, 2, 3], lanes).tolist() == WANTED


def test_two_scores_that_are_equal_prove_nothing() -> None:
    """The module takes the first; whether every machine would, nobody says."""
    network = network_of(b_route=[0, 0, -100])
    module = network.module
    assert module(torch.tensor([[0]]))[0].tolist() == [WANTED[0]]
    proof = Proved(module)
    assert proof.answer(proof.mix(torch.arange(2)[None], None)[0][0]).isnan().all(dim=1).tolist() == [True, False]
    assert np.isnan(proved_logits(network.program, [0, 1], 1)).all(axis=1).tolist() == [True, False]


def test_scores_that_are_rounded_prove_nothing() -> None:
    module = network_of(W_route=[[0], [2**25], [0]], b_route=[0, -1, -4]).module
    at = np.array([0, 1]), np.array([0, 1, 2]), np.array([0, 1])
    assert np.isnan(proved_answers(module, *at).margins).tolist() == [False, True]
    assert not np.isnan(answers(module, *at).margins).any()


def test_the_same_in_groups_and_in_float64() -> None:
    """Random integers: a mixture is the sum of all experts, each times whether it is taken."""
    rng, groups, experts = np.random.default_rng(0), 2, 4
    layer = Mixture("table", "sigmoid", (0, 1), (2,), (3, 4, 5, 6), units=5, experts=experts, groups=groups, bias=False)
    spec = Spec(30, 4, 1, 7, "float32", (0, 1, 2), (3, 4, 5, 6), (layer,))
    tensors = {name: rng.integers(-9, 10, shape).astype(np.float32) for name, shape in spec.shapes().items()}
    tensors["table.W_in"] *= 3000
    tensors["embedding.W_E"][:, :2] = np.where(rng.random((30, 2)) < 0.5, 1.0, -1.0)
    tensors["table.W_in"][tensors["table.W_in"] == 0] = 3000
    tokens = torch.arange(30)[None]
    found = from_arrays(spec, tensors).module(tokens)[0]
    wide = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    assert torch.equal(from_arrays(replace(spec, precision="float64"), wide).module(tokens)[0], found.double())
    x = wide["embedding.W_E"]
    chosen = (x[:, 2:] @ wide["table.W_route"].T + wide["table.b_route"]).argmax(1)
    units = (x[:, :2, None] * wide["table.W_in"][:, :, 0][None] > 0).astype(np.float64)
    second = np.stack([wide[f"table.W_out.{k}"] for k in range(experts)])
    Y = np.einsum("ngu,ngou->ngo", units, second[chosen]).reshape(30, 4)
    assert np.array_equal(found.detach().numpy(), Y @ wide["unembedding.W_U"].T + wide["unembedding.b_U"])
    assert len(set(chosen.tolist())) > 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"experts": 0}, "experts is 0; expected a number from 1 to 4,096"),
        ({"experts": 1 << 40}, "expected a number from 1 to 4,096"),
        ({"experts": "3"}, "experts is '3'"),
        ({"routes": ()}, "table: routes is empty"),
        ({"routes": (9,)}, "table: routes has features 9 to 9"),
        ({"act": "tanh"}, "act is 'tanh'"),
        ({"groups": 2}, "reads has 1 features; expected a multiple of 2 groups"),
    ],
)
def test_what_is_no_mixture(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        replace(SPEC, sublayers=(replace(MIXTURE, **change),))


def test_an_expert_that_is_missing_or_of_another_shape() -> None:
    arrays = {name: np.array(tensor, np.float32) for name, tensor in TENSORS.items()}
    with pytest.raises(BadInput, match=r"table\.W_out\.2 is missing"):
        from_arrays(SPEC, {name: array for name, array in arrays.items() if name != "table.W_out.2"})
    with pytest.raises(BadInput, match=r"table\.W_out\.1 is \[1, 1, 3\]; config.json describes \[1, 1, 2\]"):
        from_arrays(SPEC, arrays | {"table.W_out.1": np.zeros((1, 1, 3), np.float32)})
    with pytest.raises(BadInput, match=r"table\.W_out\.3.* unknown"):
        _ = from_arrays(SPEC, arrays | {"table.W_out.3": np.zeros((1, 1, 2), np.float32)}).module


def test_all_mixtures_together_have_no_more_experts_than_one_may() -> None:
    """Each has a name: a config.json of some megabytes could ask for billions of them."""
    most = [replace(MIXTURE, name=f"table{k}", experts=1 << 11) for k in range(3)]
    assert len(replace(SPEC, sublayers=tuple(most[:2])).experts) == 1 << 12
    with pytest.raises(BadInput, match="mixtures have 6,144 experts in all; expected at most 4,096"):
        replace(SPEC, sublayers=tuple(most))


def test_features_that_are_read_or_written_many_times_are_counted() -> None:
    """So few tokens are read at once that what they take is bounded, whatever a spec asks for."""
    assert SPEC.widest == 3
    many = (0,) * 1000
    plain = GatedBlocks("table", "relu", (0, 1), (2,), units=2)
    wide = [replace(MIXTURE, **{part: many}) for part in ("reads", "routes", "writes")]
    wide += [replace(MIXTURE, experts=1000)]
    for layer in (*wide, replace(plain, writes=many), replace(plain, up="dense", up_reads=many)):
        assert replace(SPEC, embeds=(0, 1, 2), sublayers=(layer,)).widest == 1000
    assert replace(SPEC, unembeds=(*many, 2)).widest == replace(SPEC, embeds=(*many, 1)).widest == 1001


def test_long_sums_are_looked_at_a_few_at_a_time() -> None:
    """By hand: of five sums of 2²³ terms two at a time, of one longer than all that one by itself."""
    where = torch.ones(1, 5, 1, dtype=torch.bool)
    assert [len(rows) for _, rows, _ in Proved.some(where, 1 << 23)] == [2, 2, 1]
    assert [len(rows) for _, rows, _ in Proved.some(where, 1 << 30)] == [1] * 5
    assert [len(rows) for _, rows, _ in Proved.some(where, 1)] == [5]


def test_other_sublayers_have_no_experts() -> None:
    assert SPEC.experts == {f"table.W_out.{k}" for k in range(3)}
    plain = GatedBlocks("table", "relu", (0, 1), (2,), units=2)
    assert not replace(SPEC, sublayers=(plain,)).experts
