"""The registry of constructions: built-in ones, those of installed packages, and those in a user's own files.

A package offers its constructions through the entry point group ``byheart.constructions``, each entry naming a
:class:`~byheart.constructions.construction.Construction`. A file is executed when the user names it, and only then:
nothing in a network's folder leads to code. A built-in construction is imported on its first use, so that the help of
one does not wait for all.
"""

import sys
import warnings
from collections.abc import Iterator, MutableMapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from byheart.constructions.construction import Construction
from byheart.errors import BadInput, did_you_mean

BUILT_IN = (
    "interpolate",
    "vardi_2022",
    "yang_2026",
    "kajitsuka_sato_2025",
    "kim_2023",
    "kajitsuka_sato_2024",
    "folding",
    "mahdavi_2024",
    "dana_2025",
    "madden_2024",
)
"""Modules in this folder. Each defines ``CONSTRUCTION``, whose name is the module's with hyphens."""
GROUP = "byheart.constructions"
_MODULES = {module.replace("_", "-"): f"byheart.constructions.{module}" for module in BUILT_IN}


class Constructions(MutableMapping[str, Construction]):
    """Constructions by name. Built-in ones are imported on first use."""

    def __init__(self) -> None:
        self._loaded: dict[str, Construction | None] = dict.fromkeys(_MODULES)

    def __getitem__(self, name: str) -> Construction:
        if (construction := self._loaded[name]) is None:
            construction = self._loaded[name] = _built_in(name)
        return construction

    def __setitem__(self, name: str, construction: Construction) -> None:
        self._loaded[name] = construction

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)

    def __contains__(self, name: object) -> bool:
        return name in self._loaded


def _built_in(name: str) -> Construction:
    construction: Construction = import_module(_MODULES[name]).CONSTRUCTION
    return construction


CONSTRUCTIONS: MutableMapping[str, Construction] = Constructions()
"""All registered constructions by name; :func:`known` adds those of installed packages first."""


def register(construction: Construction) -> None:
    """Register a construction under its name, replacing an earlier one; built-in names raise BadInput."""
    if construction.name in _MODULES:
        raise BadInput(f"a construction called {construction.name!r} is built in; expected another name")
    CONSTRUCTIONS[construction.name] = construction


def is_built_in(construction: Construction) -> bool:
    """Return True for a built-in construction: a mistake in it is Byheart's own."""
    return construction.name in _MODULES and _built_in(construction.name) is construction


def known() -> MutableMapping[str, Construction]:
    """Return all constructions by name, including those of installed packages."""
    _register_installed()
    return CONSTRUCTIONS


def find(construction: str | Path | Construction) -> Construction:
    """Return a construction by its name or from a user's file; for an unknown name, BadInput suggests the nearest.

    >>> find("foldng")
    Traceback (most recent call last):
    byheart.errors.BadInput: no construction is called 'foldng'; did you mean 'folding'?
    """
    if isinstance(construction, Construction):
        return construction
    if isinstance(construction, Path) or construction.endswith(".py"):
        return from_file(Path(construction))
    if construction not in known():
        raise BadInput(f"no construction is called {construction!r}; {did_you_mean(construction, CONSTRUCTIONS)}")
    return CONSTRUCTIONS[construction]


def from_file(path: Path) -> Construction:
    """Execute a user's file and return its ``CONSTRUCTION``."""
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "no such file"
        raise BadInput(f"{path}: {problem}; expected Python that defines CONSTRUCTION")
    name = f"byheart construction {path.resolve()}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path}: expected a Python file, its name ending in .py")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise BadInput(f"{path}: running it failed: {type(error).__name__}: {error}") from error
    return _checked(getattr(module, "CONSTRUCTION", None), f"{path}: its CONSTRUCTION")


@cache
def _register_installed() -> None:
    """Register the constructions of installed packages, once; one that does not load is skipped with a warning."""
    for entry in entry_points(group=GROUP):
        try:
            register(_checked(entry.load(), f"entry point {entry.name}"))
        except Exception as error:
            warnings.warn(f"the construction {entry.value} was not loaded: {error}", RuntimeWarning, stacklevel=2)


def _checked(value: object, what: str) -> Construction:
    if not isinstance(value, Construction):
        raise BadInput(f"{what} is {type(value).__name__}; expected a byheart.constructions.Construction")
    return value
