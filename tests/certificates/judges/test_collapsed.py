"""Equality on constant sequences is looked at on every token, and one weight that is off is found."""

from dataclasses import replace

import numpy as np
import pytest

from byheart.certificates.judges.collapsed import judge_collapsed, tokens_for
from byheart.constructions import build
from byheart.errors import BadInput
from byheart.networks.exact import Embedding, ExactNetwork, integers
from byheart.networks.exact.collapse import collapse
from byheart.tasks import Task, random_distribution, random_next_token, random_seq_to_seq

SIZES = {"examples": 12, "length": 3, "vocab": 15, "labels": 3, "shape": "constant"}
IDS = random_next_token(**SIZES, rng=np.random.default_rng(0))
VECTORS = random_next_token(**SIZES, dim=2, rng=np.random.default_rng(1))
EVERY = random_seq_to_seq(**SIZES, rng=np.random.default_rng(2))
TASKS = {"ids": IDS, "vectors": VECTORS, "seq-to-seq": EVERY}


def made(name: str, task: Task, **settings: str) -> ExactNetwork:
    network = build(name, task, **settings).network
    assert isinstance(network, ExactNetwork)
    return network


def off_by_one(network: ExactNetwork) -> ExactNetwork:
    """With the last bias raised by one."""
    name, tensor = list(network.tensors())[-1]
    changed = tensor.ravel().copy()
    changed[0] += 1
    return network.with_tensor(name, integers(changed, tensor.shape))


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("name", ["kajitsuka-sato-2025", "kim-2023", "kajitsuka-sato-2024", "folding"])
def test_what_is_built_collapses(name: str, task: Task) -> None:
    network = made(name, task)
    tokens = tokens_for(network, task)
    verdict = judge_collapsed(network, collapse(network), tokens)
    assert verdict.certified
    assert verdict.checked == 12 * (3 if task is EVERY else 1)
    wrong = judge_collapsed(network, off_by_one(collapse(network)), tokens)
    assert wrong.errors > 0
    assert wrong.counterexample is not None


def test_without_a_task_all_tokens_of_the_table_are_tried() -> None:
    network = made("kajitsuka-sato-2025", IDS)
    assert tokens_for(network, None).tolist() == list(range(15))
    assert judge_collapsed(network, collapse(network), tokens_for(network, None)).checked == 15


def test_a_network_on_vectors_has_no_table() -> None:
    with pytest.raises(BadInput, match="no embedding table whose tokens could be tried; expected --task"):
        tokens_for(made("kajitsuka-sato-2025", VECTORS), None)


def test_other_tasks_are_refused() -> None:
    task = random_distribution(examples=4, length=2, vocab=5, rng=np.random.default_rng(0))
    with pytest.raises(BadInput, match="the task is next-token-distribution"):
        tokens_for(made("kajitsuka-sato-2025", IDS), task)


def test_a_sum_of_equal_tokens_is_a_multiple_of_one() -> None:
    network = made("kajitsuka-sato-2025", IDS, mixing="sum")
    plain = collapse(network)
    assert judge_collapsed(network, plain, tokens_for(network, None)).certified
    assert judge_collapsed(made("kajitsuka-sato-2025", IDS), plain, tokens_for(network, None)).certified


def test_a_network_with_attention_is_not_plain() -> None:
    network = made("kajitsuka-sato-2025", IDS)
    with pytest.raises(BadInput, match="UniformAttention is no layer of a plain ReLU network"):
        judge_collapsed(network, network, tokens_for(network, None))


def test_a_length_that_is_only_claimed_takes_no_memory() -> None:
    network = replace(made("kajitsuka-sato-2025", IDS), length=10**15)
    with pytest.raises(BadInput, match="15 sequences of 1,000,000,000,000,000 equal tokens would take"):
        judge_collapsed(network, collapse(network), tokens_for(network, None))


def test_networks_of_several_numbers_are_refused() -> None:
    wide = ExactNetwork((Embedding(integers([[1, 2], [3, 4]])),), inputs="tokens", outputs="last", length=3)
    with pytest.raises(BadInput, match="the networks give 2 and 2 numbers; expected one each"):
        judge_collapsed(wide, wide, np.arange(2))
