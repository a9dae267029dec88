"""Which constructions there are: the built-in ones, those of installed packages, and those in a user's own files.

A package offers its constructions through the entry point group ``byheart.constructions``, each entry naming a
:class:`~byheart.constructions.construction.Construction`. A file is executed when the user names it, and only then:
nothing in a network's folder leads to code.
"""

import difflib
import importlib.util
import sys
import warnings
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from byheart.constructions import (
    dana_2025,
    folding,
    interpolate,
    kajitsuka_sato_2024,
    kajitsuka_sato_2025,
    kim_2023,
    madden_2024,
    mahdavi_2024,
    vardi_2022,
)
from byheart.constructions.construction import Construction
from byheart.errors import BadInput

BUILT_IN: tuple[ModuleType, ...] = (
    interpolate,
    vardi_2022,
    kajitsuka_sato_2025,
    kim_2023,
    kajitsuka_sato_2024,
    folding,
    mahdavi_2024,
    dana_2025,
    madden_2024,
)
"""Every module defines ``CONSTRUCTION``."""
GROUP = "byheart.constructions"
CONSTRUCTIONS: dict[str, Construction] = {module.CONSTRUCTION.name: module.CONSTRUCTION for module in BUILT_IN}
"""All that are registered by now, by name; :func:`known` looks for those of installed packages first."""


def register(construction: Construction) -> None:
    """Make a construction known everywhere under its name; BadInput if that is the name of a built-in one."""
    if any(module.CONSTRUCTION.name == construction.name for module in BUILT_IN):
        raise BadInput(f"a construction called {construction.name!r} is built in; expected another name")
    CONSTRUCTIONS[construction.name] = construction


def known() -> dict[str, Construction]:
    """All constructions by name, those of installed packages among them."""
    _register_installed()
    return CONSTRUCTIONS


def find(construction: str | Path | Construction) -> Construction:
    """A construction by its name or out of a user's file; BadInput suggests the nearest name.

    >>> find("foldng")
    Traceback (most recent call last):
    byheart.errors.BadInput: no construction is called 'foldng'; did you mean 'folding'?
    """
    if isinstance(construction, Construction):
        return construction
    if isinstance(construction, Path) or construction.endswith(".py"):
        return from_file(Path(construction))
    if construction not in known():
        nearest = difflib.get_close_matches(construction, CONSTRUCTIONS, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(CONSTRUCTIONS)}"
        raise BadInput(f"no construction is called {construction!r}; {hint}")
    return CONSTRUCTIONS[construction]


def from_file(path: Path) -> Construction:
    """Execute a user's file and return its ``CONSTRUCTION``."""
    if not path.is_file():
        raise BadInput(f"{path}: no such file; expected Python that defines CONSTRUCTION")
    name = f"byheart_construction_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path}: expected a Python file, its name ending in .py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInput(f"{path}: it failed: {type(error).__name__}: {error}") from error
    return _checked(getattr(module, "CONSTRUCTION", None), f"{path}: its CONSTRUCTION")


@cache
def _register_installed() -> None:
    """Those of installed packages, once; one that does not load is told about and left out."""
    for entry in entry_points(group=GROUP):
        try:
            register(_checked(entry.load(), f"entry point {entry.name}"))
        except Exception as error:
            warnings.warn(f"the construction {entry.value} was not loaded: {error}", RuntimeWarning, stacklevel=2)


def _checked(value: object, what: str) -> Construction:
    if not isinstance(value, Construction):
        raise BadInput(f"{what} is {type(value).__name__}; expected a byheart.constructions.Construction")
    return value
