"""Measure capacity in bits: of the ladder of trained networks, and of networks built for the same labels.

    PYTHONPATH=src python benchmarks/capacity.py train --scale paper --device cuda --time-limit 240 --out ladder
    python benchmarks/capacity.py build --scale paper --out built

`train` needs torch and numpy only. It writes a run (`byheart lab show ladder`) and the table `ladder/capacity.csv`,
which is rewritten after every job; called again, it resumes. `build` compiles and builds networks for the tasks of the
ladder's first seed, checks every answer, and writes `built/built.csv`. Both tables come with Byheart, in
:mod:`byheart.papers`.
"""

import time
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from driving import parsed, parser, write

from byheart.lab import Given, Local, Run, execute
from byheart.lab.experiment import Experiment
from byheart.lab.rows import is_number
from byheart.papers.capacity import ladder
from byheart.papers.experiments import EXPERIMENTS
from byheart.papers.results import LEFT_OUT

PARTS = ("train", "build")
TINY = ladder([800], [0.2], seeds=2, steps=5)


def train(experiment: Experiment, device: str, time_limit: float | None, out: Path) -> None:
    """Run the pending jobs of the ladder, and print how many bits its networks hold."""
    start = time.perf_counter()
    begin = Run.resume if (out / "config.json").exists() else Run.create
    with begin(out, experiment) as run, Local(Given(experiment)) as executor:

        def tell(done: int, total: int, note: str) -> None:
            print(f"  {time.perf_counter() - start:.0f} s: {done} of {total}; {note}", flush=True)
            if run.table:
                rows = [{name: row[name] for name in row if name not in LEFT_OUT} for row in run.table]
                write(rows, out / "capacity.csv")

        reached = execute(run, experiment, executor, tell, device=device, seconds=time_limit)
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
    """Build the networks to compare the ladder with, for every number of examples in it."""
    from byheart.papers.capacity.beside import Labels, build_beside

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
    """Run the parts that the command line names."""
    flags = parser(__doc__, out=Path("capacity"))
    add = flags.add_argument
    add("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help="train or build (default: both)")
    add("--time-limit", type=float, metavar="SECONDS", help="start no training job after this time")
    options = parsed(flags)
    experiment = TINY if options.tiny else EXPERIMENTS["capacity"](options.scale)
    if "train" in options.parts or not options.parts:
        train(experiment, options.device, options.time_limit, options.out)
    if "build" in options.parts or not options.parts:
        build(experiment, options.out)


if __name__ == "__main__":
    main()
