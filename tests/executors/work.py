"""What tasks do here: a module of its own, which other processes can import."""

import os
import signal
from pathlib import Path

from byheart.errors import BadInput
from byheart.progress import Report


def power(base: int, exponent: int, *, report: Report | None) -> tuple[int, int]:
    """base^exponent, and in which process."""
    if report is not None:
        report(exponent, exponent)
    return base**exponent, os.getpid()


def refuse(base: int, *, report: Report | None) -> None:
    raise BadInput(f"{base} is too small; expected 3")


class OddError(Exception):
    """An error that cannot be read by another process: it takes two arguments, and keeps one."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(one)


def fail(base: int, *, report: Report | None) -> None:
    raise OddError("odd", "even")


def die(base: int, times: int, folder: Path, *, report: Report | None) -> int:
    """Kill this process the first ``times`` times; how often that was."""
    found = len([*folder.iterdir()])
    if found < times:
        (folder / str(found)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return found
