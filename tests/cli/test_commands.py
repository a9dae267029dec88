"""Every command on its happy path, for people and as JSON."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart import networks
from byheart.bounds import BOUNDS, Letters, vc
from byheart.constructions import CONSTRUCTIONS
from byheart.networks import count
from byheart.networks.softmax import SoftmaxNetwork
from byheart.sizes import Size
from byheart.tasks import NextToken, NextTokenDistribution, SeqToSeq, load, random_distribution, random_queries, save

from ..exact import EXACT, SOFTMAX

Run = Callable[..., Any]
ACCOUNT = {"dense", "nonzero", "free", "max_bits", "total_bits", "depth", "width", "items"}
ITEM = {"name", "shape", "dense", "nonzero", "max_bits"}
CERTIFICATE = {"certified", "method", "checked", "examples", "counterexample", "seconds"}


# task


def test_task_random(work: Path, run: Run) -> None:
    said = run("task", "random", "--examples", 12, "--length", 5, "--vocab", 9, "--labels", 3, "-o", "r.npz")
    assert (said.code, said.err) == (0, "")
    assert "next-token" in said.out
    task = load("r.npz")
    assert (task.size.examples, task.size.length, task.size.vocab, task.size.labels) == (12, 5, 9, 3)


def test_task_random_json(work: Path, run: Run) -> None:
    said = run("task", "random", "--examples", 12, "--seed", 7, "-o", "r.jsonl", "--json")
    assert (said.code, said.err) == (0, "")
    assert said.json == {
        "file": "r.jsonl",
        "task": "next-token",
        "size": {"examples": 12, "length": 32, "labels": 10, "vocab": 200, "dim": None},
        "fingerprint": load("r.jsonl").fingerprint,
    }


@pytest.mark.parametrize(
    ("flags", "kind", "dim"),
    [
        (["--seq-to-seq"], SeqToSeq, None),
        (["--distribution"], NextTokenDistribution, None),
        (["--dim", "3"], NextToken, 3),
        (["--dim", "3", "--vocab", "None", "--shape", "neighbours"], NextToken, 3),
        (["--shape", "skewed"], NextToken, None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_task_random_kinds(work: Path, run: Run, flags: list[str], kind: type, dim: int | None) -> None:
    assert run("task", "random", "--examples", 10, "--length", 4, *flags, "-o", "r.npz").code == 0
    task = load("r.npz")
    assert isinstance(task, kind)
    assert task.size.dim == dim


def test_task_random_seeds(work: Path, run: Run) -> None:
    prints = [run("task", "random", "--seed", seed, "-o", "r.npz", "--json").json["fingerprint"] for seed in (1, 1, 2)]
    assert prints[0] == prints[1] != prints[2]


def test_task_show(work: Path, run: Run) -> None:
    said = run("task", "show", "t.npz")
    assert (said.code, said.err) == (0, "")
    for word in ("t.npz", "next-token", "token ids", "20", load("t.npz").fingerprint[:16]):
        assert word in said.out
    assert set(run("task", "show", "t.npz", "--json").json) == {"file", "task", "size", "fingerprint"}


def test_task_check(work: Path, run: Run) -> None:
    said = run("task", "check", "t.npz")
    assert (said.code, said.err) == (0, "")
    assert said.out.count("holds") == 3
    found = run("task", "check", "t.npz", "--json").json
    assert set(found) == {"memorizable", "separation", "permuted_twins", "conflict"}
    assert (found["memorizable"], found["permuted_twins"], found["conflict"]) == (True, None, None)


def test_task_check_finds_twins(work: Path, run: Run) -> None:
    """Exit code 1 where one question asks for two answers; with positions it does not."""
    save(NextToken(tokens=[[0, 1], [2, 2], [1, 0]], labels=[0, 0, 1]), "twins.npz")
    said = run("task", "check", "twins.npz")
    assert said.code == 1
    assert "fails" in said.out
    found = run("task", "check", "twins.npz", "--json")
    assert found.code == 1
    assert found.json["permuted_twins"] == [0, 2]
    assert found.json["memorizable"] is False
    assert "example 0 and example 2" in found.json["conflict"]
    ordered = run("task", "check", "twins.npz", "--positions", "--json")
    assert (ordered.code, ordered.json["memorizable"]) == (0, True)


def test_task_check_all_tokens_equal_is_json(work: Path, run: Run) -> None:
    """δ is infinite, which JSON does not know."""
    save(NextToken(tokens=[[3, 3]], labels=[0]), "one.npz")
    assert run("task", "check", "one.npz", "--json").json["separation"]["delta"] is None


# build


@pytest.mark.parametrize("name", EXACT)
def test_build(work: Path, run: Run, name: str) -> None:
    said = run("build", name, "--task", "t.npz", "-o", "net")
    assert (said.code, said.err) == (0, "")
    account = count(networks.load(work / "net"))
    assert f"{account.dense:,}" in said.out
    assert "byheart certify net --task t.npz" in said.out
    assert sorted(path.name for path in (work / "net").iterdir()) == ["config.json", "model.safetensors"]
    about = networks.load(work / "net").about
    assert about["construction"] == name
    assert about["task"] == load("t.npz").fingerprint
    assert about["seed"] == 0


@pytest.mark.parametrize("name", EXACT)
def test_build_json(work: Path, run: Run, name: str) -> None:
    said = run("build", name, "--task", "t.npz", "-o", "net", "--seed", 3, "--json")
    assert (said.code, said.err) == (0, "")
    found = said.json
    assert set(found) == {"construction", "account", "chosen", "seconds", "lower"}
    assert found["construction"] == name
    assert found["chosen"] == networks.load(work / "net").about["chosen"]
    assert found["seconds"] > 0
    account = found["account"]
    assert set(account) == ACCOUNT
    assert all(set(item) == ITEM for item in account["items"])
    assert account["dense"] == sum(item["dense"] for item in account["items"])
    assert account == json.loads(json.dumps(count(networks.load(work / "net")).as_json()))


def task_for(name: str, work: Path) -> Path:
    """A small task in a file that the softmax construction ``name`` is for."""
    rng, path = np.random.default_rng(1), work / "softmax.npz"
    task = {
        "mahdavi-2024": random_queries(examples=5, length=3, dim=5, labels=None, rng=rng),
        "dana-2025": load(work / "t.npz"),
        "madden-2024": random_distribution(examples=6, length=2, vocab=4, rng=rng),
    }[name]
    save(task, path)
    return path


@pytest.mark.parametrize("name", SOFTMAX)
def test_build_and_certify_softmax_networks(work: Path, run: Run, name: str) -> None:
    task = task_for(name, work)
    said = run("build", name, "--task", task, "-o", "net")
    assert (said.code, said.err) == (0, "")
    network = networks.load(work / "net")
    assert isinstance(network, SoftmaxNetwork)
    assert f"{count(network).dense:,}" in said.out
    assert "chosen: " in said.out
    about = networks.load(work / "net").about
    assert set(about) == {"construction", "settings", "seed", "task", "chosen"}
    assert (about["construction"], about["task"], about["seed"]) == (name, load(task).fingerprint, 0)
    said = run("certify", "net", "--task", task)
    assert (said.code, said.err) == (0, "")
    examples = load(task).size.examples
    assert f"certified: {examples} of {examples} answers right" in said.out
    assert "ball arithmetic, exhaustive, " in said.out
    assert run("certify", "net", "--task", task, "--recheck").code == 0


@pytest.mark.parametrize("name", SOFTMAX)
def test_build_json_of_softmax_networks(work: Path, run: Run, name: str) -> None:
    task = task_for(name, work)
    found = run("build", name, "--task", task, "-o", "net", "--seed", 3, "--json").json
    assert set(found) == {"construction", "account", "chosen", "seconds", "lower"}
    assert found["construction"] == name
    assert found["chosen"]
    loaded = networks.load(work / "net")
    assert found["chosen"] == loaded.about["chosen"]
    assert found["account"] == json.loads(json.dumps(count(loaded).as_json()))
    assert set(found["account"]) == ACCOUNT
    certificate = run("certify", "net", "--task", task, "--controls", "--json").json
    assert [control["name"] for control in certificate["controls"]] == ["shuffled answers", "perturbed weight"]
    assert certificate["controls"][0]["found"] is True
    assert certificate["controls"][1]["found"] in (True, None)
    assert (certificate["certified"], certificate["undecided"]) == (True, 0)


def test_build_settings(work: Path, run: Run) -> None:
    found = run("build", "vardi-2022", "--task", "t.npz", "-o", "net", "--bits", 20, "--depth", 15, "--json").json
    assert found["account"]["max_bits"] <= 20
    assert found["account"]["depth"] <= 15
    settings = networks.load(work / "net").about["settings"]
    assert settings == {"read": "grid", "radius": None, "depth": 15, "bits": 20, "width": "free"}
    found = run("build", "kajitsuka-sato-2025", "--task", "t.npz", "-o", "net2", "--positions", "--json").json
    assert "positions.W_pos" in {item["name"] for item in found["account"]["items"]}


def test_build_again_is_the_same_and_replaces(work: Path, run: Run) -> None:
    for folder, seed in (("a", 1), ("b", 1), ("c", 2), ("c", 1)):
        assert run("build", "kajitsuka-sato-2025", "--task", "t.npz", "-o", folder, "--seed", seed).code == 0
    weights = {(work / folder / "model.safetensors").read_bytes() for folder in "abc"}
    assert len(weights) == 1
    assert sorted(path.name for path in work.iterdir()) == ["a", "b", "c", "t.npz"]


def test_positions_help_twins(work: Path, run: Run) -> None:
    save(NextToken(tokens=[[0, 1], [1, 0]], labels=[0, 1]), "twins.npz")
    assert run("build", "interpolate", "--task", "twins.npz", "-o", "net").code == 2
    assert run("build", "interpolate", "--task", "twins.npz", "-o", "net", "--positions").code == 0
    assert run("certify", "net", "--task", "twins.npz").code == 0


@pytest.mark.parametrize("folder", ["net [bold]", "[red]net", "a/b/net"])
def test_folders_are_named_as_they_are(work: Path, run: Run, folder: str) -> None:
    said = run("build", "interpolate", "--task", "t.npz", "-o", folder)
    assert said.code == 0
    assert folder in said.out
    said = run("certify", folder, "--task", "t.npz")
    assert said.code == 0
    assert folder in said.out


# certify


def test_certify(network: Path, run: Run) -> None:
    said = run("certify", "net", "--task", "t.npz")
    assert (said.code, said.err) == (0, "")
    assert "certified: 20 of 20 answers right" in said.out
    assert "--recheck" in said.out
    written = json.loads((network / "certificate.json").read_text())
    assert set(written) >= CERTIFICATE
    assert written["certified"] is True


def test_certify_json(network: Path, run: Run) -> None:
    said = run("certify", "net", "--task", "t.npz", "--json")
    assert (said.code, said.err) == (0, "")
    found = said.json
    assert set(found) >= CERTIFICATE
    assert "controls" not in found
    assert (found["certified"], found["checked"], found["examples"], found["counterexample"]) == (True, 20, 20, None)
    assert found.pop("written") == "net/certificate.json"
    again = found.pop("recheck")
    assert again == "byheart certify net --task t.npz --recheck"
    assert run(*again.split()[1:]).code == 0
    assert run(*again.split()[1:], "--json").json["recheck"] == again
    assert found.pop("peak_memory") > 1 << 20
    assert found.pop("peak_memory_worker") is None, "there were none"
    assert found == json.loads((network / "certificate.json").read_text())


def test_certify_elsewhere_and_with_flint(network: Path, run: Run, work: Path) -> None:
    said = run("certify", "net", "--task", "t.npz", "-o", "c.json", "--evaluator", "flint", "--json")
    assert said.json["method"] == "exact, exhaustive (flint)"
    assert (work / "c.json").exists()
    assert not (network / "certificate.json").exists()


def test_certify_controls(network: Path, run: Run) -> None:
    said = run("certify", "net", "--task", "t.npz", "--controls")
    assert said.code == 0
    assert said.out.count(": found (") == 2
    found = run("certify", "net", "--task", "t.npz", "--controls", "--json").json
    assert [set(control) for control in found["controls"]] == [{"name", "found", "detail"}] * 2
    assert [control["name"] for control in found["controls"]] == ["shuffled answers", "perturbed weight"]
    assert all(control["found"] for control in found["controls"])


@pytest.mark.parametrize("name", [*EXACT, "dana-2025"])
def test_controls_do_not_fail_where_there_is_no_lie_to_tell(work: Path, run: Run, name: str) -> None:
    """Equal labels cannot be shuffled into a lie. What is certified stays certified: exit code 0."""
    save(NextToken(tokens=[[0, 1], [2, 2]], labels=[1, 1]), "same.npz")
    assert run("build", name, "--task", "same.npz", "-o", "net").code == 0
    said = run("certify", "net", "--task", "same.npz", "--controls", "--json")
    assert said.json["certified"] is True
    assert said.code == 0, said.json["controls"]


def test_not_certified_is_exit_code_one(network: Path, run: Run, work: Path) -> None:
    task = load("t.npz")
    labels = task.labels.copy()
    labels[13] = (labels[13] + 1) % 4
    save(task.with_labels(labels), work / "lie.npz")
    said = run("certify", "net", "--task", "lie.npz")
    assert said.code == 1
    assert "not certified: 19 of 20 answers right" in said.out
    assert f"first wrong answer: example 13: expected {labels[13]}, got {task.labels[13]}" in said.out
    said = run("certify", "net", "--task", "lie.npz", "--json")
    assert said.code == 1
    assert said.json["certified"] is False
    assert said.json["counterexample"]["example"] == 13


def test_a_certificate_of_another_task_is_left_alone(network: Path, run: Run, work: Path) -> None:
    run("certify", "net", "--task", "t.npz")
    before = (network / "certificate.json").read_bytes()
    task = load("t.npz")
    save(task.with_labels((task.labels + 1) % 4), work / "lie.npz")
    said = run("certify", "net", "--task", "lie.npz")
    assert said.code == 1
    assert "is about another task, was not checked, and was left as it is" in said.out
    assert (network / "certificate.json").read_bytes() == before


def test_recheck(network: Path, run: Run) -> None:
    run("certify", "net", "--task", "t.npz")
    before = (network / "certificate.json").read_bytes()
    said = run("certify", "net", "--task", "t.npz", "--recheck")
    assert said.code == 0
    assert "was checked again" in said.out
    assert run("certify", "net", "--task", "t.npz", "--recheck", "--json").json["certified"] is True
    assert (network / "certificate.json").read_bytes() == before


def test_seq_to_seq_names_the_position(work: Path, run: Run) -> None:
    task = SeqToSeq(tokens=[[0, 1, 2], [3, 1, 0]], labels=[[0, 1, 2], [0, 0, 1]])
    save(task, "s.npz")
    assert run("build", "kajitsuka-sato-2025", "--task", "s.npz", "-o", "net").code == 0
    assert run("certify", "net", "--task", "s.npz", "--json").json["checked"] == 6
    labels = task.labels.copy()
    labels[1, 2] = 2
    save(task.with_labels(labels), "lie.npz")
    said = run("certify", "net", "--task", "lie.npz")
    assert said.code == 1
    assert "example 1, position 2: expected 2, got 1" in said.out


# bounds


def test_bounds(run: Run) -> None:
    said = run("bounds", "--examples", 1000, "--length", 4, "--labels", 2, "--vocab", 50)
    assert (said.code, said.err) == (0, "")
    printed = {name for name in CONSTRUCTIONS if name in said.out}
    assert printed == {*EXACT, "dana-2025", "madden-2024"}, "mahdavi-2024 has no plan for a size alone"
    assert "Smallest" in said.out
    marked = [line.split()[0] for line in said.out.splitlines() if "expected: not proved for every task" in line]
    assert marked == ["folding", "folding"], "with the fewest parameters in all, and without its embedding"
    (proved,) = [line for line in said.out.splitlines() if line.startswith("Proved: ")]
    needed = vc.fewest(1000, 2, tokens=50)
    assert f"has fewer than {needed} parameters and memorizes every labelling of 1,000 inputs with 2 labels" in proved
    assert float(proved.split()[-4]) == pytest.approx(int(proved.split()[-5].strip(",")) / needed, abs=0.05)


def test_build_says_what_is_proved(work: Path, run: Run) -> None:
    said = run("build", "kajitsuka-sato-2025", "--task", "t.npz", "-o", "net")
    told = run("build", "kajitsuka-sato-2025", "--task", "t.npz", "-o", "net", "--json").json
    lower = told["lower"]
    assert f"with fewer than {lower['needed']} parameters memorizes every labelling" in said.out
    assert f"at most {lower['capacity']:,}." in said.out
    assert lower["needed"] < told["account"]["dense"]


@pytest.mark.slow
def test_bounds_tell_their_hypotheses(run: Run) -> None:
    """At n = 1 Dana's corollary does not hold; two tokens make no ten different ones, which is said unasked."""
    sizes = ("bounds", "--examples", 10, "--length", 1, "--vocab", 2)
    plain, asked = run(*sizes), run(*sizes, "--hypotheses")
    assert plain.out.count("false here: the N inputs differ") == asked.out.count("false here: the N inputs differ") == 3
    assert "every context has rank n" not in plain.out
    rows = [line.split() for line in asked.out.splitlines()]
    dana = {row[-1] for row in rows if row[:1] == ["Dana,"] and " ".join(row[7:-1]) == "n ≥ 2"}
    assert dana == {"fails"}
    assert {row[-1] for row in rows if "every context has rank n" in " ".join(row)} == {"open"}
    found = run(*sizes, "--json").json["bounds"]
    (told,) = [bound["hypotheses"] for bound in found if bound["name"] == "dana-2025-next-token"]
    assert (told["n ≥ 2"], told["the N contexts differ"]) == ("fails", "fails")


@pytest.mark.parametrize("setting", ["next-token", "seq-to-seq"])
def test_bounds_json(run: Run, setting: str) -> None:
    said = run("bounds", "--examples", 1000, "--length", 4, "--setting", setting, "--json")
    assert (said.code, said.err) == (0, "")
    found = said.json
    told = {"constructions", "constructions_in_all", "crossovers", "crossovers_in_all", "smaller_than_interpolate"}
    assert set(found) == {"size", "bounds", "statements", *told}
    names = [statement["name"] for statement in found["statements"]]
    assert ("egosi-2025-width" in names) == (setting == "next-token")
    assert ("park-2026-floats" in names) == (setting == "seq-to-seq")
    assert {plan["construction"] for plan in found["constructions"] if plan["expected"]} == {"folding"}
    assert found["smaller_than_interpolate"]["kajitsuka-sato-2024"] is None
    assert set(found["smaller_than_interpolate"]["folding"]) == {"first", "last"}
    assert found["size"]["examples"] == 1000
    keys = {"name", "paper", "source", "setting", "model", "side", "kind", "expression", "paper_letters", "hypotheses"}
    assert found["bounds"]
    assert all(set(bound) == keys | {"parameters", "reason"} for bound in found["bounds"])
    for bound in BOUNDS:
        for told in (told for told in found["bounds"] if told["name"] == bound.name):
            assert told["hypotheses"] == bound.verdicts(Size(1000, 4, 10, 200), Letters(bits=32))
    names = {plan["construction"] for plan in found["constructions"]}
    assert names == {c.name for c in CONSTRUCTIONS.values() if setting in c.covers}
    assert all(plan["parameters"] > 0 for plan in found["constructions"])
    assert all(set(crossover) == {"examples", "construction"} for crossover in found["crossovers"])


@pytest.mark.slow
def test_bounds_rank_by_all_parameters(run: Run) -> None:
    """Large vocabulary: the first row is the smallest in all, and who is smallest without its embedding is marked."""
    said = run("bounds", "--examples", 100_000, "--length", 512, "--vocab", 32_000, "--labels", 32_000).out
    table = said[said.index("Our constructions") :].splitlines()[4:]
    assert table[0].split()[:4] == ["folding", "--fewest", "in-all", "36,643"]
    assert "fewest in all" in table[0]
    assert table[1].split()[:2] == ["vardi-2022", "40,772"]
    (marked,) = [line.split() for line in table if "fewest without embedding" in line]
    assert marked[:3] == ["folding", "228,179", "4,179"]
    assert "the smallest above, folding, has 36,643" in said
    assert "Smallest in all, other sizes fixed: from N = 1 on vardi-2022" in said


# compare


def test_compare(work: Path, run: Run) -> None:
    said = run("compare", "--task", "t.npz")
    assert (said.code, said.err) == (0, "")
    for name in CONSTRUCTIONS:
        assert name in said.out
    assert said.out.count("yes, 20") == len([*EXACT, "dana-2025", "madden-2024"])
    assert "refused: mahdavi-2024 memorizes" in " ".join(said.out.split())
    assert "Smaller than interpolate: " in said.out
    rows = {line.split()[0]: line for line in said.out.splitlines() if line.strip()}
    tokens = len(np.unique(load(work / "t.npz").inputs))
    needed = vc.fewest(20, 4, depth=10**6, tokens=tokens)
    assert f" {needed} ×" in rows["vardi-2022"]
    assert "×" not in rows["dana-2025"], "no ReLU network"
    assert "memorizes every labelling of 20 inputs with 4 labels" in rows["Proved:"]


def test_compare_json_and_plot(work: Path, run: Run) -> None:
    said = run("compare", "--task", "t.npz", "--plot", "p.png", "--json")
    assert (said.code, said.err) == (0, "")
    (found,) = said.json["tasks"]
    assert set(found) == {"file", "kind", "size", "task", "rows"}
    assert (found["file"], found["kind"]) == ("t.npz", "next-token")
    assert found["task"] == load("t.npz").fingerprint
    assert {row["construction"] for row in found["rows"]} == set(CONSTRUCTIONS)
    certified = {row["construction"]: row["certified"] for row in found["rows"]}
    assert certified == dict.fromkeys([*EXACT, "dana-2025", "madden-2024"], True) | {"mahdavi-2024": None}
    assert (work / "p.png").stat().st_size > 10_000


def test_compare_shows_refusals(work: Path, run: Run) -> None:
    save(SeqToSeq(tokens=[[0, 1], [2, 3]], labels=[[0, 1], [1, 0]]), "s.npz")
    said = run("compare", "--task", "s.npz")
    assert said.code == 0
    assert "refused: vardi-2022 memorizes points" in " ".join(said.out.split())
    rows = run("compare", "--task", "s.npz", "--json").json["tasks"][0]["rows"]
    refused = {row["construction"]: row["note"] for row in rows if row["parameters"] is None}
    assert [row["construction"] for row in rows[-5:]] == list(refused)
    assert set(refused) == {"vardi-2022", "yang-2026", *SOFTMAX}
    assert "memorizes points" in refused["vardi-2022"]
    assert all(refused[name].endswith("the task is seq-to-seq") for name in SOFTMAX)


@pytest.mark.slow
def test_compare_several_tasks(work: Path, run: Run) -> None:
    save(SeqToSeq(tokens=[[0, 1], [2, 3]], labels=[[0, 1], [1, 0]]), "s.npz")
    said = run("compare", "--task", "s.npz", "t.npz", "--plot", "p.svg", "--plot-constant", "c.svg")
    assert said.code == 0
    assert said.out.index("s.npz: seq-to-seq") < said.out.index("t.npz: next-token")
    for picture in ("p.svg", "c.svg"):
        text = (work / picture).read_text()
        assert "seq-to-seq, n = 2" in text
        assert "next-token, n = " in text
    assert len(run("compare", "--task", "s.npz", "t.npz", "--json").json["tasks"]) == 2


# the whole way, in processes of their own


@pytest.mark.slow
def test_the_whole_way_in_other_processes(work: Path) -> None:
    def byheart(*arguments: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "byheart", *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=work)
        assert done.stderr == ""
        return json.loads(done.stdout)

    byheart("task", "random", "--examples", "15", "--length", "2", "--vocab", "20", "--dim", "2", "-o", "v.npz")
    built = byheart("build", "kajitsuka-sato-2025", "--task", "v.npz", "-o", "net")
    assert built["account"]["dense"] > 0
    assert byheart("certify", "net", "--task", "v.npz")["certified"] is True
    assert np.isfinite(byheart("certify", "net", "--task", "v.npz", "--recheck")["smallest_margin"])


# collapse


def test_collapse(work: Path, run: Run) -> None:
    run("task", "random", "--examples", 12, "--length", 3, "--vocab", 15, "--shape", "constant", "-o", "c.npz")
    assert run("build", "kajitsuka-sato-2025", "--task", "c.npz", "-o", "net").code == 0
    said = run("collapse", "net", "-o", "plain")
    assert said.code == 0
    assert "Both networks answer every sequence of 3 equal tokens alike, for 15 tokens" in said.out
    assert run("certify", "plain", "--task", "c.npz").code == 0
    told = run("collapse", "net", "-o", "plain", "--task", "c.npz", "--json").json
    assert told["equal"]["certified"] is True
    assert told["equal"]["checked"] == 12
    assert told["before"]["dense"] == told["after"]["dense"] + 2, "W_V and W_O are gone"


def test_collapse_refuses(network: Path, run: Run) -> None:
    assert run("build", "kajitsuka-sato-2025", "--positions", "--task", "t.npz", "-o", "placed").code == 0
    assert "expected a network without positions" in run("collapse", "placed", "-o", "plain").complaint
    assert run("build", "dana-2025", "--task", "t.npz", "-o", "soft").code == 0
    assert "soft: is a softmax network; expected an exact network" in run("collapse", "soft", "-o", "plain").complaint
    assert run("collapse", "net", "-o", "net").code == 2
    assert not (network.parent / "plain").exists()
