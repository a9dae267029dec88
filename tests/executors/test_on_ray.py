"""Compiling and certifying on a real Ray cluster of two nodes; `make ray` installs Ray and runs this."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="Ray is not installed (make ray)")
# Nothing leaves this machine: neither reports, nor the report that there will be none.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_USAGE_STATS_REPORT_URL": "http://localhost:9"}

import ray
from ray.cluster_utils import Cluster

from byheart.certificates import Certificate, certify, write
from byheart.certificates.judges import exact
from byheart.compiler import compile
from byheart.constructions import build
from byheart.errors import BadInput
from byheart.executors import Job, Workplace, run_jobs
from byheart.tasks import random_next_token

# Ray leaves sockets and processes to the interpreter's end, and warns of its own future.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes of one CPU each; this process is the driver."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="error")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def killer(cluster: Any) -> tuple[list[int], Any]:
    """A report that kills the second node as soon as something is done; and when that was."""
    (second,) = cluster.worker_nodes
    killed: list[int] = []

    def kill(done: int, total: int, note: str = "", /) -> None:
        if not killed and 0 < done < total:
            killed.append(done)
            cluster.remove_node(second, allow_graceful=False)

    return killed, kill


def written(certificate: Certificate, folder: Path) -> bytes:
    """The bytes of a certificate that took no time."""
    write(replace(certificate, seconds=0.0), folder / "c.json")
    return (folder / "c.json").read_bytes()


def test_a_certificate_is_the_same_though_a_node_is_killed_while_it_is_made(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "FEWEST", 20)
    task = random_next_token(examples=400, length=4, vocab=20, labels=5, rng=np.random.default_rng(0))
    network = build("folding", task).network
    killed, kill = killer(cluster)
    found = certify(network, task, evaluator="flint", executor=Workplace("ray"), report=kill)
    assert killed, "in the middle"
    expected = written(certify(network, task, evaluator="flint"), tmp_path)
    assert written(found, tmp_path) == expected
    assert json.loads(expected)["certified"]
    assert not cluster.worker_nodes


def test_a_network_is_the_same_though_a_node_is_killed_while_it_is_compiled(cluster: Any, tmp_path: Path) -> None:
    task = random_next_token(examples=20_000, length=4, vocab=50, labels=16, rng=np.random.default_rng(0))
    killed, kill = killer(cluster)
    found = compile(task, shards=12, executor=Workplace("ray"), report=kill)
    assert killed, "in the middle"
    for built, name in ((found, "ray"), (compile(task, shards=12), "here")):
        (tmp_path / name).mkdir()
        built.write(tmp_path / name)
    names = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert (found.chosen["shards"], "model.safetensors" in names) == (12, True)
    for name in names:
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name
    assert not cluster.worker_nodes


def test_tasks_on_ray_raise_here_and_what_no_machine_has_room_for_is_refused(cluster: Any) -> None:
    import work

    with Workplace("ray").open(2) as executor:
        assert executor.workers == 2
        found = dict(run_jobs(executor, [Job(k, work.power, (k,), memory=1 << 20) for k in range(4)]))
        assert {k: value for k, (value, _) in found.items()} == {k: 2**k for k in range(4)}
        with pytest.raises(BadInput, match="2 is too small; expected 3"):
            dict(run_jobs(executor, [Job("small", work.refuse)]))
        with pytest.raises(BadInput, match=r"huge would take .* bytes of memory; the largest machine of Ray has"):
            dict(run_jobs(executor, [Job("huge", work.power, (1,), memory=1 << 60)]))
