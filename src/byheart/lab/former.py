"""Former names of settings and metrics: old runs are read under today's names, and keep their keys.

A key is a hash of names and values, and the seeds of Dana's models depend on it. It is computed from the former names,
so that old runs can be resumed, and shipped results can be reproduced.
"""

from collections.abc import Mapping
from typing import Any

KIND = "KIND"
"""Attribute of a renamed class: its name when keys and fingerprints were first computed."""
_TODAY = {"dim": "model_dim", "mlp_dim": "hidden"}
_FORMER = {today: former for former, today in _TODAY.items()}


def kind_of(value: object) -> str:
    """Return the name of a value's class, or its former name if the class states one as ``KIND``.

    >>> kind_of(7)
    'int'
    """
    return str(getattr(type(value), KIND, type(value).__name__))


def renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings or metrics under today's names. The dimension of a task's vectors is still called ``dim``.

    >>> renamed({"dim": 4, "heads": 2, "mlp_dim": None}), renamed({"dim": 4})
    ({'model_dim': 4, 'heads': 2, 'hidden': None}, {'dim': 4})
    """
    return {_TODAY.get(name, name) if "mlp_dim" in values else name: value for name, value in values.items()}


def formerly(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under the names from which keys are computed.

    >>> formerly({"model_dim": 4, "heads": 2, "hidden": None})
    {'dim': 4, 'heads': 2, 'mlp_dim': None}
    """
    had = settings.keys() >= _FORMER.keys() and "dim" not in settings
    return {_FORMER.get(name, name) if had else name: value for name, value in settings.items()}
