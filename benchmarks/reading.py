"""Read facts and a task from files of every format, and measure the time and memory of reading and of the window.

    python benchmarks/reading.py --facts 1000000        # two minutes, and 300 MB of files, which are removed

Prompts have 32 bytes and completions 10; the task has 8 tokens per example. Each file is read in its own process, a
copy of this one: memory is that process's peak minus its memory at the start. The questions must be the same from every
format. For docs/large.md.
"""

import argparse
import csv
import json
import random
import tempfile
import time
from collections.abc import Iterator
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from string import ascii_lowercase

from tables import OUT, table

from byheart.files.memory import peak_memory
from byheart.tasks import Facts, load
from byheart.tasks.questions import as_contexts
from byheart.tasks.tokenizers import Bytes

KEYS = ("prompt", "completion")
AT_ONCE = 50_000
"""Number of rows per group in Parquet."""
COLUMNS = (
    "file",
    "µs each to read",
    "bytes each",
    "÷ file",
    "µs each for the window",
    "peak bytes each",
    "window",
    "questions",
)


def pairs(count: int) -> Iterator[tuple[str, str]]:
    """Yield ``count`` prompts and completions, the same every time."""
    rng = random.Random(0)
    for number in range(count):
        first, second, said = ("".join(rng.choices(ascii_lowercase, k=length)) for length in (6, 5, 10))
        yield f"the {first} of {second} {number:09} is", said


def write(folder: Path, count: int) -> list[Path]:
    """Write the facts in every format, and a task. Return the files' paths."""
    with (folder / "facts.jsonl").open("w") as lines:
        lines.writelines(f"{json.dumps(dict(zip(KEYS, pair, strict=True)))}\n" for pair in pairs(count))
    for name, delimiter in (("facts.csv", ","), ("facts.tsv", "\t")):
        with (folder / name).open("w", newline="") as rows:
            csv.writer(rows, delimiter=delimiter).writerows(chain([KEYS], pairs(count)))
    rng = random.Random(0)
    with (folder / "task.jsonl").open("w") as lines:
        for _ in range(count):
            *tokens, label = rng.choices(range(256), k=9)
            lines.write(f"{json.dumps({'tokens': tokens, 'label': label})}\n")
    try:
        from pyarrow import Table, parquet, schema, string

        columns = schema([(key, string()) for key in KEYS])
        with parquet.ParquetWriter(folder / "facts.parquet", columns) as file:
            left = pairs(count)
            while some := [dict(zip(KEYS, pair, strict=True)) for pair in islice(left, AT_ONCE)]:
                file.write_table(Table.from_pylist(some, columns))
    except ImportError:
        OUT.print("facts.parquet: left out, as pyarrow is not installed", style="dim")
    return sorted(folder.iterdir())


def measured(path: Path) -> tuple[int, list[float], str]:
    """Read one file.

    Returns:
        The number of examples; per example, seconds and bytes to read, seconds to find the window and bytes in all,
        then the window; and the fingerprint of the questions.
    """
    before, began = peak_memory(), time.process_time()
    given = load(path, narrow=True) if path.name == "task.jsonl" else Facts.read(path)
    count = len(given) if isinstance(given, Facts) else given.size.examples
    read, held = time.process_time(), peak_memory()
    asked = as_contexts(given, tokenizer=Bytes() if isinstance(given, Facts) else None)
    numbers = [read - began, held - before, time.process_time() - read, peak_memory() - before]
    return count, [*(number / count for number in numbers), asked.window], asked.fingerprint


def main() -> None:
    """Write and read the files, compare the questions, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--facts", type=int, default=1_000_000, help="number of facts, and of examples (default: 1,000,000)"
    )
    parser.add_argument("--tiny", action="store_true", help="read 300 facts, to see that everything runs")
    options = parser.parse_args()
    count = 300 if options.tiny else options.facts
    rows = table(f"{count:,} facts, or examples", *COLUMNS)
    known: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in write(Path(folder), 2):
            measured(path)  # imports and compiles before anything is measured
        paths = write(Path(folder), count)
        with get_context("fork").Pool(1, maxtasksperchild=1) as alone:
            found = [alone.apply(measured, (path,)) for path in paths]
        for path, (count, (read, held, looked, most, window), fingerprint) in zip(paths, found, strict=True):
            same = known.setdefault(path.stem, fingerprint) == fingerprint
            size = path.stat().st_size
            reading = f"{1e6 * read:.1f}", f"{held:,.0f}", f"{held * count / size:.1f}"
            looking = f"{1e6 * looked:.1f}", f"{most:,.0f}", f"{window:.0f}"
            rows.add_row(path.name, *reading, *looking, "the same" if same else "DIFFERENT")
        OUT.print(rows)


if __name__ == "__main__":
    main()
