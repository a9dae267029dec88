"""Run the experiments of Dana, Pydi & Chevaleyre 2025 where nothing but torch and numpy is installed.

    PYTHONPATH=src python benchmarks/dana.py 1 2 --scale paper --device cuda --out results

Writes one CSV file per experiment, config and metrics side by side, after every job. Then prints the means over
repetitions beside the published ones. Single runs scatter: --seeds asks for more than the paper's 5 repetitions.
"""

import time
from dataclasses import replace
from pathlib import Path

from driving import parsed, parser, write

from byheart.lab.experiment import to_json
from byheart.papers.dana_2025 import NAMES
from byheart.papers.dana_2025.dana_claims import gaps
from byheart.papers.experiments import EXPERIMENTS

Rows = list[dict[str, float | int | str | None]]


def run(name: str, scale: str, device: str, out: Path, seeds: int | None = None) -> Rows:
    """Run all jobs of an experiment, with its own number of seeds or ``seeds``. Return its table and write it."""
    experiment = EXPERIMENTS[f"dana-2025-{name}"](scale)
    configs = experiment.configs
    if seeds is not None:
        configs = tuple(replace(config, seed=seed) for config in configs if config.seed == 0 for seed in range(seeds))
    rows: Rows = []
    start = time.perf_counter()
    for job in experiment.groups(configs):
        before = time.perf_counter()
        measured = experiment.work(job, device, lambda done, total, note: print(f"  {done} of {total}; {note}"))
        taken = time.perf_counter() - before
        rate = sum(config.steps for config in job) / taken
        told = f"{len(job)} models, d = {job[0].model_dim}, {taken:.1f} s, {rate:,.0f} model-steps/s"
        print(f"experiment {name}: {told}", flush=True)
        rows += [to_json(config) | row for config, row in zip(job, measured, strict=True)]
        write(rows, out / f"dana_2025_{name}.csv")
    print(f"experiment {name}: {len(rows)} models in {time.perf_counter() - start:.0f} s", flush=True)
    return rows


def compare(name: str, rows: Rows) -> None:
    """Print how far the means over repetitions are from the published ones, at the points that both have."""
    found = gaps(name, rows)
    columns = ("model_dim", "head_dim", "heads", "hidden", "published", "here", "gap", "all contexts")
    print("  ".join(f"{title:>12}" for title in columns))
    for point in found.points:
        sizes = [str(point.settings.get(column, "–")) for column in columns[:4]]
        numbers = [f"{point.published:.3f}", f"{point.here:.3f}", f"{point.gap:+.3f}", f"{point.uniform:.3f}"]
        print("  ".join(f"{cell:>12}" for cell in (*sizes, *numbers)))
    told = f"largest gap {abs(found.largest.gap):.4f}, mean of gaps {found.mean:+.4f}"
    print(
        f"experiment {name}: {len(found.points)} points, {told}, mean absolute gap {found.mean_absolute:.4f}",
        flush=True,
    )


def main() -> None:
    """Run the experiments that the command line names."""
    flags, told = parser(__doc__), f"any of {', '.join(NAMES)} (default: all)"
    flags.add_argument("experiments", nargs="*", choices=[*NAMES, []], metavar="NAME", help=told)
    flags.add_argument("--seeds", type=int, help="repetitions per model (default: the paper's number)")
    options = parsed(flags)
    for name in options.experiments or NAMES:
        rows = run(name, "smoke" if options.tiny else options.scale, options.device, options.out, options.seeds)
        if options.tiny or options.scale == "paper":
            compare(name, rows)


if __name__ == "__main__":
    main()
