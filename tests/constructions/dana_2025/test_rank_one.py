"""Remark 2: queries and keys of width 1 hold the same associations, with (2d_h − 2)·H·d parameters fewer."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byheart
from byheart.bounds.dana_2025 import capacity, sufficient_rank_one
from byheart.constructions.gadgets.linear_system import BeyondCapacity
from byheart.errors import BadInput
from byheart.networks import save

from .small import built, distributions, labels, network_of


@settings(max_examples=20)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_the_same_associations_with_fewer_parameters(data: st.DataObject, seed: int) -> None:
    d, length = data.draw(st.integers(2, 6), label="d"), data.draw(st.integers(2, 5), label="n")
    d_h, H = data.draw(st.integers(1, d), label="d_h"), data.draw(st.integers(1, 4), label="H")
    vocab = data.draw(st.integers(12, 25), label="ω")
    task = labels(capacity(H, d_h, d), length, vocab, seed)
    if len(np.unique(task.inputs[:, -1])) < d:
        return
    wide, narrow = (
        built(task, seed % 1000, model_dim=d, head_dim=d_h, heads=H, query_dim=width) for width in (None, 1)
    )
    assert wide.account.dense - narrow.account.dense == (2 * d_h - 2) * H * d
    assert narrow.account.dense == d * (length + 2 * vocab + 2 * (d_h + 1) * H)
    assert narrow.account.dense == sufficient_rank_one(len(task.labels), length, vocab, d, d_h)
    assert byheart.certify(wide.network, task).certified
    assert byheart.certify(narrow.network, task).certified


def test_two_hundred_and_ten() -> None:
    """d(S + 2ω + 2(d_h + 1)H) = 10(2 + 100 + 440) = 5,420, against 10(2 + 100 + 800) = 9,020."""
    task = labels(210, 2, 50, 0)
    made = built(task, model_dim=10, heads=20, query_dim=1)
    assert made.account.dense == 5420
    assert network_of(made).W_Q.shape == network_of(made).W_K.shape == (20, 10, 1)
    assert network_of(made).W_V.shape == (20, 10, 10)
    assert byheart.certify(made.network, task).certified
    with pytest.raises(BeyondCapacity, match="have rank 210; expected 211"):
        built(labels(211, 2, 50, 0), model_dim=10, heads=20, query_dim=1)


def test_distributions_may_have_them_too() -> None:
    task = distributions(36, 2, 6, 0)
    made = built(task, query_dim=1)
    assert byheart.certify(made.network, task).certified


def test_a_saved_network_is_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    task = labels(20, 3, 12, 0)
    made = built(task, model_dim=4, query_dim=1)
    save(made.network, folder, {})
    again = byheart.load(folder)
    assert again.fingerprint == made.network.fingerprint
    assert byheart.certify(again, task).certified


@pytest.mark.parametrize("width", [0, 5, -1])
def test_widths_that_are_none(width: int) -> None:
    with pytest.raises(BadInput, match=re.escape(f"query_dim is {width}; expected from 1, which is enough, to d = 4")):
        built(labels(8, 2, 12, 0), model_dim=4, query_dim=width)


def test_a_query_that_is_lost_is_found_out() -> None:
    task = labels(20, 3, 12, 0)
    network = network_of(built(task, model_dim=4, query_dim=1))
    W_Q = network.W_Q.copy()
    W_Q[0] = 0
    assert byheart.certify(network, task).certified
    assert not byheart.certify(network.with_tensor("W_Q", W_Q), task).certified
