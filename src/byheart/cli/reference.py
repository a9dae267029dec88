"""The help of every command, as a page in Markdown: generated from the program, so it cannot be out of date.

``docs/conf.py`` appends it to docs/cli.md when the site is built.
"""

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from unittest.mock import patch

from byheart.cli.commands import every_command
from byheart.cli.main import main


def help_of(command: tuple[str, ...]) -> str:
    """What ``byheart COMMAND --help`` prints on a terminal of 80 columns, without colours."""
    said = io.StringIO()
    with patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"}), redirect_stdout(said), suppress(SystemExit):
        main([*command, "--help"])
    return said.getvalue()


def page() -> str:
    """A section with its help for every command."""
    return "\n".join(_sections())


def _sections() -> Iterator[str]:
    for command in ((), *(words for words, _ in every_command())):
        title = " ".join(("byheart", *command))
        yield f"{'#' * min(2 + len(command), 4)} {title}\n\n```text\n{help_of(command).strip()}\n```\n"
