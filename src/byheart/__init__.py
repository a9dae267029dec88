"""Byheart: the theory of memorization capacity of Transformers, as programs.

A dataset goes in; out come a Transformer that has memorized it, its parameters counted beside every known bound, and a
certificate that anyone can re-check.

>>> import byheart
>>> task = byheart.tasks.NextToken(tokens=[[0, 1], [1, 1], [2, 0]], labels=[1, 0, 1])
>>> built = byheart.build("kajitsuka-sato-2025", task, seed=0)
>>> built.account.dense
69
>>> byheart.certify(built.network, task).certified
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byheart import approximation, bounds, certificates, constructions, lab, networks, tasks
    from byheart.certificates import certify
    from byheart.constructions import build
    from byheart.constructions.reciting import compile_task, compile_text

__all__ = [
    "approximation",
    "bounds",
    "build",
    "certificates",
    "certify",
    "compile_task",
    "compile_text",
    "constructions",
    "lab",
    "networks",
    "tasks",
]


def __getattr__(name: str) -> Any:
    """Import rooms when they are first asked for, so that ``import byheart`` and ``byheart --help`` stay quick."""
    if name in ("approximation", "bounds", "certificates", "constructions", "lab", "networks", "tasks"):
        return import_module(f"byheart.{name}")
    if name == "build":
        return import_module("byheart.constructions").build
    if name == "certify":
        return import_module("byheart.certificates").certify
    if name in ("compile_task", "compile_text"):
        return getattr(import_module("byheart.constructions.reciting"), name)
    raise AttributeError(f"module 'byheart' has no attribute {name!r}")
