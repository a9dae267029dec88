"""Sources of experiments: names of shipped experiments, or users' own Python files.

Workers in other processes and on other machines receive the source instead of the experiment: a name, or the text of a
file, which they run themselves. So a file may hold functions and classes of any kind, and editing it does not disturb a
run.

A user's file defines one of

- ``CONFIGS``: a list of configs of one class, shipped (``dana_2025.Config(…)``) or defined in the file. The function
  ``work`` of the file trains them, or else the one in the module of their class. ``groups``, looked up in the same two
  places, puts them into jobs; without it each config is a job. ``prepare``, if defined, is for `byheart lab save`;
- ``EXPERIMENT``: an :class:`~byheart.lab.experiments.experiment.Experiment`, or a function from a scale (smoke, short
  or paper) to one.

The file's folder is on the path while the file runs, as for ``python FILE``.
"""

import sys
import traceback
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from functools import cache
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from byheart.errors import BadInput, did_you_mean
from byheart.files.untrusted import read_text
from byheart.lab.experiments.experiment import Experiment


class Source(Hashable, Protocol):
    """A small picklable object from which any process can load an experiment."""

    @property
    def text(self) -> str | None:
        """Text of the user's file, if the experiment comes from one."""

    def load(self) -> Experiment:
        """Return the experiment."""


@dataclass(frozen=True)
class Named:
    """A shipped experiment, by its name and scale."""

    name: str
    scale: str
    text = None

    def load(self) -> Experiment:
        """Look the experiment up. Raise BadInput if there is none of this name."""
        from byheart.lab.experiments import EXPERIMENTS, check_trains

        if self.name not in EXPERIMENTS:
            check_trains(self.name)
            expected = "expected a name of byheart lab list, or a Python file"
            if Path(self.name).is_dir():
                raise BadInput(f"{self.name}: is a folder; {expected}")
            hint = did_you_mean(self.name, EXPERIMENTS, expected)
            raise BadInput(f"no experiment is called {self.name!r}; {hint}")
        return EXPERIMENTS[self.name](self.scale)


@dataclass(frozen=True)
class UserFile:
    """A user's own experiment: the text of a Python file, and its path."""

    path: str
    text: str
    scale: str

    def load(self) -> Experiment:
        """Run the file, and return the experiment that it defines by EXPERIMENT or CONFIGS."""
        module = ModuleType(f"byheart_lab_{Path(self.path).stem}")
        module.__file__ = self.path
        sys.modules[module.__name__] = module  # where dataclasses look their module up
        with _explaining(self.path), _on_the_path(Path(self.path).parent):
            exec(compile(self.text, self.path, "exec"), module.__dict__)
            experiment = getattr(module, "EXPERIMENT", None)
            if callable(experiment):
                experiment = experiment(self.scale)
        if experiment is None:
            return self._of_configs(module)
        if not isinstance(experiment, Experiment):
            message = f"EXPERIMENT is {experiment!r}; expected an Experiment, or a function from a scale to one"
            raise BadInput(f"{self.path}: {message}")
        return experiment

    def _of_configs(self, module: ModuleType) -> Experiment:
        configs = getattr(module, "CONFIGS", None)
        if not isinstance(configs, list | tuple) or not configs:
            raise BadInput(f"{self.path}: expected it to define CONFIGS, a list of configs, or EXPERIMENT")
        kinds = sorted({type(config).__name__ for config in configs})
        if len(kinds) > 1:
            raise BadInput(
                f"{self.path}: CONFIGS are of several kinds ({', '.join(kinds)}); expected one kind per file"
            )
        if not is_dataclass(configs[0]) or isinstance(configs[0], type):
            message = f"CONFIGS[0] is {configs[0]!r}; expected an instance of a frozen dataclass of plain values"
            raise BadInput(f"{self.path}: {message}")
        home = sys.modules[type(configs[0]).__module__]
        names = ("work", "groups", "prepare")
        work, groups, prepare = (getattr(module, name, getattr(home, name, None)) for name in names)
        if not callable(work):
            message = f"no function trains a {kinds[0]}: define work(configs, device, report) in the file,"
            raise BadInput(f"{self.path}: {message} which returns a dictionary of metrics for each config, in order")
        if not _takes_three(work):
            raise BadInput(f"{self.path}: work takes {signature(work)}; expected work(configs, device, report)")
        return Experiment(Path(self.path).stem, self.scale, tuple(configs), groups or _alone, work, prepare)


@dataclass(frozen=True, eq=False)
class Given:
    """An experiment that a program has at hand. For other processes, all of it has to be picklable."""

    experiment: Experiment
    text = None

    def load(self) -> Experiment:
        """Return the experiment."""
        return self.experiment


def _takes_three(function: Callable[..., Any]) -> bool:
    """Return True if a function can be called with three arguments, or if its signature is unknown."""
    try:
        signature(function).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _alone(configs: Sequence[Any]) -> list[list[Any]]:
    return [[config] for config in configs]


@cache
def load(source: Source) -> Experiment:
    """Return the source's experiment; a process runs a file only once."""
    return source.load()


def source(name: str, scale: str) -> Source:
    """Return the source that a user names: a file if the name ends in .py, or else a shipped experiment."""
    if not name.endswith(".py"):
        return Named(name, scale)
    return UserFile(str(Path(name).resolve()), read_text(Path(name)), scale)


@contextmanager
def _explaining(path: str) -> Iterator[None]:
    """Turn errors of a user's file into BadInput with the line of the file."""
    try:
        yield
    except BadInput:
        raise
    except SyntaxError as error:
        raise BadInput(f"{error.filename}:{error.lineno}: {error.msg}; expected a Python file") from error
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        place = f"{path}:{lines[-1]}" if lines else path
        raise BadInput(f"{place}: {type(error).__name__}: {error}") from error


@contextmanager
def _on_the_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
