"""Runs: a sweep's folder, in which nothing that was finished is ever lost, whatever happens to who writes it.

    config.json     what is run: the experiment's name and scale, all its configs by key, their seeds, and for every
                    session the machine and the versions of Python, torch, numpy and Byheart
    results.jsonl   one JSON object per line, appended and fsynced when a job ends: experiment, key (hash of the
                    config), config, status (done or failed), metrics, seconds, error
    lock            held by the process that writes, as long as it lives
    experiment.py   the user's file, where the experiment comes from one
    checkpoints     jobs under way, as far as they are (:mod:`byheart.lab.checkpoints`)

A config counts as done when its line is written (:mod:`byheart.lab.rows`); failed ones are tried again on resuming,
and the later line counts. One process writes at a time (:mod:`byheart.files.locks`). A folder may be anybody's: what it
is is known before anything in it is written, and nothing is written through a link in it; it may be one itself.
"""

import csv
import json
import os
import platform
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from reprlib import repr as shortened
from types import TracebackType
from typing import Any, Self, TypedDict

from byheart.errors import BadInput
from byheart.files.decoding import is_decodable
from byheart.files.locks import Lock, is_locked
from byheart.files.replacement import is_leftover
from byheart.files.untrusted import read_bytes, read_json
from byheart.files.writing import (
    append,
    check_unlinked,
    make_folder,
    new_file,
    new_folder,
    repair_last_line,
    write_text,
)
from byheart.lab.experiment import Experiment, key, to_json
from byheart.lab.former import renamed
from byheart.lab.rows import PlainConfig, ResultRow, is_row, lines_of, read_rows
from byheart.versions import installed_version

FORMAT = "byheart-run-1"
OWN = CONFIG, RESULTS, LOCK, SOURCE = "config.json", "results.jsonl", "lock", "experiment.py"


def keyed(experiment: Experiment) -> dict[str, Any]:
    """The experiment's configs by their keys, in order."""
    return {key(config): config for config in experiment.configs}


class Run:
    """A run's folder. :meth:`open` to read; :meth:`create` and :meth:`resume` to write, as a context manager.

    ``about`` is what config.json holds, ``configs`` the configs by key, ``latest`` their last rows by key.
    """

    def __init__(self, folder: Path, lock: Lock | None = None) -> None:
        self.folder, self._lock = folder, lock
        self.about = _read_about(folder)
        self.configs: dict[str, dict[str, Any]] = self.about["configs"]
        if lock is not None:
            repair_last_line(folder / RESULTS, is_row)
        rows = read_rows(folder / RESULTS)
        self._check_rows(rows)
        self.latest = {row.key: row for row in rows}

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """To read; somebody else may be writing meanwhile."""
        return cls(Path(folder))

    @classmethod
    def create(cls, folder: Path | str, experiment: Experiment, source: str | None = None) -> Self:
        """A new run, to write; ``source`` is the text of the file that the experiment comes from, if it does."""
        folder = Path(folder)
        if (folder / CONFIG).exists():
            raise BadInput(f"{folder}: holds a run already; continue it with --resume, or choose another folder")
        return cls.resume(folder, experiment, source)

    @classmethod
    def resume(cls, folder: Path | str, experiment: Experiment, source: str | None = None) -> Self:
        """The run in ``folder``, to write; a new one if there is none yet. It has to be one of the same configs."""
        folder, configs = Path(folder), keyed(experiment)
        if folder.exists() and not (folder / CONFIG).exists() and not _could_become_a_run(folder):
            raise BadInput(f"{folder}: exists and holds no run; choose another folder")
        for name in OWN:
            check_unlinked(folder / name)
        if (folder / CONFIG).exists():
            cls.open(folder)._check_same(experiment, configs)
        with make_folder(folder):
            return cls._begun(folder, experiment, configs, source)

    @classmethod
    def _begun(cls, folder: Path, experiment: Experiment, configs: Mapping[str, Any], source: str | None) -> Self:
        lock = Lock(folder / LOCK)
        try:
            if not (folder / CONFIG).exists():
                _write_about(folder, _about(experiment))
            run = cls(folder, lock)
            run._check_same(experiment, configs)
            if source is not None:
                write_text(folder / SOURCE, source, check_unlinked)
            _write_about(folder, {**run.about, "sessions": [*run.about["sessions"], _session()]})
            run.about = _read_about(folder)
        except BaseException:
            if not (folder / CONFIG).exists():
                (folder / LOCK).unlink()
            lock.release()
            raise
        return run

    def _check_rows(self, rows: Sequence[ResultRow]) -> None:
        """BadInput unless rows are about the configs that they name, and metrics of one name of one kind."""
        kinds: dict[str, bool] = {}
        for line, row in enumerate(rows, start=1):
            place = f"{self.folder / RESULTS}:{line}"
            if row.experiment != self.name:
                raise BadInput(f"{place}: is a row of {shortened(row.experiment)}; expected one of {self.name}")
            if row.key not in self.configs:
                raise BadInput(f"{place}: {row.key} is no config of this run; remove the line")
            if row.config != self.configs[row.key]:
                raise BadInput(f"{place}: the row of {row.key} has another config than {CONFIG}")
            for name, value in row.metrics.items():
                if value is not None and kinds.setdefault(name, isinstance(value, str)) != isinstance(value, str):
                    raise BadInput(f"{place}: {name} is a text in some rows, and a number in others")

    def _check_same(self, experiment: Experiment, configs: Mapping[str, Any]) -> None:
        if self.about["experiment"] != experiment.name:
            found = f"a run of {self.about['experiment']}"
            raise BadInput(f"{self.folder}: is {found}; expected one of {experiment.name}; choose another folder")
        missing, new = len(self.configs.keys() - configs.keys()), len(configs.keys() - self.configs.keys())
        if missing or new:
            what = f"{new} configs of {experiment.name} at scale {experiment.scale} are not in the run"
            what += f" (scale {self.about['scale']}), and {missing} of the run's are not in the experiment"
            raise BadInput(f"{self.folder}: {what}; choose another folder for them")

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.about["experiment"])

    @property
    def done(self) -> int:
        """How many configs are done."""
        return sum(row.status == "done" for row in self.latest.values())

    @property
    def failed(self) -> int:
        """How many configs failed when they were last tried."""
        return len(self.latest) - self.done

    @property
    def running(self) -> bool:
        """Whether a process is writing the run now."""
        return self._lock is not None or is_locked(self.folder / LOCK)

    @property
    def rows(self) -> list[ResultRow]:
        """The last row of every config that has one, in the order of the configs."""
        return [self.latest[key] for key in self.configs if key in self.latest]

    @property
    def table(self) -> list[dict[str, Any]]:
        """The done rows, config and metrics side by side (:attr:`ResultRow.flat`)."""
        return [row.flat for row in self.rows if row.status == "done"]

    def pending(self) -> list[str]:
        """Keys of the configs that have no done row: those that never ran, and those that failed."""
        return [key for key in self.configs if key not in self.latest or self.latest[key].status == "failed"]

    def append(self, rows: Sequence[ResultRow]) -> None:
        """Write rows, for good: when this returns they are on the disk."""
        if self._lock is None:
            raise BadInput(f"{self.folder}: is open for reading; expected Run.create or Run.resume")
        for row in rows:
            before = self.latest.get(row.key)
            if row.key not in self.configs or (before is not None and before.status == "done"):
                raise BadInput(f"{self.folder}: {row.key} is done already, or no config of this run")
        append(self.folder / RESULTS, lines_of(rows))
        self.latest |= {row.key: row for row in rows}

    def write_csv(self, path: Path | str) -> None:
        """All rows as CSV, failed ones too: key, status, the config's columns, the metrics' columns, seconds, error."""
        rows = [row.flat for row in self.rows]
        names = dict.fromkeys(name for row in rows for name in row)
        last = [name for name in ("seconds", "error") if name in names]
        with new_file(Path(path)) as draft, draft.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [*(name for name in names if name not in last), *last])
            writer.writeheader()
            writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)

    def close(self) -> None:
        """Let others write."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def runs_in(folder: Path | str) -> list[Run]:
    """The runs in the folders right below ``folder``, by name.

    What is no run, or a damaged one, or one that may not be read, is left out.
    """
    found = []
    for path in sorted(Path(folder).iterdir()) if Path(folder).is_dir() else []:
        with suppress(BadInput, OSError):
            if (path / CONFIG).is_file():
                found.append(Run.open(path))
    return found


def write_run(
    folder: Path, about: Mapping[str, Any], rows: Sequence[ResultRow], source: str | None, more: Mapping[str, Path]
) -> None:
    """A new run with these rows, whole or not at all: ``about`` is what its config.json holds, ``more`` are further
    files, by their names in it, to copy.
    """
    with new_folder(folder, _check_free) as draft:
        _write_about(draft, about)
        (draft / RESULTS).write_text(lines_of(rows), encoding="utf-8")
        if source is not None:
            (draft / SOURCE).write_text(source, encoding="utf-8")
        for name, path in more.items():
            (draft / name).parent.mkdir(exist_ok=True)
            (draft / name).write_bytes(read_bytes(path))


def _check_free(folder: Path) -> None:
    """BadInput if there is something in the folder, or something else of this name."""
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise BadInput(f"{folder}: exists; expected the name of a new folder")


def _about(experiment: Experiment) -> dict[str, Any]:
    configs = {name: to_json(config) for name, config in keyed(experiment).items()}
    return {
        "format": FORMAT,
        "experiment": experiment.name,
        "scale": experiment.scale,
        "seeds": sorted({config["seed"] for config in configs.values() if isinstance(config.get("seed"), int)}),
        "configs": configs,
        "sessions": [],
    }


def _session() -> dict[str, Any]:
    """Where and with what somebody is working now."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        **{name: installed_version(name) for name in ("torch", "numpy", "byheart")},
    }


def _could_become_a_run(folder: Path) -> bool:
    """Whether it is a folder that holds nothing but what a run that was killed while it began may have left."""
    former = f".{CONFIG}"  # as earlier versions left it
    return folder.is_dir() and all(path.name in (LOCK, former) or is_leftover(path) for path in folder.iterdir())


class _Session(TypedDict):
    started: str


class _About(TypedDict):
    """Keys of a run's config.json that are read."""

    experiment: str
    scale: str
    configs: dict[str, PlainConfig]
    sessions: list[_Session]


def _read_about(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        found = read_json(path)
    except FileNotFoundError:
        raise BadInput(f"{folder}: no run here (it has no {CONFIG}); byheart lab list FOLDER lists runs") from None
    except BadInput as error:
        raise BadInput(f"{error}; expected the {CONFIG} of a run") from error
    if found.get("format") != FORMAT or not is_decodable(_About, found):
        raise BadInput(f"{path}: expected the {CONFIG} of a run (format {FORMAT})")
    return found | {"configs": {name: renamed(config) for name, config in found["configs"].items()}}


def _write_about(folder: Path, about: Mapping[str, Any]) -> None:
    text = json.dumps(about, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    write_text(folder / CONFIG, text, check_unlinked)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
