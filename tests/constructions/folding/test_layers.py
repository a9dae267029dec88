"""Folds and digits, exhaustively on small numbers; and one network whose every weight is worked out by hand."""

import numpy as np
import pytest

from byheart.constructions.folding.design import GUARD, FoldingSizes
from byheart.constructions.folding.features import Gates, ShiftDigits
from byheart.constructions.folding.layers import fold_parts, folds, label_layers
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, Layer, Residual, integers, reference
from byheart.networks.exact.evaluate import evaluate


def labels_of(sizes: FoldingSizes) -> list[Layer]:
    """All layers behind the attention, with some words; only those that do not depend on them are used."""
    D, ones = sizes.dim, np.ones(sizes.rows, dtype=np.int64)
    gates = Gates(np.zeros((sizes.rows, D), dtype=np.int64), -ones, ones)
    positions = ShiftDigits(0, sizes.digits, sizes.level_bits, sizes.first_folds)
    words = integers([[0] * (D + 1)] * sizes.rows)
    return label_layers(sizes, (np.zeros(D, dtype=np.int64),) * 2, gates, positions, words)


def outputs(layers: list[Layer], values: list[int]) -> list[int]:
    network = ExactNetwork(tuple(layers), inputs="tokens", outputs="last", length=1)
    inputs = np.array(values)[:, None]
    found = evaluate(network, inputs).tolist()
    assert found[:30] == reference.evaluate(network, inputs[:30]).tolist()
    return found


def mirror(T: int) -> Layer:
    """Y = T − Z, there and back again."""
    return FeedForward((Affine(integers([[-1]]), integers([T]), relu=False, role="mirror"),), name="mirror")


@pytest.mark.parametrize(("start", "count"), [(2**12, 3), (2**12, 12), (3 * 2**10, 8), (5000, 1)])
def test_folding_is_the_triangle_wave(start: int, count: int) -> None:
    """For all Z in [0, start]: the distance to the next multiple of start/2^(count − 1); two parameters a fold."""
    T, period = start + 7, start >> count - 1
    layers = folds("fold", T, start, count)
    values = list(range(start + 1))
    assert outputs([mirror(T), *layers, mirror(T)], values) == [min(Z % period, period - Z % period) for Z in values]
    planned = [(f"{name}.{key}", shape) for name, part in fold_parts("fold", count) for key, shape in part.tensors()]
    network = ExactNetwork(tuple(layers), inputs="tokens", outputs="last", length=1)
    assert planned == [(name, tensor.shape) for name, tensor in network.tensors()]
    assert sum(tensor.size for _, tensor in network.tensors()) == 2 * count


def decoder(sizes: FoldingSizes) -> list[Layer]:
    """The layers behind the last fold."""
    layers = labels_of(sizes)
    last = max(index for index, layer in enumerate(layers) if layer.name.startswith("fold."))
    T = (
        (sizes.modulus << sizes.last_folds)
        if sizes.stages
        else 2 * sizes.modulus << sizes.carry_bits + sizes.level_bits
    )
    return [mirror(T), *layers[last + 1 :]]


@pytest.mark.parametrize("labels", [2, 3, 4, 5, 6, 7, 8, 10, 16, 100, 256])
def test_digits_are_read(labels: int) -> None:
    """Every value in [0, 2^γ·C) that can occur with one digit: ⌊Z / 2^γ⌋; multiples of 2^γ too."""
    values = list(range(labels << GUARD))
    assert outputs(decoder(FoldingSizes(1, labels, labels, 1, 1, 1, 1)), values) == [Z >> GUARD for Z in values]


@pytest.mark.parametrize(("labels", "radix", "digits"), [(2, 2, 4), (3, 3, 3), (7, 8, 2), (10, 10, 3), (17, 18, 2)])
def test_digits_are_read_above_others(labels: int, radix: int, digits: int) -> None:
    sizes = FoldingSizes(1, labels, radix, 1, 1, digits, 1)
    largest = labels * sizes.unit
    values = list(range(0, largest, max(1, largest // 4099)))
    assert outputs(decoder(sizes), values) == [Z // sizes.unit for Z in values]


def test_a_network_by_hand() -> None:
    """D = 1, two rows, R = C = 3, m = 2; B = 3.

    M = 2⁸·9 = 2304. Σ|u| + 1 ≤ 2, two rows 4: V = 2³·M = 18,432. Two digits (2 bits) take 2⁷ folded levels: L = 12,
    r = 5, and T = 2·V·2¹². Folds: 1 + 3 + 12 + ⌈log₂3⌉ = 18, 13 of them behind the shift.

    Row 0 is always open: n = V + 768u + 300 (768 = 3·2⁸: digits 0, 1; 300 = 2⁸ + 44: digits 1, 0). Row 1 is open for
    u > 0 with twice the weight: n = 2V·(2u − 1) + 256u − 100. The offset is 60: the level is A = 61, and for u > 0
    59 + 4u + 2 = 61 + 2·(2u − 1). Folded levels are A itself; those from ⌈128/2⌉ = 64 on shift by one digit.

    ===  ==============  =====  =====  ===========================================  =====
    u    F               level  digit  z = ⌊(2F + 1) / (2⁸·3^p)⌋ modulo 6           label
    ===  ==============  =====  =====  ===========================================  =====
    −1   −468            61     1      ⌊−935 / 768⌋ = −2 ≡ 4                        1
    0    300             61     1      ⌊601 / 768⌋ = 0                              0
    1    1068 + 156      63     1      ⌊2449 / 768⌋ = 3                             2
    2    1836 + 412      67     0      ⌊4497 / 256⌋ = 17 ≡ 5                        0
    ===  ==============  =====  =====  ===========================================  =====
    """
    sizes = FoldingSizes(questions=4, labels=3, radix=3, dim=1, rows=2, digits=2, reach=3)
    M, V = 2304, 18432
    T = 2 * V << 12
    assert (sizes.modulus, sizes.carry_bits, sizes.level_bits) == (M, 3, 12)
    assert (sizes.first_folds, sizes.last_folds) == (5, 13)
    gates = Gates(np.array([[0], [1]]), np.array([-1, 1]), np.array([1, 2]))
    positions = ShiftDigits(offset=60, digits=2, bits=12, folds=5)
    assert positions.stages() == [(64, 1)]
    layers = label_layers(sizes, (np.array([10]), np.array([0])), gates, positions, integers([[768, 300], [256, -100]]))
    words, *rest = layers
    level, (first, drop), fold, (label,) = rest[:5], rest[5:7], rest[7:-1], rest[-1:]

    assert isinstance(words, FeedForward)
    assert words.layers[0].W.tolist() == [[768], [4 * V + 256]]
    assert words.layers[0].b.tolist() == [V + 300 - 7680, -2 * V - 100 - 10 * (4 * V + 256)]
    assert (words.layers[1].W.tolist(), words.layers[1].b.tolist()) == ([[-2, -2]], [T - 120 * V - V - 1])
    assert [layer.layers[0].b.tolist() for layer in level] == [[2 * T - (2 * T >> k)] for k in range(1, 6)]
    assert all(layer.layers[0].W.tolist() == [[-2]] and layer.residual for layer in (*level, *fold))
    assert (first.layers[0].W.tolist(), first.layers[0].b.tolist()) == ([[-1], [-1]], [T, T - 128 * V])
    assert first.layers[1].W.tolist() == [[1, 2], [1, -2]]
    end = M << 13
    assert (drop.layers[0].W.tolist(), drop.layers[0].b.tolist()) == ([[-1, 0]], [end])
    assert [layer.layers[0].b.tolist() for layer in fold] == [[2 * end - (2 * end >> k)] for k in range(1, 14)]
    assert label.layers[0].b.tolist() == [end - 768 + 1, end - 768, end - 1536 + 1, end - 1536]

    u = [-1, 0, 1, 2]
    F = [768 * x + 300 + (256 * x - 100 if x > 0 else 0) for x in u]
    A = [61 + (2 * (2 * x - 1) if x > 0 else 0) for x in u]
    Z = [2 * (V * a + f) + V + 1 for a, f in zip(A, F, strict=True)]
    stream = [x + 10 for x in u]
    assert outputs([words, mirror(T)], stream) == Z
    assert outputs([words, *level, mirror(T)], stream) == Z
    shifted = [z if a < 64 else 3 * z - 256 * V for z, a in zip(Z, A, strict=True)]
    assert outputs([words, *level, first, drop, mirror(end)], stream) == shifted
    waves = [min(z % (2 * M), 2 * M - z % (2 * M)) for z in shifted]
    assert outputs([*layers[:-1], mirror(end)], stream) == waves
    assert outputs(layers, stream) == [wave // 768 for wave in waves] == [1, 0, 2, 0]


def test_closed_gates_add_nothing() -> None:
    """Two rows, the second open for u > 0 only; behind the sum, modulo V, only open rows have a say."""
    sizes = FoldingSizes(questions=7, labels=2, radix=2, dim=1, rows=2, digits=1, reach=9)
    gates = Gates(np.array([[0], [3]]), np.array([-1, 1]), np.array([1, 1]))
    positions = ShiftDigits(0, 1, sizes.level_bits, 0)
    layers = label_layers(sizes, (np.array([0]), np.array([0])), gates, positions, integers([[5, 200], [-17, 100]]))
    V = sizes.modulus << sizes.carry_bits
    T = 2 * V << sizes.level_bits
    network = ExactNetwork((layers[0], mirror(T)), inputs="vectors", outputs="last", length=1)
    u = np.arange(-3, 4)
    found = evaluate(network, u[:, None, None].astype(np.float64)).tolist()
    for x, value in zip(u.tolist(), found, strict=True):
        assert value % 2 == 1
        assert (value - 1 - V) // 2 % V == (5 * x + 200 + (-17 * x + 100 if x > 0 else 0)) % V
        assert 0 < value < T


def test_halved_columns() -> None:
    """The stream (4·u₁ + 7, 2·u₂ − 3) gives what (u₁, u₂) gives in its own frame."""
    sizes = FoldingSizes(questions=9, labels=4, radix=4, dim=2, rows=2, digits=3, reach=9)
    gates = Gates(np.array([[0, 0], [1, -2]]), np.array([-1, 1]), np.array([3, 5]))
    positions = ShiftDigits(24, 3, sizes.level_bits, sizes.first_folds)
    words = integers([[2345, 54, 999], [77, -6000, 4321]])
    u = np.array([[a, b] for a in range(-3, 4) for b in range(-3, 4)])
    plain = label_layers(sizes, (np.array([0, 0]), np.array([0, 0])), gates, positions, words)
    framed = label_layers(sizes, (np.array([7, -3]), np.array([2, 1])), gates, positions, words)
    answers = []
    for layers, stream in ((plain, u), (framed, u * [4, 2] + [7, -3])):
        network = ExactNetwork(tuple(layers), inputs="vectors", outputs="last", length=1, dim=2)
        answers.append(evaluate(network, stream[:, None].astype(np.float64)).tolist())
    assert answers[0] == answers[1]
    assert len(set(answers[0])) > 1


def test_one_digit_has_nothing_to_shift() -> None:
    layers = labels_of(FoldingSizes(questions=3, labels=2, radix=2, dim=1, rows=1, digits=1, reach=3))
    assert not any(isinstance(layer, Residual) or layer.name in ("first_shift", "drop") for layer in layers)
