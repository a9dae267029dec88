"""The group of a key, found by chains and by squares: by hand, and against the wide layer on every key."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.gadgets.lookup import Lookup
from byheart.constructions.gadgets.selecting import NARROW, WIDE, Chain, Groups, Selection, Squares
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
from byheart.networks.exact.evaluate import evaluate

Through = Callable[..., list[list[int]]]


# Three keys by hand: those of test_lookup.py. Keys 1, 3, 6 with labels 1, 0, 1 and C = 2: κ = 2z + y = 3, 6, 13, the
# groups {3, 6} and {13} with the integers 24 and 8, top = 6. So P = 7, C(P + 1) = 16, 2^(top+1) = 128, and the words
# are 128·(16 − 3) + 24 = 1688 and 128·(16 − 13) + 8 = 392.

SIZES = Lookup(keys=3, labels=2, largest=7, slots=1, field=3, groups=2)
GROUPS = Groups(thresholds=[6], first=[3, 13], packed=[24, 8])


def test_a_chain_by_hand(through: Through) -> None:
    """X = word + 256(z + 1). U ≤ 32 has six bits, and one keeps the wave upright: seven folds, from 2^12 to 2^6."""
    step, *unpack, read = NARROW.layers(SIZES, GROUPS)
    assert step.W.tolist() == [[1], [1], [256]]
    assert step.b.tolist() == [-5, -6, 1688 + 256]
    assert unpack[0].W.tolist() == [[392 - 1688, 1688 - 392, 1]] * 3
    assert [layer.b.tolist()[1] for layer in unpack] == [-(2**k) for k in (12, 11, 10, 9, 8, 7, 6)]
    assert read.W.tolist() == [[-1, 2, 1]] * 3 + [[128, -256, 0]]
    assert read.b.tolist() == [-16 * 128, -17 * 128, -18 * 128, 0]
    assert read.shift == 7
    # z = 3, the first group: 1688 + 256·4 = 2712 = 128·21 + 24, e = 21 − 16 = 5 = 2·3 + 2 − 3.
    values = through([step, *unpack, read], [3])
    assert values[0] == [0, 0, 2712]
    assert values[-2][2] == 2712
    assert values[-1] == [5, 4, 3, 24]
    # z = 6, the second: 392 + 256·7 = 2184 = 128·17 + 8, e = 1.
    values = through([step, *unpack, read], [6])
    assert values[0] == [1, 0, 1688 + 256 * 7]
    assert values[1][2] == 2184
    assert values[-1] == [1, 0, 0, 8]
    # z = 0 comes before the first entry: 1688 + 256 = 128·15 + 24, e = max(15 − 16, 0).
    assert through([step, *unpack, read], [0])[-1] == [0, 0, 0, 24]


def test_squares_by_hand(through: Through) -> None:
    """Five groups in squares of four: the second square has one group, and three that begin at P + 1 = 10.

    C = 1, so κ = z; no slots: top = 1, 2^(top+1) = 4, words 4·(10 − κ). Nothing is unpacked.
    """
    sizes = Lookup(keys=5, labels=1, largest=9, slots=0, field=1, groups=5, selection=Squares(2))
    groups = Groups(thresholds=[2, 4, 6, 8], first=[0, 2, 4, 6, 8], packed=[0] * 5)
    layers = Squares(2).layers(sizes, groups)
    assert [layer.role for layer in layers] == ["rows", "columns", "rows", "columns", "picks", "read"]
    rows, columns, *_ = layers
    assert rows.b.tolist() == [0, 4, 1, 0, 1 - 4, -4]  # z, 4(z + 1), rows at 0 and 4
    assert columns.W.tolist()[2:] == [
        [0, 0, 1, -1, -1, 1],  # row 0: reached, and row 1 not
        [0, 0, 0, 0, 1, -1],
        [1, 0, -2, 2, -4, 4],  # z − 2·[z ≥ 0] − (6 − 2)·[z ≥ 4]: the row's second column begins at 2 or 6
        [1, 0, -2, 2, -4, 4],
    ]
    # z = 5: row 1, column 0: the picks of the first square are 4·(10 − 4) = 24 and 0; of the second, 0.
    values = through(layers, [5])
    assert values[1] == [5, 24, 0, 1, 0, 0]
    assert values[2][:4] == [5, 24, 24, 0]
    assert values[4] == [48, 0, 0]
    assert values[5] == [5 + 1 - 4, 1, 1, 0]  # e = z + 1 − κ
    # z = 9: the second square is reached, and the first one's last word, 4·(10 − 6) = 16, is taken away again.
    values = through(layers, [9])
    assert values[2][:4] == [9, 40, 0, 16]
    assert values[3][:2] == [9, 40]
    assert values[4] == [40, 8, 0]
    assert values[5] == [2, 1, 1, 0]


# Any groups, any key: what the wide layer finds, all find.


@st.composite
def grouped(draw: st.DrawFn) -> tuple[Lookup, Groups]:
    """Groups with any integers up to 2^top."""
    labels, largest = draw(st.integers(1, 20)), draw(st.integers(1, 80))
    starts = sorted(draw(st.sets(st.integers(0, largest), min_size=1, max_size=30)))
    first = [t * labels + draw(st.integers(0, labels - 1)) for t in starts]
    slots, own_bits = draw(st.integers(0, 3)), draw(st.sampled_from([0, largest.bit_length()]))
    sizes = Lookup(len(starts), labels, largest, slots, draw(st.integers(1, 9)), len(starts), own_bits)
    sizes = replace(sizes, fold_bits=draw(st.integers(1, 5)))
    room = 2**sizes.top - (largest if own_bits else 0)
    packed = [draw(st.integers(0, room)) if slots else 0 for _ in starts]
    return sizes, Groups(starts[1:], first, packed)


def found(layers: list[Affine], largest: int) -> list[list[int]]:
    """e and q of all keys."""
    both = []
    for unit in (0, 3):
        read = Affine(integers([[int(unit == i) for i in range(4)]]), integers([0]))
        network = ExactNetwork((FeedForward((*layers, read)),), inputs="tokens", outputs="last", length=1)
        both.append(evaluate(network, np.arange(largest + 1)[:, None]).tolist())
    return both


@given(grouped(), st.sampled_from([NARROW, Chain(2), Chain(7), Squares(2), Squares(3), Squares(6)]))
@settings(deadline=None, max_examples=80)
def test_all_find_the_same(case: tuple[Lookup, Groups], selection: Selection) -> None:
    sizes, groups = case
    layers = selection.layers(sizes, groups)
    assert found(layers, sizes.largest) == found(WIDE.layers(sizes, groups), sizes.largest)
    shapes = [(layer.role, *layer.W.shape) for layer in layers]
    assert shapes == selection.shapes(sizes, len(groups.first))
    assert len(layers) == selection.depth(len(groups.first)) + selection.unpacking(sizes) + 1
    heaviest = max(int(w).bit_length() + 1 for layer in layers for tensor in (layer.W, layer.b) for w in tensor.ravel())
    assert heaviest <= sizes.top + selection.spare_bits(sizes)


@pytest.mark.parametrize(
    ("selection", "width"), [(NARROW, 4), (Chain(2), 5), (Chain(9), 19), (Squares(2), 8), (Squares(7), 23)]
)
def test_width(selection: Selection, width: int) -> None:
    """The docstrings' numbers."""
    sizes = replace(SIZES, selection=selection, fold_bits=2 if width > 4 else 1)
    assert max(outputs for _, outputs, _ in selection.shapes(sizes, 200)) == width


def test_parameters_a_group() -> None:
    """12 in a chain; 18 in squares, up to what the corners of its matrices add."""
    chains = [sum(o * (i + 1) for _, o, i in NARROW.shapes(SIZES, groups)) for groups in (100, 200)]
    assert chains[1] - chains[0] == 1200
    squares = [sum(o * (i + 1) for _, o, i in Squares(50).shapes(SIZES, groups)) for groups in (10_000, 20_000)]
    assert 18 * 10_000 < squares[1] - squares[0] < 18.8 * 10_000
