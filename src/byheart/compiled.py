"""Inner loops that numba compiles. This module imports numba; import it where it is needed."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher


def jit(function: Callable[..., Any]) -> Any:
    """Compiled when it is first called; kept for later processes, where there is a folder to keep it in."""
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither Byheart's own folder nor the user's can be written to
        return numba.njit(nogil=True)(function)
    if kept := _kept(compiled):
        # What is kept holds all that the function calls; numba looks only at the file that it is in itself.
        others = (_kept(other)._source_stamp for other in _within_reach(function) if _kept(other))
        kept._source_stamp = frozenset([kept._source_stamp]).union(*others)
    return compiled


def _kept(compiled: Any) -> Any:
    """Where the code is kept, with a stamp of its source; None if it is not."""
    return getattr(compiled._cache, "_cache_file", None)


def _within_reach(function: Callable[..., Any]) -> Iterator[Any]:
    """All compiled functions that a function may call by name, or by the name of their module."""
    for value in function.__globals__.values():
        members = vars(value).values() if isinstance(value, ModuleType) else (value,)
        yield from (member for member in members if isinstance(member, Dispatcher))
