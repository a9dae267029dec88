"""Runs: folders with the results of a sweep. No finished result is lost, even if the writing process is killed.

    config.json     what is run: the experiment's name and scale, all its configs by key, their seeds, and for every
                    session the machine and the versions of Python, torch, numpy and Byheart
    results.jsonl   one JSON object per line, appended and fsynced when a job ends: experiment, key (hash of the
                    config), config, status (done or failed), metrics, seconds, error
    lock            held by the process that writes, as long as it lives
    experiment.py   the user's file, if the experiment comes from one
    checkpoints     the state of jobs under way (:mod:`byheart.lab.checkpoints`)

A config is done when its line is written (:mod:`byheart.lab.rows`). Failed configs are tried again when the run is
resumed, and the later line counts. One process writes at a time (:mod:`byheart.files.locks`). Anybody may have written
a folder: its contents are checked before anything is written, and nothing is written through a link inside it. The
folder itself may be a link.
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
from byheart.lab.experiment import Experiment, key, renamed, to_json
from byheart.lab.rows import PlainConfig, ResultRow, is_row, lines_of, read_rows
from byheart.versions import installed_version

FORMAT = "byheart-run-1"
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Beginnings of texts that spreadsheets run."""
OWN = CONFIG, RESULTS, LOCK, SOURCE = "config.json", "results.jsonl", "lock", "experiment.py"
"""Files of a run that Byheart writes."""


def keyed(experiment: Experiment) -> dict[str, Any]:
    """Return the experiment's configs by their keys, in order."""
    return {key(config): config for config in experiment.configs}


class Run:
    """A run's folder: :meth:`open` reads it; :meth:`create` and :meth:`resume` write it, as context managers.

    ``about`` is the content of config.json, ``configs`` are the configs by key, and ``latest`` their last rows by key.
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
        """Open a run to read it, even while another process writes it."""
        return cls(Path(folder))

    @classmethod
    def create(cls, folder: Path | str, experiment: Experiment, source: str | None = None) -> Self:
        """Begin a new run and open it to write; ``source`` is the text of the user's file, if there is one."""
        folder = Path(folder)
        if (folder / CONFIG).exists():
            raise BadInput(f"{folder}: is a run already; continue it with --resume, or choose another folder")
        return cls.resume(folder, experiment, source)

    @classmethod
    def resume(cls, folder: Path | str, experiment: Experiment, source: str | None = None) -> Self:
        """Open the run in ``folder`` to write, or begin it. Raise BadInput if it is a run of other configs."""
        folder, configs = Path(folder), keyed(experiment)
        if folder.exists() and not (folder / CONFIG).exists() and not _could_become_a_run(folder):
            raise BadInput(f"{folder}: exists and is not a run; choose another folder")
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
        """Raise BadInput unless all rows are about configs of this run, and each metric has one type."""
        kinds: dict[str, bool] = {}
        for line, row in enumerate(rows, start=1):
            place = f"{self.folder / RESULTS}:{line}"
            if row.experiment != self.name:
                raise BadInput(f"{place}: the row is about {shortened(row.experiment)}; expected {self.name}")
            if row.key not in self.configs:
                raise BadInput(f"{place}: {row.key} is not a config of this run; remove the line")
            if row.config != self.configs[row.key]:
                raise BadInput(f"{place}: the row of {row.key} has another config than {CONFIG}")
            for name, value in row.metrics.items():
                if value is not None and kinds.setdefault(name, isinstance(value, str)) != isinstance(value, str):
                    raise BadInput(f"{place}: {name} is a text in some rows, and a number in others")

    def _check_same(self, experiment: Experiment, configs: Mapping[str, Any]) -> None:
        if self.about["experiment"] != experiment.name:
            name = self.about["experiment"]
            raise BadInput(
                f"{self.folder}: is a run of {name}; expected one of {experiment.name}; choose another folder"
            )
        missing, new = len(self.configs.keys() - configs.keys()), len(configs.keys() - self.configs.keys())
        if missing or new:
            apart = f"{new} configs of {experiment.name} at scale {experiment.scale} are not in the run"
            apart += f" (scale {self.about['scale']}), and {missing} of the run's are not in the experiment"
            raise BadInput(f"{self.folder}: {apart}; choose another folder for them")

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return str(self.about["experiment"])

    @property
    def done(self) -> int:
        """Number of configs that are done."""
        return sum(row.status == "done" for row in self.latest.values())

    @property
    def failed(self) -> int:
        """Number of configs that failed when they were last tried."""
        return len(self.latest) - self.done

    @property
    def failures(self) -> list[ResultRow]:
        """The rows of configs that failed when they were last tried, in the order of the configs."""
        return [row for row in self.rows if row.status == "failed"]

    @property
    def running(self) -> bool:
        """True if a process is writing the run now."""
        return self._lock is not None or is_locked(self.folder / LOCK)

    @property
    def rows(self) -> list[ResultRow]:
        """The last row of every config that has one, in the order of the configs."""
        return [self.latest[key] for key in self.configs if key in self.latest]

    @property
    def table(self) -> list[dict[str, Any]]:
        """The done rows, each with its config and metrics side by side (:attr:`ResultRow.flat`)."""
        return [row.flat for row in self.rows if row.status == "done"]

    def pending(self) -> list[str]:
        """Return the keys of configs without a done row: those that never ran, and those that failed."""
        return [key for key in self.configs if key not in self.latest or self.latest[key].status == "failed"]

    def append(self, rows: Sequence[ResultRow]) -> None:
        """Write rows durably: when this returns, they are on the disk."""
        if self._lock is None:
            raise BadInput(f"{self.folder}: is open for reading; expected Run.create or Run.resume")
        for row in rows:
            before = self.latest.get(row.key)
            if row.key not in self.configs or (before is not None and before.status == "done"):
                raise BadInput(f"{self.folder}: {row.key} is done already, or not a config of this run")
        append(self.folder / RESULTS, lines_of(rows))
        self.latest |= {row.key: row for row in rows}

    def write_csv(self, path: Path | str) -> None:
        """Write all rows as CSV, also failed ones: key, status, settings, metrics, seconds, error."""
        rows = [row.flat for row in self.rows]
        names = dict.fromkeys(name for row in rows for name in row)
        last = [name for name in ("seconds", "error") if name in names]
        with new_file(Path(path)) as draft, draft.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [*(name for name in names if name not in last), *last])
            writer.writerow({name: _formula_free(name) for name in writer.fieldnames})
            writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)

    def close(self) -> None:
        """Release the lock, so that other processes can write."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def runs_in(folder: Path | str) -> list[Run]:
    """Return the runs in the folders directly below ``folder``, sorted by name.

    Folders that are no runs, are damaged, or cannot be read are left out.
    """
    runs = []
    for path in sorted(Path(folder).iterdir()) if Path(folder).is_dir() else []:
        with suppress(BadInput, OSError):
            if (path / CONFIG).is_file():
                runs.append(Run.open(path))
    return runs


def write_run(
    folder: Path, about: Mapping[str, Any], rows: Sequence[ResultRow], source: str | None, more: Mapping[str, Path]
) -> None:
    """Write a new run with these rows, completely or not at all.

    ``about`` is the content of its config.json. ``more`` are other files to copy, by their names in the run.
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
    """Raise BadInput if the folder is not empty, or if its name belongs to something else."""
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
    """Return the time, the machine and the versions of this session."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        **{name: installed_version(name) for name in ("torch", "numpy", "byheart")},
    }


def _could_become_a_run(folder: Path) -> bool:
    """Return True if the folder holds only files that a run leaves behind when it is killed while it begins."""
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
        about = read_json(path)
    except FileNotFoundError:
        raise BadInput(f"{folder}: no run here (it has no {CONFIG}); byheart lab list FOLDER lists runs") from None
    except BadInput as error:
        raise BadInput(f"{error}; expected the {CONFIG} of a run") from error
    if about.get("format") != FORMAT or not is_decodable(_About, about):
        raise BadInput(f"{path}: expected the {CONFIG} of a run (format {FORMAT})")
    return about | {"configs": {name: renamed(config) for name, config in about["configs"].items()}}


def _write_about(folder: Path, about: Mapping[str, Any]) -> None:
    text = json.dumps(about, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    write_text(folder / CONFIG, text, check_unlinked)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else _formula_free(value)


def _formula_free(value: Any) -> Any:
    """Return a cell with an apostrophe before text that spreadsheets would run as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
