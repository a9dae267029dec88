"""Executors: the same rows from each of them; failures stay alone; who dies takes nothing with him."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.executors import Executor, Job, Local, Processes
from byheart.lab.experiment import Experiment, key
from byheart.lab.jobs import Part, Progress, execute, perform, spread
from byheart.lab.rows import read_rows
from byheart.lab.runs import Run
from byheart.lab.sources import Given, Source, load
from byheart.papers.experiments import source

TOY = Path(__file__).with_name("toy.py")
ALL = {(heads, seed) for heads in range(1, 9) for seed in range(4)}
Sweep = Callable[..., tuple[Run, Progress]]


@pytest.fixture
def toy(tmp_path: Path) -> Source:
    shutil.copy(TOY, tmp_path)
    return source(str(tmp_path / "toy.py"), "smoke")


@pytest.fixture
def sweep(toy: Source, tmp_path: Path) -> Sweep:
    def go(make: Callable[[Source], Executor] = Local, **options: Any) -> tuple[Run, Progress]:
        with make(toy) as executor, Run.resume(tmp_path / "run", load(toy), toy.text) as run:
            return run, execute(run, load(toy), executor, **options)

    return go


def begun(folder: Path) -> Counter[tuple[int, int]]:
    """How often every config was begun."""
    lines = (folder / "begun").read_text().splitlines()
    assert all(line.endswith("once") for line in lines)
    return Counter((int(line.split()[0]), int(line.split()[1])) for line in lines)


def status(run: Run) -> dict[tuple[int, int], str]:
    return {(row.config["heads"], row.config["seed"]): row.status for row in run.rows}


def test_everything_is_done_once_and_rows_belong_to_their_configs(sweep: Sweep, tmp_path: Path) -> None:
    run, reached = sweep()
    assert begun(tmp_path) == dict.fromkeys(ALL, 1)
    assert (reached.models, reached.done, reached.failed, reached.now, reached.steps) == (32, 32, 0, 32, 128)
    for row in run.table:
        assert row["accuracy"] == 1 - 1 / row["heads"] + row["seed"] / 100


def test_resuming_what_is_complete_does_nothing(sweep: Sweep, tmp_path: Path) -> None:
    sweep()
    before = (tmp_path / "run" / "results.jsonl").read_bytes()
    _, reached = sweep()
    assert (reached.done, reached.now, reached.seconds_left) == (32, 0, None)
    assert begun(tmp_path) == dict.fromkeys(ALL, 1)
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == before


def test_a_run_that_is_interrupted_goes_on_where_it_was(sweep: Sweep, tmp_path: Path) -> None:
    def interrupt(done: int, total: int, note: str = "", /) -> None:
        if done >= 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(report=interrupt)
    assert len(read_rows(tmp_path / "run" / "results.jsonl")) == 12
    _, reached = sweep()
    assert (reached.done, reached.now) == (32, 20)
    assert begun(tmp_path) == dict.fromkeys(ALL, 1)


def test_one_bad_config_spoils_nobodys_row(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("3,2 5,0")
    run, reached = sweep()
    assert {config for config, found in status(run).items() if found == "failed"} == {(3, 2), (5, 0)}
    assert (reached.done, reached.failed) == (30, 2)
    errors = {row.error for row in run.rows if row.status == "failed"}
    assert "ValueError: cannot do 3 heads with seed 2 (toy.py:" in sorted(map(str, errors))[0]


def test_failed_ones_are_tried_again_and_others_are_not(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("3,2 5,0")
    sweep()
    (tmp_path / "broken").unlink()
    before = begun(tmp_path)
    run, reached = sweep()
    assert begun(tmp_path) - before == {(3, 2): 1, (5, 0): 1}
    assert set(status(run).values()) == {"done"}
    assert (reached.now, reached.failed, run.failed) == (2, 0, 0)


def test_what_a_job_says_is_passed_on_with_the_progress(sweep: Sweep) -> None:
    said: list[tuple[int, int, str]] = []
    sweep(report=lambda *progress: said.append(progress))
    assert said[:2] == [(0, 32, ""), (0, 32, "in a job: 0 of 4, training on cpu")]
    assert [done for done, total, _ in said[2:] if total == 32] == [k for n in range(4, 32, 4) for k in (n, n)] + [32]
    assert said[3][2].split("; ")[1:] == ["in a job: 0 of 4, training on cpu"]
    assert " models/s, " in said[-1][2]


def test_progress_tells_rates_and_the_time_left() -> None:
    progress = Progress(models=100, done=60, failed=5, now=25, steps=1000, seconds=5.0)
    assert (progress.models_per_second, progress.steps_per_second, progress.seconds_left) == (5, 200, 7)
    assert Progress(models=3, done=0, failed=0).seconds_left is None
    assert str(Progress(models=3, done=0, failed=0)) == ""


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (lambda *_: [], "work returned 0 rows for 1 configs"),
        (lambda *_: [{"loss": []}], "metric 'loss' is []; expected a number"),
        (lambda *_: [3], "work returned 3 for a config; expected a dictionary"),
    ],
)
def test_work_that_breaks_its_promise_fails(toy: Source, work: Any, error: str, tmp_path: Path) -> None:
    config = load(toy).configs[0]
    broken = Experiment("broken", "smoke", (config,), lambda configs: [[*configs]], work)
    with Local(Given(broken)) as executor, Run.create(tmp_path / "run", broken) as run:
        assert execute(run, broken, executor).failed == 1
    assert error in str(run.rows[0].error)


@pytest.mark.parametrize("groups", [lambda configs: [], lambda configs: [[*configs], [configs[0]]]])
def test_groups_that_are_no_partition_are_refused(toy: Source, groups: Any, tmp_path: Path) -> None:
    whole = load(toy)
    odd = Experiment("odd", "smoke", whole.configs, groups, whole.work)
    with Run.create(tmp_path / "run", odd) as run, pytest.raises(BadInput, match="expected a partition"):
        execute(run, odd, Local(Given(odd)))


def test_jobs_are_cut_until_every_worker_has_one() -> None:
    assert spread([("a", "b", "c", "d")], 1) == [("a", "b", "c", "d")]
    assert spread([("a", "b", "c", "d")], 3) == [("a",), ("b",), ("c", "d")]
    assert spread([("a",), ("b",)], 5) == [("a",), ("b",)]
    assert spread([], 5) == []


def test_a_file_that_changes_its_mind_is_found_out(tmp_path: Path) -> None:
    text = "import time\nfrom byheart.papers import dana_2025 as dana\n"
    text += "make = dict(vocab=5, model_dim=2, head_dim=2, batch=4, batches=1, epochs=1)\n"
    text += "CONFIGS = [dana.DanaConfig('mine', heads=1, seed=time.perf_counter_ns(), **make)]\n"
    (tmp_path / "mine.py").write_text(text)
    origin = source(str(tmp_path / "mine.py"), "smoke")
    result = perform(origin, ("0123456789abcdef",), "cpu")
    assert "the experiment has other configs each time it is read" in str(result.error)


# Parts, and a limited time


def test_parts_are_different_jobs_and_all_of_them(toy: Source) -> None:
    parts = [Part(number, 3).keys(load(toy)) for number in (1, 2, 3)]
    assert [len(part) for part in parts] == [12, 12, 8]
    assert len({name for part in parts for name in part}) == 32
    heads = {config.heads for config in load(toy).configs if key(config) in parts[0]}
    assert heads == {1, 4, 7}, "whole jobs"


def test_there_are_as_many_parts_as_are_asked_for(toy: Source) -> None:
    parts = [Part(number, 32).keys(load(toy)) for number in range(1, 33)]
    assert [len(part) for part in parts] == [1] * 32
    assert len({name for part in parts for name in part}) == 32


@pytest.mark.parametrize("number", [0, 3])
def test_a_part_that_there_is_not_is_refused(number: int) -> None:
    with pytest.raises(BadInput, match=f"part is {number}/2"):
        Part(number, 2)


def test_a_part_stays_the_same_when_some_of_it_is_done(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("1,0 2,0")
    _, reached = sweep(part=Part(1, 2))
    assert (reached.models, reached.done, reached.failed, reached.left) == (16, 15, 1, 0)
    (tmp_path / "broken").unlink()
    run, reached = sweep(part=Part(1, 2))
    assert (reached.models, reached.done, reached.now) == (16, 16, 1)
    assert {heads for heads, _ in status(run)} == {1, 3, 5, 7}
    _, reached = sweep()
    assert (reached.models, reached.done, reached.now) == (32, 32, 16)


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    time = monotonic = perf_counter


def test_no_job_is_begun_when_the_time_is_over(sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    for module in ("jobs", "checkpoints"):
        monkeypatch.setattr(f"byheart.lab.{module}.time", clock)

    def pass_time(done: int, total: int, note: str = "", /) -> None:
        if "in a job" in note:
            clock.now += 10

    run, reached = sweep(report=pass_time, seconds=25)
    assert (reached.done, reached.left, run.done) == (12, 20, 12), "the job that was under way was waited for"
    _, reached = sweep(report=pass_time, seconds=0)
    assert (reached.now, reached.left) == (0, 20)
    _, reached = sweep(report=pass_time)
    assert (reached.done, reached.left) == (32, 0)
    assert begun(tmp_path) == dict.fromkeys(ALL, 1)


# Processes


@pytest.mark.slow
def test_processes_do_what_one_process_does(sweep: Sweep, tmp_path: Path) -> None:
    said: list[str] = []
    two = partial(Processes, workers=2, retries=0)
    run, reached = sweep(two, report=lambda done, total, note: said.append(note))
    assert begun(tmp_path) == dict.fromkeys(ALL, 1)
    processes = {line.split()[2] for line in (tmp_path / "begun").read_text().splitlines()}
    assert len(processes) == 2
    assert str(os.getpid()) not in processes
    assert any("in a job: 0 of 4, training on cpu" in note for note in said)
    assert (reached.done, [row["heads"] for row in run.table]) == (
        32,
        [heads for heads in range(1, 9) for _ in range(4)],
    )


@pytest.mark.slow
def test_a_config_that_kills_its_process_fails_alone(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "deadly").write_text("8,3")
    run, reached = sweep(lambda toy: Processes(toy, workers=2, retries=0))
    assert (reached.done, reached.failed) == (31, 1)
    assert {row.error for row in run.rows if row.status == "failed"} == {"the worker's process died (signal 9)"}
    assert status(run)[8, 3] == "failed"


class Interrupted(Processes):
    """Processes that get a Ctrl-C as soon as there are any: it goes to all processes of a terminal."""

    def start(self, job: Job) -> None:
        super().start(job)
        for process in multiprocessing.active_children():
            assert process.pid is not None
            os.kill(process.pid, signal.SIGINT)


@pytest.mark.slow
def test_processes_leave_interrupts_to_the_one_that_started_them(sweep: Sweep) -> None:
    handler = signal.getsignal(signal.SIGINT)
    _, reached = sweep(lambda toy: Interrupted(toy, workers=2, retries=0))
    assert (reached.done, reached.failed) == (32, 0)
    assert signal.getsignal(signal.SIGINT) is handler


KILLED = """
    from byheart.executors import Processes
    from byheart.lab.jobs import execute
    from byheart.lab.runs import Run
    from byheart.lab.sources import load
    from byheart.papers.experiments import source

    if __name__ == "__main__":
        origin = source("toy.py", "smoke")
        with Processes(origin, workers=2) as executor, Run.resume("run", load(origin)) as run:
            execute(run, load(origin), executor)
"""


@pytest.mark.slow
def test_processes_end_with_the_one_that_is_killed_and_the_run_goes_on(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "seconds").write_text("30")
    (tmp_path / "go.py").write_text(textwrap.dedent(KILLED))
    with subprocess.Popen([sys.executable, "go.py"], cwd=tmp_path) as killed:
        wait_for(lambda: (tmp_path / "begun").exists() and len((tmp_path / "begun").read_text().split("\n")) >= 9)
        killed.send_signal(signal.SIGKILL)
    workers = {int(line.split()[2]) for line in (tmp_path / "begun").read_text().splitlines()}
    assert len(workers) == 2
    wait_for(lambda: not any(is_alive(worker) for worker in workers))
    (tmp_path / "seconds").unlink()
    _, reached = sweep()
    assert reached.done == 32


def wait_for(happened: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
