"""Gates and position hash on machine integers, against the network's own blocks evaluated exactly."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.folding.design import Sizes
from byheart.constructions.folding.features import Gates, PositionHash, Questions, draw_gates, draw_positions
from byheart.constructions.folding.layers import label_layers
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, Residual, integers, reference
from byheart.networks.exact.evaluate import evaluate


def plain_hash(offset: int, digits: int, folds: int) -> tuple[PositionHash, np.ndarray]:
    """β = 1, and every u that the offset allows: h runs through [0, 2·offset]."""
    return PositionHash(np.array([1]), offset, digits, folds), np.arange(-offset, offset + 1)[:, None]


@pytest.mark.parametrize("digits", range(1, 70))
def test_every_shift_is_used_equally(digits: int) -> None:
    """All h in [0, 2·offset], exhaustively: after the folds every shift has the same number of h, up to rounding."""
    folds, offset = 3, 8 * 250
    positions, u = plain_hash(offset, digits, folds)
    shifts = positions.shifts(u)
    widths = Counter(shifts.tolist())
    assert set(widths) == set(range(digits))
    fair = (2 * offset + 1) / digits
    # A leaf's ends are rounded once a stage; 2^folds values of h come to each folded one.
    allowed = 2**folds * (len(positions.stages()) + 1)
    assert all(abs(width - fair) <= allowed for width in widths.values()), (fair, widths)


@pytest.mark.parametrize("digits", range(1, 40))
@pytest.mark.parametrize("folds", [0, 5])
def test_no_shift_is_lost_even_if_the_hash_has_hardly_more_values(digits: int, folds: int) -> None:
    positions, u = plain_hash(2 * digits << folds, digits, folds)
    assert set(positions.shifts(u).tolist()) == set(range(digits))
    assert len(positions.stages()) == (digits - 1).bit_length()
    assert sum(step for _, step in positions.stages()) == digits - 1


def exact_shifts(positions: PositionHash, u: np.ndarray) -> list[int]:
    """v = 1 sent through the shift blocks with c = 1: what comes out is 2^shift."""
    dim = u.shape[1]
    sizes = Sizes(len(u), 1, dim, 1, positions.digits, 1 << 20, positions.folds)
    gates = Gates(np.zeros((1, dim), dtype=np.int64), np.array([-1]))
    blocks = label_layers(sizes, (np.zeros(dim, dtype=np.int64),) * 2, gates, positions, integers([[0] * (dim + 1)]))[1]
    # A chain without blocks would be refused, so c·m = 1 without folds is not evaluated here.
    assert isinstance(blocks, Residual)
    start = Affine(
        integers([[0] * dim, positions.beta.tolist()]), integers([1, positions.offset]), relu=False, role="start"
    )
    end = Affine(integers([[1, 0]]), integers([0]), relu=False, role="end")
    layers = (FeedForward((start,), name="start"), blocks, FeedForward((end,), name="end"))
    network = ExactNetwork(layers, inputs="vectors", outputs="last", length=1, dim=dim)
    outputs = evaluate(network, u[:, None].astype(np.float64)).tolist()
    assert outputs[:20] == reference.evaluate(network, u[:20, None].astype(np.float64)).tolist()
    assert all(value & (value - 1) == 0 for value in outputs)
    return [value.bit_length() - 1 for value in outputs]


@pytest.mark.parametrize("digits", [2, 3, 5, 8, 13, 33, 64])
@pytest.mark.parametrize("folds", [1, 4])
def test_shifts_are_what_the_blocks_do(digits: int, folds: int) -> None:
    positions, u = plain_hash(100 << folds, digits, folds)
    assert positions.shifts(u).tolist() == exact_shifts(positions, u)


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**32))
@settings(deadline=None, max_examples=40)
def test_drawn_positions(digits: int, folds: int, dim: int, seed: int) -> None:
    """What is drawn keeps the limit, stays in range, and is what the blocks do."""
    rng = np.random.default_rng(seed)
    u = np.unique(rng.integers(-30, 30, size=(60, dim)), axis=0)
    sizes = Sizes(len(u), 1, dim, 1, digits, 30, folds)
    positions, shifts = draw_positions(u, sizes, rng, limit=len(u))
    h = [sum(int(b) * int(x) for b, x in zip(positions.beta, row, strict=True)) + positions.offset for row in u]
    assert min(h) >= 0
    assert max(h) <= 2 * positions.offset
    assert positions.offset % 2**folds == 0
    assert shifts.tolist() == exact_shifts(positions, u)
    assert shifts.max() < digits
    if digits == 1:
        assert not shifts.any()


def test_limits_are_kept_or_nothing_is_found() -> None:
    rng = np.random.default_rng(0)
    u = rng.integers(-50, 50, size=(200, 5))
    sizes = Sizes(200, 1, 5, 1, 4, 50, 5)
    _, shifts = draw_positions(u, sizes, rng, limit=60)
    assert np.bincount(shifts).max() <= 60
    assert draw_positions(u, sizes, rng, limit=49, tries=50) is None
    equal = np.tile(u[:1], (200, 1))
    assert draw_positions(equal, sizes, rng, limit=199, tries=50) is None


@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 80), st.integers(1, 1000), st.integers(0, 2**32))
@settings(deadline=None)
def test_gates(rows: int, dim: int, count: int, reach: int, seed: int) -> None:
    """Against Python integers: no argument is 0, the first gate is always open, and the largest sum is that."""
    rng = np.random.default_rng(seed)
    u = rng.integers(-reach, reach, size=(count, dim), endpoint=True)
    gates = draw_gates(u, Sizes(count, 1, dim, rows, 4, reach, 5), rng)
    opened, largest = gates.open(u)
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
    assert largest == max(sum(argument + 1 for argument in row if argument > 0) for row in arguments)


def test_gates_are_neither_open_nor_closed_for_nearly_all() -> None:
    rng = np.random.default_rng(1)
    u = rng.integers(-40, 40, size=(5000, 6))
    u[:, 2] = rng.integers(-1, 2, size=5000)
    gates = draw_gates(u, Sizes(5000, 1, 6, 40, 4, 40, 5), rng)
    assert np.abs(gates.gamma[:, 2]).max() > 5 * np.abs(gates.gamma[:, 0]).max()
    share = gates.open(u)[0][:, 1:].mean(axis=0)[gates.gamma[1:].any(axis=1)]
    assert share.min() > 0.2
    assert share.max() < 0.8


def test_many_questions_are_taken_in_pieces() -> None:
    """More than one chunk of 2^16: the last question has the largest sum."""
    u = np.zeros(((1 << 16) + 3, 1), dtype=np.int64)
    u[-1] = 7
    gates = Gates(np.array([[0], [1]]), np.array([-1, 5]))
    opened, largest = gates.open(u)
    assert opened.sum(axis=0).tolist() == [len(u), 1]
    assert largest == 2 + (14 - 5 + 1)


def test_coefficients_by_hand() -> None:
    """Gates (1, 0) and (1, 1) on u = (3, −4) and (0, 7), each row with a 1 at its end."""
    questions = Questions(
        np.array([[3, -4], [0, 7]]), np.array([[True, False], [True, True]]), np.array([0, 0]), np.array([0, 0])
    )
    assert questions.coefficients(np.array([0, 1])).tolist() == [[3, -4, 1, 0, 0, 0], [0, 7, 1, 0, 7, 1]]
    assert questions.coefficients(np.array([1])).tolist() == [[0, 7, 1, 0, 7, 1]]


def test_a_digit_that_nobody_reads_has_an_empty_system() -> None:
    # BUG (features.py, Questions.coefficients): reshape(0, -1) raises ValueError; give the number of columns.
    questions = Questions(np.array([[3, -4]]), np.array([[True, False]]), np.array([0]), np.array([0]))
    assert questions.coefficients(np.array([], dtype=np.int64)).shape == (0, 6)
