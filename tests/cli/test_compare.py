"""One row a construction: numbers where it could, the reason where it could not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart.cli.compare import compare
from byheart.constructions import CONSTRUCTIONS, build
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, Flatten, integers
from byheart.networks.softmax import SoftmaxNetwork
from byheart.tasks import (
    NextToken,
    SeqToSeq,
    Task,
    random_distribution,
    random_next_token,
    random_queries,
    random_seq_to_seq,
    save,
)

from ..exact import EXACT

TASK = random_next_token(examples=60, length=3, vocab=30, labels=4, rng=np.random.default_rng(0))
OTHER_TASKS = {
    "mahdavi-2024": "mahdavi-2024 memorizes contexts with queries (query-labels, query-targets)",
    "madden-2024": "madden-2024 memorizes next-token and next-token-distribution tasks over token ids",
}
"""What the constructions that are not for labels of sequences say to them."""


def test_all_rows() -> None:
    heard: list[str] = []
    rows = compare(TASK, seed=5, report=lambda done, total, name: heard.append(name))
    assert heard == list(CONSTRUCTIONS)
    assert {row.construction for row in rows} == set(CONSTRUCTIONS)
    *built, refused = rows
    assert {row.construction for row in built} == {*EXACT, "dana-2025", "madden-2024"}
    assert refused.note == f"{OTHER_TASKS['mahdavi-2024']}; the task is next-token"
    assert (refused.parameters, refused.certified) == (None, None)
    compared = [row.parameters - row.embedding for row in built]
    assert compared == sorted(compared)
    for row in built:
        account = build(row.construction, TASK, seed=5).account
        assert (row.parameters, row.embedding) == (account.dense, account.embedding)
        assert (row.nonzero, row.max_bits, row.total_bits) == (account.nonzero, account.max_bits, account.total_bits)
        assert (row.depth, row.width) == (account.depth, account.width)
        assert row.certified is True
        assert row.checked == 60
        assert row.note == ""
        assert row.build_seconds > 0
        assert row.certify_seconds > 0


def test_a_network_that_is_given_is_counted() -> None:
    """One that answers 0 whatever it is asked: right at the examples that ask for 0, by hand, and at no others."""
    zero = FeedForward((Affine(integers([[0] * 3]), integers([0])),))
    network = ExactNetwork((Flatten(), zero), inputs="tokens", outputs="last", length=3)
    rows = compare(TASK, networks={"mine": network})
    (mine,) = [row for row in rows if row.is_from_elsewhere]
    assert mine is rows[0], "the smallest"
    assert (mine.construction, mine.parameters, mine.build_seconds, mine.lower) == ("mine", 4, None, None)
    assert (mine.certified, mine.checked, mine.right) == (True, 60, int((TASK.labels == 0).sum()))
    assert 0 < mine.right < 60
    assert all(row.right == 60 for row in rows[1:-1])
    again = compare(TASK.with_labels([0] * 60), networks={"mine": network})[0]
    assert (again.construction, again.right) == ("mine", 60)


def test_a_network_for_another_task_refuses_it() -> None:
    one = np.full((1, 1, 1), 0.1)
    network = SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=one)
    (refused,) = [row for row in compare(TASK, networks={"mine": network}) if row.construction == "mine"]
    assert (refused.parameters, refused.certified, refused.is_from_elsewhere) == (None, None, False)
    assert refused.note.startswith("mine: ")


def test_a_refusal_is_a_row_and_stands_last() -> None:
    rows = compare(random_seq_to_seq(examples=10, length=3, vocab=30, labels=4, rng=np.random.default_rng(0)))
    assert [row.certified for row in rows] == [True] * 5 + [None] * 5
    assert {row.construction for row in rows[:5]} == {*EXACT} - {"vardi-2022", "yang-2026"}
    notes = {row.construction: row.note for row in rows[5:]}
    assert list(notes) == ["vardi-2022", "yang-2026", "mahdavi-2024", "dana-2025", "madden-2024"]
    assert [row.parameters for row in rows[5:]] == [None] * 5
    assert "vardi-2022 memorizes points" in notes["vardi-2022"]
    what = "next-token and next-token-distribution tasks over token ids"
    assert notes["dana-2025"] == f"dana-2025 memorizes {what}; the task is seq-to-seq"
    assert all(notes[name] == f"{what}; the task is seq-to-seq" for name, what in OTHER_TASKS.items())
    assert rows[0].checked == 30


def test_twins_need_positions() -> None:
    task = NextToken(tokens=[[0, 1], [1, 0]], labels=[0, 1])
    plain = {row.construction: row for row in compare(task)}
    assert plain["vardi-2022"].certified
    assert plain["dana-2025"].certified, "it always has positions"
    for name in ("folding", "interpolate", "kajitsuka-sato-2024", "kajitsuka-sato-2025", "kim-2023"):
        assert plain[name].certified is None
        assert "--positions makes order matter" in plain[name].note
    ordered = {row.construction: row.certified for row in compare(task, positions=True)}
    assert ordered == dict.fromkeys([*EXACT, "dana-2025", "madden-2024"], True) | {"mahdavi-2024": None}


def test_everything_may_refuse() -> None:
    rows = compare(SeqToSeq(tokens=[[0], [0]], labels=[[0], [1]]))
    assert [row.parameters for row in rows] == [None] * len(CONSTRUCTIONS)
    notes = {row.construction: row.note for row in rows}
    assert all("example 0, position 0 and example 1, position 0" in notes[name] for name in EXACT)
    assert all("the task is seq-to-seq" in notes[name] for name in ("dana-2025", *OTHER_TASKS))


def test_distributions_are_for_two() -> None:
    task = random_distribution(examples=6, length=2, vocab=4, rng=np.random.default_rng(0))
    rows = compare(task)
    assert {row.construction for row in rows[:2]} == {"dana-2025", "madden-2024"}
    assert all(row.certified for row in rows[:2])
    notes = {row.construction: row.note for row in rows[2:]}
    assert set(notes) == {*EXACT, "mahdavi-2024"}
    assert all(notes[name].startswith(f"{name} memorizes") for name in notes)


def test_queries_are_for_one() -> None:
    task = random_queries(examples=5, length=3, dim=5, labels=4, rng=np.random.default_rng(0))
    first, *others = compare(task)
    assert (first.construction, first.certified, first.checked) == ("mahdavi-2024", True, 5)
    assert {row.construction for row in others} == {*CONSTRUCTIONS} - {"mahdavi-2024"}
    assert all("the task is query-labels" in row.note for row in others)


def test_what_the_papers_say_stands_beside() -> None:
    orders = {row.construction: row.published for row in compare(TASK)}
    assert orders["kajitsuka-sato-2025"] == "Õ(√N)"
    assert orders["kim-2023"] == orders["kajitsuka-sato-2024"] == "–", "they speak of seq-to-seq"
    assert orders["folding"] == "ours"
    tokens = random_seq_to_seq(examples=10, length=3, vocab=30, labels=4, rng=np.random.default_rng(0))
    orders = {row.construction: row.published for row in compare(tokens)}
    assert orders["kim-2023"] == "Õ(d + n + √(nN))"
    assert orders["kajitsuka-sato-2024"] == "O(d(2nN + d))"
    assert orders["kajitsuka-sato-2025"] == "Õ(√(nN))"


@pytest.mark.parametrize("kind", [NextToken, SeqToSeq])
@pytest.mark.parametrize("vocab", [2**53, 2**62, 2**63 - 1])
def test_token_ids_of_64_bits(work: Path, run: Callable[..., Any], kind: type[Task], vocab: int) -> None:
    """An embedding table of so many rows costs more parameters than 64 bits can count."""
    tokens = [[0, vocab - 1], [1, 2]]
    save(kind(tokens, [0, 1] if kind is NextToken else [[0, 1], [1, 2]]), work / "ids.npz")
    compared = run("compare", "--task", "ids.npz")
    assert compared.code == 0
    assert f"vocab is {vocab}; an embedding table can have" in " ".join(compared.out.split())
