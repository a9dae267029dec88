"""Whatever the weights of a hardmax layer, two sequences are confused; and the network itself says so."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.constructions.gadgets.confused import confused
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, HardmaxAttention, evaluate, integers, reference


def layer_of(W_Q: object, W_K: object, W_V: object, W_O: object) -> HardmaxAttention:
    return HardmaxAttention(*(integers(W) for W in (W_Q, W_K, W_V, W_O)))  # type: ignore[arg-type]


def first_streams(layer: HardmaxAttention, vectors: np.ndarray) -> list[list[int | Fraction]]:
    """What stands at the first position of every sequence behind the layer, by both evaluators."""
    _, n, d = vectors.shape
    streams = []
    for i in range(d):
        unit = Affine(integers([[int(i == j) for j in range(d)]]), integers([0]), relu=False)
        network = ExactNetwork((layer, FeedForward((unit,))), inputs="vectors", outputs="every", length=n, dim=d)
        found = evaluate.evaluate(network, vectors.astype(float))[:, 0].tolist()
        assert found == reference.evaluate(network, vectors.astype(float))[:, 0].tolist()
        streams.append(found)
    return [list(row) for row in zip(*streams, strict=True)]


def matrix(rows: int, columns: int) -> st.SearchStrategy[list[list[int]]]:
    row = st.lists(st.integers(-4, 4), min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)


@given(st.data(), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.integers(3, 4))
def test_any_weights(data: st.DataObject, d: int, heads: int, values: int, length: int) -> None:
    """Four tokens at equal distances on a line in one or two dimensions."""
    drawn = [data.draw(matrix(*size)) for size in ((heads, d), (heads, d), (values, d), (d, values))]
    layer = layer_of(*drawn)
    base = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=d, max_size=d)))
    step = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=d, max_size=d).filter(any)))
    tokens = base + np.arange(4)[:, None] * step
    found = confused(layer, tokens, length)
    assert found is not None
    one, other = found
    assert len(one) == len(other) == length
    assert one[0] == other[0]
    assert sorted(one) != sorted(other)
    first, second = first_streams(layer, tokens[np.array(found)])
    assert first == second


def test_the_largest_token_hides_the_others() -> None:
    """Scores y·y_j with y > 0: from 1 one sees the largest, 2 in both (1, 1, 2) and (1, 2, 2); 1 + 2 = 3."""
    one = [[1]]
    layer, tokens = layer_of(one, one, one, one), np.array([[1], [2], [3], [4]])
    assert confused(layer, tokens, 3) == ((0, 0, 1), (0, 1, 1))
    assert first_streams(layer, tokens[np.array([[0, 0, 1], [0, 1, 1]])]) == [[3], [3]]


def test_equal_scores_show_the_mean() -> None:
    """W_Q = 0: from 1 one sees the mean, so {1, 1, 3} and {1, 2, 2} are confused: 1 + 5/3 = 8/3."""
    one = [[1]]
    layer, tokens = layer_of([[0]], one, one, one), np.array([[1], [2], [3], [4]])
    assert confused(layer, tokens, 3) == ((0, 0, 2), (0, 1, 1))
    assert first_streams(layer, tokens[np.array([[0, 0, 2], [0, 1, 1]])]) == [[Fraction(8, 3)]] * 2


def test_none_where_there_is_none() -> None:
    """Two tokens, and the mean: 0/1, 1/1, 1/2 are all different. Nor is there anything to confuse with one token."""
    one = [[1]]
    assert confused(layer_of([[0]], one, one, one), np.array([[0], [1]]), 2) is None
    assert confused(layer_of(one, one, one, one), np.array([[1]]), 3) is None
    assert confused(layer_of(one, one, one, one), np.array([[1], [2], [3], [4]]), 1) is None


@pytest.mark.parametrize("W_V", [[[0]], [[1]]])
def test_a_layer_that_adds_nothing(W_V: list[list[int]]) -> None:
    """W_O W_V = 0: the first two sequences are confused."""
    layer = layer_of([[1]], [[1]], W_V, [[1 - W_V[0][0]]])
    assert confused(layer, np.array([[1], [2]]), 2) == ((0, 0), (0, 1))


def test_weights_that_leave_64_bits() -> None:
    """Scores are compared as whole numbers, whatever their size: 2^80·y·y_j."""
    big = [[1 << 80]]
    assert confused(layer_of(big, big, big, big), np.array([[-1], [1]]), 3) == ((0, 0, 0), (0, 0, 1))
    assert confused(layer_of(big, [[-(1 << 80)]], big, big), np.array([[-1], [1]]), 3) == ((0, 0, 1), (0, 1, 1))
