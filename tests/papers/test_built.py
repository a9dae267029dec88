"""Networks that were certified: built ones as accurate as Corollary 2 promises, and less so than trained ones."""

from statistics import mean

import pytest

from byheart.bounds.dana_2025 import capacity, sufficient
from byheart.errors import BadInput
from byheart.papers.dana_2025 import lower_bound
from byheart.papers.results import built, table


def test_the_promise_is_kept_everywhere() -> None:
    rows = built("dana_2025")
    assert len(rows) == 92
    for row in rows:
        vocab, d, d_h, H = (int(row[name]) for name in ("vocab", "model_dim", "head_dim", "heads"))
        assert row["held"] == capacity(H, d_h, d)
        assert row["accuracy"] == row["right"] / vocab**2 >= lower_bound(vocab, int(row["held"]))
        assert row["parameters"] == sufficient(int(row["held"]), 2, vocab, d, d_h)


def test_training_reaches_more() -> None:
    """ω = 50, d = d_h = 10, H = 20: 210 of 2,500 and some guesses, where training has three quarters."""
    [row] = [one for one in built("dana_2025") if (one["model_dim"], one["head_dim"], one["heads"]) == (10, 10, 20)]
    assert 0.1023 <= row["accuracy"] < 0.12
    trained = mean(one["accuracy"] for one in table("dana-2025-2") if one["head_dim"] == 10)
    assert 0.7 < trained < 0.8


def test_what_is_held() -> None:
    """Proved is what was measured; more than is built, which is what is promised and some guesses."""
    rows = built("held")
    assert [row["heads"] for row in rows] == [1, 6, 11, 16, 20, 21, 26, 31]
    for row in rows:
        vocab, d, d_h, H = (int(row[name]) for name in ("vocab", "model_dim", "head_dim", "heads"))
        assert (vocab, d, d_h, row["examples"], row["seed"]) == (50, 10, 10, vocab**2, 0)
        assert row["parameters"] == sufficient(capacity(H, d_h, d), 2, vocab, d, d_h)
        assert row["measured"] == row["right"] <= row["examples"]
        promised = lower_bound(vocab, capacity(H, d_h, d)) * row["examples"]
        assert max(promised, row["constant"]) <= row["built"] < row["right"]


def test_an_unknown_table() -> None:
    with pytest.raises(BadInput, match="'mahdavi'; expected dana_2025 or capacity or held"):
        built("mahdavi")
