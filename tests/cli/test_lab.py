"""``byheart lab``: run, kill, resume, list, show, compare; and what is refused."""

import csv
import importlib.util
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from byheart.lab.rows import read_rows
from byheart.papers import results
from byheart.papers.experiments import EXPERIMENTS
from byheart.papers.pages import results_page

Run = Callable[..., Any]

TOY = Path(__file__).parents[1] / "lab" / "toy.py"
GO = ("lab", "run", "toy.py", "--out", "run")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a user's own experiment of 32 models."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(TOY, tmp_path)
    return tmp_path


def test_an_experiment_of_ones_own_is_run_and_shown(here: Path, run: Run) -> None:
    said = run("lab", "run", "toy.py")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("toy, smoke: 32 of 32 models done, ")
    assert "models/s" in said.out
    assert "steps/s" in said.out
    assert "byheart lab show runs/toy-smoke" in said.out
    shown = run("lab", "show", "runs/toy-smoke")
    assert shown.code == 0
    assert "runs/toy-smoke: toy, smoke, complete, 32 of 32 models done" in shown.out
    assert [line.split() for line in shown.out.splitlines() if line.split()[:1] == ["8"]] == [
        ["8", "4", "0.89", "±", "0.013", "4"]
    ]


def test_the_numbers_of_a_run_as_json(here: Path, run: Run) -> None:
    said = run(*GO, "--json").json
    counts = {name: said[name] for name in ("experiment", "scale", "models", "done", "failed", "done_before", "state")}
    assert counts == {
        "experiment": "toy",
        "scale": "smoke",
        "models": 32,
        "done": 32,
        "failed": 0,
        "done_before": 0,
        "state": "complete",
    }
    assert said["models_per_second"] > 0
    shown = run("lab", "show", "run", "--metric", "accuracy", "--json").json
    assert shown["points"][0]["settings"] == {"heads": 1}
    assert [*shown["points"][0]["metrics"]] == ["accuracy"]
    assert shown["failures"] == []


def test_failures_are_told_and_tried_again(here: Path, run: Run) -> None:
    (here / "broken").write_text("3,2")
    said = run(*GO)
    assert said.code == 1
    assert "31 of 32 models done" in said.out
    assert "failed: 1 models" in said.out
    assert "heads 3, seed 2" in said.out
    assert "ValueError: cannot do 3 heads with seed 2 (toy.py:" in said.out
    shown = run("lab", "show", "run", "--json")
    assert (shown.code, len(shown.json["failures"])) == (1, 1)
    (here / "broken").unlink()
    again = run(*GO, "--resume")
    assert again.code == 0
    assert "32 of 32 models done (31 of them earlier)" in again.out
    assert "nothing was left to do" in run(*GO, "--resume").out


def test_a_run_is_not_begun_twice(here: Path, run: Run) -> None:
    run(*GO)
    assert "run: is a run already; continue it with --resume, or choose another folder" in run(*GO).complaint


def test_resume_begins_where_there_is_nothing(here: Path, run: Run) -> None:
    assert "32 of 32 models done, " in run(*GO, "--resume").out


def test_an_experiment_of_ours_is_run_at_its_smallest(here: Path, run: Run) -> None:
    said = run("lab", "run", "dana-2025-6", "--scale", "smoke", "--json").json
    assert (said["run"], said["done"], said["failed"]) == ("runs/dana-2025-6-smoke", 2, 0)
    assert "last_accuracy" in run("lab", "show", "runs/dana-2025-6-smoke").out


def test_experiments_and_runs_are_listed(here: Path, run: Run) -> None:
    assert "no runs in runs" in run("lab", "list").out
    run("lab", "run", "toy.py")
    (here / "runs" / "notes").mkdir()
    said = run("lab", "list")
    assert said.code == 0
    assert "dana-2025-1 " in said.out
    assert "toy-smoke" in said.out
    assert "complete" in said.out
    listed = run("lab", "list", "--json").json
    assert [(found["run"], found["done"]) for found in listed["runs"]] == [("runs/toy-smoke", 32)]
    known = {one["experiment"]: one["absent"] for one in listed["experiments"]}
    assert known["dana-2025-1"] == []
    for name, lacking in known.items():
        assert (f"{name} is shipped without " in said.out) == bool(lacking)


def test_all_rows_go_into_a_csv_file(here: Path, run: Run) -> None:
    run(*GO)
    assert "wrote all.csv" in run("lab", "show", "run", "--csv", "all.csv").out
    with (here / "all.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == 32
    assert [*rows[0]] == ["key", "status", "heads", "seed", "accuracy", "loss", "steps", "seconds", "error"]


def test_runs_are_compared_point_by_point(here: Path, run: Run) -> None:
    run(*GO)
    run("lab", "run", "toy.py", "--out", "other")
    said = run("lab", "compare", "run", "other")
    assert said.code == 0
    assert "other − run: mean +0, largest +0 (8 points in both)" in said.out
    told = run("lab", "compare", "run", "other", "--metric", "steps", "--json").json
    assert told["differences"] == [{"points": 8, "mean": 0.0, "largest": 0.0}]
    assert told["points"][0]["runs"][0] == {"mean": 4.0, "deviation": 0.0, "models": 4}


def test_what_comes_with_byheart_is_compared_with_what_was_published(here: Path, run: Run) -> None:
    said = run("lab", "compare", "--shipped")
    assert (said.code, said.err) == (0, "")
    assert [line.split()[:2] for line in said.out.splitlines() if line.startswith(" all ")] == [["all", "239"]]
    assert "experiment 4: exponent" in said.out
    told = run("lab", "compare", "--shipped", "--json").json
    assert len(told["gaps"]) == 13
    assert len(told["points"]) == 239
    everything = told["gaps"][-1]
    assert everything["points"] == 239
    assert everything["mean_absolute_gap"] == pytest.approx(sum(abs(point["gap"]) for point in told["points"]) / 239)
    assert {"slope_here", "slope_here_low", "slope_published"} <= told["slopes"][0].keys()
    assert told["mahdavi-2024"]["findings"]
    papers = {"mahdavi-2024", "madden-2024", "capacity"}
    assert papers & told.keys() == papers - {*told["absent"]}


def test_a_paper_is_compared_once_its_results_are_there(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rungs = EXPERIMENTS["capacity"]("short").configs
    bits = [{"examples": c.examples, "parameters": c.most_parameters, "bits_per_parameter": 1.5} for c in rungs]
    sizes = {"contexts": 800, "vocab": 300, "frozen": True, "seed": 0, "loss": 0.5, "entropy": 0.4}
    made = {
        "capacity": [vars(config) | found for config, found in zip(rungs, bits, strict=True)],
        "madden-2024-frozen": [sizes | {"stories": 100, "hidden": m, "relative_excess": 1 / m**3} for m in (4, 8)],
    }
    monkeypatch.setattr(results, "names", lambda: [*made])
    monkeypatch.setattr(results, "table", made.__getitem__)
    said = run("lab", "compare", "--shipped")
    assert said.code == 0
    assert "about 3.6 (Morris et al. 2025)" in said.out
    assert "frozen: The least m within 1 % of the entropy" in said.out
    assert "All models" not in said.out
    assert "no results come with Byheart of dana-2025, mahdavi-2024" in said.out
    told = run("lab", "compare", "--shipped", "--paper", "capacity", "--json").json
    assert [*told] == ["capacity"]
    del made["capacity"]
    complaint = run("lab", "compare", "--shipped", "--paper", "capacity").complaint
    assert "no results of 'capacity' come with Byheart; train its 84 models with byheart lab run capacity" in complaint


def test_what_a_papers_figures_show_is_printed_in_numbers(here: Path, run: Run) -> None:
    said = run("lab", "compare", "--shipped", "--paper", "mahdavi-2024")
    assert (said.code, said.err) == (0, "")
    assert "Mahdavi, Liao & Thrampoulidis 2024" in said.out
    assert "published" not in said.out, "it has no numbers to compare with"
    told = run("lab", "compare", "--shipped", "--paper", "mahdavi-2024", "--json").json
    assert [*told] == ["mahdavi-2024"]
    title = "classification-heads-fixed: Lines of accuracy over heads"
    (lines,) = [table for table in told["mahdavi-2024"]["tables"] if table["title"].startswith(title)]
    for row in lines["rows"]:
        assert row["slope_low"] < row["slope"] < row["slope_high"]
        assert row["r_squared_low"] < row["r_squared"] < row["r_squared_high"]
        assert row["right"] == pytest.approx(row["examples"] * row["slope"])
        assert row["proved"] == 31
    shown = f"{lines['rows'][0]['slope']:.3g} ({lines['rows'][0]['slope_low']:.3g} to "
    assert shown in said.out


def test_everything_that_comes_with_byheart_is_drawn_by_one_command(
    here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the figures go; that each of them can be drawn is for tests/papers/test_pages.py."""

    def blank(name: str) -> Any:
        page = results_page(name)
        return replace(page, figures=[replace(each, make=lambda: None) for each in page.figures])

    monkeypatch.setattr("byheart.papers.pages.results_page", blank)
    monkeypatch.setattr("byheart.report.drawing.draw", lambda _, path: path.write_text("<svg/>"))
    drawn = run("lab", "plot", "--shipped", "all", "-o", "all", "--format", "svg", "--json").json
    assert drawn["missing"] == []
    assert {*drawn["absent"]} == {*EXPERIMENTS} - {*results.names()}
    assert all(name in (here / "all" / "index.html").read_text() for name in drawn["absent"])
    assert drawn["rows"] == sum(len(results.table(name)) for name in results.names())
    for name in (*results.names(), "dana-2025", "mahdavi-2024"):
        assert f"all/{name}/index.html" in drawn["files"]
        assert f'href="{name}/index.html"' in (here / "all" / "index.html").read_text()
    assert all((here / path).is_file() for path in drawn["files"])


def test_a_paper_is_drawn_by_its_name(here: Path, run: Run) -> None:
    drawn = run("lab", "plot", "--shipped", "dana-2025", "-o", "dana", "--format", "svg", "--json").json
    files = ["dana/published.svg", "dana/held.svg", "dana/index.html"]
    assert drawn == {"files": files, "rows": 1555, "missing": [], "absent": []}
    assert "At 239 published points ours differ by 0.0058 on average" in (here / "dana" / "index.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("run", "nonsense"), "no experiment is called 'nonsense'; expected a name of byheart lab list, "),
        (("run", "missing.py"), "missing.py: No such file or directory"),
        (("run", "bad.py"), "bad.py:1: ZeroDivisionError: division by zero"),
        (("run", "latin.py"), "latin.py: not UTF-8 text"),
        (("run", "toy.py", "--jobs", "2"), "--jobs is for --executor processes or ray"),
        (("run", "toy.py", "--executor", "processes", "--jobs", "0"), "--jobs is 0; expected at least 1"),
        (("run", "toy.py", "--out", "toy.py"), "toy.py: exists and is not a run"),
        (("show", "nowhere"), "nowhere: no run here"),
        (("show", "run", "--metric", "speed"), "run: no metric 'speed'; expected accuracy, steps"),
        (("compare",), "no folders given; expected those of runs, or --shipped"),
        (("compare", "run"), "run: no results of toy come with Byheart; expected two or more runs"),
        (("compare", "run", "run", "--metric", "speed"), "no run has a metric 'speed'"),
        (("compare", "run", "--shipped"), "--shipped takes neither folders nor --metric"),
        (("compare", "--shipped", "--metric", "loss"), "--shipped takes neither folders nor --metric"),
        (("compare", "run", "run", "--paper", "dana-2025"), "--paper chooses among the results that come with Byheart"),
        (("plot", "--shipped", "dana"), "no results of 'dana' come with Byheart; did you mean 'dana-2025'"),
        (("plot", "run", "--shipped", "all"), "--shipped takes no folder; expected one or the other"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line(here: Path, run: Run, arguments: tuple[str, ...], complaint: str) -> None:
    (here / "bad.py").write_text("1 / 0")
    (here / "latin.py").write_bytes(b"# \xe9")
    run(*GO)
    assert complaint in run("lab", *arguments).complaint
    told = run("lab", *arguments, "--json")
    assert complaint in told.json["error"]


def test_a_gpu_that_is_not_there_is_refused(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert "--device cuda: PyTorch finds no GPU here" in run(*GO, "--device", "cuda").complaint
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    refusal = run(*GO, "--device", "cuda", "--executor", "processes").complaint
    assert "executor processes with device cuda; expected cpu" in refusal
    assert not (here / "run").exists()


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="ray is installed")
def test_ray_that_is_not_there_is_asked_for(here: Path, run: Run) -> None:
    complaint = run(*GO, "--executor", "ray").complaint
    assert "the executor ray needs ray, which is not installed; pip install " in complaint
    assert complaint.endswith("in a clone of Byheart: pip install -e '.[ray]'")


def test_a_command_that_is_interrupted_says_how_to_go_on(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, report: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("byheart.lab.jobs.perform", interrupted)
    said = run(*GO)
    assert said.code == 130
    assert said.err == (
        "stopped with 0 of 32 models done; go on with:  byheart lab run toy.py --scale smoke --out run --resume\n"
    )
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert run(*GO, "--resume").code == 0


@pytest.mark.slow
def test_a_command_that_is_killed_is_resumed(here: Path, run: Run) -> None:
    """As a user does it: kill -9 in the middle, the same command with --resume; two processes at work.

    Again and again it is killed in tests/lab/test_runs.py, where that takes less time.
    """
    (here / "seconds").write_text("0.3")
    command = [sys.executable, "-m", "byheart", *GO, "--executor", "processes", "--jobs", "2"]
    results = here / "run" / "results.jsonl"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as killed:
        end = time.monotonic() + 60
        while len(read_rows(results)) < 4:
            assert time.monotonic() < end
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
    before = len(read_rows(results))
    assert 4 <= before < 32
    (here / "seconds").write_text("0")
    said = run(*GO, "--resume", "--json").json
    assert (said["done_before"], said["done"]) == (before, 32)
    assert len(read_rows(results)) == 32
    assert "TWICE" not in (here / "begun").read_text()


@pytest.mark.parametrize("command", ["run", "list", "show", "compare"])
def test_help_has_an_example(run: Run, command: str) -> None:
    said = run("lab", command, "--help")
    assert said.code == 0
    assert f"byheart lab {command}" in " ".join(said.out.replace("│", " ").split())


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from byheart.cli.main import main\n"
        "try:\n"
        "    main(['lab', 'run', '--help'])\n"
        "except SystemExit:\n"
        "    print([name for name in ('torch', 'numba', 'ray', 'byheart.lab') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("inside", ["figures", "figures/index.html"])
def test_figures_are_not_drawn_through_links(here: Path, run: Run, inside: str) -> None:
    run(*GO)
    (here / "site").mkdir()
    (here / "site" / "index.html").write_text("mine")
    link = here / "run" / inside
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(here / "site" / link.relative_to(here / "run" / "figures"))
    assert f"run/{inside}: is a link" in run("lab", "plot", "run").complaint
    assert [path.read_text() for path in (here / "site").iterdir()] == ["mine"]


def test_figures_that_cannot_be_written_leave_no_folder(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(picture: object, path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    run(*GO)
    monkeypatch.setattr("byheart.report.drawing.save_picture", full)
    assert "No space left" in run("lab", "plot", "run", "-o", "deep/drawn").complaint
    assert not (here / "deep").exists()


def changed(folder: Path, about: dict[str, Any], **changes: Any) -> None:
    """A run whose config.json and rows say something else; ``config`` and ``metrics`` are added to those of all."""
    config, rows = json.loads((folder / "config.json").read_text()), (folder / "results.jsonl").read_text().splitlines()
    settings, metrics = changes.pop("config", {}), changes.pop("metrics", {})
    config["configs"] = {name: found | settings for name, found in config["configs"].items()}
    (folder / "config.json").write_text(json.dumps(config | about))
    told = [json.loads(row) for row in rows]
    told = [row | {"config": row["config"] | settings, "metrics": row["metrics"] | metrics} | changes for row in told]
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told))


def test_nothing_in_a_run_is_markup(here: Path, run: Run) -> None:
    run(*GO)
    changed(
        here / "run",
        {"experiment": "[/e]", "scale": "[/s]"},
        metrics={"[/a]": 1.0},
        config={"[/c]": "[/d]"},
        experiment="[/e]",
    )
    for command in (("show", "run"), ("list", "."), ("compare", "run", "run", "--metric", "[/a]")):
        said = run("lab", *command)
        assert (said.code, said.err) == (0, ""), command
        assert ("[/e]" if command[0] != "compare" else "[/a]") in said.out
    changed(here / "run", {}, status="failed", error="[/foo] boom")
    said = run("lab", "show", "run")
    assert (said.code, said.err) == (1, "")
    assert "[/foo] boom" in said.out


def test_means_of_numbers_that_are_too_large_are_none(here: Path, run: Run) -> None:
    run(*GO)
    changed(here / "run", {}, metrics={"accuracy": 1e308, "loss": -1e308})
    assert run("lab", "show", "run").code == 0
    assert run("lab", "compare", "run", "run").code == 0
    assert "no run has a metric" in run("lab", "compare", "run", "run", "--metric", "accuracy").complaint
