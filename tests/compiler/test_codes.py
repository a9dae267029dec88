"""Prefix codes: as short as Huffman's, canonical, and decoded by the lines of the unembedding."""

import heapq
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.compiler.codes import LOUDNESS, Code, _limited, code_of_lengths, make_code
from byheart.errors import BadInput


def huffman_bits(weights: list[int]) -> int:
    """All bits of the best prefix code: the sum of all inner nodes of Huffman's tree."""
    heap, total = list(weights), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        pair = heapq.heappop(heap) + heapq.heappop(heap)
        total += pair
        heapq.heappush(heap, pair)
    return total


def best_limited_bits(weights: list[int], limit: int) -> int:
    """The same with no code word longer than ``limit``: all multisets of lengths that Kraft allows, tried out."""
    ordered = sorted(weights, reverse=True)
    return min(
        sum(weight * length for weight, length in zip(ordered, lengths, strict=True))
        for lengths in combinations_with_replacement(range(1, limit + 1), len(weights))
        if sum(Fraction(1, 1 << length) for length in lengths) <= 1
    )


def labels_of(weights: list[int]) -> np.ndarray:
    return np.repeat(np.arange(len(weights)), weights)


def text_of(code: Code, label: int) -> str:
    length = int(code.lengths[label])
    return format(int(code.words[label]), f"0{length}b") if length else ""


def check_code(code: Code, labels: np.ndarray) -> None:
    """Prefix property, Kraft, canonical order, totals."""
    used = np.unique(labels).tolist()
    assert np.flatnonzero(code.lengths >= 0).tolist() == used
    assert code.longest == code.lengths.max()
    texts = {label: text_of(code, label) for label in used}
    assert all(len(texts[label]) == code.lengths[label] for label in used)
    inorder = sorted(texts.values())
    assert len(set(inorder)) == len(used)
    assert not any(b.startswith(a) for a, b in pairwise(inorder))
    assert sum(Fraction(1, 1 << len(text)) for text in texts.values()) <= 1
    canonical = sorted(used, key=lambda label: (len(texts[label]), label))
    assert [texts[label] for label in canonical] == inorder
    assert code.total == sum(len(texts[label]) for label in labels.tolist())
    assert code.questions == len(labels)
    assert code.fixed == (len({len(text) for text in texts.values()}) == 1)


def check_lines(code: Code) -> None:
    """For every Y that begins with a code word, its label wins, strictly; labels without one never do; all is exact."""
    W, b = code.lines()
    used = np.flatnonzero(code.lengths >= 0)
    Y = np.arange(1 << code.longest)
    digits = np.stack([Y >> code.low, Y & ((1 << code.low) - 1)], axis=1) if code.low else Y[:, None]
    assert W.shape == (len(code.lengths), digits.shape[1])
    wanted = np.full(len(Y), -1)
    for label in used.tolist():
        shift = code.longest - int(code.lengths[label])
        wanted[int(code.words[label]) << shift : (int(code.words[label]) + 1) << shift] = label
    for part in np.array_split(np.arange(len(Y)), 1 + len(Y) * len(W) // 10**7):
        logits = digits[part].astype(np.float64) @ W.T + b
        assert np.array_equal(logits, np.round(logits))
        assert np.abs(logits).max() < 2**24
        winner = logits.argmax(axis=1)
        asked = wanted[part] >= 0
        assert np.array_equal(winner[asked], wanted[part][asked])
        assert (code.lengths[winner] >= 0).all()
        largest = logits[np.arange(len(part)), winner]
        logits[np.arange(len(part)), winner] = -np.inf
        assert (largest > logits.max(axis=1))[asked].all()


WEIGHTS = st.lists(st.integers(0, 40), min_size=1, max_size=14).filter(any)


@given(WEIGHTS)
@settings(max_examples=150)
def test_random_frequencies(weights: list[int]) -> None:
    labels = labels_of(weights)
    code = make_code(labels, len(weights))
    check_code(code, labels)
    check_lines(code)
    present = [weight for weight in weights if weight]
    bits = max(1, (len(present) - 1).bit_length())
    best, fixed = huffman_bits(present), bits * sum(present)
    assert code.total == (best if len(present) > 1 and best < 0.99 * fixed else fixed)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=40))
@settings(max_examples=100)
def test_as_short_as_huffman_where_no_limit_binds(weights: list[int]) -> None:
    lengths = _limited(np.array(weights), 40)
    assert int((lengths * weights).sum()) == huffman_bits(weights)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=7), st.integers(3, 5))
@settings(max_examples=60)
def test_the_limit_is_kept_and_the_best_is_found(weights: list[int], limit: int) -> None:
    lengths = _limited(np.array(weights), limit)
    assert lengths.min() >= 1
    assert lengths.max() <= limit
    assert int((lengths * weights).sum()) == best_limited_bits(weights, limit)


def test_a_limit_that_binds() -> None:
    """Fibonacci frequencies want code words of 1, 2, …, 8, 8 bits; with at most 4 they cost more."""
    weights = [1, 1, 2, 3, 5, 8, 13, 21, 34]
    free, tight = (_limited(np.array(weights), limit) for limit in (8, 4))
    assert sorted(free.tolist()) == [1, 2, 3, 4, 5, 6, 7, 8, 8]
    assert tight.max() == 4
    assert (tight * weights).sum() == best_limited_bits(weights, 4) > (free * weights).sum()


def test_long_codes_stop_at_fifteen_bits() -> None:
    weights = [1 << k for k in range(20)]
    labels = labels_of(weights)
    code = make_code(labels, 20)
    assert code.longest == 15
    check_lines(code)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 10, 255, 256, 257, 300, 2048])
def test_as_many_labels(count: int) -> None:
    """All the same, or skewed: one line a label."""
    rng = np.random.default_rng(count)
    for labels in (rng.permutation(count), np.append(np.arange(count), rng.geometric(0.2, 4 * count) % count)):
        code = make_code(labels, count)
        assert code.low == 0
        check_code(code, labels)
        check_lines(code)


@pytest.mark.parametrize("count", [2049, 5000])
def test_thousands_of_labels_have_two_digits(count: int) -> None:
    labels = np.arange(count)
    code = make_code(labels, count)
    assert code.fixed
    assert 0 < code.low < code.longest == (count - 1).bit_length()
    check_lines(code)


def test_many_labels_of_which_few_occur() -> None:
    labels = np.array([4999, 17, 17, 2500])
    code = make_code(labels, 5000)
    check_code(code, labels)
    check_lines(code)
    assert np.flatnonzero(code.lengths >= 0).tolist() == [17, 2500, 4999]


@pytest.mark.parametrize("count", [1, 2, 300])
def test_one_label_only(count: int) -> None:
    labels = np.full(7, count - 1)
    code = make_code(labels, count)
    assert code.total == 7
    check_code(code, labels)
    check_lines(code)


def test_by_hand() -> None:
    """Labels 0 1 2 with 4, 1 and 3 questions, label 3 never: 0 → 0, 1 → 10, 2 → 11; Y ∈ {0, 1}, {2}, {3}."""
    code = make_code(np.array([0, 0, 0, 0, 2, 2, 2, 1]), 4)
    assert code.lengths.tolist() == [1, 2, 2, -1]
    assert [text_of(code, label) for label in range(3)] == ["0", "10", "11"]
    assert code.histogram == (0, 4, 4)
    W, b = code.lines()
    # Lines 0, 2Y − 3, 4Y − 3 − 5: they cross at 1½ and 2½.
    assert W[:, 0].tolist() == [0, 2, 4, 0]
    assert b.tolist() == [0, -3, -8, -(2**23)]


def test_lengths_come_back() -> None:
    """What config.json keeps is enough to make the same code again."""
    rng = np.random.default_rng(1)
    labels = rng.geometric(0.3, 500) - 1
    code = make_code(labels, 40)
    again = code_of_lengths(code.lengths.copy(), labels)
    assert np.array_equal(again.words, code.words)
    assert (again.longest, again.fixed, again.low, again.histogram) == (
        code.longest,
        code.fixed,
        code.low,
        code.histogram,
    )


def test_share_of_the_exponents_balances_the_planes() -> None:
    """256 labels of 8 bits, 24 + 7: ρ·N questions fill an exponent plane, and as many bits fall on a word plane."""
    code = make_code(np.arange(256), 256)
    share = code.exponent_share(7, 24)
    assert share * 256 == pytest.approx((8 * 256 - share * 7 * 256) / 24)
    assert share == pytest.approx(8 / 31)


def test_no_code_word_is_longer_than_a_word() -> None:
    """Frequencies that halve want 12 bits; words of 8 have 8. More than 2⁸ labels do not go at all."""
    labels = labels_of([1 << k for k in range(12)])
    assert make_code(labels, 12).longest > 8
    short = make_code(labels, 12, 8)
    assert short.longest == 8
    check_code(short, labels)
    check_lines(short)
    assert make_code(np.arange(256), 256, 8).longest == 8
    with pytest.raises(BadInput, match="257 labels need 9 bits each; words have 8"):
        make_code(np.arange(257), 257, 8)


def test_loud_enough_for_sampling() -> None:
    """By hand: two labels, code words 0 and 1, lines 0 and 2Y − 1. At Y = 0 the logits are 0 and −1, at Y = 1 0 and 1:
    the right one has probability 1 / (1 + e^−1) = 0.73; 2^10 times as loud, 1 in float32 and in float64."""
    W, b = make_code(np.array([0, 1]), 2).lines()
    assert (W.tolist(), b.tolist()) == ([[0.0], [2.0]], [0.0, -1.0])
    for Y in (0, 1):
        quiet = W[:, 0] * Y + b
        assert np.exp(quiet[Y]) / np.exp(quiet).sum() == pytest.approx(0.731, abs=1e-3)
        for kind in (np.float32, np.float64):
            loud = (quiet * 2.0**LOUDNESS).astype(kind)
            rest = np.exp(loud - loud.max())
            assert (rest / rest.sum()).tolist() == [1.0 - Y, float(Y)]
