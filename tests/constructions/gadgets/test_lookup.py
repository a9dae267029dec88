"""Grouped bit extraction: three keys worked by hand, then every integer of small ranges, sizes and limits."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import judge
from byheart.constructions.gadgets.lookup import Limits, Lookup, design, shallowest
from byheart.constructions.gadgets.selecting import NARROW, WIDE, Chain, Squares
from byheart.errors import BadInput
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
from byheart.networks.exact.evaluate import evaluate
from byheart.tasks import NextToken

Through = Callable[..., list[list[int]]]


def network_of(layers: list[Affine]) -> ExactNetwork:
    return ExactNetwork((FeedForward(tuple(layers)),), inputs="tokens", outputs="last", length=1)


def answers_on(layers: list[Affine], queries: list[int]) -> list[int]:
    return evaluate(network_of(layers), np.array(queries)[:, None]).tolist()


def random_keys(count: int, largest: int, labels: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    keys = rng.choice(largest + 1, size=count, replace=False) if largest < 10**6 else _many(count, largest, rng)
    return keys, rng.integers(labels, size=count)


def _many(count: int, largest: int, rng: np.random.Generator) -> np.ndarray:
    keys = np.unique(rng.integers(0, largest + 1, size=2 * count))
    return rng.permutation(keys)[:count]


# Three keys by hand.


SIZES = Lookup(keys=3, labels=2, largest=7, slots=1, field=3, groups=2)
KEYS, LABELS = np.array([6, 1, 3]), integers([1, 1, 0])


def test_three_keys_weights() -> None:
    """Keys 1, 3, 6 with labels 1, 0, 1 and C = 2: κ = 2z + y = 3, 6, 13.

    At most slots + 1 = 2 entries a group: {3, 6} and {13}, and the second group begins at key 13 // 2 = 6. The answer
    takes the lowest bit_length(2) = 2 bits. Group 1 holds the difference 6 − 3 = 3, doubled, above them: 6·4 = 24.
    Group 2 is filled up with 2 − 13 mod 2 = 1, doubled: 2·4 = 8. Nothing exceeds 2^top, top = 2 + 1·(3 + 1) = 6.
    """
    layers = SIZES.layers(KEYS, LABELS)
    assert [layer.role for layer in layers] == ["steps", "groups", "read", *["fold"] * 4, "read", "answer"]
    assert SIZES.answer_bits == 2
    assert SIZES.top == 6
    steps, groups, read = layers[:3]
    assert steps.W.tolist() == [[1], [1], [1]]
    assert steps.b.tolist() == [0, -5, -6]  # z, and [z ≥ 6] as relu(z − 5) − relu(z − 6)
    assert groups.W.tolist() == [[2, 3 - 13, 13 - 3], [0, 8 - 24, 24 - 8]]
    assert groups.b.tolist() == [2 - 3, 24]
    assert read.b.tolist() == [0, -1, -2, 0]
    assert [layer.b.tolist() for layer in layers[3:7]] == [[0, -32, 64], [0, -16, 0], [0, -8, 0], [0, -4, 0]]
    assert layers[7].shift == 3
    assert layers[8].W.tolist() == [[1, -2, 1, 1]]


@pytest.mark.parametrize(
    ("z", "values"),
    [
        # e = 2z + 2 − 3 = 5 and q = 24; e, e − 1, e − 2. Then q + f(5) = 24 with V = 8·5 − 24 + 64, folded at 32, 16, 8
        # and 4: 24, 24, 8, 8, and 8 − 2·4 = 0 is what is left. (V + 0 − 64)/8 = 2 = 5 − 3: a match, and f(2) = 0 = y.
        (3, [[3, 0, 0], [5, 24], [5, 4, 3, 24], [24, 0, 80], [24, 8, 80], [8, 0, 80], [8, 4, 80], [2, 1, 0, 0], [0]]),
        # e = 1 matches the first entry: f(1) = 1 is added to q. The wave leaves 1; e − 3 < 0 stays passed.
        (1, [[1, 0, 0], [1, 24], [1, 0, 0, 24], [25, 0, 47], [25, 9, 47], [7, 0, 47], [7, 3, 47], [0, 0, 0, 1], [1]]),
        # The second group: e = 2·6 − 10 − 1 = 1, q = 8; the filler's difference 1 makes e' = 0.
        (6, [[6, 1, 0], [1, 8], [1, 0, 0, 8], [9, 0, 63], [9, 0, 63], [9, 1, 63], [7, 3, 63], [0, 0, 0, 1], [1]]),
    ],
)
def test_three_keys_values(z: int, values: list[list[int]], through: Through) -> None:
    assert through(SIZES.layers(KEYS, LABELS), [z]) == values


def test_three_keys_everywhere(through: Through) -> None:
    layers = SIZES.layers(KEYS, LABELS)
    assert [through(layers, [z])[-1] for z in range(8)] == [[0], [1], [0], [0], [0], [0], [1], [0]]


def test_three_keys_cost() -> None:
    """8g − 2 = 14 for steps and groups, 12·3 + 31 = 67 for the slot, 17 for the rest."""
    assert SIZES.shape.dense == 14 + 67 + 17


def test_the_key_is_passed_on_below_its_label(through: Through) -> None:
    """own_bits = 4: the answer is 16·label + key, for other keys the key alone."""
    sizes = Lookup(keys=3, labels=9, largest=15, slots=2, field=6, groups=1, own_bits=4)
    layers = sizes.layers(np.array([2, 5, 6]), integers([8, 0, 3]))
    wanted = {2: 8, 6: 3}
    assert [through(layers, [z])[-1] for z in range(16)] == [[16 * wanted.get(z, 0) + z] for z in range(16)]


# Any keys: right on the keys, 0 on every other integer of the range.


@st.composite
def lookups(draw: st.DrawFn) -> tuple[Lookup, np.ndarray, list[int]]:
    labels = draw(st.sampled_from([1, 2, 3, 10, 256]))
    largest = draw(st.integers(0, 120))
    keys = draw(st.lists(st.integers(0, largest), unique=True, min_size=1, max_size=40))
    answers = draw(st.lists(st.integers(0, labels - 1), min_size=len(keys), max_size=len(keys)))
    own_bits = draw(st.sampled_from([0, largest.bit_length()]))
    cheapest = design(len(keys), labels, largest, own_bits=own_bits)
    field = draw(st.integers(labels.bit_length(), (labels * (largest + 1)).bit_length()))
    slots = draw(st.integers(0, len(keys) - 1))
    cuts = (labels * (largest + 1)) >> field
    groups = min(len(keys), (len(keys) + slots * (cuts + 1)) // (slots + 1))
    selection = draw(st.sampled_from([WIDE, NARROW, Chain(3), Squares(2), Squares(4)]))
    bits = draw(st.integers(1, 4))
    other = Lookup(len(keys), labels, largest, slots, field, groups, own_bits, selection, bits)
    narrow = design(len(keys), labels, largest, own_bits=own_bits, limits=Limits(width="constant"))
    return draw(st.sampled_from([cheapest, narrow, other])), np.array(keys), answers


@given(lookups())
@settings(deadline=None, max_examples=150)
def test_right_on_keys_and_zero_elsewhere(case: tuple[Lookup, np.ndarray, list[int]]) -> None:
    sizes, keys, labels = case
    layers = sizes.layers(keys, integers(labels))
    wanted = dict(zip(keys.tolist(), labels, strict=True))
    own = 1 if sizes.own_bits else 0
    everything = list(range(sizes.largest + 1))
    found = answers_on(layers, everything)
    assert found == [(wanted.get(z, 0) << sizes.own_bits) + own * z for z in everything]
    assert [(layer.role, *layer.W.shape) for layer in layers] == list(sizes.shape.layers)
    assert len(layers) == sizes.depth
    heaviest = max(int(w).bit_length() + 1 for layer in layers for tensor in (layer.W, layer.b) for w in tensor.ravel())
    assert heaviest <= sizes.weight_bits


@pytest.mark.parametrize("first", [0, 1, 1000])
@pytest.mark.parametrize("labels", [1, 2, 10])
def test_consecutive_keys(first: int, labels: int) -> None:
    keys, answers = np.arange(first, first + 200), np.random.default_rng(0).integers(labels, size=200)
    sizes = design(200, labels, first + 300)
    found = answers_on(sizes.layers(keys, integers(answers)), list(range(first + 301)))
    assert found == [0] * first + answers.tolist() + [0] * 101


def test_keys_at_both_ends_of_a_wide_range() -> None:
    keys, answers = np.array([0, 1, 2**40 - 1, 2**40]), [3, 0, 1, 2]
    sizes = design(4, 4, 2**40)
    queries = [*keys.tolist(), 2, 3, 2**20, 2**40 - 2]
    assert answers_on(sizes.layers(keys, integers(answers)), queries) == [*answers, 0, 0, 0, 0]


# Sizes.


def formula(keys: int, labels: int, largest: int, slots: int, field: int) -> int:
    """The docstring's count, in Python integers: m = slots + 1, F = ⌊C(P + 1)/2^β⌋, g = ⌊(N + (m − 1)(F + 1))/m⌋."""
    cuts = (labels * (largest + 1)) >> field
    groups = min(keys, (keys + slots * (cuts + 1)) // (slots + 1))
    return 8 * groups - 2 + slots * (12 * field + 31) + 17


@given(st.integers(1, 60), st.sampled_from([1, 2, 10, 256]), st.integers(0, 10**6))
def test_design_is_the_cheapest(keys: int, labels: int, more: int) -> None:
    largest = keys - 1 + more
    fields = range(labels.bit_length(), (labels * (largest + 1)).bit_length() + 1)
    best = min(formula(keys, labels, largest, slots, field) for field in fields for slots in range(keys))
    assert design(keys, labels, largest).shape.dense == best


@given(
    st.integers(1, 400),
    st.sampled_from([1, 2, 10, 256]),
    st.integers(0, 10**5),
    st.none() | st.integers(4, 200),
    st.none() | st.integers(30, 300),
)
@settings(deadline=None, max_examples=60)
def test_design_is_the_cheapest_within_limits(
    keys: int, labels: int, more: int, depth: int | None, bound: int | None
) -> None:
    """Against every number of slots and every field, one after the other."""
    largest = keys - 1 + more
    fields = range(labels.bit_length(), (labels * (largest + 1)).bit_length() + 1)
    costs = [
        formula(keys, labels, largest, slots, field)
        for field in fields
        for slots in range(min(keys, 200 // (field + 2) + 1 if depth is not None else keys))
        if (depth is None or 4 + slots * (field + 2) <= depth)
        and (bound is None or labels.bit_length() + slots * (field + 1) + 3 <= bound)
    ]
    assert design(keys, labels, largest, limits=Limits(depth, bound)).shape.dense == min(costs)


def narrow_formula(keys: int, labels: int, largest: int, slots: int, field: int) -> int:
    """12 a group but the first, which saves 6; 12 a fold that unpacks, if there are slots; 12β + 31 a slot; 21."""
    cuts = (labels * (largest + 1)) >> field
    groups = min(keys, (keys + slots * (cuts + 1)) // (slots + 1))
    folds = (2 * labels * (largest + 1)).bit_length() + 1 if slots else 0
    return 12 * (groups - 1) - (6 if groups > 1 or slots else 8) + 12 * folds + slots * (12 * field + 31) + 21


@given(st.integers(1, 60), st.sampled_from([1, 2, 10, 256]), st.integers(0, 10**6), st.none() | st.integers(40, 300))
@settings(deadline=None)
def test_design_of_constant_width_is_the_cheapest(keys: int, labels: int, more: int, bound: int | None) -> None:
    largest = keys - 1 + more
    fields = range(labels.bit_length(), (labels * (largest + 1)).bit_length() + 1)
    upper = (2 * labels * (largest + 1)).bit_length() + 2
    costs = [
        narrow_formula(keys, labels, largest, slots, field)
        for field in fields
        for slots in range(keys)
        if bound is None or labels.bit_length() + slots * (field + 1) + upper <= bound
    ]
    sizes = design(keys, labels, largest, limits=Limits(bits=bound, width="constant"))
    assert sizes.shape.dense == min(costs)
    assert max(outputs for _, outputs, _ in sizes.shape.layers) == 4
    assert bound is None or sizes.weight_bits <= bound


@given(
    st.integers(1, 300),
    st.sampled_from([1, 2, 10, 256]),
    st.integers(0, 10**6),
    st.sampled_from([NARROW, Chain(4), Squares(2), Squares(5), Squares(20)]),
    st.integers(1, 6),
)
@settings(deadline=None, max_examples=60)
def test_shallowest_is_the_shallowest(
    keys: int, labels: int, more: int, selection: Chain | Squares, fold_bits: int
) -> None:
    """Against every field and every number of slots that could be."""
    largest = keys - 1 + more
    found = shallowest(keys, labels, largest, selection, fold_bits)
    depths = []
    for field in range(labels.bit_length(), (labels * (largest + 1)).bit_length() + 1):
        cuts = (labels * (largest + 1)) >> field
        for slots in range(min(keys, found.depth)):
            groups = min(keys, (keys + slots * (cuts + 1)) // (slots + 1))
            other = Lookup(keys, labels, largest, slots, field, groups, 0, selection, fold_bits)
            depths.append(other.depth)
    assert found.depth == len(found.shape.layers) == min(depths)


@pytest.mark.parametrize("keys", [10**2, 10**3, 10**4, 10**5, 10**6, 10**8])
def test_constant_width_has_the_order_of_the_square_root(keys: int) -> None:
    """Width 4, and depth and parameters of one size with √(N log₂N): the theorem's statement."""
    sizes = design(keys, 2, keys**2 // 8, limits=Limits(width="constant"))
    unit = math.sqrt(keys * math.log2(keys))
    assert max(outputs for _, outputs, _ in sizes.shape.layers) == 4
    assert 2.4 < sizes.depth / unit < 3
    assert 30 < sizes.shape.dense / unit < 36


@pytest.mark.parametrize("keys", [10**4, 10**6])
@pytest.mark.parametrize("side", [3, 10, 30])
def test_squares_have_the_order_of_width_and_depth(keys: int, side: int) -> None:
    """w²L² ≤ 110·N log₂N, whatever the width."""
    width = 3 * side + 2
    depth = shallowest(keys, 2, keys**2 // 8, Squares(side), (width - 1).bit_length() - 1).depth
    assert (width * depth) ** 2 <= 110 * keys * math.log2(keys)


@pytest.mark.parametrize("keys", [10**3, 3 * 10**3, 10**4, 10**5])
def test_order_of_the_square_root(keys: int) -> None:
    """At C = 2 and keys up to N², dense ≤ 70·√(N log₂ N)."""
    assert design(keys, 2, keys**2).shape.dense <= 70 * math.sqrt(keys * math.log2(keys))


@pytest.mark.parametrize("keys", [10**4, 10**6, 10**7, 5 * 10**7, 10**8, 10**9])
@pytest.mark.parametrize("labels", [2, 10, 256])
def test_plans_of_any_size_are_true(keys: int, labels: int) -> None:
    """Counts grow like √(N log N) and are those of a possible network, also where C·P·m leaves 64 bits."""
    largest = keys**2 // 8
    found = design(keys, labels, largest)
    assert 1 <= found.groups <= keys
    assert found.shape.dense == formula(keys, labels, largest, found.slots, found.field)
    other = (int(keys**0.5 / 8), (labels * (largest + 1) // keys).bit_length() + 3)
    assert found.shape.dense <= formula(keys, labels, largest, *other)
    assert 10 < found.shape.dense / math.sqrt(keys * math.log2(keys)) < 40


@pytest.mark.parametrize("keys", [1000, 3000])
def test_built_and_certified_in_the_order_of_the_square_root(keys: int) -> None:
    numbers, labels = random_keys(keys, keys**2, 2)
    sizes = design(keys, 2, keys**2)
    layers = sizes.layers(numbers, integers(labels))
    network = network_of(layers)
    dense = sum(layer.W.size + layer.b.size for layer in layers)
    assert dense == sizes.shape.dense <= 70 * math.sqrt(keys * math.log2(keys))
    assert judge(network, NextToken(tokens=numbers[:, None], labels=labels, label_count=2)).certified
    others = np.setdiff1d(np.random.default_rng(1).integers(0, keys**2 + 1, size=2000), numbers)
    near = np.setdiff1d(np.concatenate([numbers - 1, numbers + 1]), [*numbers, -1, keys**2 + 1])
    for strangers in (others, near):
        assert not evaluate(network, strangers[:, None]).any()


# Limits.


@given(
    keys=st.integers(1, 50),
    labels=st.sampled_from([1, 2, 10, 256]),
    largest=st.integers(50, 10**5),
    depth=st.none() | st.integers(0, 60),
    bound=st.none() | st.integers(0, 60),
    before=st.integers(0, 5),
    own_bits=st.sampled_from([0, 17]),
)
@settings(deadline=None, max_examples=150)
def test_limits_are_respected_or_refused_for_a_reason(
    keys: int, labels: int, largest: int, depth: int | None, bound: int | None, before: int, own_bits: int
) -> None:
    limits = Limits(depth, bound)
    least = Lookup(keys, labels, largest, slots=0, field=labels.bit_length(), groups=keys, own_bits=own_bits)
    possible = (depth is None or depth >= before + 4) and (bound is None or bound >= least.weight_bits)
    if not possible:
        with pytest.raises(BadInput, match=f"at least {before + 4} layers and {least.weight_bits} bits per weight"):
            design(keys, labels, largest, own_bits=own_bits, limits=limits, layers_before=before)
        return
    sizes = design(keys, labels, largest, own_bits=own_bits, limits=limits, layers_before=before)
    numbers, answers = random_keys(keys, largest, labels)
    layers = sizes.layers(numbers, integers(answers))
    assert depth is None or before + len(layers) <= depth
    heaviest = max(int(w).bit_length() + 1 for layer in layers for tensor in (layer.W, layer.b) for w in tensor.ravel())
    assert bound is None or heaviest <= bound
    own = numbers if own_bits else 0
    assert answers_on(layers, numbers.tolist()) == ((answers << own_bits) + own).tolist()


def test_constant_width_has_the_depth_that_it_needs() -> None:
    with pytest.raises(BadInput, match=r"^depth is 40 and width is constant; expected one of the two: "):
        Limits(depth=40, width="constant")


def test_constant_width_within_bits_or_not_at_all() -> None:
    """Words of κ and q in one take more bits: bit_length(2·2·101) + 2 = 11 beside those of the answer, 2."""
    with pytest.raises(BadInput, match=r"needs at least 13 bits per weight; got depth=None, bits=12$"):
        design(20, 2, 100, limits=Limits(bits=12, width="constant"))
    assert design(20, 2, 100, limits=Limits(bits=13, width="constant")).slots == 0


def test_tighter_limits_cost_more() -> None:
    """Õ(N/L) and Õ(N/b): from no limit to none left, the parameters only grow, and end at 8g − 2 + 17 with g = N."""
    sizes = [design(1000, 2, 10**6, limits=Limits(depth=depth)).shape.dense for depth in (None, 400, 200, 100, 50, 4)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 8 * 1000 + 15
    sizes = [design(1000, 2, 10**6, limits=Limits(bits=bound)).shape.dense for bound in (None, 400, 200, 100, 50, 23)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
