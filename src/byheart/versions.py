"""Which version of a package is installed."""

from importlib.metadata import PackageNotFoundError, version


def installed_version(package: str) -> str | None:
    """As it is installed; None if it is not: Byheart, say, where it runs from its source tree.

    >>> installed_version("no such package") is None
    True
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None
