"""Sources of experiments: small values from which a worker anywhere gets the experiment itself.

Workers in other processes and on other machines receive the source, not the experiment: a paper's name
(:mod:`byheart.papers.experiments`), or the text of a user's Python file, which they run themselves. So a file may hold
functions and classes of any kind, and editing it does not disturb a run.

A user's file defines one of

- ``CONFIGS``: a list of configs of one kind, a paper's (``DanaConfig(…)``) or the file's own. The function ``work`` of
  the file trains them, or else the one beside their class. The function ``groups``, looked up in the same two places,
  says which are trained together; without it they are trained one by one. An optional ``prepare`` serves
  `byheart lab save`;
- ``EXPERIMENT``: an :class:`~byheart.lab.experiment.Experiment`, or a function from a scale (smoke, short or paper) to
  one.

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

from byheart.errors import BadInput
from byheart.lab.experiment import Experiment


class Source(Hashable, Protocol):
    """A small picklable value from which any process gets an experiment."""

    @property
    def text(self) -> str | None:
        """Text of the file that defines the experiment, if there is one."""

    def load(self) -> Experiment:
        """Return the experiment."""


@dataclass(frozen=True)
class UserFile:
    """A user's own experiment: the text of a Python file, and the path it was read from."""

    path: str
    text: str
    scale: str

    def load(self) -> Experiment:
        """Run the file and return its EXPERIMENT, or an experiment of its CONFIGS."""
        module = ModuleType(f"byheart_lab_{Path(self.path).stem}")
        module.__file__ = self.path
        sys.modules[module.__name__] = module  # where dataclasses look their module up
        with _explaining(self.path), _on_the_path(Path(self.path).parent):
            exec(compile(self.text, self.path, "exec"), module.__dict__)
            experiment = getattr(module, "EXPERIMENT", None)
            if callable(experiment):
                experiment = experiment(self.scale)
        if experiment is None:
            return self._experiment_of_configs(module)
        if not isinstance(experiment, Experiment):
            problem = f"EXPERIMENT is {experiment!r}; expected an Experiment, or a function from a scale to one"
            raise BadInput(f"{self.path}: {problem}")
        return experiment

    def _experiment_of_configs(self, module: ModuleType) -> Experiment:
        configs = getattr(module, "CONFIGS", None)
        if not isinstance(configs, list | tuple) or not configs:
            raise BadInput(f"{self.path}: expected it to define CONFIGS, a list of configs, or EXPERIMENT")
        kinds = sorted({type(config).__name__ for config in configs})
        if len(kinds) > 1:
            raise BadInput(f"{self.path}: CONFIGS are of several kinds ({', '.join(kinds)}); expected one per file")
        if not is_dataclass(configs[0]) or isinstance(configs[0], type):
            problem = f"CONFIGS[0] is {configs[0]!r}; expected an instance of a frozen dataclass of plain values"
            raise BadInput(f"{self.path}: {problem}")
        home = sys.modules[type(configs[0]).__module__]
        names = ("work", "groups", "prepare")
        work, groups, prepare = (getattr(module, name, getattr(home, name, None)) for name in names)
        if not callable(work):
            problem = f"no function trains a {kinds[0]}; expected work(configs, device, report) in the file"
            raise BadInput(f"{self.path}: {problem}, which returns a dictionary of metrics for each config, in order")
        if not _takes_three_arguments(work):
            problem = f"work takes {signature(work)}; expected work(configs, device, report), as it is called"
            raise BadInput(f"{self.path}: {problem}")
        return Experiment(Path(self.path).stem, self.scale, tuple(configs), groups or _one_by_one, work, prepare)


@dataclass(frozen=True, eq=False)
class Given:
    """An experiment that a program already has; every part of it must be picklable if other processes train it."""

    experiment: Experiment
    text = None

    def load(self) -> Experiment:
        """Return the experiment."""
        return self.experiment


def _takes_three_arguments(function: Callable[..., Any]) -> bool:
    """Return True if the function accepts three arguments, or if its signature cannot be read."""
    try:
        signature(function).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _one_by_one(configs: Sequence[Any]) -> list[list[Any]]:
    return [[config] for config in configs]


@cache
def load(source: Source) -> Experiment:
    """Return the source's experiment; each process runs a file once."""
    return source.load()


@contextmanager
def _explaining(path: str) -> Iterator[None]:
    """Raise errors of a user's file as BadInput that names the line."""
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
