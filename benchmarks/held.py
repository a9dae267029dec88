"""Count how many of all ω² associations attention alone holds, trained and built, each proved. Four minutes.

    python benchmarks/held.py --out src/byheart/papers/dana_2025/held.csv --plot docs/held.png

Networks of Dana, Pydi & Chevaleyre's experiments 1 and 2 with d = d_h = 10, one seed each, are trained as published and
certified by `--count`. So are the networks that `byheart build dana-2025 --hold` builds for the same tasks with the
same sizes. `byheart lab plot --shipped dana-2025` draws the table without training (`byheart.papers.results`).
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from checking import certified
from tables import OUT, table

from byheart.bounds.dana_2025 import capacity
from byheart.certificates import certify
from byheart.constructions import build, dana_2025
from byheart.lab.saving import Kept, kept
from byheart.papers.dana_2025.dana_claims import held_of
from byheart.papers.dana_2025.dana_page import held_figure
from byheart.papers.experiments import EXPERIMENTS
from byheart.report.drawing import draw
from byheart.tasks import NextToken

Row = dict[str, float]


def trained(tiny: bool) -> Iterator[Kept]:
    """Yield trained networks with an increasing number of heads and otherwise equal sizes."""
    if tiny:
        yield from (kept(EXPERIMENTS["dana-2025-6"]("smoke"), {"heads": heads}) for heads in ("1", "21"))
        return
    for heads in (1, 6, 11, 16, 20, 21, 26, 31):
        name, where = ("2", {"head_dim": "10"}) if heads == 20 else ("1", {"model_dim": "10", "heads": str(heads)})
        yield kept(EXPERIMENTS[f"dana-2025-{name}"]("paper"), where | {"seed": "0"})


def row_of(made: Kept) -> Row:
    """Count what a network holds, certified from its folder, and what a network built for the same task holds."""
    config, task = made.network.about["config"], made.task
    assert isinstance(task, NextToken)
    sizes = {name: config[name] for name in ("vocab", "model_dim", "head_dim", "heads")}
    with TemporaryDirectory() as folder:
        made.write(Path(folder))
        proved = certify(Path(folder), task, count=True)
    _, d, d_h, H = sizes.values()
    hold = min(capacity(H, d_h, d), task.size.examples)
    built, _ = certified(
        build("dana-2025", task, settings=dana_2025.DanaSettings(d, d_h, H, hold=hold)), task, count=True
    )
    assert proved.certified, proved
    assert built.certified, built
    constant = int(np.bincount(task.labels).max())
    measured = round(float(made.metrics["accuracy"] or 0) * task.size.examples)
    parameters, seed = made.network.account.dense, config["seed"]
    counts = {"examples": task.size.examples, "measured": measured, "right": proved.right}
    return sizes | {"seed": seed, "parameters": parameters} | counts | {"built": built.right, "constant": constant}


def main() -> None:
    """Train and certify the networks; print, write and draw the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tiny", action="store_true", help="train two networks for a few steps, to see that everything runs"
    )
    parser.add_argument("--out", type=Path, help="CSV file for the table")
    parser.add_argument("--plot", type=Path, help="draw the table into this file")
    options = parser.parse_args()
    rows = []
    for made in trained(options.tiny):
        rows.append(row_of(made))
        OUT.print(f"H = {rows[-1]['heads']}: {rows[-1]['right']:,} proved right")
    cells = [held.cells() for held in held_of(rows)]
    found = table("What attention alone holds: one layer, all contexts of two tokens", *cells[0])
    for row in cells:
        found.add_row(*(f"{value:,}" for value in row.values()))
    OUT.print(found)
    if options.out is not None:
        with options.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    if options.plot is not None:
        draw(held_figure(rows), options.plot)


if __name__ == "__main__":
    main()
