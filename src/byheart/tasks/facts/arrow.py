"""Tables in the formats of Apache Arrow: Parquet files, and folders that ``datasets.save_to_disk`` wrote.

Read by pyarrow (extra ``data``), which executes nothing of a file; of a folder only the files are read that its
``state.json`` names, and that lie in it.

A few bytes of such a file may stand for any number of values: a column of nothing but nulls, one text that a dictionary
has once and a million rows point at. So columns have to be of types whose every value takes room, and rows are made a
few at a time, each time held against the memory that is left. What compressed pages and buffers become is known only
when they are unpacked: that is done within the memory that is left, and fails beyond (on Linux). Of a Parquet file, a
page of every column is there at a time, however large its row groups are; of a dataset, one batch.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from byheart.errors import BadInput, missing
from byheart.files.memory import SHARE, bounded, check_memory
from byheart.files.reading import opened, read_json
from byheart.files.room import check_room
from byheart.tasks.facts.pile import FACT_TAKES

Rows = Iterator[tuple[str, Any]]
STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
TAKES = 8
"""Bytes of memory for every byte of a column, as it becomes Python's texts and lists."""
ROW_TAKES = 600
"""And for every row, and every record in a list."""
VALUE_TAKES = 40
"""And for every value of a list."""
BUFFER = 1 << 20
"""Bytes of a column's chunk that are read at a time."""
AT_ONCE = 64
"""Rows that are made at a time."""


def is_dataset(folder: Path) -> bool:
    """Whether the folder looks like one that ``datasets`` saved."""
    return all((folder / name).is_file() for name in (STATE, INFO)) or (folder / SPLITS).is_file()


def parquet_rows(path: Path) -> Rows:
    """The rows of a Parquet file, counted from 1."""
    pa = _pyarrow(path)
    import pyarrow.parquet

    with opened(path) as source:
        try:
            with _plainly_allocated(pa):
                file = pyarrow.parquet.ParquetFile(source, buffer_size=BUFFER, pre_buffer=False)
            about = file.metadata
            size = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
            check_room(size, str(path))
            check_memory(FACT_TAKES * about.num_rows, str(path))
            yield from _rows(path, file.schema_arrow, _unpacked(file.iter_batches(AT_ONCE, use_threads=False)))
        except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
            raise _unreadable(path, error) from error


def dataset_rows(folder: Path) -> Rows:
    """The rows of a dataset on disk, counted from 1."""
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
        with opened(folder / name) as source:
            try:
                with _plainly_allocated(pa):
                    stream = pa.ipc.open_stream(source)
                for place, row in _rows(folder, stream.schema, _unpacked(stream), before):
                    before += 1
                    yield place, row
            except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
                raise _unreadable(folder / name, error) from error


def _rows(path: Path, schema: Any, batches: Any, before: int = 0) -> Rows:
    """Rows as records; ``before``: how many there were in other files."""
    for column in schema:
        if not _is_plain(column.type):
            expected = "expected texts, numbers, lists or records of them: cast the column, or leave it out"
            raise BadInput(f"{path}: the column {column.name!r} is {shortened(str(column.type))}; {expected}")
    for batch in batches:
        batch.validate(full=True)
        for first in range(0, batch.num_rows, AT_ONCE):
            few = batch.slice(first, AT_ONCE)
            check_memory(ROW_TAKES * few.num_rows + sum(map(_takes, few.columns)), str(path))
            for number, row in enumerate(few.to_pylist(), start=before + first + 1):
                yield f"{path} row {number}", row
        before += batch.num_rows


def _unpacked(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches, each one unpacked within the memory that is left."""
    left = iter(batches)
    while True:
        with bounded():
            batch = next(left, None)
        if batch is None:
            return
        yield batch


@contextmanager
def _plainly_allocated(pa: Any) -> Iterator[None]:
    """Files that are opened meanwhile are read into memory that the system gives, and nobody has reserved before."""
    pool = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(pool)


def _is_plain(kind: Any, within: bool = False) -> bool:
    """Whether every value of a type takes room; ``within`` a list there may be more nulls and bits than bytes."""
    from pyarrow import types

    if types.is_list(kind) or types.is_large_list(kind):
        return _is_plain(kind.value_type, within=True)
    if types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_plain(field.type, within=True) for field in kind)
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    numbers = (types.is_integer, types.is_floating)
    alone = () if within else (types.is_null, types.is_boolean, types.is_temporal, types.is_decimal)
    return any(is_kind(kind) for is_kind in (*texts, *numbers, *alone))


def _takes(column: Any) -> int:
    """Bytes that a plain column takes as Python's values, at most."""
    from pyarrow import types

    if types.is_list(column.type) or types.is_large_list(column.type):
        return VALUE_TAKES * len(column) + _takes(column.flatten())
    if types.is_struct(column.type):
        return ROW_TAKES * len(column) + sum(map(_takes, column.flatten()))
    return VALUE_TAKES * len(column) + TAKES * int(column.nbytes)


def _unreadable(path: Path, error: Exception) -> BadInput:
    if isinstance(error, MemoryError):
        return BadInput(f"{path}: unpacks to more than {round(100 * SHARE)} % of the memory that is left: split it")
    return error if isinstance(error, BadInput) else BadInput(f"{path}: cannot be read ({str(error).splitlines()[0]})")


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise BadInput(missing("pyarrow", f"reading {path}", "data")) from error
    return pyarrow
