"""What the scripts that train papers' experiments share: their flags, and how tables are written.

Needs torch and numpy only, as they do.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from devices import usable

from byheart.lab.experiment import SCALES


def parser(description: str | None, out: Path = Path()) -> argparse.ArgumentParser:
    """With the flags that all have."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = found.add_argument
    add("--scale", choices=SCALES, default="paper", help="paper: in full. short: fewer, shorter. smoke: seconds")
    add("--device", type=usable, default="cpu", help="where models are trained: cpu, cuda, cuda:1, …")
    add("--out", type=Path, default=out, help="folder for the CSV files")
    add("--tiny", action="store_true", help="little of it, to see that it runs; numbers mean nothing")
    return found


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """What the command line says; the device is there, and the folder."""
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def write(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A CSV file of rows that have the same columns, as those that come with Byheart."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
