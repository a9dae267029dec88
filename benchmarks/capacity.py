"""Capacity in bits: the ladder of trained networks, and networks that are built for the same labels.

    PYTHONPATH=src python benchmarks/capacity.py train --scale paper --device cuda --seconds 240 --out ladder
    python benchmarks/capacity.py build --scale paper --out built

`train` needs torch and numpy only. It writes a run (`byheart lab show ladder`) and, anew after every job, the table
`ladder/capacity.csv`; called again it goes on. `build` compiles and builds networks for the tasks of the ladder's first
seed, checks every answer, and writes `built/built.csv`. Both tables come with Byheart: :mod:`byheart.lab.results` and
:mod:`byheart.lab.built`.
"""

import argparse
import csv
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from byheart.errors import BadInput
from byheart.lab import EXPERIMENTS, Given, Local, Run, execute, ladder
from byheart.lab.devices import device_called
from byheart.lab.experiments import SCALES, Experiment
from byheart.lab.runs import is_number

PARTS = ("train", "build")
TINY = ladder([800], [0.2], seeds=2, steps=5)
LEFT_OUT = ("key", "status", "seconds", "error")
"""Columns of a run's table that a table that comes with Byheart does not have."""


def write(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """A CSV file of the rows."""
    shown = [{name: value for name, value in row.items() if name not in LEFT_OUT} for row in rows]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(shown[0]))
        writer.writeheader()
        writer.writerows(shown)


def train(experiment: Experiment, device: str, seconds: float | None, out: Path) -> None:
    """Do what is pending of the ladder, job by job, and tell what its networks hold."""
    start = time.perf_counter()
    begin = Run.resume if (out / "config.json").exists() else Run.create
    with begin(out, experiment) as run, Local(Given(experiment), device) as executor:

        def tell(done: int, total: int, note: str) -> None:
            print(f"  {time.perf_counter() - start:.0f} s: {done} of {total}; {note}", flush=True)
            if run.table:
                write(run.table, out / "capacity.csv")

        reached = execute(run, experiment, executor, tell, seconds=seconds)
    print(f"{reached.done} done, {reached.failed} failed, {reached.left} left", flush=True)
    for row in run.rows:
        if row.status == "failed":
            print(f"failed: {row.error}")
    columns = ("parameters", "demand", "learning_rate", "steps", "bits/parameter", "lowest", "highest", "seeds")
    print("  ".join(f"{column:>14}" for column in columns))
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in run.table:
        if is_number(row["bits_per_parameter"]):
            found.setdefault(tuple(row[name] for name in columns[:4]), []).append(row["bits_per_parameter"])
    for place, bits in found.items():
        numbers = (f"{value:.3f}" for value in (fmean(bits), min(bits), max(bits)))
        print("  ".join(f"{cell:>14}" for cell in (*place, *numbers, len(bits))))


def build(experiment: Experiment, out: Path) -> None:
    """The networks that stand beside the ladder, for every number of examples in it."""
    from byheart.report.lab.beside import Labels, build_beside

    out.mkdir(parents=True, exist_ok=True)
    sizes = sorted({(rung.examples, rung.length, rung.vocab, rung.labels) for rung in experiment.configs})
    columns = ("N", "network", "parameters", "bits/parameter", "weight bits")
    print("  ".join(f"{column:>30}" for column in columns))
    rows: list[dict[str, Any]] = []
    for labels in (Labels(*each) for each in sizes):
        for made in build_beside([labels]):
            known = asdict(made)
            rows.append({"network": known.pop("name"), **asdict(labels), **known})
            cells = (made.examples, made.name, made.parameters, f"{made.bits_per_parameter:.2f}", made.weight_bits)
            print("  ".join(f"{cell:>30}" for cell in cells), flush=True)
        write(rows, out / "built.csv")


def main() -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help="train or build; both if none")
    add("--scale", choices=SCALES, default="smoke", help="smoke: seconds. short: minutes. paper: for a GPU")
    add("--device", default="cpu", help="where networks are trained: cpu, cuda, cuda:1, …")
    add("--seconds", type=float, default=None, help="begin no job of training after so many")
    add("--out", type=Path, default=Path("capacity"), help="folder for the run and the tables")
    add("--tiny", action="store_true", help="two networks of a few steps, and built ones, to see that it runs")
    options = parser.parse_args()
    try:
        device_called(options.device)
    except BadInput as refusal:
        parser.error(str(refusal))
    experiment = TINY if options.tiny else EXPERIMENTS["capacity"](options.scale)
    if "train" in options.parts or not options.parts:
        train(experiment, options.device, options.seconds, options.out)
    if "build" in options.parts or not options.parts:
        build(experiment, options.out)


if __name__ == "__main__":
    main()
