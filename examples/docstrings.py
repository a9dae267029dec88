"""Write the docstrings of Python's standard library to a file or to stdout: `python docstrings.py [FILE]`.

There is one text per module with docstrings, in the order of the modules' paths, with a form feed between texts.
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
