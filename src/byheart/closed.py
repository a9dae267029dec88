"""Keep files of the working directory out of the process.

A user may work in a folder that a stranger has sent. numba reads ``.numba_config.yaml`` from the working directory when
it is imported and whenever it compiles, and ``cache_dir`` in it names a folder of pickles. matplotlib reads
``matplotlibrc`` from there, and a new Python process that runs ``-c`` looks for modules there first. Byheart imports
such libraries, and starts such processes, through the two context managers of this module.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def empty_working_directory() -> Iterator[None]:
    """Make an empty folder the working directory of this process, and go back at the end.

    The folder to go back to is held open, so it is found again even if it cannot be read, or has no name any more.
    """
    here = os.open(".", getattr(os, "O_PATH", os.O_RDONLY))
    try:
        with TemporaryDirectory(prefix="byheart-") as empty:
            os.chdir(empty)
            try:
                yield
            finally:
                os.fchdir(here)
    finally:
        os.close(here)


@contextmanager
def safe_module_path() -> Iterator[None]:
    """Let Python processes that are started meanwhile look for modules in no working directory."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before
