"""Inner loops that numba compiles. This module imports numba; import it where it is needed."""

import os
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from byheart.closed import empty_working_directory

with empty_working_directory():
    import numba
    from numba.core import config
    from numba.core.dispatcher import Dispatcher

config._config_fname = os.devnull  # numba reads this file again whenever it compiles


def jit(function: Callable[..., Any]) -> Any:
    """Compile the function at its first call, and keep the code for later processes if a folder can be written to."""
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither Byheart's own folder nor the user's can be written to
        return numba.njit(nogil=True)(function)
    if kept := _kept(compiled):
        # The kept code includes all functions that are called; numba checks only the file of the function itself.
        others = (_kept(other)._source_stamp for other in _within_reach(function) if _kept(other))
        kept._source_stamp = frozenset([kept._source_stamp]).union(*others)
    return compiled


def _kept(compiled: Any) -> Any:
    """Return the file that keeps the code, with a stamp of its source; None if there is none."""
    return getattr(compiled._cache, "_cache_file", None)


def _within_reach(function: Callable[..., Any]) -> Iterator[Any]:
    """Yield all compiled functions that a function may call by name, or by the name of their module."""
    for value in function.__globals__.values():
        members = vars(value).values() if isinstance(value, ModuleType) else (value,)
        yield from (member for member in members if isinstance(member, Dispatcher))
