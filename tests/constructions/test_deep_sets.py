"""kajitsuka-sato-2025 with a sum in place of the attention: the same network, number by number, without its weights."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byheart
from byheart import networks
from byheart.certificates import judge
from byheart.certificates.second_opinion import second_opinion
from byheart.constructions import Built, find
from byheart.errors import BadInput
from byheart.networks.exact import ExactNetwork, TokenSum, UniformAttention, evaluate, integers, reference
from byheart.sizes import Size
from byheart.tasks import NextToken, SeqToSeq, random_next_token, random_seq_to_seq, save, shuffled

NAME = "kajitsuka-sato-2025"


def both(task: NextToken | SeqToSeq, **given: object) -> tuple[Built, Built]:
    """The network with attention, and the one with a sum."""
    attention, total = (byheart.build(NAME, task, mixing=mixing, **given) for mixing in ("attention", "sum"))
    return attention, total


@settings(max_examples=25)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_it_is_the_same_network_without_two_parameters(data: st.DataObject, seed: int) -> None:
    draw = random_seq_to_seq if data.draw(st.booleans(), label="seq-to-seq") else random_next_token
    sizes = {name: data.draw(st.integers(1, most), label=name) for name, most in (("length", 4), ("labels", 5))}
    dim, examples = data.draw(st.sampled_from([None, 1, 3]), label="d"), data.draw(st.integers(1, 20), label="N")
    task = draw(examples=examples, vocab=30, dim=dim, rng=np.random.default_rng(seed), **sizes)
    positions = data.draw(st.booleans(), label="positions")
    attention, total = both(task, positions=positions)
    assert judge(total.network, task).certified
    weights = {name: tensor.tolist() for name, tensor in attention.network.tensors()}
    assert weights.pop("attention.W_V") == [[task.size.length]]
    assert weights.pop("attention.W_O") == [[2]]
    assert weights == {name: tensor.tolist() for name, tensor in total.network.tensors()}
    assert (total.account.dense, total.account.depth) == (attention.account.dense - 2, attention.account.depth - 1)
    planned = find(NAME).plan(task.size, task.kind, find(NAME).settings(positions=positions, mixing="sum"))
    assert total.account.dense <= planned.dense


def test_two_less_at_any_size() -> None:
    for setting in ("next-token", "seq-to-seq"):
        for size in (Size(1, 1, 1, 1), Size(1000, 32, 10, 200), Size(10**5, 8, 2, 500, dim=3)):
            plans = [find(NAME).plan(size, setting, find(NAME).settings(mixing=m)) for m in ("attention", "sum")]
            assert plans[0].dense - plans[1].dense == 2
            assert plans[0].depth - plans[1].depth == 1


def test_the_whole_way(tmp_path: Path) -> None:
    """Saved, loaded, certified from the files, by the second opinion too; shuffled labels are found out."""
    task = random_next_token(examples=40, length=5, vocab=20, labels=4, rng=np.random.default_rng(0))
    _, total = both(task)
    save(task, tmp_path / "t.npz")
    networks.save(total.network, tmp_path / "net")
    loaded = networks.load(tmp_path / "net")
    assert loaded.fingerprint == total.network.fingerprint
    certificate = byheart.certify(loaded, task)
    assert certificate.certified
    assert second_opinion(certificate, tmp_path / "net", task, task=tmp_path / "t.npz").agrees
    lie = shuffled(task, np.random.default_rng(1))
    assert judge(loaded, lie).errors == int((lie.labels != task.labels).sum()) > 0


def test_a_sum_by_hand() -> None:
    """(1, 2, 4): the sum is 7, so 1 + 14, 2 + 14, 4 + 14; the mean with W_V = n, W_O = 2 gives the same."""
    sequences = np.array([[1, 2, 4], [0, 0, 0]])
    for layer in (TokenSum(), UniformAttention(W_V=integers([[3]]), W_O=integers([[2]]))):
        network = ExactNetwork((layer,), inputs="tokens", outputs="every", length=3)
        for found in (evaluate.evaluate(network, sequences), reference.evaluate(network, sequences)):
            assert found.tolist() == [[15, 16, 18], [0, 0, 0]]


def test_what_is_neither_is_refused() -> None:
    task = random_next_token(examples=4, length=2, vocab=9, labels=2, rng=np.random.default_rng(0))
    with pytest.raises(BadInput, match=r"^mixing is 'mean'; expected one of attention, sum$"):
        byheart.build(NAME, task, mixing="mean")
