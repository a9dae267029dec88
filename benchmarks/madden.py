"""The experiments of Madden, Fox & Thrampoulidis 2024 as plain Python, where nothing but torch and numpy is installed.

    PYTHONPATH=src python benchmarks/madden.py trained frozen --scale paper --device cuda --time-limit 480 --out results

One CSV file for each setting, config and metrics side by side: what it holds is not trained again. A job is one setting
at two numbers of stories, few beside many; it is written down as soon as it is done, and with --time-limit none is
begun that the rate so far would not finish in time. The work of a step is counted as N·ω·(m + 200): for every pair of a
context and a token, m hidden units, and what passing over the logits takes besides.
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
"""Hidden units that cost what the softmax and the passes over logits cost."""
FIRST_RATE = 2e13
"""Units a second of an H200, more or less, for as long as nothing is measured."""


def units(config: MaddenConfig) -> float:
    """The work that a config is."""
    contexts, vocab = data_of(config.stories).counts.shape
    return float(contexts * vocab * (config.hidden + BESIDES) * config.steps)


def jobs(configs: list[MaddenConfig]) -> list[list[MaddenConfig]]:
    """Models of one setting, few stories beside many, as few leave most of a GPU idle; the most stories come last."""
    numbers = sorted({config.stories for config in configs})
    outer = {number: min(i, len(numbers) - 1 - i) for i, number in enumerate(numbers)}
    found: dict[tuple[int, bool], list[MaddenConfig]] = {}
    for config in sorted(configs, key=lambda config: (-outer[config.stories], config.frozen)):
        found.setdefault((outer[config.stories], config.frozen), []).append(config)
    return list(found.values())


def setting(config: MaddenConfig) -> str:
    """What the file is called after."""
    return "frozen" if config.frozen else "trained"


class Tables:
    """The files, and which configs they hold."""

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
        """Whether the config is trained already."""
        wanted = {name: str(value) for name, value in to_json(config).items()}
        return any(wanted.items() <= {k: str(v) for k, v in row.items()}.items() for row in self.rows[setting(config)])

    def add(self, config: MaddenConfig, metrics: dict[str, float | int | str | None]) -> None:
        """Write it down, by n, then by m."""
        rows = self.rows[setting(config)]
        rows.append(to_json(config) | metrics)
        rows.sort(key=lambda row: (int(row["stories"] or 0), int(row["hidden"] or 0), int(row["seed"] or 0)))
        write(rows, self._path(setting(config)))


def run(configs: list[MaddenConfig], device: str, time_limit: float | None, out: Path) -> None:
    """Train them, as many as there is time for."""
    start, tables, rate = time.perf_counter(), Tables(out), FIRST_RATE
    left = [config for config in configs if not tables.has(config)]
    print(f"{len(configs) - len(left)} of {len(configs)} models are there already")
    print("  ".join(f"{title:>15}" for title in ("stories", "hidden", "models", "seconds", "model-steps/s", "in all")))
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
    """Run what is asked for."""
    flags = parser(__doc__)
    add = flags.add_argument
    add("settings", nargs="*", choices=[*SETTINGS, []], metavar="SETTING", help="trained, frozen; both if none")
    add("--stories", type=int, nargs="*", metavar="n", help=f"only these n, of {GRIDS['paper'][0]} at scale paper")
    add("--time-limit", type=float, metavar="SECONDS", help="begin nothing that would end later")
    options = parsed(flags)
    scale = "smoke" if options.tiny else options.scale
    made = [experiment(scale, frozen=name == "frozen") for name in options.settings or SETTINGS]
    configs = [
        config for each in made for config in each.configs if config.stories in (options.stories or [config.stories])
    ]
    run(configs, options.device, options.time_limit, options.out)


if __name__ == "__main__":
    main()
