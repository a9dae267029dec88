"""The documentation strings of Python's standard library: `python docstrings.py [FILE]`, on stdout without FILE.

One text for each module that has any, in the order of their paths, with a form feed between texts. Modules are parsed,
never imported. The same interpreter gives the same texts; another version of Python gives others.
"""

import ast
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

SKIPPED = {"test", "tests", "idlelib", "idle_test", "site-packages", "dist-packages", "__pycache__"}
SEPARATOR = "\f"
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def main(path: str | None = None) -> None:
    """Write the texts to the file ``path``, or to stdout."""
    data = SEPARATOR.join(texts(Path(sysconfig.get_path("stdlib")))).encode(errors="replace")
    if path is None:
        sys.stdout.buffer.write(data)
    else:
        Path(path).write_bytes(data)


def texts(folder: Path) -> Iterator[str]:
    """For each module in ``folder`` and below that has any, its documentation strings as one text."""
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).parts):
        if SKIPPED.isdisjoint(path.relative_to(folder).parts):
            text = docstrings(path.read_bytes())
            if text:
                yield text


def docstrings(source: bytes) -> str:
    """The documentation strings of a module, its classes and functions, in the order in which they stand there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about how the source is written
        tree = ast.parse(source)
    nodes = [node for node in ast.walk(tree) if isinstance(node, DOCUMENTED)]
    nodes.sort(key=lambda node: getattr(node, "lineno", 0))
    found = (ast.get_docstring(node) for node in nodes)
    return "\n\n".join(text.replace(SEPARATOR, " ") for text in found if text)


if __name__ == "__main__":
    main(*sys.argv[1:])
