"""Counts by hand."""

import json
from dataclasses import replace

from byheart.networks import Item, count
from byheart.networks.exact import Embedding, Flatten, Positions, Residual, TokenSum, integers

from .exact.oracle import affine, block, feed_forward, hardmax, on_tokens, on_vectors, uniform


def test_a_feed_forward_network_by_hand():
    """3 → 2 → 1 on vectors of dimension 3.

    W₁ = [[0, 1, -1], [7, 7, -300]]: 6 entries, 5 not zero; 7 and -300 were chosen: 2 free. Bits with sign: 0 takes 1,
    ±1 take 2, 7 takes 4, 300 (9 bits) takes 10: 1 + 2 + 2 + 4 + 4 + 10 = 23. b₁ = [0, 2]: 2 entries, 1 not zero,
    1 free, 1 + 3 = 4 bits. W₂ = [[2, -2]]: 2, 2 not zero, 2 free, 6 bits. b₂ = [0]: 1, 0, 0, 1 bit.
    In all 11 entries, 8 not zero, 5 free, 34 bits, the largest 10. Two layers; the input of 3 is the widest.
    """
    chain = feed_forward(affine([[0, 1, -1], [7, 7, -300]], [0, 2], role="in"), affine([[2, -2]], [0], role="out"))
    account = count(on_vectors(chain, dim=3))
    assert account.items == (
        Item(
            "feed_forward.0.in.W", (2, 3), dense=6, nonzero=5, free=2, max_bits=10, total_bits=23, part="feed_forward"
        ),
        Item("feed_forward.0.in.b", (2,), dense=2, nonzero=1, free=1, max_bits=3, total_bits=4, part="feed_forward"),
        Item("feed_forward.1.out.W", (1, 2), dense=2, nonzero=2, free=2, max_bits=3, total_bits=6, part="feed_forward"),
        Item("feed_forward.1.out.b", (1,), dense=1, nonzero=0, free=0, max_bits=1, total_bits=1, part="feed_forward"),
    )
    assert (account.dense, account.nonzero, account.free) == (11, 8, 5)
    assert (account.max_bits, account.total_bits) == (10, 34)
    assert (account.depth, account.width, account.embedding) == (2, 3, 0)


def test_zeros_are_counted():
    """A 40 × 50 matrix of zeros and its bias of 40: 2040 entries of one bit each, none of them chosen."""
    account = count(on_vectors(feed_forward(affine([[0] * 50] * 40, [0] * 40)), dim=50))
    assert (account.dense, account.nonzero, account.free, account.total_bits) == (2040, 0, 0, 2040)


def test_every_kind_of_layer_by_hand():
    """Embedding 5 × 3 = 15, positions 2 × 3 = 6 (no depth), uniform W_V 1 × 3 and W_O 3 × 1 = 6,

    hardmax W_Q, W_K 2 × 3 each, W_V 1 × 3, W_O 3 × 1 = 18, feed-forward 4 × 3 + 4 + 1 × 4 + 1 = 21: 66 in all.
    Depth 1 + 0 + 1 + 1 + 2 = 5; the widest is the 4 of the hidden layer.
    """
    row, column = [[1, 1, 1]], [[1], [1], [1]]
    network = on_tokens(
        Embedding(integers([[2, 2, 2]] * 5)),
        Positions(integers([[2, 2, 2]] * 2)),
        uniform(row, column),
        hardmax(row * 2, row * 2, row, column),
        feed_forward(affine(row * 4, [0] * 4), affine([[1] * 4], [0])),
        length=2,
    )
    account = count(network)
    assert [item.dense for item in account.items] == [15, 6, 3, 3, 6, 6, 3, 3, 12, 4, 4, 1]
    assert (account.dense, account.embedding, account.depth, account.width) == (66, 15, 5, 4)


def test_residual_blocks_by_hand():
    """Two blocks on a stream of 2, with 3 and 5 hidden units: 3·2 + 3 + 2·3 = 15 and 5·2 + 5 + 2·5 = 25 entries.

    No second bias is counted. Two layers a block: depth 4; the widest is 5, and the map to one output has 3 more.
    """
    blocks = [block([[1, 1]] * hidden, [0] * hidden, [[1] * hidden] * 2) for hidden in (3, 5)]
    account = count(on_vectors(Residual(tuple(blocks)), feed_forward(affine([[1, 1]], [0])), dim=2))
    assert [item.dense for item in account.items] == [6, 3, 6, 10, 5, 10, 2, 1]
    assert (account.dense, account.depth, account.width) == (43, 5, 5)


def test_free_values_are_counted_within_each_tensor():
    """Two tables with the same 9s: 1 free value in each, 2 in all; -9 is another value than 9."""
    account = count(on_tokens(Embedding(integers([[9, 9]])), feed_forward(affine([[9, -9]], [1]))))
    assert [item.free for item in account.items] == [1, 2, 0]
    assert account.free == 3


def test_depth_and_width_of_single_layers():
    """Width is the stream's where the layer writes it: 7 for a table of rows of 7, 6 for six inputs.

    One affine map to a single output stands behind each of them: a depth of one more.
    """

    def shape(network, width):
        account = count(replace(network, layers=(*network.layers, feed_forward(affine([[1] * width], [0])))))
        return account.depth - 1, account.width

    row, column = [[1] * 6], [[1]] * 6
    assert shape(on_tokens(Embedding(integers([[1] * 7]))), 7) == (1, 7)
    assert shape(on_tokens(Positions(integers([[1]] * 9)), length=9), 1) == (0, 1)
    assert shape(on_vectors(uniform(row, column), dim=6), 6) == (1, 6)
    assert shape(on_vectors(hardmax(row, row, row, column), dim=6), 6) == (1, 6)
    assert shape(on_tokens(feed_forward(affine([[1]] * 8, [1] * 8), affine([[1] * 8] * 3, [1] * 3))), 3) == (2, 8)
    assert shape(on_vectors(TokenSum(), dim=6), 6) == (0, 6)
    assert shape(on_vectors(Flatten(), dim=3, length=4), 12) == (0, 12)


def test_flatten_is_as_wide_as_the_stream_it_flattens():
    """Ids become rows of 4; three of them flattened are 12 wide."""
    network = on_tokens(Embedding(integers([[1] * 4])), Flatten(), feed_forward(affine([[1] * 12], [0])), length=3)
    assert count(network).width == 12


def test_a_network_without_weights_has_no_bits():
    account = count(on_tokens())
    assert (account.dense, account.total_bits, account.max_bits) == (0, 0, 0)


def test_the_json_object():
    account = count(on_tokens(Embedding(integers([[5, 0]])), feed_forward(affine([[1, 2]], [0]), name="f")))
    assert repr(account) == "<Account: 5 parameters in 3 tensors, depth 2, width 2>"
    printed = json.loads(json.dumps(account.as_json()))
    assert printed == {
        "dense": 5,
        "nonzero": 3,
        "free": 2,
        "max_bits": 4,
        "total_bits": 11,
        "depth": 2,
        "width": 2,
        "items": [
            {"name": "embedding.W_E", "shape": [1, 2], "dense": 2, "nonzero": 1, "max_bits": 4},
            {"name": "f.0.affine.W", "shape": [1, 2], "dense": 2, "nonzero": 2, "max_bits": 3},
            {"name": "f.0.affine.b", "shape": [1], "dense": 1, "nonzero": 0, "max_bits": 1},
        ],
    }
