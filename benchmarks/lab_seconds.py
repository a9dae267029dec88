"""How long experiments take on this machine: rows for src/byheart/lab/timings/seconds.csv.

    PYTHONPATH=src python benchmarks/lab_seconds.py dana-2025-1 --scale paper --device cuda --machine H200

Everything is trained in this process, one job after the other; the start of Python is not counted, nor anything kept.
On a GPU the wall clock counts, on a CPU the processor time of one thread: what others do on the machine does not count.
Rows go to stdout, as CSV, as soon as they are there. Needs torch and numpy only.
"""

import argparse
import csv
import sys
import time

import torch

from byheart.lab.experiments import EXPERIMENTS, SCALES
from byheart.lab.timings import H200, TWO_CORES


def measured(name: str, scale: str, device: str) -> tuple[int, float]:
    """How many models an experiment has, and the seconds that they took."""
    experiment = EXPERIMENTS[name](scale)
    clock = time.process_time if device == "cpu" else time.perf_counter
    start = clock()
    for job in experiment.groups(experiment.configs):
        experiment.work(job, device, None)
    return len(experiment.configs), clock() - start


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("experiments", nargs="*", metavar="NAME", help="names of byheart lab list; all if none")
    add("--scale", choices=SCALES, default="smoke", help="smoke: seconds. short: minutes. paper: as published")
    add("--device", default="cpu", help="cpu, cuda, cuda:1, …")
    add("--machine", choices=(TWO_CORES, H200), default=TWO_CORES, help="what to call it")
    add("--tiny", action="store_true", help="one experiment, at scale smoke")
    options = parser.parse_args()
    unknown = [name for name in options.experiments if name not in EXPERIMENTS]
    if unknown:
        parser.error(f"no experiment is called {unknown[0]!r}; expected names of byheart lab list")
    torch.set_num_threads(1)
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["experiment", "scale", "machine", "models", "seconds", "command"])
    for name in ["dana-2025-6"] if options.tiny else options.experiments or EXPERIMENTS:
        models, seconds = measured(name, options.scale, options.device)
        flags = f"--scale {options.scale}" + (f" --device {options.device}" if options.device != "cpu" else "")
        command = f"python benchmarks/lab_seconds.py {name} {flags}"
        rows.writerow([name, options.scale, options.machine, models, f"{seconds:.3g}", command])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
