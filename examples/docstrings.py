"""The documentation strings of Python's standard library: `python docstrings.py [FILE]`, on stdout without FILE.

One text for each module that has any, in the order of their paths, with a form feed between texts.
"""

import sys
from pathlib import Path

from byheart.tasks.shipped import library_docstrings

SEPARATOR = "\f"


def main(path: str | None = None) -> None:
    """Write the texts to the file ``path``, or to stdout."""
    texts = ("\n\n".join(found).replace(SEPARATOR, " ") for found in library_docstrings())
    data = SEPARATOR.join(texts).encode(errors="replace")
    if path is None:
        sys.stdout.buffer.write(data)
    else:
        Path(path).write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
