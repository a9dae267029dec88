"""Runs: every row that was written is there, whatever happened; nothing is done twice; one writer at a time."""

import csv
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.executors import Local
from byheart.lab.experiment import Experiment, key
from byheart.lab.jobs import execute
from byheart.lab.rows import ResultRow, metrics_of, read_rows
from byheart.lab.runs import Run, runs_in
from byheart.lab.sources import Given

TOY = Path(__file__).with_name("toy.py")


@dataclass(frozen=True)
class Point:
    heads: int
    widths: tuple[int, ...] = (1, 2)
    seed: int = 0


def experiment(*heads: int, name: str = "points", scale: str = "smoke") -> Experiment:
    return Experiment(name, scale, tuple(Point(H) for H in heads), lambda configs: [[c] for c in configs], squares)


def squares(configs: Any, device: str, report: Any) -> list[Any]:
    return [{"square": config.heads**2} for config in configs]


def row(run: Run, heads: int, status: Any = "done", **metrics: Any) -> ResultRow:
    name = key(Point(heads))
    return ResultRow(
        run.name, name, run.configs[name], status, metrics, 0.5, None if status == "done" else "ValueError: no"
    )


def squared(folder: Path, sweep: Experiment) -> Run:
    """The run, after its experiment."""
    with Local(Given(sweep)) as executor, Run.resume(folder, sweep) as run:
        execute(run, sweep, executor)
    return run


def test_a_run_says_what_is_run_where_and_with_what(tmp_path: Path) -> None:
    with Run.create(tmp_path / "deep" / "run", experiment(1, 2), source="CONFIGS = []") as run:
        pass
    about = json.loads((run.folder / "config.json").read_text())
    assert (about["experiment"], about["scale"], about["seeds"]) == ("points", "smoke", [0])
    assert [*about["configs"].values()] == [{"heads": heads, "widths": [1, 2], "seed": 0} for heads in (1, 2)]
    (session,) = about["sessions"]
    assert {"started", "host", "python", "torch", "numpy", "byheart"} <= session.keys()
    assert (run.folder / "experiment.py").read_text() == "CONFIGS = []"


def test_rows_come_back_as_they_were_written_in_the_order_of_the_configs(tmp_path: Path) -> None:
    with Run.create(tmp_path / "run", experiment(1, 2, 3)) as run:
        run.append([row(run, 3, accuracy=0.5, name="ω")])
        run.append([row(run, 1, "failed")])
    again = Run.open(tmp_path / "run")
    assert again.rows == run.rows == [row(run, 1, "failed"), row(run, 3, accuracy=0.5, name="ω")]
    assert (again.done, again.failed, again.pending()) == (1, 1, [key(Point(1)), key(Point(2))])
    assert again.table == [
        {
            "key": key(Point(3)),
            "status": "done",
            "heads": 3,
            "widths": [1, 2],
            "seed": 0,
            "accuracy": 0.5,
            "name": "ω",
            "seconds": 0.5,
            "error": None,
        }
    ]


def test_every_session_is_kept(tmp_path: Path) -> None:
    for sessions in (1, 2, 3):
        with Run.resume(tmp_path / "run", experiment(1)) as run:
            assert len(run.about["sessions"]) == sessions


def test_a_line_that_is_torn_anywhere_is_done_again_and_no_other(tmp_path: Path) -> None:
    whole = squared(tmp_path / "whole", experiment(1, 2, 3))
    data = (whole.folder / "results.jsonl").read_bytes()
    two = data.index(b"\n", data.index(b"\n") + 1) + 1
    for size in (*range(two, len(data) - 2, 11), len(data) - 2, len(data) - 1, len(data)):
        folder = tmp_path / f"torn-{size}"
        shutil.copytree(whole.folder, folder)
        (folder / "results.jsonl").write_bytes(data[:size])
        lines = 3 if size >= len(data) - 1 else 2  # a line that lacks only its end is whole
        assert len(Run.open(folder).rows) == lines
        assert (folder / "results.jsonl").read_bytes() == data[:size], "reading changes nothing"
        with Run.resume(folder, experiment(1, 2, 3)) as run:
            assert run.rows == whole.rows[:lines]
        kept = (folder / "results.jsonl").read_bytes()
        assert kept == (data if lines == 3 else data[:two])
        again = squared(folder, experiment(1, 2, 3))
        assert [(r.config, r.status, r.metrics) for r in again.rows] == [
            (r.config, r.status, r.metrics) for r in whole.rows
        ]
        assert len(read_rows(folder / "results.jsonl")) == 3


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    run = squared(tmp_path / "run", experiment(1, 2, 3))
    path = run.folder / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:20] + b"\n" + lines[2])
    with pytest.raises(BadInput, match=r"results\.jsonl:2: "):
        Run.open(run.folder)


def test_a_write_that_fails_halfway_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def full(file: int, data: bytes) -> int:
        write(file, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with Run.create(tmp_path / "run", experiment(1, 2)) as run:
        run.append([row(run, 1)])
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(BadInput, match=r"results\.jsonl: .*No space"):
            run.append([row(run, 2)])
        monkeypatch.undo()
        run.append([row(run, 2)])
    assert len(read_rows(run.folder / "results.jsonl")) == 2


def test_what_is_done_cannot_be_written_again_nor_what_is_none_of_the_run(tmp_path: Path) -> None:
    with Run.create(tmp_path / "run", experiment(1)) as run:
        run.append([row(run, 1)])
        with pytest.raises(BadInput, match="done already"):
            run.append([row(run, 1)])
    with pytest.raises(BadInput, match="open for reading"):
        Run.open(tmp_path / "run").append([row(run, 1)])


def test_a_failed_row_is_pending_and_the_later_row_counts(tmp_path: Path) -> None:
    with Run.create(tmp_path / "run", experiment(1)) as run:
        run.append([row(run, 1, "failed")])
        assert run.pending()
        run.append([row(run, 1, square=1)])
        assert not run.pending()
    assert [found.status for found in Run.open(tmp_path / "run").rows] == ["done"]
    assert len(read_rows(tmp_path / "run" / "results.jsonl")) == 2


def test_only_one_process_writes(tmp_path: Path) -> None:
    with Run.create(tmp_path / "run", experiment(1)) as run:
        assert Run.open(run.folder).running
        with pytest.raises(BadInput, match=rf"process {os.getpid()} on .* is writing there"):
            Run.resume(run.folder, experiment(1))
    assert not Run.open(run.folder).running
    Run.resume(run.folder, experiment(1)).close()


HOLD = """
    import sys, time
    from pathlib import Path
    from byheart.files.locks import Lock
    lock = Lock(Path(sys.argv[1]) / "lock")
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_the_lock_of_a_process_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    with Run.create(tmp_path / "run", experiment(1)) as run:
        pass
    command = [sys.executable, "-c", textwrap.dedent(HOLD), str(run.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BadInput, match=f"process {holder.pid} on"):
            Run.resume(run.folder, experiment(1))
        holder.kill()
    assert f"process {holder.pid}" in (run.folder / "lock").read_text()
    Run.resume(run.folder, experiment(1)).close()


def test_a_folder_that_holds_a_run_is_not_begun_again(tmp_path: Path) -> None:
    squared(tmp_path / "run", experiment(1))
    with pytest.raises(BadInput, match="--resume"):
        Run.create(tmp_path / "run", experiment(1))


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("Let")
    for begin in (Run.create, Run.resume):
        with pytest.raises(BadInput, match="is not a run"):
            begin(tmp_path / "run", experiment(1))
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.tex"]


def test_a_run_that_was_killed_while_it_began_begins(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").write_text("process 1 on nowhere\n")
    (tmp_path / "run" / ".config.json").write_text('{"format": "bye')
    assert squared(tmp_path / "run", experiment(1)).done == 1


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        (experiment(1, 2, name="others"), "is a run of points; expected one of others"),
        (experiment(2, 3, 4), r"2 configs of points .* are not in the run .*, and 1 of the run's are not"),
        (experiment(1), "0 configs of points .* are not in the run .*, and 1 of the run's are not"),
    ],
)
def test_only_the_same_experiment_continues_a_run(tmp_path: Path, other: Experiment, complaint: str) -> None:
    squared(tmp_path / "run", experiment(1, 2))
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(BadInput, match=complaint):
        Run.resume(tmp_path / "run", other)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "byheart-exact-1"}'])
def test_what_is_no_run_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(BadInput, match=r"config\.json: "):
        Run.open(tmp_path)
    with pytest.raises(BadInput, match="no run here"):
        Run.open(tmp_path / "nowhere")


def test_runs_are_found_by_their_folder(tmp_path: Path) -> None:
    for name in ("b", "a"):
        squared(tmp_path / name, experiment(1))
    (tmp_path / "c").mkdir()
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "config.json").write_text("{}")
    assert [run.folder.name for run in runs_in(tmp_path)] == ["a", "b"]
    assert runs_in(tmp_path / "nowhere") == []


def test_csv_has_configs_and_metrics_side_by_side(tmp_path: Path) -> None:
    with Run.create(tmp_path / "run", experiment(1, 2)) as run:
        run.append([row(run, 1, accuracy=0.25, seed=7, loss=None), row(run, 2, "failed")])
    run.write_csv(tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [*rows[0]] == [
        *("key", "status", "heads", "widths", "seed"),
        *("accuracy", "metric_seed", "loss", "seconds", "error"),
    ]
    assert [rows[0][name] for name in ("heads", "widths", "accuracy", "metric_seed", "loss")] == [
        *("1", "[1, 2]", "0.25", "7", "")
    ]
    assert (rows[1]["status"], rows[1]["accuracy"], rows[1]["error"]) == ("failed", "", "ValueError: no")


def test_spreadsheets_run_no_text_of_a_run(tmp_path: Path) -> None:
    """Rows may come from somebody else; numbers stay numbers, also negative ones."""
    texts = {name: f"{name}1+1" for name in "=+-@\t\r"}
    with Run.create(tmp_path / "run", experiment(1)) as run:
        run.append([row(run, 1, loss=-1.5, plain="a=b", **texts)])
    run.write_csv(tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as file:
        table = next(csv.DictReader(file))
    assert {f"'{name}": table[f"'{name}"] for name in texts} == {f"'{name}": f"'{text}" for name, text in texts.items()}
    assert (table["loss"], table["plain"]) == ("-1.5", "a=b")


def test_seconds_are_a_metrics_where_there_is_one_of_this_name(tmp_path: Path) -> None:
    with Run.create(tmp_path / "run", experiment(1, 2)) as run:
        run.append([row(run, 1, seconds=7.0), row(run, 2)])
    assert [found["seconds"] for found in run.table] == [7.0, 0.5]


@pytest.mark.parametrize(
    "found",
    [None, [1], {"loss": [1]}, {"loss": (1,)}, {"loss": {}}, {1: 2}, {"n": 2**63}, {"s": "\ud800"}, {"\udfff": 1}],
)
def test_metrics_that_are_none_are_refused(found: Any) -> None:
    with pytest.raises(BadInput, match="expected a"):
        metrics_of(found)


def test_whatever_is_taken_for_a_metric_is_read_again(tmp_path: Path) -> None:
    """True is no number in a row: it was written, and the run could not be read any more."""
    found = {"flag": True, "most": 2**63 - 1, "least": -(2**63), "tiny": 5e-324, "text": "\U0001f600", "none": None}
    with Run.create(tmp_path / "run", experiment(1)) as run:
        run.append([row(run, 1, **metrics_of(found))])
    assert Run.open(tmp_path / "run").rows[0].metrics == {**found, "flag": 1}


@pytest.mark.parametrize("value", [float("inf"), 2**64, {}, "\ud800", (1, float("nan")), {1}, Path("x")])
def test_a_config_that_would_not_be_read_again_is_refused(value: Any) -> None:
    with pytest.raises(BadInput, match=r"points: heads is .* in a config"):
        experiment(1, value)


def test_an_error_that_cannot_be_encoded_is_a_failed_row_too(tmp_path: Path) -> None:
    def fail(configs: Any, device: str, report: Any) -> list[Any]:
        raise ValueError("no \udc80")

    run = squared(tmp_path / "run", replace(experiment(1), work=fail))
    assert run.rows[0].error is not None
    assert run.rows[0].error.startswith(r"ValueError: no \udc80 (")


def test_numbers_that_are_not_finite_are_written_as_none() -> None:
    assert metrics_of({"a": float("inf"), "b": float("nan"), "c": 1e300, "d": "x", "e": None}) == {
        "a": None,
        "b": None,
        "c": 1e300,
        "d": "x",
        "e": None,
    }


KILLS = """
    import os, random, signal, sys, time
    from byheart.executors import Local
    from byheart.lab.jobs import execute
    from byheart.lab.runs import Run
    from byheart.lab.sources import load
    from byheart.papers.experiments import source

    origin = source("toy.py", "smoke")
    load(origin)


    def work(folder):
        start = time.monotonic()
        with Local(origin) as executor, Run.resume(folder, load(origin), origin.text) as run:
            execute(run, load(origin), executor)
        return time.monotonic() - start


    work("first")  # what is imported only then is inherited
    whole = work("second")
    chance = random.Random(0)
    killed = 0
    while True:
        child = os.fork()
        if child == 0:
            work("run")
            os._exit(0)
        time.sleep(chance.uniform(0, whole / 2))
        os.kill(child, signal.SIGKILL)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            break
        killed += 1
    print(killed)
"""


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    """A process is forked, works, and is killed at a random moment, until one comes to the end.

    It gets at most half of the time that the whole run takes, so that it is killed several times on any machine.
    """
    shutil.copy(TOY, tmp_path)
    (tmp_path / "seconds").write_text("0.02")
    command = [sys.executable, "-c", textwrap.dedent(KILLS)]
    killed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(killed.stdout) >= 3, killed.stdout
    begun = [line.split() for line in (tmp_path / "begun").read_text().splitlines()]
    assert {mark for *_, mark in begun} == {"once"}
    assert len({process for _, _, process, _ in begun}) > 2
    rows = read_rows(tmp_path / "run" / "results.jsonl")
    assert Counter((r.config["heads"], r.config["seed"]) for r in rows) == {
        (heads, seed): 1 for heads in range(1, 9) for seed in range(4)
    }
    assert {r.status for r in rows} == {"done"}
    assert Run.open(tmp_path / "run").pending() == []


WRONG_ROWS = {
    "a config of another": ({"config": {"number": 7}}, "has another config than config.json"),
    "another experiment": ({"experiment": "other"}, "about 'other'; expected points"),
    "a config of lists of objects": ({"config": {"number": [{}]}}, r"results\.jsonl:1: not a result row"),
    "metrics of lists": ({"metrics": {"square": [1]}}, r"results\.jsonl:1: not a result row"),
    "true as a metric": ({"metrics": {"square": True}}, r"results\.jsonl:1: not a result row"),
    "a key that is a number": ({"key": 5}, r"results\.jsonl:1: not a result row"),
    "seconds in words": ({"seconds": "long"}, r"results\.jsonl:1: not a result row"),
    "an error that is none": ({"error": 5}, r"results\.jsonl:1: not a result row"),
    "a status that there is not": ({"status": ["done"]}, r"results\.jsonl:1: not a result row"),
}


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_rows_of_other_types(tmp_path: Path, name: str) -> None:
    """Whoever draws or prints them would fall over."""
    squared(tmp_path / "run", experiment(1, 2))
    path = tmp_path / "run" / "results.jsonl"
    first, *rest = path.read_text().splitlines()
    changes, message = WRONG_ROWS[name]
    path.write_text("\n".join([json.dumps(json.loads(first) | changes), *rest]) + "\n")
    with pytest.raises(BadInput, match=message):
        Run.open(tmp_path / "run")


def test_a_metric_is_a_number_or_a_text(tmp_path: Path) -> None:
    squared(tmp_path / "run", experiment(1, 2))
    path = tmp_path / "run" / "results.jsonl"
    first, *rest = path.read_text().splitlines()
    metrics = json.loads(first)["metrics"]
    text = json.dumps(json.loads(first) | {"metrics": dict.fromkeys(metrics, "many")})
    path.write_text("\n".join([text, *rest]) + "\n")
    with pytest.raises(BadInput, match=r"results\.jsonl:2: .* is a text"):
        Run.open(tmp_path / "run")


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": 5},
        {"experiment": None},
        {"configs": []},
        {"configs": {"a": 5}},
        {"sessions": None},
        {"sessions": [{}]},
    ],
    ids=str,
)
def test_a_config_of_other_types(tmp_path: Path, changes: dict[str, object]) -> None:
    squared(tmp_path / "run", experiment(1, 2))
    path = tmp_path / "run" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(BadInput, match=r"config\.json: "):
        Run.open(tmp_path / "run")


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    squared(tmp_path / "run", experiment(1, 2))
    for name, message in (("results.jsonl", "is no file"), ("config.json", "is no file")):
        (tmp_path / "run" / name).unlink()
        os.mkfifo(tmp_path / "run" / name)
        with pytest.raises(BadInput, match=message):
            Run.open(tmp_path / "run")
    squared(tmp_path / "other", experiment(1, 2))
    (tmp_path / "other" / "lock").unlink()
    os.mkfifo(tmp_path / "other" / "lock")
    assert not Run.open(tmp_path / "other").running


@pytest.mark.parametrize("name", ["config.json", "results.jsonl", "experiment.py", "lock"])
def test_nothing_is_written_through_a_link_in_a_run(tmp_path: Path, name: str) -> None:
    squared(tmp_path / "run", experiment(1, 2))
    inside, outside = tmp_path / "run" / name, tmp_path / "mine"
    held = inside.read_text() if inside.exists() else "secret = 1"
    outside.write_text(held.removesuffix("\n"))  # a last line that lacks its end would be mended
    inside.unlink(missing_ok=True)
    inside.symlink_to(outside)
    for sweep in (experiment(1, 2), experiment(1, 2, name="others")):
        with pytest.raises(BadInput, match=f"{name}: is a link"):
            Run.resume(tmp_path / "run", sweep, source="CONFIGS = []")
    assert outside.read_text() == held.removesuffix("\n")


def test_a_run_may_be_a_link_itself(tmp_path: Path) -> None:
    squared(tmp_path / "run", experiment(1))
    (tmp_path / "link").symlink_to("run")
    with Run.resume(tmp_path / "link", experiment(1)) as run:
        assert run.done == 1


def test_a_run_of_something_else_is_not_mended(tmp_path: Path) -> None:
    squared(tmp_path / "run", experiment(1))
    with (tmp_path / "run" / "results.jsonl").open("a") as file:
        file.write('{"experiment": "po')
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(BadInput, match="expected one of others"):
        Run.resume(tmp_path / "run", experiment(1, name="others"))
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


@pytest.mark.parametrize("config", [None, '{"a": 1}'])
def test_a_file_called_lock_that_is_none_is_left_alone(tmp_path: Path, config: str | None) -> None:
    (tmp_path / "lock").write_text("my own, not to be lost")
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    with pytest.raises(BadInput, match="in the way, and no lock of Byheart's" if config is None else "of a run"):
        Run.resume(tmp_path, experiment(1))
    assert (tmp_path / "lock").read_text() == "my own, not to be lost"


def test_what_cannot_be_read_hides_no_other_run(tmp_path: Path) -> None:
    for name in ("a", "b"):
        squared(tmp_path / name, experiment(1))
    (tmp_path / "a" / "results.jsonl").unlink()
    (tmp_path / "a" / "results.jsonl").mkdir()
    assert [run.folder.name for run in runs_in(tmp_path)] == ["b"]


def test_a_run_that_cannot_begin_leaves_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str, check: object) -> None:
        raise BadInput(f"{path}: cannot be written: No space left on device")

    monkeypatch.setattr("byheart.lab.runs.write_text", full)
    with pytest.raises(BadInput, match=r"config\.json: .*No space"):
        Run.create(tmp_path / "deep" / "run", experiment(1))
    assert list(tmp_path.iterdir()) == []
