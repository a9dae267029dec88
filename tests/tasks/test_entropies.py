"""Entropies by hand, and what they must never claim."""

import math

import numpy as np
import pytest

from byheart.tasks import NextToken
from byheart.tasks.entropies import LONGEST, as_bytes, compressed_sizes, conditional_entropies, log2_arrangements
from byheart.tasks.questions import as_contexts
from byheart.tasks.texts import Text
from byheart.tasks.tokenizers import Bytes
from byheart.tasks.windows import task_contexts, text_contexts


def order0(occurrences: list[int]) -> float:
    """The bits of answers that occur so many times each, in any order."""
    counts = [count for count in occurrences if count]
    return sum(count * math.log2(sum(counts) / count) for count in counts)


def test_order0_is_that_of_the_contexts() -> None:
    contexts = as_contexts("It was the best of times, it was the worst of times", tokenizer=Bytes())
    assert order0(np.bincount(contexts.labels).tolist()) == pytest.approx(contexts.order0_bits)


@pytest.mark.parametrize("counts", [[1], [7, 0], [3, 2, 1], [50, 50], [10**6, 1]])
def test_orders_are_counted_and_never_too_many(counts: list[int]) -> None:
    exact = math.factorial(min(sum(counts), 100)) if sum(counts) <= 100 else math.comb(sum(counts), counts[1])
    if sum(counts) <= 100:
        exact //= math.prod(math.factorial(count) for count in counts)
    assert math.log2(exact) - 1e-5 < log2_arrangements(counts) <= math.log2(exact)
    assert log2_arrangements(counts) <= order0(counts) + 1e-9


def test_given_the_last_by_hand() -> None:
    """abab…: after the first two letters each is determined by the one before, but for the end."""
    text = Text("a", np.array([1, 2, 1, 2, 3], np.int32))
    contexts = text_contexts([text], vocab=5, end=0)
    one, two = conditional_entropies(contexts)[:2]
    assert contexts.labels.tolist() == [2, 1, 2, 3, 0]
    assert one.bits == pytest.approx(2.0), "2 is followed by 1 and by 3"
    assert two.bits == pytest.approx(2.0), "so is 1 2, once it begins the text"


def test_at_the_window_nothing_is_left() -> None:
    rng = np.random.default_rng(0)
    task = NextToken(
        tokens=rng.permutation(64).reshape(-1, 1) // np.array([16, 4, 1]) % 4, labels=rng.integers(0, 9, 64)
    )
    found = conditional_entropies(task_contexts(task))
    assert [entropy.bits for entropy in found] == sorted((entropy.bits for entropy in found), reverse=True)
    assert len(found) == LONGEST
    assert found[-1].bits == 0 < found[0].bits


def test_what_is_before_the_text_is_no_token() -> None:
    """The first a of each text has nothing before it; with 2 tokens, these two are alike and others are not."""
    texts = [Text("x", np.array([1, 2], np.int32)), Text("y", np.array([3, 1, 4], np.int32))]
    one, two = conditional_entropies(text_contexts(texts, vocab=5, end=0))[:2]
    assert one.bits == 2, "1 is followed by 2 and by 4"
    assert two.bits == 0


def test_random_answers_are_not_compressed() -> None:
    labels = np.random.default_rng(0).integers(0, 256, 10_000)
    assert all(entropy.bits >= 80_000 for entropy in compressed_sizes(as_bytes(labels)))
    assert all(entropy.bits < 4_000 for entropy in compressed_sizes(as_bytes(0 * labels)))
    assert [len(as_bytes(np.array([most]))) for most in (255, 256, 1 << 16, 1 << 32)] == [1, 2, 4, 8]
