"""Files of facts, row by row, each with its place: ``.jsonl``, ``.csv``, ``.tsv``, ``.parquet``, and folders.

- ``.jsonl``: a JSON object a line. ``.csv`` and ``.tsv``: a header, then rows as spreadsheets write them, quoted line
  breaks included. All in UTF-8, with or without a byte order mark.
- ``.parquet``, and a folder that ``datasets`` saved: columns of texts, of token ids or of messages (:mod:`.arrow`).
- Any other folder: every file in it, and in folders in it, is a text; hidden ones are left out.

Files may be anybody's: nothing in them is executed. They are read a row at a time, and what a row takes, and what all
of them leave, is held against memory.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.files.reading import JSON_TAKES, LONG, lines, parsed, read_bytes
from byheart.tasks.facts import arrow
from byheart.tasks.texts import TAKES

Rows = Iterator[tuple[str, Any]]
"""Where a row is, and what it holds: a record, or a text alone."""
Lines = Iterator[tuple[int, bytes | bytearray]]
CSV_TAKES = 8
"""Bytes of memory for every byte of a record, while it is taken apart."""
KEEPS = 4
"""Bytes for every byte of a file, in memory or on the disk, when all its facts are read."""
MARK = b"\xef\xbb\xbf"


def rows(path: Path) -> Rows:
    """The rows of a file, or of a folder; BadInput if there are none."""
    if not path.exists():
        raise BadInput(f"{path}: No such file or directory")
    if path.is_dir():
        found = arrow.dataset_rows(path) if arrow.is_dataset(path) else _texts(path)
    elif path.suffix.lower() in READERS:
        found = READERS[path.suffix.lower()](path)
    else:
        expected = f"expected {', '.join(READERS)}, or a folder; a text is given without --facts"
        raise BadInput(f"{path}: unknown extension {path.suffix!r}; {expected}")
    row = None
    for row in found:
        yield row
    if row is None:
        raise BadInput(f"{path}: there are no facts; expected at least one")


def _jsonl(path: Path) -> Rows:
    for number, line in _marked(lines(path, takes=JSON_TAKES, keeps=KEEPS)):
        if line.strip():
            place = f"{path} line {number}"
            try:
                yield place, parsed(line.removesuffix(b"\n"))
            except BadInput as error:
                raise BadInput(f"{place}: {error}") from error


def _marked(numbered: Lines) -> Lines:
    """The same lines, the first without a byte order mark."""
    for number, line in numbered:
        yield number, line.removeprefix(MARK) if number == 1 else line


def _separated(delimiter: str) -> Callable[[Path], Rows]:
    """A reader of tables with this delimiter."""

    def read(path: Path) -> Rows:
        limit = csv.field_size_limit(max(path.stat().st_size, csv.field_size_limit()))
        try:
            yield from _records(path, delimiter)
        finally:
            csv.field_size_limit(limit)

    return read


class _Fed:
    """The lines of a table, as csv wants them; what goes into one record is held against memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._record, self._asked = 0, LONG
        """Bytes of the record that is read, and how many there may be before memory is asked again."""

    def begin(self) -> None:
        """What follows belongs to another record."""
        self._record, self._asked = 0, LONG

    def __iter__(self) -> Iterator[str]:
        for number, line in _marked(lines(self._path, takes=CSV_TAKES, keeps=KEEPS)):
            self._record += len(line)
            if self._record > self._asked:
                self._asked = self._record + LONG
                check_memory(CSV_TAKES * self._asked, f"the row that {self._path} line {number} belongs to")
            text = _utf8(line, f"{self._path} line {number}")
            if "\r" in text.removesuffix("\r\n"):
                yield from io.StringIO(text, newline="")  # it ends lines, too
            else:
                yield text


def _utf8(line: bytes | bytearray, place: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        found = f"the byte {line[error.start]:#04x} is not UTF-8"
        raise BadInput(f"{place}: {found}; expected a table that was saved as UTF-8") from None


def _records(path: Path, delimiter: str) -> Rows:
    fed = _Fed(path)
    reader = csv.reader(fed, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    before = 0
    while True:
        place = f"{path} line {before + 1}"
        fed.begin()
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise BadInput(f"{place}: {error}; expected fields that are quoted as spreadsheets do") from None
        if row is None:
            return
        before = reader.line_num
        if not row:
            continue
        if header is None:
            header = [name.strip() for name in row]
            if doubled := [name for name, times in Counter(header).items() if times > 1]:
                raise BadInput(f"{place}: two columns are called {doubled[0]!r}; expected different names")
            continue
        if len(row) != len(header):
            expected = f"expected {len(header)}, as the header has: quote a field that holds a delimiter"
            raise BadInput(f"{place}: has {len(row)} fields; {expected}")
        yield place, dict(zip(header, row, strict=True))


def _texts(folder: Path) -> Rows:
    """Every file as a text, in the order of their names."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        content = bytes(read_bytes(path, takes=TAKES))
        if not content:
            raise BadInput(f"{path}: the file is empty; expected at least one byte")
        yield str(path), content


READERS = {".jsonl": _jsonl, ".csv": _separated(","), ".tsv": _separated("\t"), ".parquet": arrow.parquet_rows}
