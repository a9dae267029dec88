"""One row a construction: numbers where it could, the reason where it could not."""

import numpy as np

from byheart.constructions import CONSTRUCTIONS, build
from byheart.report.compare import compare
from byheart.tasks import NextToken, SeqToSeq, random_next_token, random_seq_to_seq

TASK = random_next_token(examples=60, length=3, vocab=30, labels=4, rng=np.random.default_rng(0))


def test_all_rows() -> None:
    heard: list[str] = []
    rows = compare(TASK, seed=5, report=heard.append)
    assert heard == list(CONSTRUCTIONS)
    assert {row.construction for row in rows} == set(CONSTRUCTIONS)
    compared = [row.parameters - row.embedding for row in rows]
    assert compared == sorted(compared)
    for row in rows:
        account = build(row.construction, TASK, seed=5).account
        assert (row.parameters, row.embedding) == (account.dense, account.embedding)
        assert (row.nonzero, row.max_bits, row.total_bits) == (account.nonzero, account.max_bits, account.total_bits)
        assert (row.depth, row.width) == (account.depth, account.width)
        assert row.certified is True
        assert row.checked == 60
        assert row.note == ""
        assert row.build_seconds > 0
        assert row.certify_seconds > 0


def test_a_refusal_is_a_row_and_stands_last() -> None:
    rows = compare(random_seq_to_seq(examples=10, length=3, vocab=30, labels=4, rng=np.random.default_rng(0)))
    assert [row.certified for row in rows] == [True, True, True, None]
    assert rows[-1].construction == "vardi-2022"
    assert rows[-1].parameters is None
    assert "vardi-2022 memorizes points" in rows[-1].note
    assert rows[0].checked == 30


def test_twins_need_positions() -> None:
    task = NextToken(tokens=[[0, 1], [1, 0]], labels=[0, 1])
    plain = {row.construction: row for row in compare(task)}
    assert plain["vardi-2022"].certified
    for name in ("folding", "interpolate", "kajitsuka-sato-2025"):
        assert plain[name].certified is None
        assert "--positions makes order matter" in plain[name].note
    assert all(row.certified for row in compare(task, positions=True))


def test_everything_may_refuse() -> None:
    rows = compare(SeqToSeq(tokens=[[0], [0]], labels=[[0], [1]]))
    assert [row.parameters for row in rows] == [None] * 4
    assert all("example 0, position 0 and example 1, position 0" in row.note for row in rows)
