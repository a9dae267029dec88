"""Texts that come with Byheart, so that experiments use the same texts everywhere.

``docstrings.txt``: the first ten word-punctuation tokens of documentation strings of the standard library of CPython
3.11.7, different ones, in the order of :func:`library_docstrings`, one per line, tokens separated by blanks. They are
the work of the authors of Python, under the PSF licence: see ``LICENSE`` in this folder.

:func:`library_docstrings` reads the documentation strings of Python's standard library on this machine. Modules are
parsed, never imported. The same interpreter gives the same texts; another version of Python gives others.
"""

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from importlib import resources
from pathlib import Path


def docstrings() -> tuple[str, ...]:
    """Return the beginnings of 1,100 documentation strings.

    >>> len(docstrings()), docstrings()[0]
    (1100, 'Record of phased - in incompatible language changes . Each')
    """
    text = resources.files(__name__).joinpath("docstrings.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


SKIPPED = {"test", "tests", "idlelib", "idle_test", "site-packages", "dist-packages", "__pycache__"}
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def library_docstrings(folder: Path | None = None) -> Iterator[list[str]]:
    """Yield the documentation strings of each module of the standard library (or of ``folder``) with any, by path.

    >>> next(library_docstrings())[0].splitlines()[0][:22]
    'Record of phased-in in'
    """
    folder = Path(sysconfig.get_path("stdlib")) if folder is None else folder
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).parts):
        if SKIPPED.isdisjoint(path.relative_to(folder).parts) and (texts := _docstrings_in(path.read_bytes())):
            yield texts


def _docstrings_in(source: bytes) -> list[str]:
    r"""Return the documentation strings of a module, its classes and functions, in source order.

    >>> _docstrings_in(b'def f():\n    "second"\nclass A:\n    "third"\n')
    ['second', 'third']
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about how the source is written
        tree = ast.parse(source)
    nodes = [node for node in ast.walk(tree) if isinstance(node, _DOCUMENTED)]
    nodes.sort(key=lambda node: getattr(node, "lineno", 0))
    return [text for node in nodes if (text := ast.get_docstring(node))]
