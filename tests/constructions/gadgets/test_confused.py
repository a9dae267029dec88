"""Whatever the weights of hardmax heads, two sequences are confused by all of them; and the network itself says so."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.gadgets.confused import confused, confused_by, confused_by_all, on_a_line
from byheart.errors import BadInput
from byheart.networks.balls import precision
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, HardmaxAttention, evaluate, integers, reference
from byheart.networks.softmax import SoftmaxNetwork
from byheart.networks.trained.enclose import enclose


def head_of(W_Q: object, W_K: object, W_V: object, W_O: object) -> HardmaxAttention:
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


def vector(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(-5, 5), min_size=size, max_size=size)


@settings(max_examples=60)
@given(st.data(), st.integers(1, 4), st.integers(1, 8), st.integers(4, 7))
def test_any_heads_confuse_two_sequences(data: st.DataObject, d: int, count: int, length: int) -> None:
    """Up to eight heads of any sizes in up to four dimensions: the same stream behind each of them, two evaluators."""
    heads = []
    for _ in range(count):
        d_h, d_v = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
        heads.append(head_of(*(data.draw(matrix(*size)) for size in ((d_h, d), (d_h, d), (d_v, d), (d, d_v)))))
    base, step = integers(data.draw(vector(d))), integers(data.draw(vector(d).filter(any)))
    first, second = confused_by(heads, length, base, step)
    one, other = ({tuple(token) for token in sequence.tolist()} for sequence in (first, second))
    assert len(one) == len(other) == length
    assert len(one & other) == length - 2
    assert first[0].tolist() == second[0].tolist()
    for head in heads:
        streams = first_streams(head, np.array([first, second], dtype=float))
        assert streams[0] == streams[1]


@pytest.mark.parametrize("length", [4, 5, 9])
def test_every_token_that_both_hold_is_confused(length: int) -> None:
    """Asked by another token: the largest, the smallest and the mean, heads made to tell as much as hardmax can."""
    one = [[1]]
    heads = [head_of([[sign]], one, one, one) for sign in (1, -1, 0)]
    first, second = confused_by(heads, length, integers([3]), integers([2]))
    for place in range(length - 2):
        turned = [np.roll(sequence, -place, axis=0) for sequence in (first, second)]
        assert turned[0][0] == turned[1][0]
        for head in heads:
            streams = first_streams(head, np.array(turned, dtype=float))
            assert streams[0] == streams[1]
    last = [sequence[[-1, *range(length - 1)]] for sequence in (first, second)]
    streams = first_streams(heads[0], np.array(last, dtype=float))
    assert streams[0] != streams[1], "control: what only one holds asks differently"


def test_four_tokens_by_hand() -> None:
    """{1, 2, 5, 6} and {1, 3, 4, 6}: from 1 one sees 6, 1 or the mean 7/2."""
    one = [[1]]
    heads = [head_of([[sign]], one, one, one) for sign in (1, -1, 0)]
    first, second = confused_by(heads, 4, integers([1]), integers([1]))
    assert (first.ravel().tolist(), second.ravel().tolist()) == ([1, 6, 2, 5], [1, 6, 3, 4])
    sequences = np.array([first, second], dtype=float)
    assert [first_streams(head, sequences)[0] for head in heads] == [[7], [2], [Fraction(9, 2)]]


@settings(max_examples=40)
@given(st.data(), st.integers(1, 3), st.integers(4, 6))
def test_a_softmax_head_tells_them_apart(data: st.DataObject, d: int, length: int) -> None:
    """Negative control: balls around the two averages, along the line, do not meet, unless the scores are constant."""
    W_Q, W_K = (np.array(data.draw(matrix(d, d)), dtype=float) for _ in range(2))
    base, step = integers(data.draw(vector(d))), integers(data.draw(vector(d).filter(any)))
    first, second = confused_by([], length, base, step)
    along = np.array(step, dtype=float)
    network = SoftmaxNetwork(W_Q[None], W_K[None], along[None, :, None], np.ones((1, 1, 1)))
    contexts, own = np.array([first, second], dtype=float), np.array([base, base], dtype=float)
    rows = dict(enclose(network, (contexts, own), bits=4096))
    constant = not float(along @ W_K @ (W_Q.T @ own[0]))
    with precision(4096):
        assert bool(rows[0][0].overlaps(rows[1][0])) == constant


def test_three_tokens_on_a_line_are_told_apart_by_three_heads() -> None:
    """Why length 4: the largest, the smallest and the mean give all three, one of which is known; four are confused."""
    one = [[1]]
    heads = [head_of([[sign]], one, one, one) for sign in (1, -1, 0)]
    tokens = integers([[token] for token in range(1, 7)])
    assert confused_by_all(heads, tokens, 3) is None
    assert confused_by_all(heads[:2], tokens, 3) is not None
    assert confused_by_all(heads, tokens, 4) is not None
    with pytest.raises(BadInput, match=r"^length is 3; expected 4 or more: three tokens on a line can be told apart$"):
        on_a_line(3)


def test_what_is_no_line_is_refused() -> None:
    head = head_of([[1, 1]], [[1, 1]], [[1, 1]], [[1], [1]])
    with pytest.raises(BadInput, match=r"^step is 0; expected a direction, so that tokens differ$"):
        confused_by([head], 4, integers([1, 1]), integers([0, 0]))
    with pytest.raises(BadInput, match=r"^head 0 reads 2 values; base is \(1,\) and step \(1,\)$"):
        confused_by([head], 4, integers([1]), integers([1]))


@given(st.data(), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.integers(3, 4))
def test_one_head_confuses_three_tokens_too(data: st.DataObject, d: int, d_h: int, values: int, length: int) -> None:
    """Four tokens at equal distances on a line in one or two dimensions."""
    head = head_of(*(data.draw(matrix(*size)) for size in ((d_h, d), (d_h, d), (values, d), (d, values))))
    base, step = integers(data.draw(vector(d))), integers(data.draw(vector(d).filter(any)))
    tokens = integers([base + place * step for place in range(4)])
    found = confused(head, tokens, length)
    assert found is not None
    one, other = found
    assert len(one) == len(other) == length
    assert one[0] == other[0]
    assert sorted(one) != sorted(other)
    first, second = first_streams(head, tokens[np.array(found)])
    assert first == second


def test_the_largest_token_hides_the_others() -> None:
    """Scores y·y_j with y > 0: from 1 one sees the largest, 2 in both (1, 1, 2) and (1, 2, 2); 1 + 2 = 3."""
    one = [[1]]
    head, tokens = head_of(one, one, one, one), integers([[1], [2], [3], [4]])
    assert confused(head, tokens, 3) == ((0, 0, 1), (0, 1, 1))
    assert first_streams(head, tokens[np.array([[0, 0, 1], [0, 1, 1]])]) == [[3], [3]]


def test_equal_scores_show_the_mean() -> None:
    """W_Q = 0: from 1 one sees the mean, so {1, 1, 3} and {1, 2, 2} are confused: 1 + 5/3 = 8/3."""
    one = [[1]]
    head, tokens = head_of([[0]], one, one, one), integers([[1], [2], [3], [4]])
    assert confused(head, tokens, 3) == ((0, 0, 2), (0, 1, 1))
    assert first_streams(head, tokens[np.array([[0, 0, 2], [0, 1, 1]])]) == [[Fraction(8, 3)]] * 2


def test_none_where_there_is_none() -> None:
    """Two tokens, and the mean: 0/1, 1/1, 1/2 are all different. Nor is there anything to confuse with one token."""
    one = [[1]]
    assert confused(head_of([[0]], one, one, one), integers([[0], [1]]), 2) is None
    assert confused(head_of(one, one, one, one), integers([[1]]), 3) is None
    assert confused(head_of(one, one, one, one), integers([[1], [2], [3], [4]]), 1) is None


@pytest.mark.parametrize("W_V", [[[0]], [[1]]])
def test_a_head_that_adds_nothing(W_V: list[list[int]]) -> None:
    """W_O W_V = 0: the first two sequences are confused."""
    head = head_of([[1]], [[1]], W_V, [[1 - W_V[0][0]]])
    assert confused(head, integers([[1], [2]]), 2) == ((0, 0), (0, 1))


def test_weights_that_leave_64_bits() -> None:
    """Scores are compared as whole numbers, whatever their size: 2^80·y·y_j."""
    big = [[1 << 80]]
    assert confused(head_of(big, big, big, big), integers([[-1], [1]]), 3) == ((0, 0, 0), (0, 0, 1))
    assert confused(head_of(big, [[-(1 << 80)]], big, big), integers([[-1], [1]]), 3) == ((0, 0, 1), (0, 1, 1))
