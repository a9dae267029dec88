"""The one error that users meet: something they gave us cannot be used.

The commands turn it into one line on stderr and exit code 2. A message says what was expected, what was found and
where, and, if there is something to do about it, what.
"""

from sys import float_info


def missing(package: str, purpose: str, extra: str) -> str:
    """What to say when a library is not there: what for, and how to get it.

    >>> missing("matplotlib", "drawing", "plots")
    "drawing needs matplotlib, which is not installed; install it, or in a clone of Byheart: pip install '.[plots]'"
    """
    how = f"install it, or in a clone of Byheart: pip install '.[{extra}]'"
    return f"{purpose} needs {package}, which is not installed; {how}"


def check_seed(seed: object) -> None:
    """BadInput unless ``seed`` is a whole number, 0 or more."""
    if not isinstance(seed, int) or seed < 0:
        raise BadInput(f"seed is {seed!r}; expected a whole number, 0 or more")


MOST_THREADS = 256
"""More than any machine here has cores for; each takes memory of its own."""


def check_threads(threads: object) -> None:
    """BadInput unless ``threads`` is a number of threads."""
    if not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise BadInput(f"threads is {threads!r}; expected a whole number from 1 to {MOST_THREADS}")


def check_distance(name: str, value: object) -> None:
    """BadInput unless ``value`` is a finite number above 0."""
    if not isinstance(value, int | float) or not 0 < value <= float_info.max:
        raise BadInput(f"{name} is {value!r}; expected a positive number")


class BadInput(ValueError):  # noqa: N818 (it names what is wrong, and reads well in `raise`)
    """Input that cannot be used: a malformed file, a task outside a theorem's hypotheses, an impossible setting.

    >>> raise BadInput("t.npz: labels[3] is 12; expected 0 to 9 (10 labels)")
    Traceback (most recent call last):
    byheart.errors.BadInput: t.npz: labels[3] is 12; expected 0 to 9 (10 labels)
    """
