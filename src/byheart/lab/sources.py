"""Where an experiment comes from: a name that we know, or a user's own Python file.

Workers in other processes and on other machines are told the source, not the experiment: a name, or the text of the
file, which they read themselves. So a file may hold functions and classes of any kind, and editing it does not disturb
a run.

A user's file defines one of

- ``CONFIGS``: a list of configs of one kind, ours (``dana_2025.Config(…)``) or the file's own. They are trained by the
  function ``work`` of the file, or else by that beside their class; together as ``groups`` says, sought in the same
  two places, or one by one if there is none; ``prepare``, if there is one, is for `byheart lab save`;
- ``EXPERIMENT``: an :class:`~byheart.lab.experiments.experiment.Experiment`, or a function from a scale (smoke, short
  or paper) to one.

Its folder is on the path while it is read, as for ``python FILE``.
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
    """Something small and picklable that an experiment can be had from, anywhere."""

    @property
    def text(self) -> str | None:
        """The text of the file that it comes from, if it does."""

    def load(self) -> Experiment:
        """The experiment."""


@dataclass(frozen=True)
class Named:
    """An experiment of ours, by its name and scale."""

    name: str
    scale: str
    text = None

    def load(self) -> Experiment:
        """Look it up."""
        from byheart.lab.experiments import EXPERIMENTS, check_trains

        if self.name not in EXPERIMENTS:
            check_trains(self.name)
            expected = "expected a name of byheart lab list, or a Python file"
            if Path(self.name).is_dir():
                raise BadInput(f"{self.name}: is a folder; {expected}")
            meant = did_you_mean(self.name, EXPERIMENTS, expected)
            raise BadInput(f"no experiment is called {self.name!r}; {meant}")
        return EXPERIMENTS[self.name](self.scale)


@dataclass(frozen=True)
class UserFile:
    """A user's own experiment: the text of a Python file, and where it was read."""

    path: str
    text: str
    scale: str

    def load(self) -> Experiment:
        """Run the file and take its EXPERIMENT or CONFIGS."""
        module = ModuleType(f"byheart_lab_{Path(self.path).stem}")
        module.__file__ = self.path
        sys.modules[module.__name__] = module  # dataclasses look for their module there
        with _explaining(self.path), _on_the_path(Path(self.path).parent):
            exec(compile(self.text, self.path, "exec"), module.__dict__)
            found = getattr(module, "EXPERIMENT", None)
            if callable(found):
                found = found(self.scale)
        if found is None:
            return self._of_configs(module)
        if not isinstance(found, Experiment):
            what = f"EXPERIMENT is {found!r}; expected an Experiment, or a function from a scale to one"
            raise BadInput(f"{self.path}: {what}")
        return found

    def _of_configs(self, module: ModuleType) -> Experiment:
        found = getattr(module, "CONFIGS", None)
        if not isinstance(found, list | tuple) or not found:
            raise BadInput(f"{self.path}: expected it to define CONFIGS, a list of configs, or EXPERIMENT")
        kinds = sorted({type(config).__name__ for config in found})
        if len(kinds) > 1:
            raise BadInput(f"{self.path}: CONFIGS are of several kinds ({', '.join(kinds)}); expected one in a file")
        if not is_dataclass(found[0]) or isinstance(found[0], type):
            what = f"CONFIGS[0] is {found[0]!r}; expected a config: an instance of a frozen dataclass of plain values"
            raise BadInput(f"{self.path}: {what}")
        home = sys.modules[type(found[0]).__module__]
        names = ("work", "groups", "prepare")
        work, groups, prepare = (getattr(module, name, getattr(home, name, None)) for name in names)
        if not callable(work):
            what = f"nothing says how a {kinds[0]} is trained: define a function work(configs, device, report) in it"
            raise BadInput(f"{self.path}: {what} that returns a dictionary of metrics for each config, in order")
        if not _takes_three(work):
            what = f"work takes {signature(work)}; expected work(configs, device, report), which it is called with"
            raise BadInput(f"{self.path}: {what}")
        return Experiment(Path(self.path).stem, self.scale, tuple(found), groups or _alone, work, prepare)


@dataclass(frozen=True, eq=False)
class Given:
    """An experiment that a program has at hand; for other processes all of it has to be picklable."""

    experiment: Experiment
    text = None

    def load(self) -> Experiment:
        """Hand it over."""
        return self.experiment


def _takes_three(function: Callable[..., Any]) -> bool:
    """Whether it can be called with three arguments; where nobody can tell, it is believed."""
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
    """The source's experiment; a process reads a file once."""
    return source.load()


def source(given: str, scale: str) -> Source:
    """What a user names: a file if it ends in .py, or else an experiment of ours."""
    if not given.endswith(".py"):
        return Named(given, scale)
    return UserFile(str(Path(given).resolve()), read_text(Path(given)), scale)


@contextmanager
def _explaining(path: str) -> Iterator[None]:
    """Errors of a user's file as BadInput that says on which of its lines."""
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
