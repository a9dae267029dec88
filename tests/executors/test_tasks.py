"""Tasks: the same values from every executor, errors with their keys, never more out than there is room for."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.executors import Executor, Job, Local, Processes, Workplace, run_jobs
from byheart.executors.processes import _without_interrupts


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import work

    return work


@pytest.fixture
def two(work: Any) -> Iterator[Processes]:
    """Two processes that share the number 2."""
    with Processes(2, workers=2) as executor:
        yield executor


def powers(work: Any) -> list[Job]:
    return [Job(f"2^{k}", work.power, (k,)) for k in range(6)]


def test_processes_give_what_this_process_gives_and_share_what_is_shared(work: Any, two: Processes) -> None:
    with Local(2) as here:
        expected = {key: value for key, (value, _) in run_jobs(here, powers(work))}
    assert expected == {f"2^{k}": 2**k for k in range(6)}
    said: list[tuple[Any, ...]] = []
    found = dict(run_jobs(two, powers(work), report=lambda *told: said.append(told)))
    assert {key: value for key, (value, _) in found.items()} == expected
    processes = {process for _, process in found.values()}
    assert len(processes) <= 2
    assert os.getpid() not in processes
    assert sorted(said) == [(k, k, "") for k in range(6)]


def test_what_a_task_raises_is_raised_here(work: Any, two: Processes) -> None:
    for executor in (Local(2), two):
        with pytest.raises(BadInput, match="2 is too small; expected 3"):
            dict(run_jobs(executor, [Job("small", work.refuse)]))
    with pytest.raises(RuntimeError, match="OddError: odd") as caught:
        dict(run_jobs(two, [Job("odd", work.fail)]))
    assert "in fail" in caught.value.__notes__[0], "where it was"


def test_a_task_whose_process_dies_is_done_by_another_and_named_if_it_dies_for_ever(
    work: Any, two: Processes, tmp_path: Path
) -> None:
    peaks: list[int] = []
    dying = Job("dies three times", work.die, (3, tmp_path))
    assert dict(run_jobs(two, [dying, *powers(work)], peaks=peaks))["dies three times"] == 3
    assert len(peaks) == 7
    assert min(peaks) > 1 << 20, "bytes"
    with pytest.raises(BadInput, match=r"dies for ever: the worker's process died \(signal 9\); .*fewer --workers"):
        dict(run_jobs(two, [Job("dies for ever", work.die, (9, tmp_path))]))
    assert len([*tmp_path.iterdir()]) == 3 + 4, "once, and three times more"


class Noting(Local):
    """Notes how many tasks are out, and how much memory they were said to take."""

    slots = 3
    memory: int | None = 100

    def __init__(self) -> None:
        super().__init__()
        self.most_out = self.most_taken = 0

    def start(self, task: Job) -> None:
        super().start(task)
        self.most_out = max(self.most_out, len(self._started))
        self.most_taken = max(self.most_taken, sum(task.memory or 0 for task in self._started))


@pytest.mark.parametrize(("memory", "out"), [(None, 3), (40, 2), (51, 1), (1000, 1)])
def test_no_more_are_out_than_there_is_room_for_but_always_one(memory: int | None, out: int) -> None:
    with Noting() as executor:
        tasks = (Job(number, lambda report: None, memory=memory) for number in range(10))
        keys = [key for key, _ in run_jobs(executor, tasks)]
    assert sorted(keys) == list(range(10))
    assert executor.most_out == out
    assert executor.most_taken == out * (memory or 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "threads"}, "executor is 'threads'; expected local, processes, ray"),
        ({"workers": 2}, "workers are for the executors processes and ray"),
        ({"name": "processes", "workers": 0}, "workers is 0; expected a whole number from 1 to"),
        ({"name": "processes", "runtime_env": {}}, "runtime_env is for the executor ray"),
    ],
)
def test_a_workplace_is_one_that_there_is(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Workplace(**options)


def test_workplaces_open() -> None:
    def opened(*given: Any) -> Executor:
        return Workplace(*given).open()

    assert isinstance(opened(), Local)
    with opened("processes", 3) as executor:
        assert (executor.workers, executor.slots) == (3, 3)


@pytest.mark.skipif("ray" in sys.modules, reason="Ray is there")
def test_without_ray_its_executor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadInput, match="executor ray needs ray"):
        Workplace("ray").open()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="here Ctrl-C is ignored while a process starts")
def test_control_c_is_heard_even_if_it_comes_while_a_process_is_started() -> None:
    handler, heard = signal.signal(signal.SIGINT, lambda *_: heard.append("then")), list[str]()
    try:
        with _without_interrupts():
            signal.raise_signal(signal.SIGINT)
            heard.append("first")
    finally:
        signal.signal(signal.SIGINT, handler)
    assert heard == ["first", "then"]
