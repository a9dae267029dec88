"""Runs put together: nothing twice, nothing lost, and no disagreement unnoticed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.executors import Local
from byheart.lab.jobs import Part, execute
from byheart.lab.merging import merge
from byheart.lab.rows import read_rows
from byheart.lab.runs import Run
from byheart.lab.sources import Source, load
from byheart.papers.experiments import source

TOY = Path(__file__).with_name("toy.py")
Machine = Callable[..., Path]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A part of the toy done in a folder of this name."""

    def work(name: str, part: Part | None = None, broken: str = "") -> Path:
        here = tmp_path / f"machine-{name}"
        if not here.exists():
            here.mkdir()
            shutil.copy(TOY, here)
        (here / "broken").write_text(broken)
        sweep(source(str(here / "toy.py"), "smoke"), tmp_path / name, part)
        return tmp_path / name

    return work


def sweep(origin: Source, folder: Path, part: Part | None = None) -> Run:
    with Local(origin) as executor, Run.resume(folder, load(origin), origin.text) as run:
        execute(run, load(origin), executor, part=part)
    return run


def changed(folder: Path, place: int, **changes: Any) -> None:
    """Change the row at this place of a run's results."""
    lines = (folder / "results.jsonl").read_text().splitlines()
    row = json.loads(lines[place])
    lines[place] = json.dumps(row | {name: row[name] | value for name, value in changes.items()})
    (folder / "results.jsonl").write_text("".join(f"{line}\n" for line in lines))


def results(folder: Path) -> dict[str, Any]:
    return {row.key: (row.config, row.status, row.metrics) for row in Run.open(folder).rows}


def test_parts_of_several_machines_are_one_run(machine: Machine, tmp_path: Path) -> None:
    whole = machine("whole")
    merged = merge([machine(str(k), Part(k, 3)) for k in (3, 1, 2)], tmp_path / "merged")
    assert (merged.done, len(merged.pending())) == (32, 0)
    assert results(tmp_path / "merged") == results(whole)
    assert len(read_rows(tmp_path / "merged" / "results.jsonl")) == 32
    assert [*results(tmp_path / "merged")] == [*merged.configs], "in the order of the configs"
    assert (tmp_path / "merged" / "experiment.py").read_text() == TOY.read_text()
    assert sorted(path.name for path in merged.folder.iterdir()) == ["config.json", "experiment.py", "results.jsonl"]


def test_equal_rows_are_kept_once_whatever_time_they_took(machine: Machine, tmp_path: Path) -> None:
    first, second = machine("first"), machine("second", Part(1, 2))
    changed(first, 0, metrics={"seconds": 3.0})
    changed(second, 0, metrics={"seconds": 5.0})
    assert merge([first, second], tmp_path / "merged").done == 32
    assert len(read_rows(tmp_path / "merged" / "results.jsonl")) == 32


@pytest.mark.parametrize(
    ("metrics", "told"), [({"accuracy": 0.5}, "accuracy is 0.0 and 0.5"), ({"more": 1}, "more is None and 1")]
)
def test_rows_that_disagree_are_refused_with_both_named(
    machine: Machine, tmp_path: Path, metrics: dict[str, float], told: str
) -> None:
    first, second = machine("first"), machine("second")
    changed(second, 0, metrics=metrics)
    with pytest.raises(BadInput) as refused:
        merge([first, second], tmp_path / "merged")
    assert f"{first} and {second} disagree about " in str(refused.value)
    assert f"(heads 1, seed 0): {told}; expected equal results" in str(refused.value)
    assert not (tmp_path / "merged").exists()


def test_a_metric_that_is_a_text_in_one_run_and_a_number_in_another_is_refused(
    machine: Machine, tmp_path: Path
) -> None:
    """What came of it was written, and could not be read."""
    first, second = machine("first", Part(1, 2)), machine("second", Part(2, 2))
    changed(first, 0, metrics={"more": "x"})
    changed(second, 0, metrics={"more": 1})
    with pytest.raises(BadInput, match=f"{first} and {second}: more is a text"):
        merge([first, second], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_what_failed_on_one_machine_and_is_done_on_another_is_done(machine: Machine, tmp_path: Path) -> None:
    first, second = machine("first", broken="3,2 4,0"), machine("second", broken="4,0")
    for place, runs in enumerate(([first, second], [second, first])):
        merged = merge(runs, tmp_path / f"merged-{place}")
        assert (merged.done, merged.failed) == (31, 1)


def test_a_merged_run_is_resumed_and_knows_its_sessions(machine: Machine, tmp_path: Path) -> None:
    folders = [machine("1", Part(1, 4)), machine("2", Part(2, 4))]
    merged = merge(folders, tmp_path / "merged")
    assert (merged.done, len(merged.pending()), len(merged.about["sessions"])) == (16, 16, len(sessions(folders)))
    run = sweep(source(str(tmp_path / "machine-1" / "toy.py"), "smoke"), tmp_path / "merged")
    assert (run.done, len(run.about["sessions"])) == (32, len(sessions(folders)) + 1)


def sessions(folders: list[Path]) -> set[str]:
    return {repr(session) for folder in folders for session in Run.open(folder).about["sessions"]}


def other_scale(folder: Path) -> None:
    about = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(about | {"scale": "paper"}))


def other_configs(folder: Path) -> None:
    about = json.loads((folder / "config.json").read_text())
    first = next(iter(about["configs"]))
    about["configs"]["0123456789abcdef"] = about["configs"].pop(first)
    (folder / "config.json").write_text(json.dumps(about))
    lines = [line for line in (folder / "results.jsonl").read_text().splitlines() if first not in line]
    (folder / "results.jsonl").write_text("".join(f"{line}\n" for line in lines))


def other_program(folder: Path) -> None:
    (folder / "experiment.py").write_text("# another one\n")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (other_scale, "are runs of toy at scale smoke and toy at scale paper; expected one experiment and scale"),
        (other_configs, "have different configs (2 are in one of them only)"),
        (other_program, "differ; expected one program"),
    ],
)
def test_runs_of_different_things_are_refused(
    machine: Machine, tmp_path: Path, change: Callable[[Path], None], told: str
) -> None:
    first, second = machine("first", Part(1, 8)), machine("second", Part(1, 8))
    change(second)
    with pytest.raises(BadInput) as refused:
        merge([first, second], tmp_path / "merged")
    assert told in str(refused.value)
    assert str(first) in str(refused.value)
    assert str(second) in str(refused.value)


def test_one_run_and_a_place_that_is_taken_are_refused(machine: Machine, tmp_path: Path) -> None:
    first, second = machine("first", Part(1, 8)), machine("second", Part(2, 8))
    with pytest.raises(BadInput, match="1 folders"):
        merge([first], tmp_path / "merged")
    with pytest.raises(BadInput, match="is also what is read"):
        merge([first, second], first)
    with pytest.raises(BadInput, match="expected the name of a new folder"):
        merge([first, second], tmp_path / "machine-first")
