"""Measure how long experiments take on this machine, as rows for src/byheart/papers/seconds.csv.

    PYTHONPATH=src python benchmarks/lab_seconds.py dana-2025-1 --scale paper --device cuda --machine H200

Everything is trained in this process, one job after the other; the start of Python is not counted. On a GPU the wall
clock counts; on a CPU, the CPU time of one thread, so other work on the machine does not count. Each row goes to
stdout, as CSV, as soon as it is known. Needs torch and numpy only.

Experiments that take days are measured in part: with --every 13, every 13th model; with --seeds 2, the models of the
first two seeds (2-5: of seeds 2 to 5); with --examples 10000, the models with 10,000 examples; and with --steps 500,
each model for at most 500 steps (whole epochs, if there are epochs, and at least one). `byheart lab list` estimates
times from the model-steps per second. Evaluations are part of the training: Mahdavi's has one every 500 steps. With
--out the results are kept, one CSV file per experiment, like those that come with Byheart.
"""

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from driving import write

from byheart.lab.experiment import SCALES, Experiment, key, to_json
from byheart.lab.runs import ResultRow
from byheart.papers.experiments import COLUMNS, EXPERIMENTS, H200, TWO_CORES, model_steps
from byheart.papers.results import LEFT_OUT


def shortened(config: Any, steps: int) -> Any:
    """Return the config with at most ``steps`` steps, or, if it has epochs, whole epochs and at least one."""
    if hasattr(config, "epochs"):
        return replace(config, epochs=min(config.epochs, max(1, steps // config.batches)))
    return replace(config, steps=min(config.steps, steps))


def measured(experiment: Experiment, configs: Sequence[Any], device: str) -> tuple[float, list[dict[str, Any]]]:
    """Run some configs of an experiment. Return the seconds that they take and their results."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    start, rows = clock(), []
    for job in experiment.groups(configs):
        found = experiment.work(job, device, None)
        told = (
            ResultRow(experiment.name, key(c), to_json(c), "done", dict(m), 0.0, None).flat
            for c, m in zip(job, found, strict=True)
        )
        rows += [{name: value for name, value in one.items() if name not in LEFT_OUT} for one in told]
    return clock() - start, rows


def seeds_of(given: str) -> range:
    """Parse a number of seeds, or the first and the last seed.

    >>> seeds_of("2"), seeds_of("2-5")
    (range(0, 2), range(2, 6))
    """
    first, _, last = given.partition("-")
    found = range(int(first), int(last) + 1) if last else range(int(first))
    if not found:
        raise argparse.ArgumentTypeError(f"{given} has no seeds; expected a number of them, or the first and the last")
    return found


def chosen(configs: Sequence[Any], options: argparse.Namespace) -> tuple[tuple[Any, ...], str]:
    """Return the configs that the options select, and the flags that select them."""
    flags = ""
    if options.every > 1:
        configs, flags = configs[:: options.every], f" --every {options.every}"
    if options.seeds is not None:
        configs = [config for config in configs if config.seed in options.seeds]
        first, last = options.seeds.start, options.seeds.stop - 1
        flags += f" --seeds {first}-{last}" if first else f" --seeds {last + 1}"
    if options.examples is not None:
        configs = [config for config in configs if config.examples == options.examples]
        flags += f" --examples {options.examples}"
    if options.steps is not None:
        configs = [shortened(config, options.steps) for config in configs]
        flags += f" --steps {options.steps}"
    return tuple(configs), flags


def main() -> None:
    """Measure the experiments that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("experiments", nargs="*", metavar="NAME", help="names of byheart lab list (default: all)")
    add("--scale", choices=SCALES, default="smoke", help="smoke: seconds; short: minutes; paper: as published")
    add("--device", default="cpu", help="cpu, cuda, cuda:1, …")
    add("--machine", choices=(TWO_CORES, H200), default=TWO_CORES, help="name of this machine in the rows")
    add("--every", type=int, default=1, help="train every k-th model only")
    add("--seeds", type=seeds_of, default=None, help="number of seeds, or the first and the last: 2-5")
    add("--examples", type=int, default=None, help="train only models with this number of examples (Mahdavi's)")
    add("--steps", type=int, default=None, help="largest number of steps per model")
    add("--out", type=Path, default=None, help="folder for the results (default: not kept)")
    add("--tiny", action="store_true", help="run one experiment, at scale smoke")
    options = parser.parse_args()
    unknown = [name for name in options.experiments if name not in EXPERIMENTS]
    if unknown:
        parser.error(f"no experiment is called {unknown[0]!r}; expected names of byheart lab list")
    for flag in ("every", "steps"):
        if (number := getattr(options, flag)) is not None and number < 1:
            parser.error(f"--{flag} is {number}; expected at least 1")
    torch.set_num_threads(1)
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(COLUMNS)
    for name in ["dana-2025-6"] if options.tiny else options.experiments or EXPERIMENTS:
        experiment = EXPERIMENTS[name](options.scale)
        configs, which = chosen(experiment.configs, options)
        flags = f"--scale {options.scale}" + (f" --device {options.device}" if options.device != "cpu" else "") + which
        seconds, results = measured(experiment, configs, options.device)
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            write(results, options.out / f"{name}.csv")
        sizes = (len(configs), model_steps(configs))
        command = f"python benchmarks/lab_seconds.py {name} {flags}"
        rows.writerow([name, options.scale, options.machine, *sizes, f"{seconds:.3g}", command])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
