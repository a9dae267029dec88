"""Names that settings and metrics had before: runs on disk are read under today's, and keep their keys.

A key is a hash of names and values, and from it come the seeds of Dana's models. It is taken under the former names, so
that old runs can be resumed, and the results that come with Byheart can be had again.
"""

from collections.abc import Mapping
from typing import Any

KIND = "KIND"
"""Attribute of a class that has another name today: the name it had when keys and fingerprints were first taken."""
_TODAY = {"dim": "model_dim", "mlp_dim": "hidden"}
_FORMER = {today: former for former, today in _TODAY.items()}


def kind_of(value: object) -> str:
    """Return the name of a value's class, or its former name if the class states one as ``KIND``.

    >>> kind_of(7)
    'int'
    """
    return str(getattr(type(value), KIND, type(value).__name__))


def renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings or metrics under today's names; of a task's vectors, ``dim`` is the name still.

    >>> renamed({"dim": 4, "heads": 2, "mlp_dim": None}), renamed({"dim": 4})
    ({'model_dim': 4, 'heads': 2, 'hidden': None}, {'dim': 4})
    """
    return {_TODAY.get(name, name) if "mlp_dim" in values else name: value for name, value in values.items()}


def formerly(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings under the names that a key is taken of.

    >>> formerly({"model_dim": 4, "heads": 2, "hidden": None})
    {'dim': 4, 'heads': 2, 'mlp_dim': None}
    """
    had = settings.keys() >= _FORMER.keys() and "dim" not in settings
    return {_FORMER.get(name, name) if had else name: value for name, value in settings.items()}
