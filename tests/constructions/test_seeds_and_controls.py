"""The same seed gives the same network, another seed another; and lies about a network are found."""

import subprocess
import sys

import numpy as np
import pytest

from byheart.certificates import judge
from byheart.constructions import CONSTRUCTIONS, build
from byheart.networks.exact import ExactNetwork
from byheart.networks.softmax import SoftmaxNetwork
from byheart.tasks import (
    NextToken,
    SeqToSeq,
    Task,
    random_distribution,
    random_next_token,
    random_queries,
    random_seq_to_seq,
    shuffled,
)

from ..exact import EXACT, SOFTMAX
from ..lies import perturbed_weight, shuffled_answers

IDS = random_next_token(examples=30, length=3, vocab=20, labels=4, rng=np.random.default_rng(0))
VECTORS = random_next_token(examples=30, length=3, vocab=20, labels=4, dim=2, rng=np.random.default_rng(1))
TOKENS = random_seq_to_seq(examples=30, length=3, vocab=20, labels=4, rng=np.random.default_rng(2))
CASES = [
    pytest.param(name, task, id=f"{name}-{kind}")
    for name in EXACT
    for kind, task in {"ids": IDS, "vectors": VECTORS, "seq-to-seq": TOKENS}.items()
    if task.kind in CONSTRUCTIONS[name].covers
]
QUERIES = random_queries(examples=7, length=3, dim=5, labels=None, rng=np.random.default_rng(3))
DISTRIBUTIONS = random_distribution(examples=7, length=3, vocab=4, rng=np.random.default_rng(4))
SOFTMAX_CASES = [
    pytest.param("mahdavi-2024", QUERIES, id="mahdavi-2024-queries"),
    pytest.param("dana-2025", IDS, id="dana-2025-ids"),
    pytest.param("dana-2025", DISTRIBUTIONS, id="dana-2025-distributions"),
    pytest.param("madden-2024", DISTRIBUTIONS, id="madden-2024-distributions"),
]


def test_every_construction_is_tested_as_what_it_builds() -> None:
    """Exact ones and softmax ones are all that there are, and each builds what its list says."""
    assert [*EXACT, *SOFTMAX] == list(CONSTRUCTIONS)
    built = {case.values[0]: type(build(*case.values).network) for case in [*CASES, *SOFTMAX_CASES]}
    assert built == dict.fromkeys(EXACT, ExactNetwork) | dict.fromkeys(SOFTMAX, SoftmaxNetwork)


@pytest.mark.parametrize(("name", "task"), [*CASES, *SOFTMAX_CASES])
def test_the_seed_decides(name: str, task: Task) -> None:
    one, again, other = (build(name, task, seed=seed).network.fingerprint for seed in (3, 3, 4))
    assert one == again
    # On token ids Kajitsuka & Sato 2024 draw nothing.
    assert (one == other) is (name == "kajitsuka-sato-2024" and task.tokens is not None)


def test_the_seed_decides_in_another_process() -> None:
    script = (
        "import byheart, numpy; from byheart.tasks import random_next_token;"
        "t = random_next_token(examples=30, length=3, vocab=20, labels=4, rng=numpy.random.default_rng(0));"
        "print(byheart.build('kajitsuka-sato-2025', t, seed=3).network.fingerprint)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert found == build("kajitsuka-sato-2025", IDS, seed=3).network.fingerprint


def test_settings_are_recorded() -> None:
    built = build("kajitsuka-sato-2025", IDS, seed=3)
    assert built.construction == "kajitsuka-sato-2025"
    assert built.settings == CONSTRUCTIONS["kajitsuka-sato-2025"].settings()
    assert built.seconds > 0


@pytest.mark.parametrize(("name", "task"), CASES)
def test_lies_are_found_out(name: str, task: NextToken | SeqToSeq) -> None:
    network = build(name, task).network
    assert judge(network, task).certified
    lie = shuffled_answers(network, task, np.random.default_rng(0))
    assert lie.found
    assert lie.verdict.errors > 0
    wrong = int((shuffled(task, np.random.default_rng(0)).labels != task.labels).sum())
    assert lie.verdict.errors == wrong
    for seed in range(5):
        broken = perturbed_weight(network, task, np.random.default_rng(seed))
        assert broken.found, broken.detail


@pytest.mark.parametrize(("name", "task"), CASES)
def test_a_changed_label_is_named(name: str, task: NextToken | SeqToSeq) -> None:
    network, labels = build(name, task).network, task.labels.copy()
    place = (17,) if labels.ndim == 1 else (17, 2)
    true = int(labels[place])
    labels[place] = (true + 1) % 4
    verdict = judge(network, task.with_labels(labels))
    assert not verdict.certified
    assert verdict.errors == 1
    found = verdict.counterexample
    assert found is not None
    assert (found.example, found.position) == (17, None if len(place) == 1 else 2)
    assert (found.expected, found.got) == ((true + 1) % 4, str(true))
