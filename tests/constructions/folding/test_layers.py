"""Folds and digits, exhaustively on small numbers; and one network whose every weight is worked out by hand."""

import numpy as np
import pytest

from byheart.constructions.folding.design import GUARD, Sizes
from byheart.constructions.folding.features import Gates, PositionHash
from byheart.constructions.folding.layers import label_layers
from byheart.networks.exact import ExactNetwork, FeedForward, Layer, Residual, integers, reference
from byheart.networks.exact.evaluate import evaluate


def labels_of(sizes: Sizes) -> list[Layer]:
    """All layers behind the attention, with some words; only those that do not depend on them are used."""
    D = sizes.dim
    gates = Gates(np.zeros((sizes.rows, D), dtype=np.int64), np.full(sizes.rows, -1))
    positions = PositionHash(np.ones(D, dtype=np.int64), 1 << sizes.first_folds, sizes.digits, sizes.first_folds)
    words = integers([[0] * (D + 1)] * sizes.rows)
    return label_layers(sizes, (np.zeros(D, dtype=np.int64),) * 2, gates, positions, words)


def outputs(layers: list[Layer], values: list[int]) -> list[int]:
    network = ExactNetwork(tuple(layers), inputs="tokens", outputs="last", length=1)
    inputs = np.array(values)[:, None]
    found = evaluate(network, inputs).tolist()
    assert found[:30] == reference.evaluate(network, inputs[:30]).tolist()
    return found


def test_folding_is_the_triangle_wave() -> None:
    """c = 1, m = 1: from the top bit down to 2⁹, for all Z: the distance to the next multiple of 2¹⁰."""
    sizes = Sizes(1, 1, 1, 1, 1, 1, 1)
    assert (sizes.bottom, sizes.top) == (9, 12)
    (fold,) = (layer for layer in labels_of(sizes) if layer.name == "fold")
    values = list(range(2**12 + 1))
    assert outputs([fold], values) == [min(Z % 1024, 1024 - Z % 1024) for Z in values]


@pytest.mark.parametrize(("bits", "digits"), [(1, 1), (1, 3), (2, 2), (3, 1)])
def test_folding_larger_numbers(bits: int, digits: int) -> None:
    sizes = Sizes(1, bits, 2, 2, digits, 5, 1)
    (fold,) = (layer for layer in labels_of(sizes) if layer.name == "fold")
    period = 2 << sizes.bottom
    values = np.random.default_rng(0).integers(0, 1 << sizes.top, size=2000, endpoint=True).tolist()
    values += [k * period // 2 + e for k in range((1 << sizes.top) * 2 // period) for e in (0, 1)][-4000:]
    assert outputs([fold], values) == [min(Z % period, period - Z % period) for Z in values]


@pytest.mark.parametrize("bits", range(1, 9))
def test_digits_are_read(bits: int) -> None:
    """Every value in [0, 2^(γ + c)) that can occur with one digit: ⌊Z / 2^γ⌋; multiples of 2^γ too."""
    sizes = Sizes(1, bits, 1, 1, 1, 1, 1)
    layers = labels_of(sizes)
    start = [layer.name for layer in layers].index("fold") + 1
    values = list(range(1 << (GUARD + bits)))
    assert outputs(layers[start:], values) == [Z >> GUARD for Z in values]


@pytest.mark.parametrize(("bits", "digits"), [(1, 4), (2, 3), (3, 2), (5, 2)])
def test_digits_are_read_above_others(bits: int, digits: int) -> None:
    sizes = Sizes(1, bits, 1, 1, digits, 1, 1)
    layers = labels_of(sizes)
    start = [layer.name for layer in layers].index("fold") + 1
    values = list(range(0, 1 << sizes.bottom, max(1, (1 << sizes.bottom) // 4099)))
    assert outputs(layers[start:], values) == [Z >> (sizes.bottom - bits) for Z in values]


def test_a_network_by_hand() -> None:
    """D = 1, one always-open row with words (w, w′), c = 1, m = 2, one first fold; B = 9.

    Word 10 bits; Σ|u| + 1 ≤ 4: V = 2¹³; gates ≤ 9: top = 13 + 5 + 1 = 19, bottom 10. The gate's argument is 1: n = V +
    w·u + w′. h = u + 4 folded at 4 is 4 − |u|, in [0, 4]; 5 values, of which the first ⌈5/2⌉ = 3 do not shift: digit 1,
    and |u| ≤ 1 shifts by one digit: digit 0.

    w = 256 (digits 1, 0), w′ = 640 = 2⁹ + 2⁷ (digits 0, 1 and half a digit of guard), centre 10:

    ====  ===  =====================  =========  ========================================
    u + 10  u   F = 256u + 640         digit      window of F from bit γ + p − 1: z, label
    ====  ===  =====================  =========  ========================================
    7     −3   −128                   1          ⌊−128 / 256⌋ = −1 ≡ 3: 0
    8     −2   128                    1          0: 0
    9     −1   384                    0          ⌊384 / 128⌋ = 3: 0
    10    0    640                    0          5 ≡ 1: 1
    11    1    896                    0          7 ≡ 3: 0
    12    2    1152                   1          4 ≡ 0: 0
    13    3    1408                   1          5 ≡ 1: 1
    ====  ===  =====================  =========  ========================================
    """
    sizes = Sizes(questions=7, bits=1, dim=1, rows=1, digits=2, reach=9, first_folds=1)
    assert (sizes.gate_bits, sizes.top, sizes.bottom) == (13, 19, 10)
    gates, positions = Gates(np.array([[0]]), np.array([-1])), PositionHash(np.array([1]), 4, 2, 1)
    assert positions.stages() == [(3, 1)]
    layers = label_layers(sizes, (np.array([10]), np.array([0])), gates, positions, integers([[256, 640]]))

    words, shift, drop, fold, _label = layers
    assert isinstance(words, FeedForward)
    assert isinstance(shift, Residual)
    # V·1 + 640 − 10·256, and 4 − 10.
    assert words.layers[0].W.tolist() == [[256], [1]]
    assert words.layers[0].b.tolist() == [2**13 + 640 - 2560, -6]
    assert (words.layers[1].W.tolist(), words.layers[1].b.tolist()) == ([[2, 0], [0, 1]], [1, 0])
    assert [block.role for block in shift.blocks] == ["fold", "shift"]
    assert shift.blocks[0].b_in.tolist() == [-4]
    # v < 2¹⁸ = G; doubled where h ≥ 3: relu(v + G·(2h − 5)) − G·relu(2h − 5) is v there.
    assert shift.blocks[1].W_in.tolist() == [[1, 2**19], [0, 2]]
    assert shift.blocks[1].b_in.tolist() == [-5 * 2**18, -5]
    assert shift.blocks[1].W_out.tolist() == [[1, -(2**18)], [0, -1]]
    assert [block.b_in.tolist() for block in fold.blocks] == [[-(2**k)] for k in range(18, 9, -1)]
    assert [block.W_out.tolist() for block in fold.blocks] == [[[-2]]] * 9

    u = [7, 8, 9, 10, 11, 12, 13]
    v = [2 * (2**13 + 256 * (x - 10) + 640) + 1 for x in u]
    assert outputs([words, drop], u) == v
    Z = [value * 2 if abs(x - 10) <= 1 else value for value, x in zip(v, u, strict=True)]
    assert outputs([words, shift, drop], u) == Z
    assert outputs([words, shift, drop, fold], u) == [min(z % 2048, 2048 - z % 2048) for z in Z]
    assert outputs(layers, u) == [0, 0, 0, 1, 0, 0, 1]
    assert (positions.shifts(np.array(u)[:, None] - 10)).tolist() == [0, 0, 1, 1, 1, 0, 0]


def test_closed_gates_add_nothing() -> None:
    """Two rows, the second open for u > 0 only; behind the sum, modulo V, only open rows have a say."""
    sizes = Sizes(questions=7, bits=1, dim=1, rows=2, digits=1, reach=9, first_folds=1)
    gates, positions = Gates(np.array([[0], [3]]), np.array([-1, 1])), PositionHash(np.array([1]), 4, 1, 1)
    layers = label_layers(sizes, (np.array([0]), np.array([0])), gates, positions, integers([[5, 300], [17, 100]]))
    V = 1 << sizes.gate_bits
    network = ExactNetwork((layers[0], layers[2]), inputs="vectors", outputs="last", length=1)
    u = np.arange(-3, 4)
    found = evaluate(network, u[:, None, None].astype(np.float64)).tolist()
    for x, value in zip(u.tolist(), found, strict=True):
        assert value % 2 == 1
        assert (value - 1) // 2 % V == (5 * x + 300 + (17 * x + 100 if x > 0 else 0)) % V
        assert value < 1 << sizes.top


def test_halved_columns() -> None:
    """The stream (4·u₁ + 7, 2·u₂ − 3) gives what (u₁, u₂) gives in its own frame."""
    sizes = Sizes(questions=9, bits=2, dim=2, rows=2, digits=3, reach=9, first_folds=2)
    gates = Gates(np.array([[0, 0], [1, -2]]), np.array([-1, 1]))
    positions = PositionHash(np.array([3, 5]), 24, 3, 2)
    words = integers([[12345, 54, 999], [77, 16000, 4321]])
    u = np.array([[a, b] for a in range(-3, 4) for b in range(-3, 4)])
    plain = label_layers(sizes, (np.array([0, 0]), np.array([0, 0])), gates, positions, words)
    framed = label_layers(sizes, (np.array([7, -3]), np.array([2, 1])), gates, positions, words)
    answers = []
    for layers, stream in ((plain, u), (framed, u * [4, 2] + [7, -3])):
        network = ExactNetwork(tuple(layers), inputs="vectors", outputs="last", length=1, dim=2)
        answers.append(evaluate(network, stream[:, None].astype(np.float64)).tolist())
    assert answers[0] == answers[1]
    assert len(set(answers[0])) > 1
