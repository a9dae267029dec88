"""A proved radius is tight: no answer is wrong on tokens moved within it, and some are a little beyond."""

import numpy as np
import pytest
from moving import inside, moved

from byheart.certificates.judges.radius import provable_radius, unproved
from byheart.constructions import build
from byheart.errors import BadInput
from byheart.networks.exact import ExactNetwork
from byheart.networks.exact.evaluate import evaluate
from byheart.tasks import NextToken, random_next_token, random_seq_to_seq

RNG = np.random.default_rng(0)
NEXT = random_next_token(examples=30, length=4, vocab=20, labels=3, dim=4, rng=RNG)
SEQ = random_seq_to_seq(examples=15, length=4, vocab=20, labels=3, dim=4, rng=RNG)
POINTS = random_next_token(examples=30, length=1, vocab=None, labels=3, dim=4, rng=RNG)


def wrong(net: ExactNetwork, task: NextToken, radius: float, count: int) -> int:
    """Wrong answers on moved sequences, all of them inside the balls."""
    asked = moved(net, task, radius, count, np.random.default_rng(1))
    before = task.vectors[np.random.default_rng(1).integers(len(task.vectors), size=count)]
    assert inside(before, asked.vectors, radius)
    return int((evaluate(net, asked.inputs) != asked.labels).sum())


CASES = [("kajitsuka-sato-2025", NEXT), ("kajitsuka-sato-2025", SEQ), ("vardi-2022", POINTS)]


@pytest.mark.parametrize(("construction", "task"), CASES, ids=["next-token", "seq-to-seq", "points"])
def test_the_claim_is_tight(construction: str, task: NextToken) -> None:
    """What is stated is within a thousandth of what can be proved, and a hundredth beyond that an answer is wrong.

    Next-token networks may be right there all the same: tokens that have no code of their own can be read anyhow.
    """
    net = build(construction, task, read="cells").network
    stated = net.about["radius"]
    provable = provable_radius(net, task.inputs, stated)
    assert stated <= provable * 1.0001 <= stated * 1.002
    assert wrong(net, task, stated, 500) == 0
    beyond = wrong(net, task, provable * 1.01, 2000)
    assert beyond > 0 or task is NEXT


@pytest.mark.slow
@pytest.mark.parametrize(("construction", "task"), CASES, ids=["next-token", "seq-to-seq", "points"])
@pytest.mark.parametrize("share", [None, 0.125])
def test_ten_thousand_points(construction: str, task: NextToken, share: float | None) -> None:
    from byheart.tasks import separation

    radius = None if share is None else share * separation(task).delta
    net = build(construction, task, read="cells", radius=radius).network
    assert wrong(net, task, net.about["radius"], 10_000) == 0


def test_moved_points_of_networks_that_read_floats_are_wrong() -> None:
    """The control: tokens moved by 1e-12 are strangers to a network that reads them bit by bit."""
    net = build("kajitsuka-sato-2025", SEQ).network
    assert wrong(net, SEQ, 1e-12, 200) > 100
    assert unproved(net, SEQ.inputs, 1e-12).all()


def test_inside_is_exact() -> None:
    assert inside(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), 5.0)
    assert not inside(np.zeros((1, 1)), np.ones((1, 1)), 0.9)


def test_token_ids_do_not_move() -> None:
    task = random_next_token(examples=5, length=3, vocab=6, labels=2, rng=np.random.default_rng(0))
    with pytest.raises(BadInput, match="vectors can move; the task has token ids"):
        moved(build("kajitsuka-sato-2025", task).network, task, 0.1, 1, np.random.default_rng(0))
