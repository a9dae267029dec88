"""What becomes of jobs that Ray loses, with a stand-in for Ray that loses them as its documentation says.

A task that the memory monitor kills ends in OutOfMemoryError if it may not be retried (``max_retries`` is 0), and is
otherwise tried again without end. ``test_on_ray.py`` runs the same executor on a real cluster, which needs Ray.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.executors import Ray
from byheart.lab.checkpoints import JobKeys
from byheart.lab.experiment import key
from byheart.lab.jobs import Progress, execute
from byheart.lab.runs import Run
from byheart.lab.sources import Source, load
from byheart.papers.experiments import source

TOY = Path(__file__).with_name("toy.py")


class RayError(Exception):
    """The root of Ray's errors."""


NAMES = ("OutOfMemoryError", "WorkerCrashedError", "NodeDiedError", "RayTaskError", "RuntimeEnvSetupError")
ERRORS = {name: type(name, (RayError,), {}) for name in NAMES}


class Cluster(ModuleType):
    """The part of Ray's interface that is used, in this process; ``fate`` says how a job is lost, if it is."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.exceptions = SimpleNamespace(RayError=RayError, **ERRORS)
        self.resources: dict[str, float] = {"CPU": 2.0}
        self.fate: Callable[[JobKeys], str | None] = lambda job: None
        self.begun: list[JobKeys] = []
        self.out = self.most_out = 0
        self.options: dict[str, Any] = {}
        self.init_options: dict[str, Any] | None = None

    def is_initialized(self) -> bool:
        return self.init_options is not None

    def init(self, **options: Any) -> None:
        self.init_options = options

    def shutdown(self) -> None:
        self.init_options = None

    def cancel(self, task: Any, force: bool) -> None:
        self.out -= 1

    def cluster_resources(self) -> dict[str, float]:
        return self.resources

    def remote(self, **options: Any) -> Callable[[Any], Any]:
        self.options = options
        return lambda function: SimpleNamespace(remote=lambda *given: self._submit(function, given))

    def put(self, value: Any) -> Any:
        return value

    def _submit(self, function: Any, given: tuple[Any, ...]) -> object:
        self.out += 1
        self.most_out = max(self.most_out, self.out)
        return Task(call=lambda: function(*given), job=given[1].key)

    def wait(self, tasks: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return tasks[:num_returns], tasks[num_returns:]

    def get(self, task: Any) -> Any:
        self.out -= 1
        self.begun.append(task.job)
        fate = self.fate(task.job)
        if fate == "OutOfMemoryError":
            assert self.options["max_retries"] == 0, "Ray would try it again for ever"
        if fate is not None:
            raise ERRORS[fate](f"as told: {fate}")
        return task.call()


class Task(SimpleNamespace):
    """Something that can be a key."""

    __hash__ = object.__hash__


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    import torch

    threads = torch.get_num_threads()
    found = Cluster()
    monkeypatch.setitem(sys.modules, "ray", found)
    yield found
    torch.set_num_threads(threads)


@pytest.fixture
def toy(tmp_path: Path) -> Source:
    shutil.copy(TOY, tmp_path)
    return source(str(tmp_path / "toy.py"), "smoke")


def sweep(toy: Source, tmp_path: Path, **options: Any) -> tuple[Run, Progress]:
    with Ray(toy, **options) as executor, Run.resume(tmp_path / "run", load(toy), toy.text) as run:
        return run, execute(run, load(toy), executor)


def test_jobs_that_are_killed_for_memory_are_cut_until_they_fit(cluster: Cluster, toy: Source, tmp_path: Path) -> None:
    cluster.fate = lambda job: "OutOfMemoryError" if len(job) > 1 else None
    _, reached = sweep(toy, tmp_path)
    assert (reached.done, reached.failed) == (32, 0)
    assert len(cluster.begun) == len({*cluster.begun}) == 8 * (1 + 2 + 4), "nothing is tried twice as it is"


def test_a_config_that_does_not_fit_alone_has_failed(cluster: Cluster, toy: Source, tmp_path: Path) -> None:
    greedy = key(load(toy).configs[0])
    cluster.fate = lambda job: "OutOfMemoryError" if greedy in job else None
    run, reached = sweep(toy, tmp_path)
    assert (reached.done, reached.failed) == (31, 1)
    assert run.latest[greedy].error == "lost: OutOfMemoryError"
    assert cluster.begun.count((greedy,)) == 1


def test_jobs_that_wait_for_a_place_when_the_time_is_over_are_handed_back(
    cluster: Cluster, toy: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four jobs are out, and the time is over after the first: the others are not begun."""
    clock = SimpleNamespace(time=lambda: 100.0 * bool((tmp_path / "begun").exists()), monotonic=lambda: 0.0)
    monkeypatch.setattr("byheart.lab.checkpoints.time", clock)
    with Ray(toy) as executor, Run.resume(tmp_path / "run", load(toy)) as run:
        reached = execute(run, load(toy), executor, seconds=50)
    assert len(cluster.begun) == 4, "four were handed out"
    assert len((tmp_path / "begun").read_text().splitlines()) == 4, "one was begun: four models"
    assert (reached.done, reached.left, reached.under_way) == (4, 28, 0)
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_job_whose_machine_died_is_done_on_another(cluster: Cluster, toy: Source, tmp_path: Path) -> None:
    died: list[JobKeys] = []

    def fate(job: JobKeys) -> str | None:
        died.append(job)
        return "NodeDiedError" if died.count(job) <= 3 else None

    cluster.fate = fate
    _, reached = sweep(toy, tmp_path)
    assert (reached.done, reached.failed) == (32, 0)
    assert len(cluster.begun) == 8 * 4
    assert {len(job) for job in cluster.begun} == {4}, "no job was cut"


def test_machines_that_die_for_ever_end_in_failures(cluster: Cluster, toy: Source, tmp_path: Path) -> None:
    cluster.fate = lambda job: "NodeDiedError"
    run, reached = sweep(toy, tmp_path)
    assert (reached.done, reached.failed) == (0, 32)
    assert {row.error for row in run.rows} == {"lost: NodeDiedError"}
    assert len(cluster.begun) == 4 * 8 * (1 + 2 + 4), "four times each"


def test_a_process_that_died_is_taken_for_one_that_needed_too_much(
    cluster: Cluster, toy: Source, tmp_path: Path
) -> None:
    cluster.fate = lambda job: "WorkerCrashedError" if len(job) > 2 else None
    _, reached = sweep(toy, tmp_path)
    assert (reached.done, reached.failed) == (32, 0)
    assert len(cluster.begun) == 8 * (1 + 2)


def test_a_process_of_a_single_config_may_have_died_with_its_machine(
    cluster: Cluster, toy: Source, tmp_path: Path
) -> None:
    cluster.fate = lambda job: "WorkerCrashedError" if len(job) > 1 or cluster.begun.count(job) == 1 else None
    _, reached = sweep(toy, tmp_path)
    assert (reached.done, reached.failed) == (32, 0)
    assert len(cluster.begun) == 8 * (1 + 2 + 2 * 4)


def test_a_task_that_raises_is_not_tried_again(cluster: Cluster, toy: Source, tmp_path: Path) -> None:
    """The work itself raises nothing: this is a worker that cannot read its task, say, without Byheart there."""
    cluster.fate = lambda job: "RayTaskError"
    run, reached = sweep(toy, tmp_path)
    assert (reached.done, reached.failed) == (0, 32)
    assert len(cluster.begun) == len({*cluster.begun})
    assert {row.error for row in run.rows} == {"lost: RayTaskError"}


def test_no_more_jobs_are_out_than_twice_the_places_and_machines_that_join_get_theirs(
    cluster: Cluster, toy: Source, tmp_path: Path
) -> None:
    sweep(toy, tmp_path)
    assert cluster.most_out == 4
    shutil.rmtree(tmp_path / "run")
    cluster.most_out = 0

    def join(job: JobKeys) -> None:
        cluster.resources = {"CPU": 3.0}

    cluster.fate = join
    sweep(toy, tmp_path)
    assert cluster.most_out == 6
    shutil.rmtree(tmp_path / "run")
    cluster.most_out = 0
    sweep(toy, tmp_path, workers=1)
    assert cluster.most_out == 1


@pytest.mark.parametrize(("share", "places"), [(1.0, 2), (0.5, 4), (0.4, 4), (0.25, 8)])
def test_jobs_share_gpus(cluster: Cluster, toy: Source, share: float, places: int) -> None:
    cluster.resources = {"CPU": 16.0, "GPU": 2.0}
    with Ray(toy, gpus=share) as executor:
        assert (executor.workers, executor.slots) == (places, 2 * places)
    assert cluster.options == {"max_retries": 0, "num_gpus": share}


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, float("nan")])
def test_a_share_of_a_gpu_is_a_share(cluster: Cluster, toy: Source, share: float) -> None:
    with pytest.raises(BadInput, match="expected more than 0, and at most 1"):
        Ray(toy, gpus=share)
    assert not cluster.is_initialized()


def test_the_runtime_environment_is_passed_on(cluster: Cluster, toy: Source) -> None:
    with Ray(toy, runtime_env={"pip": ["byheart"]}):
        assert cluster.init_options is not None
        assert cluster.init_options["runtime_env"] == {"pip": ["byheart"]}
        with pytest.raises(BadInput, match="Ray runs in this process already"):
            Ray(toy, runtime_env={})
    with Ray(toy):
        assert "runtime_env" not in cluster.init_options


def test_a_runtime_environment_that_cannot_be_had_ends_the_run(cluster: Cluster, toy: Source, tmp_path: Path) -> None:
    cluster.fate = lambda job: "RuntimeEnvSetupError"
    with pytest.raises(BadInput, match=r"runtime environment .*: as told"):
        sweep(toy, tmp_path)
    assert (len(cluster.begun), cluster.out) == (1, 0), "the others were taken back"
