"""Run the experiments of Madden, Fox & Thrampoulidis 2024 where nothing but torch and numpy is installed.

    PYTHONPATH=src python benchmarks/madden.py trained frozen --scale paper --device cuda --time-limit 480 --out results

Writes one CSV file per setting, config and metrics side by side; models in the file are not trained again. A job is one
setting at two numbers of stories, few beside many, and is written as soon as it is done. With --time-limit, no job is
started that would end too late at the rate so far. The work of a step is counted as N·ω·(m + 200): m hidden units for
every pair of a context and a token, and 200 for the passes over the logits.
"""

import csv
import time
from pathlib import Path

from driving import parsed, parser, write

from byheart.lab.experiment import to_json
from byheart.papers.madden_2024 import GRIDS, MaddenConfig, data_of, experiment, work

Rows = list[dict[str, float | int | str | bool | None]]
SETTINGS = ("trained", "frozen")
BESIDES = 200
"""Number of hidden units that cost as much as the softmax and the passes over logits."""
FIRST_RATE = 2e13
"""Units per second of an H200, roughly: the rate assumed until one is measured."""


def units(config: MaddenConfig) -> float:
    """Return the work of a config, in units."""
    contexts, vocab = data_of(config.stories).counts.shape
    return float(contexts * vocab * (config.hidden + BESIDES) * config.steps)


def jobs(configs: list[MaddenConfig]) -> list[list[MaddenConfig]]:
    """Group models of one setting, few stories beside many because few leave a GPU idle. Most stories come last."""
    numbers = sorted({config.stories for config in configs})
    outer = {number: min(i, len(numbers) - 1 - i) for i, number in enumerate(numbers)}
    found: dict[tuple[int, bool], list[MaddenConfig]] = {}
    for config in sorted(configs, key=lambda config: (-outer[config.stories], config.frozen)):
        found.setdefault((outer[config.stories], config.frozen), []).append(config)
    return list(found.values())


def setting(config: MaddenConfig) -> str:
    """Return the name of the config's setting, which is part of the file's name."""
    return "frozen" if config.frozen else "trained"


class Tables:
    """The CSV files of all settings, with the configs in them."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.rows: dict[str, Rows] = {name: self._read(name) for name in SETTINGS}

    def _path(self, name: str) -> Path:
        return self.out / f"madden_2024_{name}.csv"

    def _read(self, name: str) -> Rows:
        if not self._path(name).exists():
            return []
        with self._path(name).open(newline="", encoding="utf-8") as file:
            return [dict(row) for row in csv.DictReader(file)]

    def has(self, config: MaddenConfig) -> bool:
        """Return True if the config is trained already."""
        wanted = {name: str(value) for name, value in to_json(config).items()}
        return any(wanted.items() <= {k: str(v) for k, v in row.items()}.items() for row in self.rows[setting(config)])

    def add(self, config: MaddenConfig, metrics: dict[str, float | int | str | None]) -> None:
        """Add a row and write the file, sorted by n, then by m."""
        rows = self.rows[setting(config)]
        rows.append(to_json(config) | metrics)
        rows.sort(key=lambda row: (int(row["stories"] or 0), int(row["hidden"] or 0), int(row["seed"] or 0)))
        write(rows, self._path(setting(config)))


def run(configs: list[MaddenConfig], device: str, time_limit: float | None, out: Path) -> None:
    """Train the configs that are not in the files, as long as there is time."""
    start, tables, rate = time.perf_counter(), Tables(out), FIRST_RATE
    left = [config for config in configs if not tables.has(config)]
    print(f"{len(configs) - len(left)} of {len(configs)} models are trained already")
    print("  ".join(f"{title:>15}" for title in ("stories", "hidden", "models", "seconds", "model-steps/s", "elapsed")))
    for job in jobs(left):
        work_ahead = sum(map(units, job))
        if time_limit is not None and time.perf_counter() - start + work_ahead / rate > time_limit:
            print(f"time is up before {len(job)} models of {job[0].stories} stories", flush=True)
            continue
        before = time.perf_counter()
        measured = work(job, device)
        taken = time.perf_counter() - before
        rate = work_ahead / taken
        for config, metrics in zip(job, measured, strict=True):
            tables.add(config, metrics)
        numbers = [sorted({getattr(config, name) for config in job}) for name in ("stories", "hidden")]
        ranges = [f"{some[0]:,} to {some[-1]:,}" if len(some) > 1 else f"{some[0]:,}" for some in numbers]
        told = [*ranges, str(len(job)), f"{taken:.1f}", f"{sum(config.steps for config in job) / taken:,.0f}"]
        print("  ".join(f"{cell:>15}" for cell in (*told, f"{time.perf_counter() - start:.0f} s")), flush=True)


def main() -> None:
    """Run the settings that the command line names."""
    flags = parser(__doc__)
    add = flags.add_argument
    add("settings", nargs="*", choices=[*SETTINGS, []], metavar="SETTING", help="trained, frozen (default: both)")
    add(
        "--stories", type=int, nargs="*", metavar="n", help=f"train only these n, of {GRIDS['paper'][0]} at scale paper"
    )
    add("--time-limit", type=float, metavar="SECONDS", help="start no job that would end later")
    options = parsed(flags)
    scale = "smoke" if options.tiny else options.scale
    made = [experiment(scale, frozen=name == "frozen") for name in options.settings or SETTINGS]
    configs = [
        config for each in made for config in each.configs if config.stories in (options.stories or [config.stories])
    ]
    run(configs, options.device, options.time_limit, options.out)


if __name__ == "__main__":
    main()
