"""Gates and the choice of a digit on machine integers, against the network's own layers evaluated exactly."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.folding.design import FoldingSizes
from byheart.constructions.folding.features import FoldingKeys, Gates, ShiftDigits, draw_gates, draw_positions
from byheart.constructions.folding.layers import label_layers
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers, reference
from byheart.networks.exact.evaluate import evaluate


@pytest.mark.parametrize("digits", range(1, 70))
def test_every_shift_is_used_equally(digits: int) -> None:
    """All levels below 2¹⁴, exhaustively: after the folds every shift has as many of them, up to rounding."""
    bits, folds = 14, 3
    positions = ShiftDigits(0, digits, bits, folds)
    widths = Counter(positions.shifts(np.arange(1 << bits)).tolist())
    assert set(widths) == set(range(digits))
    fair = (1 << bits) / digits
    # A leaf's ends are rounded once a stage; 2^folds levels come to each folded one.
    allowed = 2**folds * (len(positions.stages()) + 1)
    assert all(abs(width - fair) <= allowed for width in widths.values()), (fair, widths)


@pytest.mark.parametrize("digits", range(1, 40))
@pytest.mark.parametrize("folds", [0, 5])
def test_no_shift_is_lost_even_if_there_are_hardly_more_levels(digits: int, folds: int) -> None:
    bits = folds + digits.bit_length() + 1
    positions = ShiftDigits(0, digits, bits, folds)
    assert set(positions.shifts(np.arange(1 << bits)).tolist()) == set(range(digits))
    assert len(positions.stages()) == (digits - 1).bit_length()
    assert sum(step for _, step in positions.stages()) == digits - 1


def exact_shifts(sizes: FoldingSizes, positions: ShiftDigits, sums: np.ndarray) -> list[int]:
    """Z = 2V·level + 1 sent through the layers from the first fold to the last shift.

    Folded an even number of times what comes out is R^shift modulo 2V, folded an odd number of times −R^shift.
    """
    V, ones = sizes.modulus << sizes.carry_bits, np.ones(1, dtype=np.int64)
    T = 2 * V << sizes.level_bits
    gates = Gates(np.zeros((1, 1), dtype=np.int64), -ones, ones)
    layers = label_layers(sizes, (np.zeros(1, dtype=np.int64),) * 2, gates, positions, integers([[0, 0]]))
    names = [layer.name for layer in layers]
    end = names.index("drop") + 1
    start = Affine(integers([[-2 * V]]), integers([T - 1 - 2 * V * positions.offset]), relu=False, role="start")
    chain = (FeedForward((start,), name="start"), *layers[1:end])
    network = ExactNetwork(chain, inputs="vectors", outputs="last", length=1)
    inputs = sums[:, None, None].astype(np.float64)
    found = [(sizes.modulus << sizes.last_folds) - value for value in evaluate(network, inputs).tolist()]
    mirrored = sizes.modulus << sizes.last_folds
    assert [mirrored - value for value in found[:20]] == reference.evaluate(network, inputs[:20]).tolist()
    assert all(0 <= value <= mirrored for value in found)
    powers = {sign * sizes.radix**shift % (2 * V): shift for shift in range(sizes.digits) for sign in (1, -1)}
    return [powers[value % (2 * V)] for value in found]


@pytest.mark.parametrize("digits", [2, 3, 5, 8, 13, 33, 64])
@pytest.mark.parametrize("radix", [2, 3, 10])
def test_shifts_are_what_the_layers_do(digits: int, radix: int) -> None:
    sizes = FoldingSizes(1, radix, radix, 1, 1, digits, 3)
    positions = ShiftDigits(5, digits, sizes.level_bits, sizes.first_folds)
    sums = np.arange(0, (1 << sizes.level_bits) - 5, 7)
    assert positions.shifts(sums).tolist() == exact_shifts(sizes, positions, sums)


@given(st.integers(2, 40), st.sampled_from([2, 3, 6]), st.integers(0, 2**32))
@settings(deadline=None, max_examples=30)
def test_drawn_positions(digits: int, radix: int, seed: int) -> None:
    """What is drawn keeps the limit, stays in range, and is what the layers do."""
    rng = np.random.default_rng(seed)
    sizes = FoldingSizes(60, radix, radix, 1, 1, digits, 3)
    sums = rng.integers(0, 1 << sizes.level_bits - 1, size=60)
    positions, shifts = draw_positions(sums, sizes, rng, limit=60)
    assert positions.offset >= 0
    assert sums.max() + positions.offset < 1 << sizes.level_bits
    assert shifts.tolist() == exact_shifts(sizes, positions, sums)
    assert shifts.max() < digits


def test_limits_are_kept_or_nothing_is_found() -> None:
    rng = np.random.default_rng(0)
    sizes = FoldingSizes(200, 2, 2, 5, 1, 4, 50)
    sums = rng.integers(0, 1 << sizes.level_bits - 1, size=200)
    _, shifts = draw_positions(sums, sizes, rng, limit=60)
    assert np.bincount(shifts).max() <= 60
    assert draw_positions(sums, sizes, rng, limit=49, tries=50) is None
    equal = np.tile(sums[:1], 200)
    assert draw_positions(equal, sizes, rng, limit=199, tries=50) is None


@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 80), st.integers(1, 1000), st.integers(0, 2**32))
@settings(deadline=None)
def test_gates(rows: int, dim: int, count: int, reach: int, seed: int) -> None:
    """Against Python integers: no argument is 0, the first gate is always open, and the sums are below half of 2^L."""
    rng = np.random.default_rng(seed)
    u = rng.integers(-reach, reach, size=(count, dim), endpoint=True)
    sizes = FoldingSizes(count, 2, 2, dim, rows, 4, reach * 8 * (dim + 1))
    gates = draw_gates(u, sizes, rng)
    if gates is None:  # a column that hardly varies is weighted up, and then arguments may be too large
        return
    opened, sums = gates.open(u), gates.sums(u)
    arguments = [
        [
            2 * sum(int(g) * int(x) for g, x in zip(gamma, row, strict=True)) - int(tau)
            for gamma, tau in zip(gates.gamma, gates.tau, strict=True)
        ]
        for row in u
    ]
    assert all(argument % 2 for row in arguments for argument in row)
    assert opened.tolist() == [[argument > 0 for argument in row] for row in arguments]
    assert opened[:, 0].all()
    assert all(row[0] == 1 for row in arguments)
    factors = gates.factor.tolist()
    assert sums.tolist() == [sum(f * max(0, a) for f, a in zip(factors, row, strict=True)) for row in arguments]
    assert min(factors) >= 1
    assert sums.max() <= 1 << sizes.level_bits - 1


def test_gates_whose_arguments_are_too_large_are_not_used() -> None:
    u = np.arange(-500, 500)[:, None]
    assert draw_gates(u, FoldingSizes(1000, 2, 2, 1, 10, 4, 5), np.random.default_rng(0)) is None


def test_factors_fill_the_levels() -> None:
    """Small arguments, many digits: random factors make the sums large enough to choose between the digits."""
    u = np.random.default_rng(1).integers(-3, 4, size=(500, 5))
    sizes = FoldingSizes(500, 2, 2, 5, 6, 60, 40)
    gates = draw_gates(u, sizes, np.random.default_rng(2))
    assert len(set(gates.factor.tolist())) > 1
    assert gates.sums(u).max() > 1 << sizes.level_bits - 3


def test_gates_are_neither_open_nor_closed_for_nearly_all() -> None:
    rng = np.random.default_rng(1)
    u = rng.integers(-40, 40, size=(5000, 6))
    u[:, 2] = rng.integers(-1, 2, size=5000)
    gates = draw_gates(u, FoldingSizes(5000, 2, 2, 6, 40, 4, 4000), rng)
    assert np.abs(gates.gamma[:, 2]).max() > 5 * np.abs(gates.gamma[:, 0]).max()
    share = gates.open(u)[:, 1:].mean(axis=0)[gates.gamma[1:].any(axis=1)]
    assert share.min() > 0.2
    assert share.max() < 0.8


def test_many_questions_are_taken_in_pieces() -> None:
    """More than one chunk of 2^16: the last question has the largest sum, 1 + 3·(2·7 − 5)."""
    u = np.zeros(((1 << 16) + 3, 1), dtype=np.int64)
    u[-1] = 7
    gates = Gates(np.array([[0], [1]]), np.array([-1, 5]), np.array([1, 3]))
    opened, sums = gates.open(u), gates.sums(u)
    assert opened.sum(axis=0).tolist() == [len(u), 1]
    assert (sums[:-1] == 1).all()
    assert sums[-1] == 28


def test_coefficients_by_hand() -> None:
    """Gates (1, 0) and (1, 1) on u = (3, −4) and (0, 7), each row with a 1 at its end."""
    opened = np.array([[True, False], [True, True]])
    questions = FoldingKeys(np.array([[3, -4], [0, 7]]), opened.__getitem__, np.array([0, 0]), np.array([0, 0]))
    f = questions.coefficients(np.array([0, 1]))
    assert f.times(np.eye(6)).tolist() == [[3, -4, 1, 0, 0, 0], [0, 7, 1, 0, 7, 1]]
    assert f.modulo(3).tolist() == [[0, 2, 1, 0, 0, 0], [0, 1, 1, 0, 1, 1]]
    assert f.norms().tolist() == [8, 16]
    assert f.some(np.array([False, True])).times(np.eye(6)).tolist() == [[0, 7, 1, 0, 7, 1]]


def test_a_digit_that_nobody_reads_has_an_empty_system() -> None:
    questions = FoldingKeys(np.array([[3, -4]]), np.array([[True, False]]).__getitem__, np.array([0]), np.array([0]))
    f = questions.coefficients(np.array([], dtype=np.int64))
    assert f.shape == f.modulo(2).shape == (0, 6)
    assert f.times(np.ones((6, 2))).shape == (0, 2)


def test_a_digit_that_is_read_too_often_ends_it() -> None:
    """Sums 0 … 7 with three bits, four digits and no fold: two questions a digit, by hand."""
    positions = ShiftDigits(0, 4, 3, 0)
    sums = np.arange(8)
    expected = positions.shifts(sums)
    assert expected is not None
    assert np.bincount(expected).tolist() == [2, 2, 2, 2]
    assert positions.shifts(sums, 2).tolist() == expected.tolist()
    assert positions.shifts(sums, 1) is None
