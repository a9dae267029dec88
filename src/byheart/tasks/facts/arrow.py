"""Tables in the formats of Apache Arrow: Parquet files, and folders that ``datasets.save_to_disk`` wrote.

Read by pyarrow (extra ``data``), which executes nothing of a file; of a folder only the files are read that its
``state.json`` names, and that lie in it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from byheart.errors import BadInput, missing
from byheart.files.memory import check_memory
from byheart.files.reading import read_bytes, read_json

Rows = Iterator[tuple[str, Any]]
STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
TAKES = 8
"""Bytes of memory for every byte of a column, as it becomes Python's texts and lists."""
ROW_TAKES = 600
"""And for every row."""


def is_dataset(folder: Path) -> bool:
    """Whether the folder looks like one that ``datasets`` saved."""
    return all((folder / name).is_file() for name in (STATE, INFO)) or (folder / SPLITS).is_file()


def parquet_rows(path: Path) -> Rows:
    """The rows of a Parquet file, counted from 1."""
    pa = _pyarrow(path)
    import pyarrow.parquet

    data = read_bytes(path, takes=TAKES)
    try:
        file = pyarrow.parquet.ParquetFile(pa.BufferReader(data))
        about = file.metadata
        size = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
        check_memory(TAKES * size + ROW_TAKES * about.num_rows, str(path))
        yield from _rows(path, file.iter_batches())
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
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
    if not parts or any(name != Path(name).name for name in parts):
        raise BadInput(f"{folder / STATE}: names no files in its folder; expected those that datasets wrote")
    before = 0
    for name in parts:
        data = read_bytes(folder / name, takes=TAKES)
        try:
            with pa.ipc.open_stream(pa.BufferReader(data)) as stream:
                for place, row in _rows(folder, stream, before):
                    before += 1
                    yield place, row
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise _unreadable(folder / name, error) from error


def _rows(path: Path, batches: Any, before: int = 0) -> Rows:
    """Rows as records; ``before``: how many there were in other files."""
    for batch in batches:
        for number, row in enumerate(batch.to_pylist(), start=before + 1):
            yield f"{path} row {number}", row
        before += batch.num_rows


def _unreadable(path: Path, error: Exception) -> BadInput:
    return error if isinstance(error, BadInput) else BadInput(f"{path}: cannot be read ({str(error).splitlines()[0]})")


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise BadInput(missing("pyarrow", f"reading {path}", "data")) from error
    return pyarrow
