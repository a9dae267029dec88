"""How many answers are right: counted for every kind of network, named, and not to be lied about."""

import csv
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import Certificate, certify, controls, judge, read, recheck, write
from byheart.certificates.certificate import MOST_BYTES
from byheart.certificates.claim import Claim, sentence
from byheart.certificates.counting import Count, ranges
from byheart.certificates.judges import asked
from byheart.certificates.verdict import Outcomes, Verdict, tallied
from byheart.errors import BadInput
from byheart.networks import load
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
from byheart.networks.softmax import SoftmaxNetwork
from byheart.networks.transformer.spec import Spec
from byheart.networks.transformer.transformer_network import from_arrays
from byheart.tasks import NextToken, NextTokenDistribution, QueryLabels, QueryTargets, SeqToSeq

from ..networks.softmax.small import drawn, one_head

FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"
KINDS = {
    "folding": "next.jsonl",
    "kajitsuka-sato-2024": "seq.jsonl",
    "kajitsuka-sato-2025": "vectors.npz",
    "causal": "causal.jsonl",
    "dana-2025": "next.jsonl",
    "mahdavi-2024": "labels.npz",
    "facts": "next.jsonl",
    "short": "a.txt",
}
"""Networks of every kind, next-token and seq-to-seq, tasks and texts, with what they answer."""


def double(outputs: str = "last", length: int = 1) -> ExactNetwork:
    """Twice the token."""
    chain = FeedForward((Affine(W=integers([[2]]), b=integers([0])),))
    return ExactNetwork((chain,), inputs="tokens", outputs=outputs, length=length)


SIX = NextToken(tokens=[[0], [1], [2], [3], [4], [5]], labels=[0, 9, 4, 9, 9, 10], label_count=11)
"""Twice the token is wrong of examples 1, 3 and 4."""


# ── By hand ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_three_of_six() -> None:
    found = certify(double(), SIX, count=True)
    assert found.certified
    assert (found.checked, found.right, found.errors, found.undecided, found.smallest_margin) == (6, 3, 3, 0, None)
    digest = hashlib.sha256(b"rwrwwr").hexdigest()
    assert found.count == Count(right=3, named_wrong="1, 3-4", named_undecided="", digest=digest)
    exactly = (
        "The network's output equals the label for exactly 3 of 6 sequences of the task, as exact rational numbers."
    )
    assert found.statement == exactly
    assert found.summary.startswith("3 of 6 answers right, 3 wrong, 0 undecided, exact")
    assert repr(found).startswith("<Certificate: count certified: 3 of 6 answers right, ")
    assert found.others == ["wrong: 1, 3–4"]
    assert "count certified: 3 of 6 answers right" in found._repr_html_()
    assert "<br>wrong: 1, 3–4<br>" in found._repr_html_()
    assert not certify(double(), SIX).certified
    assert certify(double(), SIX).count is None


def test_positions_are_counted_one_by_one() -> None:
    task = SeqToSeq(tokens=[[0, 1], [2, 3], [1, 0]], labels=[[0, 2], [4, 7], [1, 0]])
    found = certify(double("every", 2), task, count=True)
    assert (found.right, found.checked, found.examples) == (4, 6, 3)
    assert found.count is not None
    assert found.count.named_wrong == "3-4"
    assert found.others == ["wrong: 3–4 (answer i: position i mod 2 of example i // 2)"]
    assert "exactly 4 of 6 positions of the task" in found.statement


def test_equal_questions_are_one() -> None:
    """Examples 0 and 1 end alike, in the one token that the network sees: questions are not examples, which is said."""
    task = NextToken(tokens=[[0, 1], [2, 1], [0, 2]], labels=[1, 1, 2], label_count=3, vocab=3)
    one, spec = np.eye(3, dtype=np.float32), Spec(3, 3, 1, 3, "float32", (0, 1, 2), (0, 1, 2), ())
    tensors = {"embedding.W_E": one, "unembedding.W_U": one, "unembedding.b_U": np.zeros(3, np.float32)}
    network = from_arrays(spec, tensors)
    assert certify(network, task, count=True).checked == 2
    found = certify(network, task.with_labels([1, 1, 0]), count=True)
    assert (found.certified, found.right, found.stands_for) == (True, 1, 3)
    assert found.others == ["wrong: 1 (questions, in the order in which they are first asked)"]


def test_what_is_undecided_is_neither() -> None:
    """Logits of one irrational number each: the first two examples tie, the third is clear, the fourth is wrong."""
    network = one_head(W_U=[1.0, 1.0, 0.5])
    task = QueryLabels(contexts=[[1.0], [0.0]], queries=[[-1.0], [-2.0], [1.0]], labels=[0, 1, 2], label_count=3)
    found = certify(network, task, count=True)
    assert not found.certified
    assert (found.right, found.errors, found.undecided) == (0, 1, 2)
    assert found.count is not None
    assert (found.count.right, found.count.named_wrong, found.count.named_undecided) == (0, "2", "0-1")
    assert (
        found.statement
        == "The label's logit is the largest for at least 0 and at most 2 of 3 examples, as real numbers."
    )
    assert found.summary.startswith("from 0 to 2 of 3 answers right, 1 wrong, 2 undecided, ball arithmetic")
    assert repr(found).startswith("<Certificate: count NOT certified: ")
    assert found.others == ["wrong: 2", "undecided: 0–1"]


def test_a_tie_is_wrong() -> None:
    task = QueryLabels(contexts=[[[1.0]], [[-1.0]]], queries=[[1.0], [1.0]], labels=[0, 2], label_count=3)
    found = certify(one_head(W_U=[1.0, 1.0, 2.0]), task.with_answers([2, 0]), count=True)
    assert found.certified
    assert (found.right, found.errors) == (1, 1)
    verdict = judge(one_head(W_U=[1.0, 1.0, 2.0]), task.with_answers([2, 0]), count=True)
    assert verdict.counterexample is not None
    assert verdict.counterexample.got == "a tie with 1", "not the label itself"


# ── Every kind ──────────────────────────────────────────────────────────────────────────────────────────────────────


def changed_at(questions: Any, places: list[int]) -> Any:
    """The questions with other labels for these answers."""
    labels = questions.answers.copy()
    labels.flat[places] = (labels.flat[places] + 1) % questions.label_count
    return questions.with_answers(labels)


def check_kind(name: str, file: str) -> None:
    network = load(FIXTURES / name)
    questions = asked(network, FIXTURES / file)
    answers = questions.answers.size
    places = sorted({0, 1, answers // 2, answers - 1})
    everything, some = (certify(network, each, count=True) for each in (questions, changed_at(questions, places)))
    assert (everything.certified, everything.right, everything.errors) == (True, answers, 0)
    assert everything.count is not None
    assert (everything.count.named_wrong, everything.others) == ("", [])
    assert (some.certified, some.checked, some.right, some.undecided) == (True, answers, answers - len(places), 0)
    assert some.count is not None
    assert some.count.named_wrong == ranges(np.array(places))
    assert f"exactly {some.right:,} of {answers:,} " in some.statement
    enough, more = (certify(network, changed_at(questions, places), at_least=some.right + k) for k in (0, 1))
    assert (enough.certified, more.certified) == (True, False)
    assert enough.count is None
    assert f"at least {some.right:,} of {answers:,} " in enough.statement


@pytest.mark.parametrize(("name", "file"), KINDS.items())
def test_so_many_changed_so_many_wrong(name: str, file: str) -> None:
    check_kind(name, file)


@pytest.mark.slow
def test_stock_llamas_too() -> None:
    pytest.importorskip("transformers")
    check_kind("llama-facts", "next.jsonl")


def test_with_a_radius_right_is_what_is_right_nearby() -> None:
    """The step, 0 below 0 and 1 from ¼ on: right near −1 and 1, in doubt near 0.3, wrong at 2."""
    step = FeedForward((Affine(integers([[4], [4]]), integers([0, -1])), Affine(integers([[1, -1]]), integers([0]))))
    network = ExactNetwork((step,), inputs="vectors", outputs="last", length=1)
    task = NextToken(vectors=[[[-1.0]], [[1.0]], [[0.3]], [[2.0]]], labels=[0, 1, 1, 0])
    found = certify(network, task, count=True, radius=0.25)
    assert (found.certified, found.right, found.errors, found.undecided) == (False, 2, 1, 1)
    assert found.count is not None
    assert (found.count.named_wrong, found.count.named_undecided) == ("3", "2")
    near = certify(network, task, count=True, radius=0.03125)
    assert (near.certified, near.right, near.radius) == (True, 3, 0.03125)
    assert "for exactly 3 of 4 sequences of the task" in near.statement
    assert near.statement.endswith("So it does wherever every vector is moved by at most 0.03125.")


@given(st.sampled_from(["shared", "skip", "units"]), st.integers(0, 2**32), st.data())
@settings(deadline=None, max_examples=25)
def test_what_is_counted_is_the_argmax(kind: str, seed: int, data: st.DataObject) -> None:
    """Random softmax networks, whose logits float64 tells apart by far: the count is that of the largest."""
    from byheart.networks.softmax import evaluate

    network, inputs = drawn(kind, seed=seed)
    logits = np.asarray(evaluate(network, inputs))
    top = np.sort(logits, axis=1)
    labels = data.draw(st.lists(st.integers(0, logits.shape[1] - 1), min_size=len(logits), max_size=len(logits)))
    clear = bool((top[:, -1] - top[:, -2] > 1e-9).all())
    if kind == "shared":
        assert inputs[1] is not None
        task: Any = QueryLabels(contexts=inputs[0][0], queries=inputs[1], labels=labels, label_count=logits.shape[1])
    else:
        task = NextToken(tokens=inputs[0], labels=labels, label_count=logits.shape[1], vocab=6)
    found = certify(network, task, count=True)
    right = logits.argmax(axis=1) == labels
    if clear:
        assert found.certified
        assert found.count is not None
        assert (found.right, found.count.named_wrong) == (right.sum(), ranges(np.flatnonzero(~right)))


@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=6), st.data())
@settings(deadline=None, max_examples=25)
def test_ties_included(logits: list[list[int]], data: st.DataObject) -> None:
    """One token each, so that logits are what the table says, without any radius: ties too are decided, and wrong."""
    labels = data.draw(st.lists(st.integers(0, 2), min_size=len(logits), max_size=len(logits)))
    network = SoftmaxNetwork(
        W_E=np.array(logits, dtype=np.float64),
        W_pos=np.zeros((1, 3)),
        W_Q=np.zeros((1, 3, 1)),
        W_K=np.zeros((1, 3, 1)),
        W_V=np.eye(3)[None],
        W_O=np.eye(3)[None],
    )
    task = NextToken(np.arange(len(logits))[:, None], labels, label_count=3, vocab=len(logits))
    right = [sorted(row)[-2] < row[label] == max(row) for row, label in zip(logits, labels, strict=True)]
    found = certify(network, task, count=True)
    assert found.certified
    assert found.right == sum(right)
    for asking in range(1, len(logits) + 1):
        assert certify(network, task, at_least=asking).certified is (asking <= sum(right))


# ── What cannot be counted ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("option", [{"count": True}, {"at_least": 1}])
def test_real_numbers_are_not_counted(option: dict[str, Any]) -> None:
    message = f"^{next(iter(option))} is for labels, which are right or wrong; the task asks for real numbers$"
    targets = QueryTargets(contexts=[[1.0]], queries=[[1.0]], targets=[1.0])
    with pytest.raises(BadInput, match=message):
        certify(one_head(), targets, **option)
    distribution = NextTokenDistribution(tokens=[[0]], probabilities=[[0.5, 0.5]], vocab=2)
    network = SoftmaxNetwork(
        **{name: np.ones((1, 1, 1)) for name in ("W_Q", "W_K", "W_V", "W_O")},
        W_E=np.ones((2, 1)),
        W_pos=np.zeros((1, 1)),
        W_U=np.ones((1, 2)),
    )
    with pytest.raises(BadInput, match=message):
        certify(network, distribution, **option)


def test_options_that_do_not_go_together() -> None:
    with pytest.raises(BadInput, match=r"^count and at_least = 2 are given; expected one of them: a count says more$"):
        certify(double(), SIX, count=True, at_least=2)
    with pytest.raises(BadInput, match=r"^at_least is 7; expected from 1 to 6, the number of answers$"):
        certify(double(), SIX, at_least=7)
    with pytest.raises(BadInput, match=r"^named is a file for the answers that a count names; expected count too$"):
        certify(double(), SIX, named="wrong.csv")


@pytest.mark.parametrize("name", ["equals label", "rounds to label", "largest logit", "near target", "same network"])
def test_every_claim_about_answers_says_of_how_many(name: Any) -> None:
    claim = Claim(name, "as real numbers", tolerance=0.5)
    counts = {"checked": 6, "right": 4}
    assert "4 of 6 examples" in sentence(replace(claim, exactly=True), **counts)
    assert "at least 3 of 6 examples" in sentence(replace(claim, at_least=3), **counts)
    assert "at least 4 and at most 5 of 6" in sentence(replace(claim, exactly=True), **counts, undecided=1)


# ── Names ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.sets(st.integers(0, 60)), st.integers(1, 8))
def test_ranges_are_those_numbers(numbers: set[int], most: int) -> None:
    """Written out again: all of them, each once, in order, in as few ranges as there can be."""

    def written(text: str) -> list[int]:
        pairs = [part.split("-") for part in text.split(", ")] if text else []
        return [number for pair in pairs for number in range(int(pair[0]), int(pair[-1]) + 1)]

    increasing = np.array(sorted(numbers), dtype=np.int64)
    text = ranges(increasing)
    assert written(text) == sorted(numbers)
    assert len(text.split(", ")) == max(1, sum(number - 1 not in numbers for number in numbers))
    short, _, more = ranges(increasing, most=most).partition(" and ")
    assert [*written(short)] == sorted(numbers)[: len(written(short))]
    assert len(written(short)) + int(more.removesuffix(" more") or 0) == len(numbers)


def test_a_million_answers_fit(tmp_path: Path) -> None:
    """Every other one wrong, as many ranges as there can be: the first are named, the digest covers all."""
    codes = np.arange(10**6, dtype=np.int64).astype(np.uint8) % 2
    count = Count.of(codes)
    assert (count.right, count.named_wrong.endswith(", 8191 and 495904 more")) == (500_000, True)
    write(replace(certify(double(), SIX, count=True), count=count), tmp_path / "c.json")
    assert (tmp_path / "c.json").stat().st_size < MOST_BYTES // 2
    assert read(tmp_path / "c.json").count == count
    codes[-1] = 0
    assert Count.of(codes).digest != count.digest


def test_all_of_them_in_a_file(tmp_path: Path) -> None:
    certify(double(), SIX, count=True, named=tmp_path / "wrong.csv")
    with (tmp_path / "wrong.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["example"], row["position"], row["outcome"]) for row in rows] == [
        ("1", "", "wrong"),
        ("3", "", "wrong"),
        ("4", "", "wrong"),
    ]
    assert [(row["expected"], row["got"]) for row in rows] == [("9", "2"), ("9", "6"), ("9", "8")]


def test_what_the_file_says_of_doubt(tmp_path: Path) -> None:
    task = QueryLabels(contexts=[[1.0], [0.0]], queries=[[-1.0]], labels=[0], label_count=2)
    certify(one_head(W_U=[1.0, 1.0]), task, count=True, named=str(tmp_path / "open.csv"))
    assert (tmp_path / "open.csv").read_text().splitlines()[1] == '0,,undecided,0,"0, in doubt"'


def test_what_is_tallied_is_what_is_there() -> None:
    verdict = judge(double(), SIX)
    assert verdict.outcomes is not None
    assert verdict.outcomes.codes.tolist() == [0, 1, 0, 1, 1, 0]
    nothing = Verdict(
        claim=Claim("equals label"), method="m", seconds=0.0, **tallied(Outcomes(np.zeros(0, np.uint8), str))
    )  # type: ignore[arg-type]
    assert (nothing.checked, nothing.certified, nothing.counterexample) == (0, False, None)
    assert not replace(nothing, claim=replace(nothing.claim, exactly=True)).certified, "nothing asked is nothing proved"
    told = verdict.as_json()
    assert (told["certified"], told["counterexample"]["example"]) == (False, 1)
    assert json.loads(json.dumps(told))["errors"] == 3


# ── Lies ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def counted(**changes: object) -> Certificate:
    """The true count of three in six, with something changed."""
    true = certify(double(), SIX, count=True)
    assert true.count is not None
    inside = {
        name: changes.pop(name) for name in ("right", "named_wrong", "named_undecided", "digest") if name in changes
    }
    return replace(true, count=replace(true.count, **inside), **changes)


def test_the_truth_is_affirmed(tmp_path: Path) -> None:
    write(counted(), tmp_path / "c.json")
    assert read(tmp_path / "c.json") == counted(seconds=read(tmp_path / "c.json").seconds)
    again = recheck(tmp_path / "c.json", double(), SIX, count=True)
    assert (again.certified, again.right) == (True, 3)


LIES: dict[str, dict[str, object]] = {
    "more right": {"right": 4},
    "more right, consistently": {"right": 4, "errors": 2, "named_wrong": "3-4"},
    "all right": {"right": 6, "errors": 0, "named_wrong": "", "counterexample": None},
    "fewer right": {"right": 2, "errors": 4, "named_wrong": "1, 3-5"},
    "names that are not wrong": {"named_wrong": "0, 3-4"},
    "names that overlap": {"named_wrong": "1-1, 3-4, 4"},
    "the same name twice": {"named_wrong": "1, 1, 3-4"},
    "names out of range": {"named_wrong": "1, 3-600"},
    "negative names": {"named_wrong": "-1, 3-4"},
    "a range of all numbers": {"named_wrong": "1, 3-99999999999999999999999999"},
    "fewer names than errors": {"named_wrong": "1"},
    "more names than errors": {"errors": 2},
    "other spaces": {"named_wrong": "1,3-4"},
    "not a number": {"named_wrong": "NaN"},
    "names of a megabyte": {"named_wrong": "1, " * 200_000},
    "certified, and undecided": {"right": 2, "undecided": 1, "errors": 3, "named_undecided": "5"},
    "undecided ones that are right": {"named_undecided": "0"},
    "another digest": {"digest": "0" * 64},
    "fewer examples": {"examples": 5},
    "fewer answers": {"checked": 5},
    "at least so many": {"at_least": 4},
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_refused(tmp_path: Path, lie: str) -> None:
    write(counted(**LIES[lie]), tmp_path / "c.json")
    with pytest.raises(BadInput, match=r"c\.json: (claims|names other answers) "):
        recheck(tmp_path / "c.json", double(), SIX, count=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("right", 3.0), ("right", True), ("right", None), ("right", float("nan")), ("right", 10**30),
        ("named_wrong", [1, 3, 4]), ("named_wrong", 1), ("named_wrong", "x" * MOST_BYTES), ("digest", 7), ("more", 1),
    ],
)  # fmt: skip
def test_counts_that_are_none(tmp_path: Path, name: str, value: object) -> None:
    told = counted().as_json()
    told["count"][name] = value  # type: ignore[index]
    (tmp_path / "c.json").write_text(json.dumps(told))
    with pytest.raises(BadInput, match=r"c\.json: not a certificate"):
        recheck(tmp_path / "c.json", double(), SIX, count=True)


@pytest.mark.parametrize("count", [3, [], {}, {"right": 3}, "1, 3-4", False])
def test_objects_that_are_no_counts(tmp_path: Path, count: object) -> None:
    (tmp_path / "c.json").write_text(json.dumps({**counted().as_json(), "count": count}))
    with pytest.raises(BadInput, match=r"c\.json: not a certificate"):
        read(tmp_path / "c.json")


def test_a_count_is_not_taken_for_all_right(tmp_path: Path) -> None:
    """Neither way: a count has to be asked for again, and "all are right" is not affirmed by having counted."""
    path = tmp_path / "c.json"
    write(counted(), path)
    with pytest.raises(
        BadInput, match=r"c\.json: says how many answers are right, and not that all are: give --count$"
    ):
        recheck(path, double(), SIX)
    with pytest.raises(BadInput, match=r"give --count$"):
        recheck(path, double(), SIX, at_least=3)
    write(replace(counted(), count=None), path)
    assert not recheck(path, double(), SIX).certified
    with pytest.raises(BadInput, match=r"claims 6 answers right; there are 3$"):
        recheck(path, double(), SIX, count=True)
    write(certify(double(), SIX, at_least=3), path)
    assert recheck(path, double(), SIX, count=True).certified, "a count of three proves at least three"
    write(replace(certify(double(), SIX, at_least=3), at_least=4), path)
    with pytest.raises(BadInput, match=r"claims 4 answers right; there are 3$"):
        recheck(path, double(), SIX, count=True)


def test_at_least_so_many_are_no_more_than_are_right(tmp_path: Path) -> None:
    """Beside "at least three", that no answer is wrong; or fewer than none."""
    path = tmp_path / "c.json"
    for errors, claimed in ((0, 6), (2, 4), (-1, 7)):
        write(replace(certify(double(), SIX, at_least=3), errors=errors), path)
        for options in ({"at_least": 3}, {"count": True}):
            with pytest.raises(BadInput, match=rf"c\.json: claims {claimed} answers right; there are 3$"):
                recheck(path, double(), SIX, **options)


def test_what_is_not_decided_is_not_affirmed(tmp_path: Path) -> None:
    """A certificate that says that all was decided, of a tie that no bits tell."""
    network = one_head(W_U=[1.0, 1.0])
    task = QueryLabels(contexts=[[1.0], [0.0]], queries=[[-1.0]], labels=[0], label_count=2)
    true = certify(network, task, count=True)
    assert not true.certified
    for lie in (
        replace(true, certified=True),
        replace(true, certified=True, undecided=0, count=Count.of(np.zeros(1, np.uint8))),
    ):
        write(lie, tmp_path / "c.json")
        assert not recheck(tmp_path / "c.json", network, task, count=True).certified


# ── Controls ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["folding", "dana-2025", "facts", "kajitsuka-sato-2024"])
def test_lies_about_counts_are_found(name: str) -> None:
    network = load(FIXTURES / name)
    questions = changed_at(asked(network, FIXTURES / KINDS[name]), [0, 2])
    told = controls(network, questions, np.random.default_rng(0), count=True)
    assert [lie.found for lie in told] == [True, True]
    assert all("outcomes changed: " in lie.detail for lie in told)


def test_a_lie_that_changes_no_right_answer_need_not_show() -> None:
    """Nothing is right: whatever the answers, nothing is. Controls end, and say so."""
    told = controls(double(), SIX.with_labels([1, 3, 5, 7, 9, 1]), np.random.default_rng(0), count=True)
    assert told[0].found is None
    assert not told[0].possible


def test_a_column_that_cannot_be_shuffled_ends() -> None:
    """All that is right is in a column whose labels are alike; the other one varies, and is wrong."""
    task = SeqToSeq(tokens=[[0, 1], [0, 2]], labels=[[0, 7], [0, 9]])
    told = controls(double("every", 2), task, np.random.default_rng(0), count=True)
    assert told[0].found is None


def test_a_count_that_is_believed_of_a_lie_is_reported() -> None:
    """The same outcomes as the truth's: a judge that did not look."""
    truth = judge(double(), SIX, count=True)
    from byheart.certificates import Control

    assert Control("a lie", "", truth, truth=truth).found is False
    assert Control("no lie", "", truth, possible=False, truth=truth).found is None
