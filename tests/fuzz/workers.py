"""Cases in forked children: imports are done once, and a child that dies, waits or grows takes one case with it."""

import os
import pickle
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tests.fuzz.cases import Mode, case, tried
from tests.fuzz.seeds import Seed

MEMORY = 2 << 30
"""Bytes that a case may take, beyond what imports have taken."""
SECONDS = 30.0
BATCH = 200
"""Cases that a child does, if it lives."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case: what was found, if anything, and whether it says something (:func:`tried`)."""

    number: int
    found: str
    changed: bool = False


def outcomes(seeds: list[Seed], seed: int, numbers: Sequence[int], mode: Mode) -> Iterator[Outcome]:
    """Every case in turn."""
    left = list(numbers)
    while left:
        done = 0
        for outcome in _child(seeds, seed, left[:BATCH], mode):
            done += 1
            yield outcome
        left = left[done:]


def _child(seeds: list[Seed], seed: int, numbers: Sequence[int], mode: Mode) -> Iterator[Outcome]:
    """The cases that one child does; the last of them is the one that it did not survive."""
    reading, writing = os.pipe()
    place = Path(tempfile.mkdtemp(prefix="byheart-fuzz-"))
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(seeds, seed, numbers, mode, place, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            for number in numbers:
                outcome = _heard(pipe, number, child)
                yield outcome
                if outcome.found.startswith("the process"):
                    return
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        shutil.rmtree(place, ignore_errors=True)


def _heard(pipe: BinaryIO, number: int, child: int) -> Outcome:
    ready, _, _ = select.select([pipe], [], [], SECONDS)
    if not ready:
        return Outcome(number, f"the process did not end within {SECONDS:.0f} seconds")
    head = pipe.read(4)
    if len(head) < 4:
        time.sleep(0.1)
        status = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        return Outcome(number, f"the process died: {status.si_status if status else 'nobody knows why'}")
    outcome: Outcome = pickle.loads(pipe.read(int.from_bytes(head, "little")))
    return outcome


def _work(seeds: list[Seed], seed: int, numbers: Sequence[int], mode: Mode, place: Path, writing: int) -> None:
    """What the child does; it never comes back."""
    from transformers import dynamic_module_utils

    try:
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, used + MEMORY))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # Whatever Python's own streams are here, pytest's perhaps: from now on they are the process's.
        sys.stdout, sys.stderr = (open(number, "w", 1, encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        dynamic_module_utils.HF_MODULES_CACHE = str(place / "modules")  # code of folders is copied there
        for number in numbers:
            found, changed = tried(case(seeds, seed, number, mode), place / "case", mode)
            data = pickle.dumps(Outcome(number, found, changed))
            os.write(writing, len(data).to_bytes(4, "little") + data)
        os._exit(0)
    except BaseException:  # a mistake of ours: the parent says so
        import traceback

        place.with_suffix(".log").write_text(traceback.format_exc())
        os._exit(99)
