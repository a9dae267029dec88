"""Triangle waves, a few bits or many at once, against the distance to the nearest multiple of the period."""

from collections.abc import Callable

import pytest

from byheart.constructions.gadgets.modular_hash import fold_layers, fold_shapes
from byheart.constructions.gadgets.triangle_waves import wave, wave_shapes
from byheart.networks.exact import Affine, integers

Through = Callable[..., list[list[int]]]


def triangle(x: int, h: int) -> int:
    """Rises to h at h, falls to 0 at 2h."""
    return h - abs(x % (2 * h) - h)


def test_three_bits_two_at_once_by_hand() -> None:
    """h = 5: first relu(x − j·10), j < 4, beside what is carried, then relu(y), relu(y − 5), y being their sum."""
    layers, row = wave([1], 0, h=5, bits=3, carry=([7], 1), at_once=2)
    assert [layer.W.tolist() for layer in layers] == [
        [[1], [1], [1], [1], [7]],
        [[1, -2, 2, -2, 0], [1, -2, 2, -2, 0], [0, 0, 0, 0, 1]],
    ]
    assert [layer.b.tolist() for layer in layers] == [[0, -10, -20, -30, 1], [0, -5, 0]]
    assert row == [1, -2, 0]


@pytest.mark.parametrize("at_once", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("bits", [1, 2, 3, 5])
@pytest.mark.parametrize("h", [1, 2, 7])
def test_the_wave_everywhere(h: int, bits: int, at_once: int, through: Through) -> None:
    layers, row = wave([3], 1, h=h, bits=bits, carry=([2], 5), at_once=at_once)
    shapes = [(layer.role, *layer.W.shape) for layer in layers]
    assert shapes == wave_shapes(1, bits, carry=True, at_once=at_once)
    assert len(layers) == -(-bits // at_once)
    carried = [0] * (len(row) - 1) + [1]
    read = Affine(integers([row, carried]), integers([0, 0]), relu=False)
    for x in range((h * 2**bits - 1) // 3 + 1):
        assert through([*layers, read], [x])[-1] == [triangle(3 * x + 1, h), 2 * x + 5]


def test_without_bits_nothing_happens() -> None:
    assert wave([3, 4], 1, h=5, bits=0) == ([], [3, 4])
    assert wave_shapes(2, 0) == []


@pytest.mark.parametrize("at_once", [2, 3, 8])
def test_a_hash_is_folded_as_bit_by_bit(at_once: int, through: Through) -> None:
    slow, fast = (fold_layers([1, 2], 3, 13, 4, bits) for bits in (1, at_once))
    assert [(layer.role, *layer.W.shape) for layer in fast] == fold_shapes(2, 4, at_once)
    assert len(fast) == -(-4 // at_once) + 1 < len(slow)
    for x in range(0, 100):
        assert through(fast, [x, 0])[-1] == through(slow, [x, 0])[-1]
