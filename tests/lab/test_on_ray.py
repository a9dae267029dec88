"""The executor for Ray, on a real cluster of two nodes on this machine; `make ray` installs Ray and runs this."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="Ray is not installed (make ray)")
# Nothing leaves this machine: neither reports, nor the report that there will be none.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_USAGE_STATS_REPORT_URL": "http://localhost:9"}

import ray
from ray.cluster_utils import Cluster

from byheart.errors import BadInput
from byheart.executors import Local, Ray
from byheart.lab.checkpoints import files_in
from byheart.lab.jobs import Progress, execute
from byheart.lab.rows import read_rows
from byheart.lab.runs import Run
from byheart.lab.sources import Source, load
from byheart.papers.experiments import source
from byheart.progress import Report

# Ray leaves sockets and processes to the interpreter's end, and warns of its own future.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

TOY = Path(__file__).with_name("toy.py")
ALL = {(heads, seed) for heads in range(1, 9) for seed in range(4)}


@pytest.fixture
def toy(tmp_path: Path) -> Source:
    shutil.copy(TOY, tmp_path)
    return source(str(tmp_path / "toy.py"), "smoke")


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two nodes of one CPU each; this process is the driver."""
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="error")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder with a name short enough for the sockets in it."""
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        yield Path(folder)


def sweep(toy: Source, tmp_path: Path, report: Report | None = None) -> Progress:
    with Ray(toy) as executor, Run.resume(tmp_path / "run", load(toy), toy.text) as run:
        return execute(run, load(toy), executor, report)


def begun(tmp_path: Path) -> list[tuple[int, int, int]]:
    """Heads, seed and process of everything that was begun, none of it after it was done."""
    lines = [line.split() for line in (tmp_path / "begun").read_text().splitlines()]
    assert {mark for *_, mark in lines} == {"once"}
    return [(int(heads), int(seed), int(process)) for heads, seed, process, _ in lines]


def rows(tmp_path: Path) -> Counter[tuple[int, int, str]]:
    found = read_rows(tmp_path / "run" / "results.jsonl")
    return Counter((row.config["heads"], row.config["seed"], row.status) for row in found)


def test_a_sweep_completes_though_a_node_is_killed_in_the_middle(cluster: Any, toy: Source, tmp_path: Path) -> None:
    (tmp_path / "seconds").write_text("0.5")
    assert ray.cluster_resources()["CPU"] == 2
    (second,) = cluster.worker_nodes
    killed: list[float] = []

    def kill(done: int, total: int, note: str = "", /) -> None:
        if done >= 8 and not killed:
            killed.append(time.perf_counter())
            cluster.remove_node(second, allow_graceful=False)

    reached = sweep(toy, tmp_path, kill)
    assert killed
    assert (reached.done, reached.failed, reached.now) == (32, 0, 32)
    assert rows(tmp_path) == {(heads, seed, "done"): 1 for heads, seed in ALL}
    started = begun(tmp_path)
    assert len({process for _, _, process in started}) >= 2, "both nodes were at work"
    # One job of four was in the second node's hands when it died; what it had not handed in was begun again.
    assert len(started) <= 32 + 4
    assert {(heads, seed) for heads, seed, _ in started} == ALL


OWN = """
    import time
    from pathlib import Path

    import torch

    from byheart.lab import train
    from byheart.papers import dana_2025 as dana
    from byheart.lab.experiment import Experiment
    from byheart.lab.stack import Stack

    HERE = Path(__file__).parent
    sizes = dict(vocab=6, batch=8, batches=5, epochs=20)
    CONFIGS = tuple(
        dana.DanaConfig("own", model_dim=d, head_dim=d, heads=1, seed=seed, **sizes)
        for d in (2, 3)
        for seed in range(2)
    )


    class Slow:
        start, go_on = Stack.start, Stack.go_on

        def slowly(self, steps, **how):
            if (HERE / "slow").exists():
                time.sleep(0.6)
            return Slow.start(self, steps, **how)

        def noted(self, step, matrices):
            with (HERE / "went on").open("a") as file:
                file.write(f"{step}\\n")
            Slow.go_on(self, step, matrices)


    Stack.start, Stack.go_on = Slow.slowly, Slow.noted


    def work(configs, device, report):
        outcomes = train([dana.member_of(config) for config in configs], device=device, dtype=torch.float64)
        return [dana.metrics(*pair) for pair in zip(configs, outcomes)]


    EXPERIMENT = Experiment("own", "smoke", CONFIGS, dana.groups, work)
"""


@pytest.fixture
def own(tmp_path: Path) -> Source:
    """An experiment that trains, slowly: two jobs."""
    (tmp_path / "own.py").write_text(textwrap.dedent(OWN))
    (tmp_path / "slow").touch()
    return source(str(tmp_path / "own.py"), "smoke")


def went_on(tmp_path: Path) -> list[int]:
    """Steps at which stacks went on."""
    path = tmp_path / "went on"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def check_bits(own: Source, tmp_path: Path) -> None:
    """The run has the rows of one that nobody disturbed."""
    (tmp_path / "slow").unlink()
    with Local(own) as executor, Run.create(tmp_path / "whole", load(own)) as run:
        execute(run, load(own), executor)
    rows = [{row.key: row.metrics for row in Run.open(tmp_path / name).rows} for name in ("whole", "run")]
    assert rows[0] == rows[1]


def test_a_job_whose_node_is_killed_goes_on_from_its_checkpoint(cluster: Any, own: Source, tmp_path: Path) -> None:
    (second,) = cluster.worker_nodes

    def kill() -> None:
        while len(files_in(tmp_path / "run" / "checkpoints")) < 2:
            time.sleep(0.05)
        cluster.remove_node(second, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    with Ray(own) as executor, Run.resume(tmp_path / "run", load(own)) as run:
        reached = execute(run, load(own), executor, checkpoint_every=0.01)
    killer.join()
    assert (reached.done, reached.failed, reached.notes) == (4, 0, ())
    assert went_on(tmp_path), "on the other node"
    check_bits(own, tmp_path)


def test_jobs_are_kept_when_the_time_is_over(cluster: Any, own: Source, tmp_path: Path) -> None:
    for _ in range(20):
        with Ray(own) as executor, Run.resume(tmp_path / "run", load(own)) as run:
            reached = execute(run, load(own), executor, seconds=2)
        if not reached.left:
            break
        assert reached.under_way <= reached.left
    assert (reached.done, reached.failed) == (4, 0)
    assert went_on(tmp_path)
    check_bits(own, tmp_path)


def test_a_config_that_fails_fails_alone_and_is_tried_again(cluster: Any, toy: Source, tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("3,2")
    reached = sweep(toy, tmp_path)
    assert (reached.done, reached.failed) == (31, 1)
    (tmp_path / "broken").unlink()
    assert sweep(toy, tmp_path).now == 1
    assert rows(tmp_path) == {(3, 2, "failed"): 1} | {(heads, seed, "done"): 1 for heads, seed in ALL}


def test_a_config_that_kills_whoever_works_on_it_is_given_up(cluster: Any, toy: Source, tmp_path: Path) -> None:
    (tmp_path / "deadly").write_text("8,3")
    reached = sweep(toy, tmp_path)
    assert (reached.done, reached.failed) == (31, 1)
    failed = [row for row in read_rows(tmp_path / "run" / "results.jsonl") if row.status == "failed"]
    assert [(row.config, row.error) for row in failed] == [({"heads": 8, "seed": 3}, "lost: WorkerCrashedError")]


def test_a_task_that_is_killed_for_memory_is_cut_and_not_tried_without_end(tmp_path: Path, short_folder: Path) -> None:
    """Ray's own memory monitor, told that there is hardly any memory: it kills every task that it sees."""
    shutil.copy(TOY, tmp_path)
    (tmp_path / "seconds").write_text("60")
    monitor = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "100"}
    environment = {**os.environ, **monitor, "RAY_TMPDIR": str(short_folder)}
    command = [sys.executable, "-m", "byheart", "lab", "run", "toy.py", "--out", "run", "--executor", "ray"]
    code = subprocess.run([*command, "--part", "1/8"], cwd=tmp_path, env=environment, check=False).returncode
    assert code == 1
    assert rows(tmp_path) == {(1, seed, "failed"): 1 for seed in range(4)}
    errors = {row.error for row in read_rows(tmp_path / "run" / "results.jsonl")}
    assert errors == {"lost: OutOfMemoryError"}


def test_a_cluster_without_gpus_is_refused_for_them(cluster: Any, toy: Source) -> None:
    with pytest.raises(BadInput, match="the Ray cluster has no GPU"):
        Ray(toy, gpus=1.0)


def test_the_command_starts_a_cluster_of_its_own_that_reports_nothing(tmp_path: Path, short_folder: Path) -> None:
    """No address: a cluster for this run alone, without dashboard and usage statistics, gone afterwards."""
    shutil.copy(TOY, tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment["RAY_TMPDIR"] = str(short_folder)
    command = [sys.executable, "-m", "byheart", "lab", "run", "toy.py", "--out", "run", "--executor", "ray", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["done"] == 32
    begun(tmp_path)
    logs = short_folder / "ray" / "session_latest" / "logs"
    assert "Usage reporting is disabled" in (logs / "dashboard.log").read_text()
    assert not (logs.parent / "usage_stats.json").exists()
