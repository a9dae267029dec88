"""How much memory there is, asked before anything large is made."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from byheart.errors import BadInput

SHARE = 0.8
"""Of what is available, so much may be asked for at once: the rest is for what nobody counted."""
_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""What a container may use, where there is one."""


def available() -> int:
    """Bytes that this process can still have, as the system says: free memory, within what the process may use.

    Where the system says nothing, the machine's memory; where it does not even say that, 2⁶³.
    """
    found = [_free(), _number(_LIMIT), *_limits()]
    return min((size for size in found if size is not None), default=_installed())


def check_memory(needed: int, what: str, instead: str = "") -> None:
    """BadInput if ``what`` takes more than its share of the memory that is available; ``instead``: what to do then.

    >>> check_memory(10**15, "t.npz")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    byheart.errors.BadInput: t.npz would take 931,322.6 GiB of memory; expected at most ..., 80 % of what is available
    """
    there = int(SHARE * available())
    if needed > there:
        expected = f"expected at most {_told(there)}, {round(100 * SHARE)} % of what is available"
        raise BadInput(f"{what} would take {_told(needed)} of memory; {expected}" + (f": {instead}" if instead else ""))


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


def _told(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 1 << 29 else f"{size / 2**20:,.1f} MiB"


def _installed() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 63


def _free() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


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
