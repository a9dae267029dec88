"""Read files of facts row by row, each with its place: ``.jsonl``, ``.csv``, ``.tsv``, ``.parquet``, and folders.

- ``.jsonl``: a JSON object per line. ``.csv`` and ``.tsv``: a header, then rows as spreadsheets write them, quoted line
  breaks included; in a ``.csv`` the header tells whether comma, semicolon or tab separates fields. All in UTF-8, with
  or without a byte order mark.
- ``.parquet``, and a folder that ``datasets`` saved: columns of texts, of token ids or of messages.
- Any other folder: every file below it is a text, except hidden files.

Files may come from anyone: nothing in them is executed. They are read row by row, and the memory of each row and of
all facts is checked.

**Tables in the formats of Apache Arrow**: Parquet files, and folders that ``datasets.save_to_disk`` wrote.

They are read by pyarrow (extra ``data``), which executes nothing in a file. In a folder, only the files are read that
its ``state.json`` names and that lie in it.

A few bytes of such a file may stand for any number of values: a column of nulls, or one text of a dictionary to which
a million rows point. So columns must have types whose every value takes space, and rows are converted a few at a
time, after a check of memory. The size of compressed pages and buffers is known only when
they are unpacked. Unpacking is limited to the available memory, and fails beyond (on Linux). Of a Parquet file, one
page per column is in memory at a time, however large its row groups are; of a dataset, one batch.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from byheart.errors import BadInput, missing_package
from byheart.files.memory import USABLE_SHARE, check_memory, check_room, limit_memory
from byheart.files.untrusted import (
    LONG_LINE,
    MEMORY_PER_JSON_BYTE,
    open_regular,
    parse_object,
    read_bytes,
    read_json,
    read_lines,
)
from byheart.tasks.fact import MEMORY_PER_FACT
from byheart.tasks.texts import MEMORY_PER_TEXT_BYTE

Rows = Iterator[tuple[str, Any]]
"""The place of each row, and its record or text."""
Lines = Iterator[tuple[int, bytes | bytearray]]
MEMORY_PER_CSV_BYTE = 8
"""Bytes of memory per byte of a record while it is parsed."""
KEPT_PER_BYTE = 4
"""Bytes in memory or on the disk per byte of a file, once all its facts are read."""
MARK = b"\xef\xbb\xbf"


def rows(path: Path) -> Rows:
    """Yield the rows of a file or folder; raise BadInput if there are none."""
    if not path.exists():
        raise BadInput(f"{path}: No such file or directory")
    if path.is_dir():
        entries = dataset_rows(path) if is_dataset(path) else _texts(path)
    elif path.suffix.lower() in FACT_READERS:
        entries = FACT_READERS[path.suffix.lower()](path)
    else:
        advice = "byheart compile takes texts without --facts"
        expected = f"expected {', '.join(FACT_READERS)}, or a folder, for facts; {advice}"
        raise BadInput(f"{path}: unknown extension {path.suffix!r}; {expected}")
    row = None
    for row in entries:
        yield row
    if row is None:
        raise BadInput(f"{path}: there are no facts; expected at least one")


def _jsonl(path: Path) -> Rows:
    for number, line in _marked(read_lines(path, memory_per_byte=MEMORY_PER_JSON_BYTE, kept_per_byte=KEPT_PER_BYTE)):
        if line.strip():
            place = f"{path} line {number}"
            try:
                yield place, parse_object(line.removesuffix(b"\n"))
            except BadInput as error:
                raise BadInput(f"{place}: {error}") from error


def _marked(numbered: Lines) -> Lines:
    """Yield the same lines, the first without its byte order mark."""
    for number, line in numbered:
        yield number, line.removeprefix(MARK) if number == 1 else line


def _separated(delimiters: str) -> Callable[[Path], Rows]:
    """Return a reader of tables with one of these delimiters: the one that the header has most of."""

    def read(path: Path) -> Rows:
        limit = csv.field_size_limit(max(path.stat().st_size, csv.field_size_limit()))
        try:
            yield from _records(path, delimiters)
        finally:
            csv.field_size_limit(limit)

    return read


class _TableLines:
    """Lines of a table for the module csv. The memory of each record is checked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._record, self._limit = 0, LONG_LINE
        """Bytes of the current record, and the number of bytes at which memory is checked again."""

    def begin(self) -> None:
        """Start a new record."""
        self._record, self._limit = 0, LONG_LINE

    def __iter__(self) -> Iterator[str]:
        for number, line in _marked(
            read_lines(self._path, memory_per_byte=MEMORY_PER_CSV_BYTE, kept_per_byte=KEPT_PER_BYTE)
        ):
            self._record += len(line)
            if self._record > self._limit:
                self._limit = self._record + LONG_LINE
                check_memory(MEMORY_PER_CSV_BYTE * self._limit, f"the row that {self._path} line {number} belongs to")
            text = _utf8(line, f"{self._path} line {number}")
            if "\r" in text.removesuffix("\r\n"):
                yield from io.StringIO(text, newline="")  # it ends lines, too
            else:
                yield text


def _utf8(line: bytes | bytearray, place: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        problem = f"the byte {line[error.start]:#04x} is not UTF-8"
        raise BadInput(f"{place}: {problem}; expected a table that was saved as UTF-8") from None


def _delimiter(header: str, delimiters: str) -> str:
    """Return the delimiter that a header has most of, outside of quotes; the first if there is none.

    >>> _delimiter("prompt;completion", ",;"), _delimiter('"a;b",c', ",;"), _delimiter("text", ",;")
    (';', ',', ',')
    """
    bare = re.sub('"[^"]*"', "", header)
    return max(delimiters, key=bare.count)


def _records(path: Path, delimiters: str) -> Rows:
    lines = _TableLines(path)
    following = iter(lines)
    first = next(following, "")
    reader = csv.reader(chain([first], following), delimiter=_delimiter(first, delimiters), strict=True)
    header: list[str] | None = None
    before = 0
    while True:
        place = f"{path} line {before + 1}"
        lines.begin()
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
    """Yield every file as a text, in the order of names."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        content = bytes(read_bytes(path, memory_per_byte=MEMORY_PER_TEXT_BYTE))
        if not content:
            raise BadInput(f"{path}: the file is empty; expected at least one byte")
        yield str(path), content


STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
MEMORY_PER_COLUMN_BYTE = 8
"""Bytes of memory per byte of a column once it is converted to Python's texts and lists."""
MEMORY_PER_ROW = 600
"""Bytes of memory per row, and per record in a list."""
MEMORY_PER_VALUE = 40
"""Bytes of memory per value of a list."""
BUFFER_BYTES = 1 << 20
"""Number of bytes of a column's chunk that are read at a time."""
ROWS_AT_ONCE = 64
"""Number of rows that are converted at a time."""


def is_dataset(folder: Path) -> bool:
    """Return True if the folder looks like one that ``datasets`` saved."""
    return all((folder / name).is_file() for name in (STATE, INFO)) or (folder / SPLITS).is_file()


def parquet_rows(path: Path) -> Rows:
    """Yield the rows of a Parquet file, numbered from 1."""
    pa = _pyarrow(path)
    import pyarrow.parquet

    with open_regular(path) as source:
        try:
            with _plainly_allocated(pa):
                file = pyarrow.parquet.ParquetFile(source, buffer_size=BUFFER_BYTES, pre_buffer=False)
            about = file.metadata
            size = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
            check_room(size, str(path))
            check_memory(MEMORY_PER_FACT * about.num_rows, str(path))
            yield from _rows(path, file.schema_arrow, _unpacked(file.iter_batches(ROWS_AT_ONCE, use_threads=False)))
        except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
            raise _unreadable(path, error) from error


def dataset_rows(folder: Path) -> Rows:
    """Yield the rows of a dataset on disk, numbered from 1."""
    if not (folder / STATE).is_file():
        splits = read_json(folder / SPLITS).get("splits")
        names = ", ".join(str(folder / str(name)) for name in splits) if isinstance(splits, list) else "its splits"
        raise BadInput(f"{folder}: is a dataset in splits; expected one of them: {names}")
    pa = _pyarrow(folder)
    files = read_json(folder / STATE).get("_data_files")
    parts = [str(file.get("filename")) for file in files if isinstance(file, dict)] if isinstance(files, list) else []
    if not parts or any(name != Path(name).name or not name.isprintable() for name in parts):
        raise BadInput(f"{folder / STATE}: names no files in its folder; expected those that datasets wrote")
    before = 0
    for name in parts:
        with open_regular(folder / name) as source:
            try:
                with _plainly_allocated(pa):
                    stream = pa.ipc.open_stream(source)
                for place, row in _rows(folder, stream.schema, _unpacked(stream), before):
                    before += 1
                    yield place, row
            except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
                raise _unreadable(folder / name, error) from error


def _rows(path: Path, schema: Any, batches: Any, before: int = 0) -> Rows:
    """Yield rows as records. ``before`` is the number of rows in earlier files."""
    for column in schema:
        if not _is_plain(column.type):
            expected = "expected texts, numbers, lists or records of them: cast the column, or leave it out"
            raise BadInput(f"{path}: the column {column.name!r} is {shortened(str(column.type))}; {expected}")
    for batch in batches:
        batch.validate(full=True)
        for first in range(0, batch.num_rows, ROWS_AT_ONCE):
            few = batch.slice(first, ROWS_AT_ONCE)
            check_memory(MEMORY_PER_ROW * few.num_rows + sum(map(_memory_of, few.columns)), str(path))
            for number, row in enumerate(few.to_pylist(), start=before + first + 1):
                yield f"{path} row {number}", row
        before += batch.num_rows


def _unpacked(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches, each unpacked within the available memory."""
    remaining = iter(batches)
    while True:
        with limit_memory():
            batch = next(remaining, None)
        if batch is None:
            return
        yield batch


@contextmanager
def _plainly_allocated(pa: Any) -> Iterator[None]:
    """Read files opened in the meantime into memory of the system, which no pool has reserved before."""
    pool = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(pool)


def _is_plain(kind: Any, within: bool = False) -> bool:
    """Return True if every value of a type takes space. ``within`` a list, nulls and bits may outnumber bytes."""
    from pyarrow import types

    if types.is_list(kind) or types.is_large_list(kind):
        return _is_plain(kind.value_type, within=True)
    if types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_plain(field.type, within=True) for field in kind)
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    numbers = (types.is_integer, types.is_floating)
    alone = () if within else (types.is_null, types.is_boolean, types.is_temporal, types.is_decimal)
    return any(is_kind(kind) for is_kind in (*texts, *numbers, *alone))


def _memory_of(column: Any) -> int:
    """Return an upper bound of the bytes of a plain column as Python's values."""
    from pyarrow import types

    if types.is_list(column.type) or types.is_large_list(column.type):
        return MEMORY_PER_VALUE * len(column) + _memory_of(column.flatten())
    if types.is_struct(column.type):
        return MEMORY_PER_ROW * len(column) + sum(map(_memory_of, column.flatten()))
    return MEMORY_PER_VALUE * len(column) + MEMORY_PER_COLUMN_BYTE * int(column.nbytes)


def _unreadable(path: Path, error: Exception) -> BadInput:
    if isinstance(error, MemoryError):
        return BadInput(
            f"{path}: unpacks to more than {round(100 * USABLE_SHARE)} % of the memory that is left: split it"
        )
    return error if isinstance(error, BadInput) else BadInput(f"{path}: cannot be read ({str(error).splitlines()[0]})")


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise BadInput(missing_package("pyarrow", f"reading {path}", "data")) from error
    return pyarrow


FACT_READERS = {".jsonl": _jsonl, ".csv": _separated(",;\t"), ".tsv": _separated("\t"), ".parquet": parquet_rows}
