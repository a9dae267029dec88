"""The experiments of Dana, Pydi & Chevaleyre 2025 as plain Python, where nothing but torch and numpy is installed.

    PYTHONPATH=src python benchmarks/dana.py 1 2 --scale paper --device cuda --out results

One CSV file per experiment, config and metrics side by side, written anew after every job; then the means over
repetitions beside what was published.
"""

import argparse
import csv
import time
from pathlib import Path

from byheart.errors import BadInput
from byheart.lab.devices import device_called
from byheart.lab.experiments import EXPERIMENTS, SCALES, to_json
from byheart.lab.experiments.dana_2025 import NAMES
from byheart.lab.gaps import gaps

Rows = list[dict[str, float | int | str | None]]


def run(name: str, scale: str, device: str, out: Path) -> Rows:
    """All jobs of an experiment; its table, which is also in a file."""
    experiment = EXPERIMENTS[f"dana-2025-{name}"](scale)
    rows: Rows = []
    start = time.perf_counter()
    for job in experiment.groups(experiment.configs):
        before = time.perf_counter()
        measured = experiment.work(job, device, lambda done, total, note: print(f"  {done} of {total}; {note}"))
        taken = time.perf_counter() - before
        rate = sum(config.steps for config in job) / taken
        told = f"{len(job)} models, d = {job[0].model_dim}, {taken:.1f} s, {rate:,.0f} model-steps/s"
        print(f"experiment {name}: {told}", flush=True)
        rows += [to_json(config) | row for config, row in zip(job, measured, strict=True)]
        with (out / f"dana_2025_{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    print(f"experiment {name}: {len(rows)} models in {time.perf_counter() - start:.0f} s", flush=True)
    return rows


def compare(name: str, rows: Rows) -> None:
    """How far the means over repetitions are from the published ones, at the points that both have."""
    found = gaps(name, rows)
    columns = ("model_dim", "head_dim", "heads", "hidden", "published", "here", "gap", "all contexts")
    print("  ".join(f"{title:>12}" for title in columns))
    for point in found.points:
        sizes = [str(point.settings.get(column, "–")) for column in columns[:4]]
        numbers = [f"{point.published:.3f}", f"{point.here:.3f}", f"{point.gap:+.3f}", f"{point.uniform:.3f}"]
        print("  ".join(f"{cell:>12}" for cell in (*sizes, *numbers)))
    told = f"largest gap {abs(found.largest.gap):.4f}, mean of gaps {found.mean:+.4f}"
    print(
        f"experiment {name}: {len(found.points)} points, {told}, of their sizes {found.mean_absolute:.4f}", flush=True
    )


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("experiments", nargs="*", choices=[*NAMES, []], metavar="NAME", help=f"of {', '.join(NAMES)}; all if none")
    add("--scale", choices=SCALES, default="paper", help="paper: as published. short: an eighth. smoke: a few steps")
    add("--device", default="cpu", help="cpu, cuda, cuda:1, …")
    add("--out", type=Path, default=Path(), help="folder for the CSV files")
    add("--tiny", action="store_true", help="--scale smoke, and numbers beside the published ones, which mean nothing")
    options = parser.parse_args()
    try:
        device_called(options.device)
    except BadInput as refusal:
        parser.error(str(refusal))
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.experiments or NAMES:
        rows = run(name, "smoke" if options.tiny else options.scale, options.device, options.out)
        if options.tiny or options.scale == "paper":
            compare(name, rows)


if __name__ == "__main__":
    main()
