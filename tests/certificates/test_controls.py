"""Two lies that the check has to find, told about exact networks; those about other kinds are in judges/."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import Control, controls, judge
from byheart.certificates.judges.exact import perturbed
from byheart.constructions import build
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
from byheart.tasks import NextToken, SeqToSeq, random_next_token, random_seq_to_seq

from ..exact import EXACT

NEXT_TOKEN = random_next_token(examples=40, length=3, vocab=30, labels=2, rng=np.random.default_rng(0))
SEQ_TO_SEQ = random_seq_to_seq(examples=20, length=3, vocab=30, labels=5, rng=np.random.default_rng(0))


def identity() -> ExactNetwork:
    chain = FeedForward((Affine(integers([[1]]), integers([0])),))
    return ExactNetwork((chain,), inputs="tokens", outputs="last", length=1)


def shuffled_answers(network: ExactNetwork, task: NextToken | SeqToSeq, seed: int = 0, **options: Any) -> Control:
    lie, _ = controls(network, task, np.random.default_rng(seed), **options)
    assert lie.name == "shuffled answers"
    return lie


def perturbed_weight(network: ExactNetwork, task: NextToken | SeqToSeq, seed: int = 0, **options: Any) -> Control:
    _, lie = controls(network, task, np.random.default_rng(seed), **options)
    assert lie.name == "perturbed weight"
    return lie


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=30)
def test_shuffled_labels_are_a_lie(seed: int) -> None:
    """Also with two examples, where every second shuffle is the truth."""
    lie = shuffled_answers(identity(), NextToken(tokens=[[0], [1]], labels=[0, 1]), seed)
    assert lie.found
    assert lie.verdict.errors == 2
    assert lie.detail == "2 of 2 answers wrong"


def test_shuffled_rows() -> None:
    network = build("kajitsuka-sato-2025", SEQ_TO_SEQ).network
    assert shuffled_answers(network, SEQ_TO_SEQ).found


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=40)
def test_one_bit_of_one_weight(seed: int) -> None:
    """Exactly one entry differs, by a power of two, it was not 0, and it is the one that is named."""
    network = build("kajitsuka-sato-2025", NEXT_TOKEN).network
    changed, place = perturbed(network, np.random.default_rng(seed), 0)
    pairs = zip(network.tensors(), changed.tensors(), strict=True)
    differ = [
        (name, index, int(before), int(after))
        for (name, one), (_, other) in pairs
        for index, (before, after) in enumerate(zip(one.ravel(), other.ravel(), strict=True))
        if before != after
    ]
    assert len(differ) == 1
    name, index, before, after = differ[0]
    bit = (before ^ after).bit_length() - 1
    assert before ^ after == 1 << bit
    assert before != 0
    assert bit < abs(before).bit_length()
    assert place == f"flipped bit {bit} of {name}[{index}]"


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("seed", range(4))
def test_flipped_bits_are_found(name: str, seed: int) -> None:
    network = build(name, NEXT_TOKEN).network
    control = perturbed_weight(network, NEXT_TOKEN, seed)
    assert control.found
    assert control.verdict.counterexample is not None
    assert "answers wrong" in control.detail
    assert judge(network, NEXT_TOKEN).certified, "the control changed the network itself"


def test_flint_finds_them_too() -> None:
    task = NextToken(tokens=[[0], [1], [2]], labels=[0, 1, 2])
    assert shuffled_answers(identity(), task, evaluator="flint").found
    assert perturbed_weight(identity(), task, evaluator="flint").found


def deaf() -> ExactNetwork:
    """A network that answers 0 whatever its weight."""
    chain = FeedForward((Affine(integers([[-1]]), integers([0])),))
    return ExactNetwork((chain,), inputs="tokens", outputs="last", length=1)


def test_a_lie_that_need_not_show_is_not_found() -> None:
    control = perturbed_weight(deaf(), NextToken(tokens=[[0]], labels=[0]))
    assert control.found is None
    assert "try 30: 0 of 1" in control.detail


def test_a_lie_that_is_believed_is_reported() -> None:
    verdict = judge(deaf(), NextToken(tokens=[[0]], labels=[0]))
    assert Control("a lie", "", verdict).found is False
    assert Control("no lie", "", verdict, possible=False).found is None


@pytest.mark.parametrize("task", [NextToken(tokens=[[0]], labels=[0]), SeqToSeq(tokens=[[0, 0]], labels=[[0, 0]])])
def test_labels_that_cannot_be_shuffled_end(task: NextToken | SeqToSeq) -> None:
    """One example: every shuffle is the truth. The control must come back, whatever it says."""
    control = shuffled_answers(build("interpolate", task).network, task)
    assert control.found is None
