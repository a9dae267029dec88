"""Functions that all commands share: safe output, input files, and progress bars.

Results go to stdout (as one JSON object with ``--json``), everything else to stderr. Exit codes: 0 done, 1 not true,
2 bad input, 70 a bug in Byheart.
"""

import os
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from byheart.errors import BadInput
from byheart.progress import Report

if TYPE_CHECKING:
    from byheart.tasks import Facts

    Given = list[Path] | Path | Facts

DONE, NOT_TRUE, BAD_INPUT, OUR_MISTAKE = 0, 1, 2, 70
T = TypeVar("T")
_ESCAPES = {"\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}


def visible(text: str, kept: str = "\n") -> str:
    r"""Escape a text so that it cannot command the terminal: unprintable characters but ``kept``, as in Python.

    >>> visible("a\x1b[2J")
    'a\\x1b[2J'
    """
    return "".join(letter if letter.isprintable() or letter in kept else repr(letter)[1:-1] for letter in text)


class Terminal:
    """A file of bytes that shows them on the terminal behind stdout, unprintable ones but tabs and line ends escaped.

    The bytes of a letter may come one by one. What is no UTF-8 is shown as in Python, too.
    """

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: bytes, *, final: bool = False) -> None:
        """Show the letters that are complete; if ``final``, all."""
        sys.stdout.write(visible(self._decoder.decode(data, final), "\n\t"))

    def flush(self) -> None:
        """Flush stdout."""
        sys.stdout.flush()


@contextmanager
def stdout_for_text() -> Iterator["BinaryIO | Terminal"]:
    """Yield a file for the bytes of a text: stdout as it is, unless it is a terminal, which obeys escape sequences."""
    if not sys.stdout.isatty():
        yield sys.stdout.buffer
        return
    terminal = Terminal()
    yield terminal
    terminal.write(b"", final=True)
    terminal.flush()


def typed(path: Path | None) -> str:
    """Quote a path for a command that users paste into a shell.

    >>> typed(Path("my net")), typed(Path("-t.txt"))
    ("'my net'", './-t.txt')
    """
    return quote(f"./{path}" if str(path).startswith("-") else str(path))


def escaped(data: bytes) -> str:
    r"""Return a printable text from which :func:`unescaped` makes ``data``.

    >>> escaped(b"\xc3\xa9\n\x00\xff" + rb"\n")
    'é\\n\\x00\\xff\\\\n'
    """
    letters = data.decode(errors="surrogateescape")
    return "".join(_ESCAPES.get(letter) or (letter if letter.isprintable() else _as_hex(letter)) for letter in letters)


def _as_hex(letter: str) -> str:
    return "".join(rf"\x{byte:02x}" for byte in letter.encode(errors="surrogateescape"))


def unescaped(text: str) -> bytes:
    r"""Return the bytes of a text in which \\n, \\t, \\r, \\xNN and \\\\ are Python's escapes.

    >>> unescaped(r"é\n\x00\\")
    b'\xc3\xa9\n\x00\\'
    """
    letters = {escape: letter for letter, escape in _ESCAPES.items()}

    def letter(escape: re.Match[bytes]) -> bytes:
        spelled = escape[0].decode()
        return letters[spelled].encode() if spelled in letters else bytes.fromhex(spelled[2:])

    data = text.encode(errors="surrogateescape")  # bytes that are no UTF-8 come as surrogates
    return re.sub(rb"\\([ntr\\]|x[0-9a-fA-F]{2})", letter, data)


def hush() -> None:
    """Discard everything that is still written to stdout, because its reader has gone; the interpreter writes, too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def say(line: str) -> None:
    """Write a line to stdout, unless its reader has gone."""
    try:
        sys.stdout.write(f"{line}\n")
    except BrokenPipeError:
        hush()


def given_by(
    files: tuple[Path, ...],
    task: Path | None,
    facts: tuple[Path, ...] = (),
    columns: tuple[str, ...] | None = None,
) -> "Given":
    """Return the texts, the task file or the facts that a command was given.

    Raise BadInput unless exactly one of the three is given.
    """
    sources = {"texts": bool(files), "--task": task is not None, "--facts": bool(facts)}
    chosen = [name for name, is_given in sources.items() if is_given]
    if not chosen:
        raise BadInput("no texts, no task and no facts are given; expected text files, --task FILE, or --facts FILE")
    if len(chosen) > 1:
        raise BadInput(f"{' and '.join(chosen)} are given; expected one of them")
    if columns is not None and not facts:
        raise BadInput(f"--columns {' '.join(columns)} are for facts; expected --facts FILE too")
    if facts:
        return facts_in(facts, columns)
    if task is None:
        return list(files)
    from byheart.tasks.task_files import check_extension

    check_extension(task)
    return task


def facts_in(paths: tuple[Path, ...], columns: tuple[str, ...] | None) -> "Facts":
    """Read the facts in files, and print one line to stderr if some of them are repeated."""
    from byheart.tasks import Facts

    facts = Facts.read(*paths, columns=columns or ())
    again, first = facts.repeated
    if again:
        count = "1 fact is" if len(again) == 1 else f"{len(again):,} facts are"
        sys.stderr.write(visible(f"{count} given again, and taken once: {again[0]} is {first[0]}\n"))
    return facts


def hint_at_facts(texts: Sequence[Path], done: str, command: str, rest: str = "") -> None:
    """Tell the user that a table was read as a text, and the command that reads it as facts."""
    from byheart.tasks.fact_files import FACT_READERS

    for path in [path for path in texts if path.suffix.lower() in FACT_READERS][:1]:
        facts = f"if its rows are facts:  byheart {command} --facts {typed(path)}{rest}"
        sys.stderr.write(visible(f"{path} is {done} as one text; {facts}\n"))


def some(names: Sequence[str], most: int = 3) -> str:
    """Join the first ``most`` names, and count the rest.

    >>> some(["a", "b"]), some(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@contextmanager
def steps(title: str, *, quiet: bool) -> Iterator[Report | None]:
    """Show a progress bar on stderr if that is a terminal, and yield the function that moves it, or None."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    stderr = Console(stderr=True)
    if quiet or not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task(title, total=None)

        def update(done: int, total: int, note: str = "", /) -> None:
            if total != bar.tasks[0].total:  # new steps, whose time cannot be estimated from the old ones
                bar.reset(task, total=total)
            bar.update(task, completed=done, description=f"{title}: {note}" if note else title)

        yield update


def counted(items: Iterator[T], total: int, report: Report | None) -> Iterator[T]:
    """Yield the items, and report progress a hundred times on the way.

    >>> list(counted(iter("abc"), 3, lambda done, total: print(done, "of", total)))
    1 of 3
    2 of 3
    3 of 3
    ['a', 'b', 'c']
    """
    for done, item in enumerate(items, 1):
        yield item
        if report is not None and done % max(1, total // 100) == 0:
            report(done, total)
