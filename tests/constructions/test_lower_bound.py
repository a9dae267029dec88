"""The lower bound beside a network: which case it falls into, on which questions, and never above what was built."""

import numpy as np
import pytest

from byheart.bounds import vc
from byheart.bounds.vc import WeightLayer, WeightLayers
from byheart.cli.compare import Compared, bound_in_words
from byheart.constructions import build, find
from byheart.constructions.lower_bound import lower_bound, planned_in_words
from byheart.constructions.planner import planned
from byheart.networks.exact import (
    Affine,
    Block,
    Embedding,
    ExactNetwork,
    FeedForward,
    HardmaxAttention,
    Layer,
    Positions,
    Residual,
    UniformAttention,
    integers,
)
from byheart.sizes import Size
from byheart.tasks import NextToken, Task, random_next_token, random_seq_to_seq

from ..exact import EXACT


def matrix(rows: int, columns: int) -> np.ndarray:
    return integers(np.ones((rows, columns), dtype=np.int64))


EMBEDDING = Embedding(W_E=matrix(5, 2))
UNIFORM = UniformAttention(W_V=matrix(3, 2), W_O=matrix(2, 3))
HARDMAX = HardmaxAttention(W_Q=matrix(1, 2), W_K=matrix(1, 2), W_V=matrix(3, 2), W_O=matrix(2, 3))
HIDDEN = FeedForward((Affine(W=matrix(4, 2), b=integers([1] * 4)), Affine(matrix(2, 4), integers([0, 0]), relu=False)))
OUTPUT = FeedForward((Affine(W=matrix(1, 2), b=integers([0]), relu=False),), name="output")
BLOCK = Residual((Block(W_in=matrix(3, 2), b_in=integers([1] * 3), W_out=matrix(2, 3)),))
TASK = NextToken(tokens=[[0, 1], [2, 3], [4, 4], [1, 1]], labels=[0, 1, 1, 0])
MANY = random_next_token(examples=60, length=4, vocab=70, labels=3, rng=np.random.default_rng(0))


def network(*layers: Layer) -> ExactNetwork:
    return ExactNetwork(layers, inputs="tokens", outputs="last", length=2)


def test_a_small_network_by_hand() -> None:
    """In front: the table, 4 units that see 5 tokens at most, W_V, W_O. Behind: 3 units, W_out, the output."""
    found = lower_bound(network(EMBEDDING, HIDDEN, UNIFORM, BLOCK, OUTPUT), TASK)
    assert found is not None
    front = WeightLayers(
        (WeightLayer(10), WeightLayer(12, units=4), WeightLayer(10), WeightLayer(6), WeightLayer(6)), 2, 5
    )
    behind = WeightLayers((WeightLayer(9, units=3), WeightLayer(6), WeightLayer(3)))
    assert (found.questions, found.labels, found.depth, found.constant) == (4, 2, 8, False)
    assert found.capacity == vc.capacity([front, behind], 2)
    assert found.needed == vc.fewest(4, 2, depth=8)


def test_hardmax_is_about_constant_sequences_if_there_are_enough() -> None:
    """Five tokens are enough for four questions, not for six. W_Q and W_K do not matter on constant sequences."""
    layers = (EMBEDDING, HARDMAX, BLOCK, OUTPUT)
    found = lower_bound(network(*layers), TASK)
    assert found is not None
    assert found.constant
    assert "4 constant sequences" in found.in_words(100)
    weights = (WeightLayer(10), WeightLayer(6), WeightLayer(6), WeightLayer(9, units=3), WeightLayer(6), WeightLayer(3))
    assert found.capacity == vc.capacity([WeightLayers(weights)], 2)
    six = NextToken(tokens=[[0, 1], [2, 3], [4, 4], [1, 1], [0, 2], [0, 3]], labels=[0, 1, 1, 0, 0, 0])
    assert lower_bound(network(*layers), six) is None
    assert lower_bound(network(EMBEDDING, Positions(W_pos=matrix(2, 2)), HARDMAX, OUTPUT), TASK) is None


def test_a_question_asked_twice_counts_once() -> None:
    twice = NextToken(tokens=[[0, 1], [2, 3], [4, 4], [1, 1], [2, 3]], labels=[0, 1, 1, 0, 1])
    found = lower_bound(network(EMBEDDING, UNIFORM, OUTPUT), twice)
    assert found is not None
    assert found.questions == 4


def test_several_layers_of_attention_one_label_and_other_networks_are_not_spoken_of() -> None:
    assert lower_bound(network(EMBEDDING, UNIFORM, HIDDEN, UNIFORM, OUTPUT), TASK) is None
    assert lower_bound(network(EMBEDDING, UNIFORM, OUTPUT), NextToken(tokens=[[0, 1]], labels=[0])) is None
    assert lower_bound(build("dana-2025", MANY).network, MANY) is None


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(
    "task",
    [
        MANY,
        random_next_token(examples=80, length=3, vocab=20, labels=2, dim=3, rng=np.random.default_rng(1)),
        random_seq_to_seq(examples=20, length=4, vocab=30, labels=2, rng=np.random.default_rng(2)),
    ],
    ids=["ids", "vectors", "seq-to-seq"],
)
def test_what_was_built_is_never_below_what_is_proved(name: str, task: Task) -> None:
    if task.kind not in find(name).covers:
        return
    built = build(name, task)
    found = lower_bound(built.network, task)
    if found is None:
        assert name in ("kim-2023", "kajitsuka-sato-2024"), "hardmax and softmax, and too few tokens"
        assert task.size.vocab < task.size.examples * (task.size.length if task.kind == "seq-to-seq" else 1)
        return
    assert 0 < found.needed <= built.account.dense
    assert found.capacity >= found.questions > 1


def test_units_in_front_that_see_many_tokens_cost_strength() -> None:
    """With a table or with vectors: others of the kind may have no table, and units in front that know the tokens."""
    sizes = {"examples": 300, "length": 2, "vocab": 200, "labels": 2}
    ids = random_next_token(**sizes, rng=np.random.default_rng(0))
    vectors = random_next_token(**sizes, dim=2, rng=np.random.default_rng(0))
    found = [lower_bound(build("kajitsuka-sato-2025", task).network, task) for task in (ids, vectors)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].needed == found[1].needed == vc.fewest(300, 2, tokens=200) < vc.fewest(300, 2)


def test_the_smallest_one_is_spoken_of() -> None:
    found = lower_bound(network(EMBEDDING, UNIFORM, OUTPUT), TASK)
    assert found is not None
    rows = [Compared("refused"), *(Compared(name, parameters=W, lower=found) for name, W in (("a", 90), ("b", 30)))]
    assert bound_in_words(rows) == found.in_words(30, "b")
    assert bound_in_words(rows[:1]) is None


def test_plans_in_words() -> None:
    size = Size(examples=10_000, length=16, labels=2, vocab=64)
    plans = planned(size, "next-token")
    said = planned_in_words(size, "next-token", plans, positions=False)
    assert said is not None
    assert "fewer than 126 parameters" in said
    fewest = min(plan.parameters for plan in plans)
    assert f"folding, has {fewest:,}, {fewest / 126:.1f} times as many." in said
    assert planned_in_words(size, "next-token", [], positions=False) is None
