"""Which version of a package is installed."""

from importlib.metadata import PackageNotFoundError, version


def version_of(package: str) -> str | None:
    """As it is installed; None if it is not: Byheart, say, where it runs from its source tree.

    >>> version_of("no such package") is None
    True
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None
