"""The executor for Ray, on a real cluster of two nodes on this machine; `make ray` installs Ray and runs this."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
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
from byheart.lab.jobs import Progress, execute
from byheart.lab.on_ray import Ray
from byheart.lab.runs import Run, read_rows
from byheart.lab.sources import Source, load, source
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


def test_a_cluster_without_gpus_is_refused_for_them(cluster: Any, toy: Source) -> None:
    with pytest.raises(BadInput, match="the Ray cluster has no GPU"):
        Ray(toy, "cuda")


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
