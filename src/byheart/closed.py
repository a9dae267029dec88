"""Keep files of the working directory out of the process, and start processes that share nothing with it.

A user may work in a folder that a stranger has sent. numba reads ``.numba_config.yaml`` from the working directory when
it is imported and whenever it compiles, and ``cache_dir`` in it names a folder of pickles. matplotlib reads
``matplotlibrc`` from there, and a new Python process that runs ``-c`` looks for modules there first. Byheart imports
such libraries, and starts such processes, through the two context managers of this module.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

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


class IsolatedPython:
    """A Python process, offline and in an empty working directory, that finds installed packages, but not Byheart.

    It runs a program that answers each line of JSON with a line of JSON.
    """

    def __init__(self, program: str) -> None:
        self._empty = TemporaryDirectory(prefix="byheart-")
        self._errors: IO[str] = open(Path(self._empty.name, "errors"), "w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LD_LIBRARY_PATH", "LANG")}
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        own = {"HOME": self._empty.name, "HF_HOME": f"{self._empty.name}/hf", "TMPDIR": self._empty.name}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _PATH_FIRST + program],
            cwd=self._empty.name,
            env=kept | offline | own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )
        ours = {Path(__file__).resolve().parents[1], Path.cwd()}
        self.tell([entry for entry in sys.path if os.path.isabs(entry) and Path(entry).resolve() not in ours])

    def tell(self, what: object) -> None:
        """Write a line of JSON; raise EOFError with the last line of the errors if the process has ended."""
        stream: IO[str] = self._process.stdin  # type: ignore[assignment]
        try:
            stream.write(json.dumps(what) + "\n")
            stream.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def ask(self, what: object) -> Any:
        """Write a line of JSON, and return the value on the line that answers it."""
        self.tell(what)
        stream: IO[str] = self._process.stdout  # type: ignore[assignment]
        if not (line := stream.readline()):
            raise self._ended()
        return json.loads(line)

    def _ended(self) -> EOFError:
        code = self._process.wait()
        self._errors.seek(0)
        return EOFError((self._errors.read().strip().splitlines() or [f"exit code {code}"])[-1])

    def close(self) -> None:
        """End the process, and remove its working directory."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()
        self._empty.cleanup()


_PATH_FIRST = """
import json, sys

sys.path[:] = json.loads(sys.stdin.readline())
"""
