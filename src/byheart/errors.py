"""The error that users meet when their input cannot be used, and common checks.

The commands turn it into one line on stderr and exit code 2. A message says where the error is, what was found, what
was expected, and what can be done about it.
"""

from collections.abc import Iterable
from sys import float_info


def missing_package(package: str, purpose: str, extra: str) -> str:
    """Return the message for a missing library: its purpose, and how to install it. Byheart itself is on no index.

    >>> missing_package("matplotlib", "drawing", "plots").partition("; ")[0]
    'drawing needs matplotlib, which is not installed'
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        asked = (line.split(";") for line in requires("byheart") or ())
        names = [f"'{name.strip()}'" for name, *when in asked if f'extra == "{extra}"' in "".join(when)]
    except PackageNotFoundError:  # run from its sources
        names = []
    how = f"pip install {' '.join(names) or package}, or in a clone of Byheart:  pip install -e '.[{extra}]'"
    return f"{purpose} needs {package}, which is not installed; {how}"


def check_installed(package: str, purpose: str, extra: str) -> None:
    """Raise BadInput if a library is not installed, before any work that would be lost without it."""
    from importlib.util import find_spec

    try:
        is_installed = find_spec(package) is not None
    except ImportError:
        is_installed = False
    if not is_installed:
        raise BadInput(missing_package(package, purpose, extra))


def did_you_mean(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """Suggest the closest of ``names`` for an unknown ``word``; if none is close, return ``otherwise`` or list all.

    >>> did_you_mean("foldng", ["folding", "vardi-2022"])
    "did you mean 'folding'?"
    >>> did_you_mean("x", ["folding", "vardi-2022"])
    'there are folding, vardi-2022'
    """
    from difflib import SequenceMatcher, get_close_matches

    names = list(names)
    alike = {name: SequenceMatcher(None, name, word).ratio() for name in get_close_matches(word, names)}
    near = [repr(name) for name, ratio in alike.items() if ratio > max(alike.values()) - 0.1]
    return f"did you mean {' or '.join(near)}?" if near else otherwise or f"there are {', '.join(names)}"


def check_seed(seed: object) -> None:
    """Raise BadInput unless ``seed`` is a whole number, 0 or more."""
    if not isinstance(seed, int) or seed < 0:
        raise BadInput(f"seed is {seed!r}; expected a whole number, 0 or more")


MAX_THREADS = 256
"""Most threads: more than common machines have cores, and each takes memory."""


def check_threads(threads: object, name: str = "threads") -> None:
    """Raise BadInput unless ``threads`` is a possible number of threads, or of processes or the like."""
    if not isinstance(threads, int) or not 1 <= threads <= MAX_THREADS:
        raise BadInput(f"{name} is {threads!r}; expected a whole number from 1 to {MAX_THREADS}")


def check_positive(name: str, value: object) -> None:
    """Raise BadInput unless ``value`` is a finite number above 0."""
    if not isinstance(value, int | float) or not 0 < value <= float_info.max:
        raise BadInput(f"{name} is {value!r}; expected a positive number")


class BadInput(ValueError):  # noqa: N818 (it names what is wrong, and reads well in `raise`)
    """Input that cannot be used: a malformed file, a task outside a theorem's hypotheses, an impossible setting.

    >>> raise BadInput("t.npz: labels[3] is 12; expected 0 to 9 (10 labels)")
    Traceback (most recent call last):
    byheart.errors.BadInput: t.npz: labels[3] is 12; expected 0 to 9 (10 labels)
    """
