"""The experiments of Dana, Pydi & Chevaleyre 2025 as plain Python, where nothing but torch and numpy is installed.

    PYTHONPATH=src python benchmarks/dana.py 1 2 --scale paper --device cuda --out results

One CSV file an experiment, config and metrics side by side, written anew after every job; then the means over
repetitions beside what was published.
"""

import argparse
import csv
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean

from byheart.lab.experiments import EXPERIMENTS, to_json
from byheart.lab.experiments.dana_2025 import NAMES, published

Rows = list[dict[str, float | int | str | None]]


def run(name: str, scale: str, device: str, out: Path) -> Rows:
    """All jobs of an experiment; its table, which is also in a file."""
    experiment = EXPERIMENTS[f"dana-2025-{name}"](scale)
    rows: Rows = []
    start = time.perf_counter()
    for job in experiment.groups(experiment.configs):
        before = time.perf_counter()
        measured = experiment.work(job, device, print)
        taken = time.perf_counter() - before
        rate = sum(config.steps for config in job) / taken
        print(
            f"{name}: {len(job)} models, d = {job[0].model_dim}, {taken:.1f} s, {rate:,.0f} model-steps/s", flush=True
        )
        rows += [to_json(config) | row for config, row in zip(job, measured, strict=True)]
        with (out / f"dana_2025_{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    print(f"{name}: {len(rows)} models in {time.perf_counter() - start:.0f} s", flush=True)
    return rows


def compare(name: str, rows: Rows) -> None:
    """How far the means over repetitions are from the published ones."""
    known = published(name)
    columns = [column for column in known[0] if column != "last_accuracy"]
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[column] for column in columns)].append(row)
    gaps = []
    for point in known:
        repetitions = found[tuple(point[column] for column in columns)]
        last, everywhere = (mean(row[metric] for row in repetitions) for metric in ("last_accuracy", "accuracy"))
        gaps.append(last - point["last_accuracy"])
        where = ", ".join(f"{column} {point[column]:.0f}" for column in columns)
        print(
            f"{where}: published {point['last_accuracy']:.3f}, here {last:.3f} ({gaps[-1]:+.3f}); all {everywhere:.3f}"
        )
    print(
        f"experiment {name}: largest gap {max(map(abs, gaps)):.4f}, mean of gaps {mean(gaps):+.4f}, of their sizes "
        f"{mean(map(abs, gaps)):.4f}",
        flush=True,
    )


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", default=list(NAMES), help=f"of {', '.join(NAMES)}")
    parser.add_argument("--scale", default="paper")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.experiments:
        rows = run(name, options.scale, options.device, options.out)
        if name in ("1", "2") and options.scale == "paper":
            compare(name, rows)


if __name__ == "__main__":
    main()
