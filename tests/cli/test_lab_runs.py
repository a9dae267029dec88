"""``byheart lab``: parts, time limits and merged runs; crossings, searches, the list; an experiment of one's own."""

import json
import shutil
import textwrap
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from byheart.cli.lab import TIMES
from byheart.lab.rows import read_rows
from byheart.papers import results
from byheart.papers.experiments import EXPERIMENTS, timings

Run = Callable[..., Any]

TESTS = Path(__file__).parents[1]
GO = ("lab", "run", "toy.py", "--out", "run")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a user's own experiment of 32 models."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(TESTS / "lab" / "toy.py", tmp_path)
    return tmp_path


def test_parts_are_run_apart_and_merged(here: Path, run: Run) -> None:
    for number in (1, 2, 3):
        said = run("lab", "run", "toy.py", "--part", f"{number}/3")
        assert said.code == 0
        assert f"toy, smoke, part {number}/3: " in said.out
    assert run("lab", "show", "runs/toy-smoke-1-of-3", "--json").json["done"] == 12
    merged = run("lab", "merge", "runs/toy-smoke-1-of-3", "runs/toy-smoke-3-of-3", "-o", "merged")
    assert (merged.code, merged.out.splitlines()) == (
        0,
        [
            "toy, smoke: 2 runs, 20 of 32 models done, merged",
            "12 are left; go on with:  byheart lab run toy.py --scale smoke --out merged --resume",
        ],
    )
    told = run("lab", "merge", "merged", "runs/toy-smoke-2-of-3", "-o", "all", "--json").json
    assert (told["done"], told["left"], told["merged"], told["state"]) == (32, 0, 2, "complete")
    again = run("lab", "run", "toy.py", "--out", "merged", "--resume", "--json").json
    assert (again["done_before"], again["done"], again["part"]) == (20, 32, None)


def test_a_part_is_told_in_json(here: Path, run: Run) -> None:
    told = run(*GO, "--part", "2/8", "--json").json
    assert (told["part"], told["done"], told["left"], told["models"], told["state"]) == ("2/8", 4, 0, 32, "stopped")


class Clock:
    """Ten seconds pass whenever somebody looks."""

    now = 0.0

    def perf_counter(self) -> float:
        self.now += 10
        return self.now

    time = monotonic = perf_counter


def test_a_run_ends_when_its_time_is_over_and_says_what_is_left(
    here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("byheart.lab.checkpoints.time", Clock())
        said = run(*GO, "--time-limit", "100", "--part", "1/2")
    assert (said.code, said.err) == (0, "")
    done = len(read_rows(here / "run" / "results.jsonl"))
    assert 0 < done < 16
    command = "byheart lab run toy.py --scale smoke --out run --resume --time-limit 100 --part 1/2"
    assert f"the time is over with {16 - done} models left; go on with:  {command}" in said.out
    told = run(*GO, "--resume", "--part", "1/2", "--json").json
    assert (told["done_before"], told["done"], told["left"]) == (done, 16, 0)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("run", "toy.py", "--part", "half"), "--part is 'half'; expected K/M, as 2/8"),
        (("run", "toy.py", "--part", "3/2"), "part is 3/2; expected K/M with K from 1 to M"),
        (("run", "toy.py", "--time-limit", "0"), "--time-limit is 0; expected more than 0 seconds"),
        (("run", "toy.py", "--time-limit", "nan"), "--time-limit is nan; expected more than 0 seconds"),
        (("run", "toy.py", "--gpus-per-job", "0.5"), "--gpus-per-job is for --executor ray"),
        (("run", "toy.py", "--runtime-env", "env.json"), "--runtime-env is for --executor ray"),
        (("run", "toy.py", "--executor", "ray", "--gpus-per-job", "0.5"), "--gpus-per-job is for --device cuda"),
        (("run", "toy.py", "--executor", "ray", "--runtime-env", "env.json"), "env.json: No such file"),
        (("merge", "run", "-o", "new"), "1 folders given; expected two or more runs"),
        (("run", "toy.py", "--checkpoint-every", "nan"), "--checkpoint-every is nan; expected more than 0 seconds"),
        (("merge", "run", "nowhere", "-o", "new"), "nowhere: no run here"),
        (("merge", "run", "./run", "-o", "new"), "run and run are the same run; expected different ones"),
        (("crossing", "run", "--along", "heads", "--at-least", "nan"), "at_least is nan; expected a finite number"),
        (("crossing", "run", "--along", "heads", "--at-least", "inf"), "at_least is inf; expected a finite number"),
        (
            ("search", "dana-2025-6", "--learning-rates", "1", "2", "--metric", "nonsense"),
            "dana-2025-6 does not measure 'nonsense'; expected last_accuracy, accuracy, loss, steps, parameters, ",
        ),
        (("crossing", "--along", "heads"), "expected either the folder of a run or --shipped NAME"),
        (("crossing", "run", "--along", "head"), "the table has no column 'head' in every row; expected one of key, "),
        (("crossing", "run", "--along", "heads", "--metric", "status"), "status is 'done' in a row; expected numbers"),
        (("crossing", "--shipped", "dana-2025-7", "--along", "heads"), "did you mean 'dana-2025-"),
        (("search", "toy.py", "--learning-rates", "1", "2"), "toy: configs have no learning_rate"),
        (("search", "dana-2025-6", "--learning-rates", "1"), "learning rates are 1.0; expected two or more"),
        (
            ("search", "dana-2025-6", "--learning-rates", "1", "2", "--where", "heads"),
            "--where has 'heads'; expected NAME=VALUE, as heads=20",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line(here: Path, run: Run, arguments: tuple[str, ...], complaint: str) -> None:
    run(*GO)
    before = sorted(here.iterdir())
    assert complaint in run("lab", *arguments).complaint
    assert sorted(here.iterdir()) == before


GARBAGE = {
    "no row at all": "Once upon a time",
    "a row of another run": json.dumps(
        dict.fromkeys(("experiment", "key"), "other")
        | {"config": {}, "status": "done", "metrics": {}, "seconds": 1, "error": None}
    )
    + "\n",
    "another object": '{"accuracy": 1}\n',
    "half an object of another kind": '{"accuracy": ',
}


@pytest.mark.parametrize("name", GARBAGE)
@pytest.mark.parametrize(
    "command",
    [("merge", "run", "copy", "-o", "new"), ("crossing", "run", "--along", "heads"), ("plot", "run")],
    ids=str,
)
def test_results_that_are_none_are_refused_with_their_line(
    here: Path, run: Run, command: tuple[str, ...], name: str
) -> None:
    run(*GO)
    shutil.copytree("run", "copy")
    with (here / "run" / "results.jsonl").open("a") as file:
        file.write(GARBAGE[name])
    assert "run/results.jsonl:33: " in run("lab", *command).complaint
    assert not (here / "new").exists()


@pytest.mark.parametrize(
    "command",
    [("merge", "run", "copy", "-o", "new"), ("crossing", "run", "--along", "heads"), ("show", "run")],
    ids=str,
)
def test_half_a_line_is_left_out_and_said(here: Path, run: Run, command: tuple[str, ...]) -> None:
    run(*GO)
    shutil.copytree("run", "copy")
    results = here / "run" / "results.jsonl"
    results.write_bytes(results.read_bytes()[:-30])
    said = run("lab", *command)
    assert said.code == 0
    what = "half a line at the end is left out: the process that wrote it was stopped, or is still writing"
    assert said.err == f"run/results.jsonl: {what}\n"
    assert run("lab", "show", "copy").err == ""


OWN = """
    from byheart.papers.dana_2025 import DanaConfig

    sizes = dict(vocab=6, batch=8, batches=20, epochs=5, model_dim=4, head_dim=4)
    CONFIGS = [DanaConfig("own", heads=H, **sizes) for H in (1, 2)]
"""


def test_when_the_time_is_over_jobs_are_kept_and_go_on(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The must-show with a time limit: stopped again and again, and in the end the rows of an undisturbed run."""
    (here / "own.py").write_text(textwrap.dedent(OWN))
    go = ("lab", "run", "own.py", "--out", "stopped", "--resume", "--time-limit", "30")
    assert run("lab", "run", "own.py", "--out", "whole").code == 0
    stops = 0
    while True:
        with monkeypatch.context() as patched:
            patched.setattr("byheart.lab.checkpoints.time", Clock())
            said = run(*go)
        assert (said.code, said.err) == (0, "")
        if "models left" not in said.out:
            break
        stops += 1
        assert stops < 20
        assert "the time is over with 2 models left, 2 of them under way and kept; go on with:  byheart lab" in said.out
        assert "0 of 2 models done" in said.out
        assert "no model was finished" in said.out
        assert len([*(here / "stopped" / "checkpoints").iterdir()]) == 1
    assert stops > 3
    assert "2 of 2 models done" in said.out
    assert not (here / "stopped" / "checkpoints").exists()
    rows = [{row.key: row.metrics for row in read_rows(here / name / "results.jsonl")} for name in ("whole", "stopped")]
    assert rows[0] == rows[1]


def test_a_checkpoint_that_does_not_fit_is_said(here: Path, run: Run) -> None:
    run(*GO, "--part", "1/8")
    (here / "run" / "checkpoints").mkdir()
    odd = here / "run" / "checkpoints" / "0123456789abcdef-1.safetensors"
    odd.write_text("no checkpoint")
    note = f"{odd}: not used, its job begins anew: its header is longer than the file"
    assert note in run(*GO, "--resume", "--part", "2/8").out.replace("\n", "")
    (told,) = run(*GO, "--resume", "--part", "3/8", "--json").json["notes"]
    assert note in told
    assert odd.exists(), "nothing is lost"
    run(*GO, "--resume")
    assert not odd.exists()


def test_flags_reach_ray(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from byheart.executors import Local

    given: dict[str, Any] = {}

    def stand_in(source: Any, **more: Any) -> Local:
        given.update(more)
        return Local(source)

    monkeypatch.setattr("byheart.executors.Ray", stand_in)
    (here / "env.json").write_text('{"env_vars": {"A": "1"}}')
    flags = ("--executor", "ray", "--device", "cuda", "--gpus-per-job", "0.5", "--runtime-env", "env.json")
    assert run(*GO, *flags, "--jobs", "3").code == 0
    assert given == {"workers": 3, "gpus": 0.5, "runtime_env": {"env_vars": {"A": "1"}}}


def test_where_success_crosses_one_half(here: Path, run: Run) -> None:
    run(*GO)
    said = run("lab", "crossing", "run", "--along", "heads", "--at-least", "0.76", "--rising", "--json").json
    assert (said["along"], said["metric"], said["at_least"]) == ("heads", "accuracy", 0.76)
    (found,) = said["crossings"]
    assert (found["settings"], found["tries"]) == ({}, 32), "seeds are tries"
    assert 3 < found["crossing"]["low"] < found["crossing"]["x"] < found["crossing"]["high"] < 5
    shown = run("lab", "crossing", "run", "--along", "heads", "--at-least", "0.76", "--rising").out
    assert "heads at which accuracy ≥ 0.76 has probability ½" in shown
    flags = ("--along", "heads", "--metric", "best_accuracy", "--at-least", "0.95", "--rising", "--json")
    shipped = run("lab", "crossing", "--shipped", "mahdavi-2024-classification-heads-fixed", *flags).json["crossings"]
    assert [one["settings"]["examples"] for one in shipped] == [10000, 20000, 30000, 40000]
    assert shipped[0]["crossing"]["x"] < shipped[1]["crossing"]["x"] < shipped[2]["crossing"]["x"]


def test_the_best_learning_rate_is_sought_and_kept(here: Path, run: Run) -> None:
    search = ("lab", "search", "dana-2025-6", "--where", "heads=21", "--learning-rates", "1e-6", "0.02", "0.01")
    said = run(*search, "-o", "search")
    assert said.code == 0
    assert "learning rates by accuracy" in said.out
    assert "best" in said.out
    assert "3 of 3 models done" in said.out
    told = run(*search, "-o", "search", "--resume", "--metric", "loss", "--lowest", "--json").json
    assert (told["done"], told["metric"], told["experiment"]) == (3, "loss", "dana-2025-6-search")
    assert [one["learning_rate"] for one in told["tried"]] == [1e-6, 0.01, 0.02]
    means = [one["measured"]["mean"] for one in told["tried"]]
    assert [one["best"] for one in told["tried"]] == [mean == min(means) for mean in means]
    assert run("lab", "show", "search", "--json").json["done"] == 3


def test_a_search_without_results_says_how_to_go_on(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byheart.lab.checkpoints.time", Clock())
    search = ("lab", "search", "dana-2025-6", "--learning-rates", "0.01", "0.0123456789", "--time-limit", "1")
    said = run(*search, "-o", "search")
    assert said.code == 0
    assert "0 of 4 models done, 0.0 s, no model was started" in said.out
    again = f"byheart {' '.join(search[:-2])} --scale smoke --out search --resume --time-limit 1"
    assert f"the time is over with 4 models left; go on with:  {again}" in said.out


def test_the_list_says_what_is_shipped_and_what_was_measured(here: Path, run: Run) -> None:
    listed = run("lab", "list", "--json").json
    found = {one["experiment"]: one for one in listed["experiments"]}
    assert [*found] == [*EXPERIMENTS]
    first = found["dana-2025-1"]
    assert {name: first[name] for name in ("smoke", "short", "paper", "shipped", "seeds")} == {
        "smoke": 2,
        "short": 39,
        "paper": 385,
        "shipped": 385,
        "seeds": 5,
    }
    for one in found.values():
        assert (one["shipped"] > 0) == (one["seeds"] > 0) == (one["experiment"] in results.names())
    block = found["mahdavi-2024-classification-heads-fixed"]
    assert block["shipped"] <= block["paper"]
    assert block["seeds"] <= block["seeds_planned"] == 6
    for one in found.values():
        assert [*one][-5:] == [*TIMES, "estimated"]
        assert all(one[column] > 0 for column in one["estimated"])
    measured = next(one.seconds for one in timings() if (one.experiment, one.scale) == ("dana-2025-1", "smoke"))
    assert first["two_cores_smoke_seconds"] == measured
    assert "two_cores_smoke_seconds" not in first["estimated"]
    assert "two_cores_paper_seconds" in first["estimated"], "nobody has measured more than a part of it"
    sums = [one for one in timings() if one.experiment not in EXPERIMENTS]
    assert listed["together"] == [asdict(one) for one in sums]
    said = run("lab", "list").out
    line = next(line for line in said.splitlines() if line.startswith(" dana-2025-1 "))
    assert " 385 all 385 all 5 " in " ".join(line.split())
    assert "≈" in line
    assert "≈ marks an estimate" in said
    for one in sums:
        assert f"{one.experiment}, all {one.models:,} models at scale {one.scale} together: " in said
    assert "no runs in runs" in said


@pytest.mark.slow
def test_an_experiment_of_ones_own_has_a_figure(here: Path, run: Run) -> None:
    run(*GO)
    said = run("lab", "plot", "run", "--format", "svg")
    assert said.out.splitlines() == ["wrote run/figures/results.svg", "wrote run/figures/index.html"]
    assert "accuracy against heads" in (here / "run" / "figures" / "index.html").read_text()


@pytest.mark.slow
def test_names_in_a_run_are_no_formulas_and_no_paths(here: Path, run: Run) -> None:
    run(*GO)
    odd = {"heads": "../$x^$", "accuracy": "$\\frac$"}
    for name in ("config.json", "results.jsonl"):
        text = (here / "run" / name).read_text()
        for before, after in odd.items():
            text = text.replace(f'"{before}"', json.dumps(after))
        (here / "run" / name).write_text(text)
    said = run("lab", "plot", "run")
    assert (said.code, said.err) == (0, "")
    assert sorted(path.name for path in (here / "run" / "figures").iterdir()) == ["index.html", "results.png"]


@pytest.mark.parametrize("command", ["merge", "crossing", "search"])
def test_help_has_an_example(run: Run, command: str) -> None:
    said = run("lab", command, "--help")
    assert said.code == 0
    assert f"byheart lab {command}" in " ".join(said.out.replace("│", " ").split())


@pytest.mark.slow
def test_one_run_is_compared_with_what_is_shipped(work: Path, run: Run) -> None:
    assert run("lab", "run", "dana-2025-1", "--scale", "smoke", "-o", "smoke").code == 0
    said = run("lab", "compare", "smoke")
    assert said.code == 0
    assert "shipped − smoke: mean " in said.out
    assert "(2 points in both)" in said.out
    assert "but the run has batch 64, and not 256; " in said.out
    assert len(run("lab", "compare", "smoke", "--json").json["points"]) == 2
