"""Versions of installed packages."""

from importlib.metadata import PackageNotFoundError, version


def installed_version(package: str) -> str | None:
    """Return the installed version of a package; None if it is not installed, as Byheart run from its source tree.

    >>> installed_version("no such package") is None
    True
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None
