"""Flags and table files of the scripts that train papers' experiments.

Needs torch and numpy only, as those scripts do.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from devices import usable

from byheart.lab.experiment import SCALES


def parser(description: str | None, out: Path = Path()) -> argparse.ArgumentParser:
    """Return a parser with the flags that all scripts have."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = found.add_argument
    add("--scale", choices=SCALES, default="paper", help="paper: in full; short: fewer, shorter runs; smoke: seconds")
    add("--device", type=usable, default="cpu", help="where models are trained: cpu, cuda, cuda:1, …")
    add("--out", type=Path, default=out, help="folder for the CSV files")
    add("--tiny", action="store_true", help="run little of it, to see that it runs; numbers mean nothing")
    return found


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the command line, and make the output folder."""
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def write(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows with the same columns as a CSV file, in the format of those that come with Byheart."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
