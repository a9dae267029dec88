"""Corollary 2: some contexts held, the others guessed, and at least one in C of these right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byheart
from byheart.constructions.dana_2025 import associations
from byheart.constructions.gadgets.linear_system import BeyondCapacity
from byheart.errors import BadInput
from byheart.networks.softmax import evaluate
from byheart.tasks import NextToken, shuffled

from .small import built, distributions, labels, network_of, number


@pytest.mark.slow
def test_two_hundred_and_ten_of_two_thousand_five_hundred() -> None:
    """ω = 50, d = d_h = 10, H = 20, all contexts of two tokens: 1/50 + 49/50 · 210/2500 = .10232, so 256 at least."""
    task = labels(2500, 2, 50, 0)
    made = built(task, model_dim=10, head_dim=10, heads=20, hold=210)
    assert (made.chosen["held"], made.chosen["rank"], made.chosen["at_least"]) == (210, 210, 256)
    found = byheart.certify(made.network, task, at_least=256)
    assert found.certified
    assert (found.checked, found.at_least) == (2500, 256)
    right = found.checked - found.errors - found.undecided
    assert right >= made.chosen["right"] >= 256
    assert right / 2500 >= 1 / 50 + 49 / 50 * 210 / 2500
    assert not byheart.certify(made.network, task, at_least=right + 1).certified
    assert not byheart.certify(made.network, task).certified
    assert not byheart.certify(made.network, shuffled(task, np.random.default_rng(0)), at_least=256).certified


@settings(max_examples=15)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_random_shapes(data: st.DataObject, seed: int) -> None:
    """Every context held is right, and of the others one in C at least; in balls, not fewer than floats saw clearly."""
    vocab, length = data.draw(st.integers(6, 14), label="ω"), data.draw(st.integers(2, 3), label="n")
    d, H = data.draw(st.integers(2, 5), label="d"), data.draw(st.integers(1, 4), label="H")
    examples = data.draw(st.integers(min(H * d + d + vocab, vocab**2), vocab**2), label="N")
    task = labels(examples, length, vocab, seed)
    last = len(np.unique(task.inputs[:, -1]))
    hold = H * d + min(d, last)
    made = built(task, seed % 1000, model_dim=d, heads=H, hold=hold)
    promised = hold + -(-(examples - hold) // vocab)
    assert made.chosen["at_least"] == promised
    found = byheart.certify(made.network, task, at_least=promised)
    assert found.certified
    assert found.checked - found.errors - found.undecided >= made.chosen["right"]


def test_with_heads_to_spare_guesses_are_better() -> None:
    task = labels(100, 2, 10, 0)
    few, many = (built(task, model_dim=4, heads=heads, hold=20) for heads in (4, 40))
    assert number(few, "right") < number(many, "right") == 100


def test_examples_are_counted_and_not_contexts() -> None:
    """Each context twice: of 32 examples 2·6 are held, and a quarter of the other 20 are promised."""
    once = labels(16, 2, 4, 0)
    twice = NextToken(tokens=np.tile(once.inputs, (2, 1)), labels=np.tile(once.labels, 2), label_count=4, vocab=4)
    made = built(twice, model_dim=2, heads=2, hold=6)
    assert made.chosen["at_least"] == 12 + 5
    assert byheart.certify(made.network, twice, at_least=17).certified


def test_all_held_is_all_right() -> None:
    task = labels(16, 2, 4, 0)
    made = built(task, model_dim=2, hold=16)
    assert made.chosen["at_least"] == 16
    assert byheart.certify(made.network, task).certified


def test_those_held_end_in_as_many_tokens_as_there_are() -> None:
    """All but four of 60 contexts end in token 0: five that are held end in five tokens, as d = 5 needs."""
    tokens = np.array([[i // 10, i % 10, 0] for i in range(56)] + [[0, 0, last] for last in range(1, 5)])
    task = NextToken(tokens=tokens, labels=np.arange(60) % 10, label_count=10, vocab=10)
    made = built(task, model_dim=5, heads=2, hold=15)
    right = evaluate(network_of(made), (tokens, None)).argmax(axis=1) == task.labels
    assert right[56:].all()


def test_refusals() -> None:
    task = labels(16, 2, 4, 0)
    for hold in (0, 17, -1):
        with pytest.raises(BadInput, match=f"^hold is {hold}; expected from 1 to all 16 different contexts$"):
            built(task, hold=hold)
    with pytest.raises(BeyondCapacity, match="7 contexts have rank 6; expected 7"):
        built(task, model_dim=2, heads=2, hold=7)
    with pytest.raises(BadInput, match=r"^hold is 3; expected none: it is for labels, distributions have epsilon$"):
        built(distributions(16, 2, 4, 0), hold=3)


def test_a_promise_that_no_draw_keeps_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that is taken by its smallest logits: not even those held are right."""
    monkeypatch.setattr(associations, "MOST_ROUNDS", 2)
    monkeypatch.setattr(associations, "evaluate", lambda network, inputs: -evaluate(network, inputs))
    message = r"^dana-2025: no draw answers 9 of 16 examples right; take another --seed$"
    with pytest.raises(BadInput, match=message):
        built(labels(16, 2, 4, 0), model_dim=2, heads=2, hold=6)
