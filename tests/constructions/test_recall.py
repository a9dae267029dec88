"""Every construction answers every question of every kind of task, exactly."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from byheart.certificates import judge
from byheart.constructions import CONSTRUCTIONS, Built, build
from byheart.tasks import NextToken, SeqToSeq, random_next_token, random_seq_to_seq

# Construction and settings; vardi-2022 sees order anyway.
WITHOUT = [("interpolate", {}), ("vardi-2022", {}), ("kajitsuka-sato-2025", {})]
WITH = [("interpolate", {"positions": True}), ("kajitsuka-sato-2025", {"positions": True})]
TRANSFORMERS = [(name, flags) for name, flags in WITHOUT + WITH if name != "vardi-2022"]


def named(entry: object) -> str | None:
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[1], dict):
        return entry[0] + ("+positions" if entry[1] else "")
    if isinstance(entry, dict):
        return "-".join(f"{key[0]}{value}" for key, value in entry.items())
    return None


def memorize(construction: tuple[str, dict[str, bool]], task: NextToken | SeqToSeq, seed: int = 0) -> Built:
    name, flags = construction
    built = build(name, task, seed=seed, settings=CONSTRUCTIONS[name].settings(**flags))
    verdict = judge(built.network, task)
    assert verdict.certified, f"{construction}: {verdict.counterexample}"
    assert verdict.checked == task.labels.size
    assert verdict.margin == 0.5
    return built


IDS = [
    {"examples": 1, "length": 1, "vocab": 1, "labels": 1},
    {"examples": 1, "length": 7, "vocab": 5, "labels": 2},
    {"examples": 2, "length": 1, "vocab": 2, "labels": 2},
    {"examples": 2, "length": 2, "vocab": 3, "labels": 10, "shape": "skewed"},
    {"examples": 50, "length": 1, "vocab": 60, "labels": 1},
    {"examples": 50, "length": 2, "vocab": 30, "labels": 256, "shape": "neighbours"},
    {"examples": 50, "length": 7, "vocab": 4, "labels": 10},
    {"examples": 300, "length": 1, "vocab": 400, "labels": 2, "shape": "skewed"},
    {"examples": 300, "length": 2, "vocab": 40, "labels": 10},
    {"examples": 300, "length": 7, "vocab": 50, "labels": 256, "shape": "neighbours"},
]


@pytest.mark.parametrize("sizes", IDS, ids=named)
@pytest.mark.parametrize("construction", WITHOUT + WITH, ids=named)
def test_token_ids(construction: tuple[str, dict[str, bool]], sizes: dict[str, object]) -> None:
    memorize(construction, random_next_token(**sizes, rng=np.random.default_rng(1)))


VECTORS = [
    {"examples": 1, "length": 1, "vocab": None, "labels": 1, "dim": 1},
    {"examples": 2, "length": 2, "vocab": 2, "labels": 2, "dim": 3},
    {"examples": 50, "length": 7, "vocab": 20, "labels": 10, "dim": 1, "shape": "neighbours"},
    {"examples": 50, "length": 2, "vocab": None, "labels": 256, "dim": 5, "shape": "neighbours"},
    {"examples": 300, "length": 1, "vocab": None, "labels": 2, "dim": 2},
]


@pytest.mark.parametrize("sizes", VECTORS, ids=named)
@pytest.mark.parametrize("construction", WITHOUT + WITH, ids=named)
def test_vectors(construction: tuple[str, dict[str, bool]], sizes: dict[str, object]) -> None:
    memorize(construction, random_next_token(**sizes, rng=np.random.default_rng(2)))


SEQ_TO_SEQ = [
    {"examples": 1, "length": 1, "vocab": 1, "labels": 1},
    {"examples": 2, "length": 7, "vocab": 3, "labels": 2},
    {"examples": 50, "length": 2, "vocab": 30, "labels": 256, "shape": "skewed"},
    {"examples": 50, "length": 7, "vocab": 40, "labels": 10, "shape": "neighbours"},
    {"examples": 300, "length": 1, "vocab": 500, "labels": 10},
    {"examples": 2, "length": 2, "vocab": None, "labels": 10, "dim": 3},
    {"examples": 50, "length": 7, "vocab": 30, "labels": 2, "dim": 2, "shape": "neighbours"},
    {"examples": 50, "length": 2, "vocab": None, "labels": 256, "dim": 1},
]


@pytest.mark.parametrize("sizes", SEQ_TO_SEQ, ids=named)
@pytest.mark.parametrize("construction", TRANSFORMERS, ids=named)
def test_seq_to_seq(construction: tuple[str, dict[str, bool]], sizes: dict[str, object]) -> None:
    memorize(construction, random_seq_to_seq(**sizes, rng=np.random.default_rng(3)))


@pytest.mark.parametrize("construction", [("vardi-2022", {}), *WITH], ids=named)
def test_order_matters_where_it_can(construction: tuple[str, dict[str, bool]]) -> None:
    """All 24 orders of four tokens, each with a label of its own."""
    orders = list(permutations(range(4)))
    memorize(construction, NextToken(tokens=orders, labels=range(24)))
    memorize(construction, NextToken(vectors=np.array(orders)[:, :, None] / 4, labels=range(24)))


@pytest.mark.parametrize("construction", WITH, ids=named)
def test_equal_tokens_may_have_different_labels_where_order_matters(construction: tuple[str, dict[str, bool]]) -> None:
    memorize(construction, SeqToSeq(tokens=[[0, 0, 0], [0, 0, 1], [1, 0, 0]], labels=[[0, 1, 2], [2, 1, 0], [1, 1, 2]]))


@pytest.mark.parametrize("construction", TRANSFORMERS, ids=named)
def test_larger_seq_to_seq(construction: tuple[str, dict[str, bool]]) -> None:
    sizes = {"examples": 300, "length": 7, "vocab": 200, "labels": 10}
    memorize(construction, random_seq_to_seq(**sizes, rng=np.random.default_rng(4)))
    memorize(construction, random_seq_to_seq(**sizes, dim=3, shape="neighbours", rng=np.random.default_rng(5)))


@pytest.mark.parametrize("construction", WITHOUT + WITH, ids=named)
def test_larger_vectors(construction: tuple[str, dict[str, bool]]) -> None:
    sizes = {"examples": 300, "length": 7, "vocab": None, "labels": 10, "dim": 3}
    memorize(construction, random_next_token(**sizes, rng=np.random.default_rng(6)))


@pytest.mark.parametrize("construction", WITHOUT + WITH, ids=named)
@pytest.mark.parametrize("dim", [None, 4], ids=["ids", "vectors"])
def test_many_examples(construction: tuple[str, dict[str, bool]], dim: int | None) -> None:
    """Five thousand sequences, where groups hold many keys and weights have hundreds of bits."""
    sizes = {"examples": 5000, "length": 7, "vocab": 300, "labels": 2, "shape": "neighbours"}
    memorize(construction, random_next_token(**sizes, dim=dim, rng=np.random.default_rng(7)))


EVALUATED_BY_HAND = [
    NextToken(tokens=[[0, 1], [1, 1], [2, 0]], labels=[1, 0, 1]),
    NextToken(tokens=[[3], [1], [0], [7]], labels=[4, 0, 2, 2], label_count=6, vocab=9),
    NextToken(vectors=[[[0.5, -3.0], [1e-9, 2.0]], [[0.5, -3.0], [0.5, -3.0]]], labels=[2, 1]),
    SeqToSeq(tokens=[[0, 1, 1], [2, 0, 0]], labels=[[1, 0, 0], [2, 1, 1]]),
    SeqToSeq(vectors=[[[0.25], [-8.0]], [[0.25], [3.0]]], labels=[[0, 3], [1, 2]]),
]


@pytest.mark.parametrize(
    ("construction", "task"),
    [
        pytest.param(construction, task, id=f"{named(construction)}-{index}")
        for construction in WITHOUT + WITH
        for index, task in enumerate(EVALUATED_BY_HAND)
        if construction in TRANSFORMERS or isinstance(task, NextToken)
    ],
)
def test_plain_fractions_give_the_same_answers(
    construction: tuple[str, dict[str, bool]], task: NextToken | SeqToSeq, answers: Callable[..., list[object]]
) -> None:
    network = memorize(construction, task).network
    for sequence, wanted in zip(task.inputs, task.labels, strict=True):
        assert answers(network, sequence.tolist()) == np.atleast_1d(wanted).tolist()
