"""Byheart: the theory of memorization capacity of Transformers, as programs.

A dataset goes in; out come a Transformer that has memorized it, its parameters counted beside every known bound, and a
certificate that anyone can re-check.

>>> import byheart
>>> task = byheart.tasks.NextToken([[0, 1], [1, 1], [2, 0]], [1, 0, 1])
>>> built = byheart.build("kajitsuka-sato-2025", task, seed=0)
>>> built
<Built: kajitsuka-sato-2025, 69 parameters for 3 next-token examples>
>>> byheart.certify(built, task).certified
True
>>> byheart.certify(byheart.compile("to be or not to be"), "to be or not to be").certified
True
>>> byheart.compile([("capital of France", "Paris")]).recite("capital of France")
'Paris'

=================  ==================================================================================
:func:`build`      a construction's network for a task
:func:`compile`    a float Transformer that recites texts, knows facts or answers a task
:func:`load`       a network from its folder; what is built or compiled has ``.save(folder)``
:func:`recite`     what a compiled network says, from a prompt or from the beginning of a text
:func:`certify`    every answer of a network, checked
:func:`size`       how large a model must be to memorize data, and whether one at hand has room
:class:`Facts`     prompts and completions, from pairs or with ``Facts.read`` from files, to compile and certify
:func:`export`     a compiled network in a file for llama.cpp (GGUF) or ONNX Runtime
:func:`plant`      exact memories in a trained model of somebody's; needs transformers
:func:`detect`     what was planted in a model
:func:`unplant`    the model as it was before planting
=================  ==================================================================================
"""

from importlib import import_module as _import
from typing import TYPE_CHECKING as _CHECKING

if _CHECKING:
    from byheart import approximation, bounds, certificates, constructions, lab, networks, planting, tasks
    from byheart.certificates import certify
    from byheart.compiler import compile
    from byheart.constructions import build
    from byheart.exporting import export
    from byheart.networks import load, recite
    from byheart.planting import detect, plant, unplant
    from byheart.sizing import size
    from byheart.tasks import Facts

_ROOMS = ("approximation", "bounds", "certificates", "constructions", "lab", "networks", "planting", "tasks")
_FUNCTIONS = {
    "build": "byheart.constructions",
    "certify": "byheart.certificates",
    "compile": "byheart.compiler",
    "Facts": "byheart.tasks",
    "load": "byheart.networks",
    "recite": "byheart.networks",
    "export": "byheart.exporting",
    "size": "byheart.sizing",
    "plant": "byheart.planting",
    "detect": "byheart.planting",
    "unplant": "byheart.planting",
}
__all__ = [  # noqa: RUF022 (the menu: verbs first)
    "build",
    "certify",
    "compile",
    "load",
    "recite",
    "export",
    "size",
    "Facts",
    "plant",
    "detect",
    "unplant",
    "approximation",
    "bounds",
    "certificates",
    "constructions",
    "lab",
    "networks",
    "planting",
    "tasks",
]


def __getattr__(name: str) -> object:
    """Import rooms when they are first asked for, so that ``import byheart`` and ``byheart --help`` stay quick."""
    if name in _ROOMS:
        return _import(f"byheart.{name}")
    if name in _FUNCTIONS:
        return getattr(_import(_FUNCTIONS[name]), name)
    if name == "__version__":
        return _import("importlib.metadata").version("byheart")
    from byheart.errors import did_you_mean

    raise AttributeError(f"module 'byheart' has no attribute {name!r}; {did_you_mean(name, __all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
