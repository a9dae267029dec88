"""Inner loops that numba compiles. This module imports numba; import it where it is needed."""

from collections.abc import Callable
from typing import Any

import numba


def jit(function: Callable[..., Any]) -> Any:
    """Compiled when it is first called; kept for later processes, where there is a folder to keep it in."""
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither Byheart's own folder nor the user's can be written to
        return numba.njit(nogil=True)(function)
