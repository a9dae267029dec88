"""Documentation strings of Python's standard library: texts that every machine with Python has.

Modules are parsed, never imported. The same interpreter gives the same texts; another version of Python gives others.
"""

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

SKIPPED = {"test", "tests", "idlelib", "idle_test", "site-packages", "dist-packages", "__pycache__"}
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def library_docstrings(folder: Path | None = None) -> Iterator[list[str]]:
    """The documentation strings of each module of the standard library (or of ``folder``) that has any, by path.

    >>> next(library_docstrings())[0].splitlines()[0][:22]
    'Record of phased-in in'
    """
    folder = Path(sysconfig.get_path("stdlib")) if folder is None else folder
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).parts):
        if SKIPPED.isdisjoint(path.relative_to(folder).parts) and (texts := docstrings(path.read_bytes())):
            yield texts


def docstrings(source: bytes) -> list[str]:
    """The documentation strings of a module, its classes and functions, in the order in which they stand there.

    >>> docstrings(b'def f():\\n    "second"\\nclass A:\\n    "third"\\n')
    ['second', 'third']
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about how the source is written
        tree = ast.parse(source)
    nodes = [node for node in ast.walk(tree) if isinstance(node, _DOCUMENTED)]
    nodes.sort(key=lambda node: getattr(node, "lineno", 0))
    return [text for node in nodes if (text := ast.get_docstring(node))]
