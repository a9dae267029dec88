"""How much memory there is, asked before anything large is made.

The environment variable ``BYHEART_MEMORY`` ("800M", "4G") says how much of it a process is to take.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from byheart.errors import BadInput

SHARE = 0.8
"""Of what is available, so much may be asked for at once: the rest is for what nobody counted."""
_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""What a container may use, where there is one."""
CHOSEN = "BYHEART_MEMORY"
LEFT = 1 << 26
"""Bytes that are left of it at least: what is small does not fail, nor is work lost, because it was chosen too low."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def available() -> int:
    """Bytes that this process can still have: free memory, within what the process may use, or was told to.

    Where the system says nothing, the machine's memory; where it does not even say that, 2⁶³.
    """
    found = [_free(), _number(_LIMIT), *_limits(), _chosen()]
    return min((size for size in found if size is not None), default=_installed())


def check_memory(needed: int, what: str, instead: str = "") -> None:
    """BadInput if ``what`` takes more than its share of the memory that is available; ``instead``: what to do then.

    >>> check_memory(10**15, "t.npz")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    byheart.errors.BadInput: t.npz would take 931,322.6 GiB of memory; expected at most ..., 80 % of what is available
    """
    there = int(SHARE * available())
    if needed > there:
        expected = f"expected at most {told(there)}, {round(100 * SHARE)} % of what is available"
        raise BadInput(f"{what} would take {told(needed)} of memory; {expected}" + (f": {instead}" if instead else ""))


@contextmanager
def bounded() -> Iterator[None]:
    """While a library unpacks somebody's file: what goes beyond the share of memory that is available fails.

    On Linux, where the process's own limit is lowered meanwhile; elsewhere nothing is bounded.
    """
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = used + int(SHARE * available())
    if soft == resource.RLIM_INFINITY or most < soft:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def peak() -> int:
    """Bytes that this process has taken at most, until now; 0 where the system does not say.

    Linux says it of the program that runs; what ``getrusage`` says may be of the one that started it. What the system
    keeps in memory of files (:mod:`.room`) is part of it, though it could take that back.
    """
    if (most := _kibibytes("self/status", "VmHWM")) is not None:
        return most
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def told(size: int) -> str:
    """A number of bytes for people.

    >>> told(3 << 19), told(3 << 29)
    ('1.5 MiB', '1.5 GiB')
    """
    return f"{size / 2**30:,.1f} GiB" if size >= 1 << 29 else f"{size / 2**20:,.1f} MiB"


def _installed() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 63


def _free() -> int | None:
    return _kibibytes("meminfo", "MemAvailable")


def _chosen() -> int | None:
    """What is left of the memory that somebody told this process to take; files that are mapped do not count."""
    given = os.environ.get(CHOSEN, "").strip()
    if not given:
        return None
    found = re.fullmatch(r"([0-9]{1,18})([KMGT]?)(i?B)?", given, re.ASCII)
    if found is None:
        raise BadInput(f"{CHOSEN} is {given!r}; expected a number of bytes, such as 800M or 4G")
    return max(LEFT, int(found[1]) * _UNITS[found[2]] - (_kibibytes("self/status", "RssAnon") or 0))


def _kibibytes(file: str, name: str) -> int | None:
    """Bytes that a file below /proc states in KiB, under this name; None if there is none."""
    try:
        lines = Path("/proc", file).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), None)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such file, or "max"
        return None


def _limits() -> list[int]:
    """What is left of the limits that the process was given, on Linux."""
    try:
        import resource

        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except (ImportError, OSError):
        return []
    used = {resource.RLIMIT_AS: pages[0], resource.RLIMIT_DATA: pages[5]}
    soft = {kind: resource.getrlimit(kind)[0] for kind in used}
    return [
        max(0, limit - int(used[kind]) * resource.getpagesize())
        for kind, limit in soft.items()
        if limit != resource.RLIM_INFINITY
    ]
