"""``byheart lab list``: what can be run, what was run, and how long it took."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.cli.lab_output import Scale, literal, state
from byheart.cli.menu import about
from byheart.cli.options import Json, Positional
from byheart.cli.output import DONE
from byheart.cli.result import console, number, print_json, table

if TYPE_CHECKING:
    from byheart.lab.runs import Run
    from byheart.papers.timings import Timing

TIMES: "dict[str, tuple[str, Scale]]" = {
    "h200_paper_seconds": ("H200", "paper"),
    "two_cores_paper_seconds": ("2 cores", "paper"),
    "two_cores_short_seconds": ("2 cores", "short"),
    "two_cores_smoke_seconds": ("2 cores", "smoke"),
}
"""Columns of seconds: machine, as :mod:`byheart.papers.timings` calls it, and scale."""
TITLE = "experiments: models at each scale, how much of the paper's comes with Byheart, seconds"
NOTE = """seconds: wall time on one H200; processor time of one thread on a CPU of 2 cores; ≈ marks an estimate from the
model-steps per second of a part, as if no model stopped early; – where nothing was measured"""
LIST = about(
    "The experiments that there are, how much of each is shipped, how long they take, and the runs in a folder.",
    "byheart lab list runs",
)


@dataclass(frozen=True)
class LabList:
    """The experiments that there are, with results that come with Byheart and measured times; the runs in a folder."""

    folder: Positional[Path] = Path("runs")
    """Folder whose subfolders are runs."""
    json: Json = False

    def run(self) -> int:
        """List both."""
        from byheart.lab.runs import runs_in

        known, runs, together = _experiments(), runs_in(self.folder), _together()
        if self.json:
            sums = [asdict(one) for one in together]
            print_json({"experiments": known, "together": sums, "runs": [state(run) for run in runs]})
            return DONE
        out = console()
        out.print(_shown(known))
        out.print(NOTE, style="dim", markup=False)
        for one in known:
            if one["absent"]:
                told = f"{one['experiment']} is shipped without {' and without '.join(one['absent'])}"
                out.print(told, style="dim", markup=False)
        for timing in together:
            told = f"{timing.experiment}, all {number(timing.models)} models at scale {timing.scale} together"
            told += f": {number(timing.seconds)} s on an {timing.machine} ({timing.command})"
            out.print(told, style="dim", markup=False)
        out.print(_listed(self.folder, runs) if runs else f"no runs in {self.folder}", style=None if runs else "dim")
        return DONE


def _experiments() -> list[dict[str, Any]]:
    """For each experiment: models by scale, how much of it is shipped, and seconds: measured, estimated, or None."""
    from byheart.lab.experiment import SCALES
    from byheart.papers import results
    from byheart.papers.experiments import EXPERIMENTS
    from byheart.papers.timings import seconds

    found: list[dict[str, Any]] = []
    for name, make in EXPERIMENTS.items():
        configs = {scale: make(scale).configs for scale in SCALES}
        models: dict[str, int] = {scale: len(some) for scale, some in configs.items()}
        there = results.presence(name)
        shipped = {"shipped": there.models, "seeds": there.seeds, "seeds_planned": there.planned_seeds}
        times = {column: seconds(name, scale, machine, configs[scale]) for column, (machine, scale) in TIMES.items()}
        values = {column: time.value if time else None for column, time in times.items()}
        estimated = [column for column, time in times.items() if time and time.estimated]
        absent = list(there.absent)
        found.append({"experiment": name, **models, **shipped, "absent": absent, **values, "estimated": estimated})
    return found


def _together() -> "list[Timing]":
    """What was measured for several experiments at once."""
    from byheart.papers.experiments import EXPERIMENTS
    from byheart.papers.timings import timings

    return [one for one in timings() if one.experiment not in EXPERIMENTS]


def _shown(known: list[dict[str, Any]]) -> Any:
    heads = [f">{machine}, {scale}" for machine, scale in TIMES.values()]
    rows = table(TITLE, "experiment", ">smoke", ">short", ">paper", ">shipped", ">seeds", *heads)
    for one in known:
        models = [number(one[scale]) for scale in ("smoke", "short", "paper")]
        shipped = [_of(one["shipped"], one["paper"]), _of(one["seeds"], one["seeds_planned"])]
        rows.add_row(one["experiment"], *models, *shipped, *(_time(one, column) for column in TIMES))
    return rows


def _of(there: int, planned: int) -> str:
    """How many of how many.

    >>> _of(64, 192), _of(12, 12), _of(0, 80)
    ('64 of 192', 'all 12', '–')
    """
    return (
        "–" if not there else f"all {number(planned)}" if there == planned else f"{number(there)} of {number(planned)}"
    )


def _time(one: dict[str, Any], column: str) -> str:
    """Seconds; an estimate has two digits, and a mark."""
    if column not in one["estimated"]:
        return number(one[column])
    return f"≈ {number(float(f'{one[column]:.2g}'))}"


def _listed(folder: Path, runs: "list[Run]") -> Any:
    rows = table(f"runs in {folder}", "run", "experiment", "scale", ">done", ">failed", ">models", "state", "began")
    for run in runs:
        found = state(run)
        counts = (number(found[name]) for name in ("done", "failed", "models"))
        told = literal(run.folder.name, run.name, found["scale"])
        rows.add_row(*told, *counts, found["state"], *literal(found["began"] or ""))
    return rows
