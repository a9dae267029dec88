"""A job that is cut off goes on from its checkpoint: elsewhere, in other hands, and to the same bits."""

import json
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byheart.executors import Local
from byheart.files.tensors import read_metadata, write_tensors
from byheart.lab import checkpoints, ensemble
from byheart.lab.checkpoints import Book, files_in, job_of
from byheart.lab.jobs import Part, Progress, execute
from byheart.lab.ledger import StoredPage
from byheart.lab.merging import merge
from byheart.lab.rows import read_rows
from byheart.lab.runs import Run
from byheart.lab.sources import Source, load
from byheart.lab.stack import Stack
from byheart.papers.experiments import source

OWN = """
    import time
    from dataclasses import replace
    from pathlib import Path

    import torch

    from byheart.lab import train
    from byheart.papers import dana_2025 as dana
    from byheart.lab.experiment import Experiment
    from byheart.lab.stack import Stack

    HERE = Path(__file__).parent
    sizes = dict(vocab=6, batch=8, batches=5, epochs=10)
    CONFIGS = tuple(
        dana.DanaConfig("own", model_dim=d, head_dim=d, heads=H, seed=seed, **sizes)
        for d in (2, 3, 4) for H in (1, 2) for seed in range(2)
    )


    class Slow:
        start = Stack.start

        def slowly(self, steps, **how):
            time.sleep(0.6)
            return Slow.start(self, steps, **how)


    def work(configs, device, report):
        if (HERE / "slow").exists():
            Stack.start = Slow.slowly
        if (HERE / "small").exists() and len(configs) > 2:
            raise MemoryError
        outcomes = train([dana.member_of(config) for config in configs], device=device, dtype=torch.float64)
        return [dana.metrics(*pair) for pair in zip(configs, outcomes)]


    EXPERIMENT = Experiment("own", "smoke", CONFIGS, dana.groups, work)
"""
Kill = Callable[..., Path]


def own(folder: Path, text: str = OWN) -> Source:
    """The experiment, on a machine with this folder: three jobs of four models."""
    folder.mkdir(exist_ok=True)
    (folder / "own.py").write_text(textwrap.dedent(text))
    return source(str(folder / "own.py"), "smoke")


def go(origin: Source, folder: Path, make: Callable[[Source], Any] = Local, **how: Any) -> Progress:
    with make(origin) as executor, Run.resume(folder, load(origin), origin.text) as run:
        return execute(run, load(origin), executor, **how)


def results(folder: Path) -> dict[str, Any]:
    """All that is known of every model, in the order of the configs, but for the time that it took."""
    return {row.key: (row.config, row.status, row.metrics) for row in Run.open(folder).rows}


@pytest.fixture(autouse=True)
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 16 steps, and after 32 more, however long they take."""
    monkeypatch.setattr(ensemble, "SECONDS_PER_LOOK", 1e9)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    here = tmp_path_factory.mktemp("undisturbed")
    go(own(here), here / "run")
    found = results(here / "run")
    losses = [metrics["loss"] for _, _, metrics in found.values()]
    assert len({*losses}) == 12, "numbers that would differ if something were not the same"
    return found


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kill:
    """A run that ends with everything under way when checkpoints have been written so often."""

    def kill(after: int, origin: Source | None = None, **how: Any) -> Path:
        written = list[Path]()
        write = Book.write

        def counted(self: Book, page: StoredPage) -> None:
            write(self, page)
            written.append(self._path)
            if len(written) == after:
                raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(checkpoints, "WRITING_TIMES", 0)
            patched.setattr(Book, "write", counted)
            with pytest.raises(KeyboardInterrupt):
                go(origin or own(tmp_path), tmp_path / "run", checkpoint_every=1e-9, **how)
        assert files_in(tmp_path / "run" / "checkpoints")
        return tmp_path / "run"

    return kill


@pytest.fixture
def went_on(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps at which stacks went on."""
    steps = list[int]()
    go_on = Stack.go_on

    def noted(self: Stack, step: int, matrices: Any) -> None:
        steps.append(step)
        go_on(self, step, matrices)

    monkeypatch.setattr(Stack, "go_on", noted)
    return steps


@pytest.mark.parametrize(("after", "steps"), [(3, []), (7, [48])])
def test_it_goes_on_where_it_was(
    killed: Kill, undisturbed: dict[str, Any], went_on: list[int], after: int, steps: list[int], tmp_path: Path
) -> None:
    """A job has two stacks of 50 steps: kept at 16, at 48, when the first is over, and then the second at 16 and 48."""
    folder = killed(after)
    assert went_on == []
    reached = go(own(tmp_path), folder)
    assert (reached.done, reached.notes) == (12, ())
    assert went_on == steps
    assert results(folder) == undisturbed
    assert not (folder / "checkpoints").exists()


class ForMany(Local):
    """An executor that wants jobs for more workers than there are."""

    workers = 12


def test_a_job_stays_as_it_was_cut_however_many_workers_there_are(
    killed: Kill, undisturbed: dict[str, Any], went_on: list[int], tmp_path: Path
) -> None:
    folder = killed(1)
    assert len(job_of(files_in(folder / "checkpoints")[0])[0]) == 4
    assert go(own(tmp_path), folder, ForMany).notes == ()
    assert len(went_on) == 1
    ours = [*undisturbed][:4]
    assert {name: results(folder)[name] for name in ours} == {name: undisturbed[name] for name in ours}


def test_half_a_job_goes_on_as_half_a_job(killed: Kill, went_on: list[int], tmp_path: Path) -> None:
    """A job of four fails and is cut in two, and the first half is killed: nobody tries the four again."""
    origin = own(tmp_path)
    (tmp_path / "small").touch()
    folder = killed(1, origin)
    [file] = files_in(folder / "checkpoints")
    assert len(job_of(file)[0]) == 2
    assert go(origin, folder).done == 12
    assert len(went_on) == 1


def test_other_models_under_the_same_keys_begin_anew(killed: Kill, went_on: list[int], tmp_path: Path) -> None:
    folder = killed(1)
    [file] = files_in(folder / "checkpoints")
    other = own(tmp_path, OWN.replace("dana.member_of(config)", "replace(dana.member_of(config), seed=5)"))
    [note] = go(other, folder).notes
    why = "it belongs to other models: settings, seeds, data or program have changed"
    assert note == f"{file}: not used, its job begins anew: {why}"
    assert went_on == []
    go(other, tmp_path / "whole")
    assert results(folder) == results(tmp_path / "whole")


def test_a_program_that_was_edited_begins_anew(
    killed: Kill, undisturbed: dict[str, Any], went_on: list[int], tmp_path: Path
) -> None:
    """Settings, seeds and data are the same; what a model of one's own computes, the text alone says."""
    folder = killed(1)
    [note] = go(own(tmp_path, f"{OWN}    # edited\n"), folder).notes
    assert note.endswith("it belongs to other models: settings, seeds, data or program have changed")
    assert went_on == []
    assert results(folder) == undisturbed


def test_a_checkpoint_that_names_a_model_twice_gives_it_one_row(
    killed: Kill, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    folder = killed(1)
    [file] = files_in(folder / "checkpoints")
    about = json.loads(read_metadata(file)["byheart"])
    about["keys"] += about["keys"][-1:]
    file.unlink()
    file = file.with_name(f"{checkpoints.name_of(tuple(about['keys']))}-1.safetensors")
    write_tensors(file, {}, {"byheart": json.dumps(about)})
    [note] = go(own(tmp_path), folder).notes
    assert note == f"{file}: not used, its job begins anew: its keys are not a list of different texts"
    assert [row.key for row in read_rows(folder / "results.jsonl")] == [*undisturbed]
    assert results(folder) == undisturbed


def test_a_checkpoint_of_models_some_of_which_are_done_is_not_used(
    killed: Kill, undisturbed: dict[str, Any], went_on: list[int], tmp_path: Path
) -> None:
    folder = killed(1)
    [file] = files_in(folder / "checkpoints")
    shutil.copytree(folder / "checkpoints", tmp_path / "kept")
    go(own(tmp_path), folder)
    lines = (folder / "results.jsonl").read_text().splitlines(keepends=True)
    (folder / "results.jsonl").write_text("".join(lines[1:]))
    shutil.copytree(tmp_path / "kept", folder / "checkpoints")
    went_on.clear()
    [note] = go(own(tmp_path), folder).notes
    assert note == f"{file}: not used, its models are in other jobs now, which begin anew"
    assert went_on == []
    assert results(folder).keys() == undisturbed.keys()
    assert not (folder / "checkpoints").exists()


def test_the_checkpoint_of_another_part_is_left_alone(
    killed: Kill, undisturbed: dict[str, Any], went_on: list[int], tmp_path: Path
) -> None:
    folder = killed(1, part=Part(1, 3))
    reached = go(own(tmp_path), folder, part=Part(2, 3))
    assert (reached.notes, went_on, len(files_in(folder / "checkpoints"))) == ((), [], 1)
    go(own(tmp_path), folder)
    assert len(went_on) == 1
    assert results(folder) == undisturbed


def test_checkpoints_are_merged_too(
    killed: Kill, undisturbed: dict[str, Any], went_on: list[int], tmp_path: Path
) -> None:
    """Those of jobs that nobody has ended."""
    folder = killed(1, part=Part(1, 3))
    go(own(tmp_path / "two"), tmp_path / "two" / "run", part=Part(2, 3))
    merged = merge([folder, tmp_path / "two" / "run"], tmp_path / "merged")
    assert [path.name for path in files_in(merged.folder / "checkpoints")] == [
        path.name for path in files_in(folder / "checkpoints")
    ]
    go(own(tmp_path / "two"), tmp_path / "merged")
    assert len(went_on) == 1
    assert results(tmp_path / "merged") == undisturbed
    go(own(tmp_path / "three"), tmp_path / "three" / "run", part=Part(1, 3))
    again = merge([folder, tmp_path / "three" / "run"], tmp_path / "again")
    assert not (again.folder / "checkpoints").exists(), "it is done"


def test_what_is_not_trained_by_train_is_waited_for(tmp_path: Path) -> None:
    text = OWN.replace(
        "outcomes = train(", "time.sleep(0.01)\n        return [{} for _ in configs]\n        outcomes = train("
    )
    reached = go(own(tmp_path, text), tmp_path / "run", seconds=1e-3)
    assert (reached.under_way, reached.now in (0, 4)) == (0, True)


@pytest.mark.slow
def test_killed_carried_elsewhere_finished_and_merged_it_is_the_same_bits(
    undisturbed: dict[str, Any], went_on: list[int], tmp_path: Path
) -> None:
    """The must-show, in float64 on the CPU: kill -9 while two processes are in the middle of a job each."""
    own(tmp_path / "one")
    (tmp_path / "one" / "slow").touch()
    command = [sys.executable, "-m", "byheart", "lab", "run", "own.py", "--out", "run", "--part", "1/2"]
    command += ["--checkpoint-every", "0.01", "--executor", "processes", "--jobs", "2"]
    there = tmp_path / "one" / "run"
    with subprocess.Popen(command, cwd=tmp_path / "one") as run:
        end = time.monotonic() + 120
        while not files_in(there / "checkpoints"):
            assert time.monotonic() < end
            time.sleep(0.05)
        run.send_signal(signal.SIGKILL)
    assert len(read_rows(there / "results.jsonl")) < 8
    shutil.copytree(there, tmp_path / "elsewhere" / "run")
    reached = go(own(tmp_path / "elsewhere"), tmp_path / "elsewhere" / "run", part=Part(1, 2))
    assert (reached.done, reached.notes) == (8, ())
    assert went_on
    assert min(went_on) >= 16
    go(own(tmp_path / "two"), tmp_path / "two" / "run", part=Part(2, 2))
    merged = merge([tmp_path / "elsewhere" / "run", tmp_path / "two" / "run"], tmp_path / "merged")
    assert merged.pending() == []
    assert results(tmp_path / "merged") == undisturbed
