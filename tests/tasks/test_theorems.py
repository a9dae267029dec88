"""Each hypothesis of each theorem: it holds where it should, and fails with the example named where it should not."""

import numpy as np
import pytest

from byheart.constructions import CONSTRUCTIONS, find
from byheart.errors import BadInput
from byheart.tasks import NextToken, NextTokenDistribution, QueryTargets, SeqToSeq, Task, random_queries


def verdicts(theorem: str, task: Task) -> dict[str, tuple[str, str]]:
    return {row.name: (row.verdict, row.found) for row in find(theorem).check(task)}


def queries(examples: int = 6, length: int = 3, dim: int = 8, *, shared: bool = False) -> QueryTargets:
    rng = np.random.default_rng(0)
    task = random_queries(examples=examples, length=length, dim=dim, labels=None, shared=shared, rng=rng)
    assert isinstance(task, QueryTargets)
    return task


@pytest.mark.parametrize("shared", [True, False])
def test_few_random_queries_meet_all_of_mahdavi(shared: bool) -> None:
    """Six queries in eight dimensions are independent, so every three are."""
    found = verdicts("mahdavi-2024", queries(shared=shared))
    needed = {name: answer for name, (answer, _) in found.items() if "general position" not in name}
    assert set(needed.values()) == {"holds"}
    assert len(needed) == 4


@pytest.mark.slow
def test_many_queries_stay_open_and_the_estimate_is_called_one() -> None:
    answer, why = verdicts("mahdavi-2024", queries(examples=120, length=10, dim=16))["every n queries are independent"]
    assert answer == "undecided"
    assert why.startswith("every 3: all 280,840 subsets of size 3 are independent; every 10: ")
    assert "an estimate, not a proof" in why


def test_a_poor_context_is_named() -> None:
    task = queries()
    contexts = task.contexts.copy()
    contexts[4] = np.round(contexts[4] * 1024)
    contexts[4, 2] = 2 * contexts[4, 0] - contexts[4, 1]  # of whole numbers: exactly dependent
    poor = QueryTargets(contexts=contexts, queries=task.queries, targets=task.targets)
    assert verdicts("mahdavi-2024", poor)["every context has rank n"] == (
        "fails",
        "1 of 6 contexts, first example 4, of rank 2 instead of 3",
    )


def test_repeated_queries_fail() -> None:
    task = queries()
    asked = task.queries.copy()
    asked[5] = asked[1]
    answer, why = verdicts("mahdavi-2024", QueryTargets(contexts=task.contexts, queries=asked, targets=task.targets))[
        "every n queries are independent"
    ]
    assert answer == "fails"
    assert "1" in why
    assert "5" in why


def test_long_contexts_fail() -> None:
    assert verdicts("mahdavi-2024", queries(length=8))["n < d"] == ("fails", "n = 8, d = 8")


def test_two_answers_to_one_question_fail() -> None:
    task = QueryTargets(contexts=[[1.0, 0.0]], queries=[[1.0, 2.0], [1.0, 2.0]], targets=[0.5, 0.25])
    answer, why = verdicts("mahdavi-2024", task)["one answer to every context with its query"]
    assert answer == "fails"
    assert why.startswith("example 0 and example 1")


def test_dana() -> None:
    found = verdicts("dana-2025", NextToken(tokens=[[0], [1]], labels=[0, 1]))
    assert found["at least two tokens in a context"] == ("fails", "n = 1")
    found = verdicts("dana-2025", NextToken(tokens=[[0, 1], [2, 1]], labels=[0, 1]))
    assert found["contexts end in at least d different tokens"][0] == "fails"
    found = verdicts("dana-2025", NextToken(tokens=[[0, 1], [0, 1]], labels=[0, 1]))
    assert found["one answer to every context"][0] == "fails"


def test_madden() -> None:
    found = verdicts("madden-2024", NextTokenDistribution(tokens=[[0, 1]], probabilities=[[0.25, 0.75, 0.0]]))
    assert found["every probability is positive"] == ("fails", "1 of 3 are 0: approached, not reached")
    found = verdicts("madden-2024", NextTokenDistribution(tokens=[[0, 1]], probabilities=[[0.25, 0.75]]))
    assert found["every probability is positive"] == ("holds", "all are")


def test_kajitsuka_sato() -> None:
    found = verdicts("kajitsuka-sato-2025", NextToken(tokens=[[0, 1], [1, 0]], labels=[0, 1]))
    assert found["one answer to every sequence up to order"][0] == "fails"
    assert found["distinct up to permutation"][0] == "fails"
    assert found["token-wise (r, δ)-separated"][0] == "holds"


OTHERS: dict[str, Task] = {
    "mahdavi-2024": NextToken(tokens=[[0]], labels=[0]),
    "dana-2025": SeqToSeq(tokens=[[0]], labels=[[0]]),
    "madden-2024": NextToken(tokens=[[0]], labels=[0]),
    "kajitsuka-sato-2025": queries(),
    "kajitsuka-sato-2024": queries(),
    "kim-2023": queries(),
}


@pytest.mark.parametrize("theorem", [name for name, known in CONSTRUCTIONS.items() if known.hypotheses is not None])
def test_tasks_of_another_kind_are_refused(theorem: str) -> None:
    with pytest.raises(BadInput, match=rf"{theorem} is about .*; the task is {OTHERS[theorem].kind}"):
        find(theorem).check(OTHERS[theorem])


def test_unknown_theorems_are_refused() -> None:
    with pytest.raises(BadInput, match="no construction is called 'fermat'; there are interpolate, vardi-2022"):
        find("fermat").check(OTHERS["dana-2025"])


def test_a_token_twice_is_named_but_not_needed() -> None:
    """The paper of 2024 asks for sequences without one; Byheart's proof does not."""
    task = SeqToSeq(tokens=[[0, 1, 2], [3, 1, 3], [2, 2, 2]], labels=[[0, 1, 0], [1, 0, 1], [1, 1, 1]])
    rows = {row.name: row for row in find("kajitsuka-sato-2024").check(task)}
    twice = rows["no token twice in a sequence"]
    assert (twice.verdict, twice.needed) == ("fails", False)
    assert twice.found == "2 of 3 sequences have one, first example 1, 2 times"
    assert verdicts("kajitsuka-sato-2024", SeqToSeq(tokens=[[0, 1]], labels=[[0, 1]]))[twice.name][0] == "holds"
    assert twice.name not in verdicts("kim-2023", task)


@pytest.mark.parametrize("theorem", ["kim-2023", "kajitsuka-sato-2024"])
def test_equal_tokens_of_one_sequence_ask_for_one_label(theorem: str) -> None:
    task = SeqToSeq(tokens=[[0, 1, 0]], labels=[[0, 1, 2]])
    answer, found = verdicts(theorem, task)["one answer to every sequence up to order"]
    assert answer == "fails"
    assert "example 0, position 0 and example 0, position 2" in found


def test_forms_with_positions_and_causal_ones() -> None:
    """0 1 and 1 0 are the same up to order only; 0 2 begins as 0 1 does and wants another label there."""
    task = SeqToSeq(tokens=[[0, 1], [1, 0], [0, 2]], labels=[[0, 1], [2, 0], [3, 0]])
    for theorem in ("kim-2023", "kajitsuka-sato-2024", "kajitsuka-sato-2025"):
        plain, ordered = (find(theorem).check(task, positions=positions)[2] for positions in (False, True))
        assert (plain.name, plain.verdict) == ("one answer to every sequence up to order", "fails")
        assert (ordered.name, ordered.verdict) == ("one answer to every sequence", "holds")
    causal = find("kim-2023").check(task, causal=True)[2]
    assert (causal.name, causal.verdict) == ("one answer to every beginning of a sequence", "fails")
    assert "example 0, position 0 and example 2, position 0 have equal tokens up to there" in causal.found
    with pytest.raises(BadInput, match="kajitsuka-sato-2024 has no setting called 'causal'; it has positions, scale"):
        find("kajitsuka-sato-2024").check(task, causal=True)
    with pytest.raises(BadInput, match="dana-2025 has no setting called 'positions'; it has model_dim"):
        find("dana-2025").check(NextToken(tokens=[[0, 1]], labels=[0]), positions=True)
