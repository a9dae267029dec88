"""``byheart lab list``: what can be run, what was run, and how long it took."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from byheart.cli.lab_output import literal, state
from byheart.cli.output import DONE, Json, console, number, print_json, table, with_example

if TYPE_CHECKING:
    from byheart.lab.runs import Run
    from byheart.lab.timings import Timing

LIST = with_example(
    "The experiments that there are, their shipped results, measured times, and the runs in a folder.",
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
        for one in known:
            if one["left_out"]:
                out.print(f"{one['experiment']} is shipped {one['left_out']}", style="dim", markup=False)
        for timing in together:
            told = f"{timing.experiment}, all {number(timing.models)} models at scale {timing.scale} together"
            told += f": {number(timing.seconds)} s on an {timing.machine} ({timing.command})"
            out.print(told, style="dim", markup=False)
        out.print(_listed(self.folder, runs) if runs else f"no runs in {self.folder}", style=None if runs else "dim")
        return DONE


def _experiments() -> list[dict[str, Any]]:
    """For each experiment: models by scale, what is shipped of it and left out, seconds where they were measured."""
    from byheart.lab import results
    from byheart.lab.experiments import EXPERIMENTS, SCALES
    from byheart.lab.timings import H200, TWO_CORES, seconds

    shipped = results.names()
    found: list[dict[str, Any]] = []
    for name, make in EXPERIMENTS.items():
        models: dict[str, int] = {scale: len(make(scale).configs) for scale in SCALES}
        rows = results.table(name) if name in shipped else []
        seeds = len({row["seed"] for row in rows})
        times = {
            "h200_paper_seconds": seconds(name, "paper", H200, models["paper"]),
            "two_cores_short_seconds": seconds(name, "short", TWO_CORES, models["short"]),
            "two_cores_smoke_seconds": seconds(name, "smoke", TWO_CORES, models["smoke"]),
        }
        left_out = results.left_out(name) if rows else ""
        found.append(
            {"experiment": name, **models, "shipped": len(rows), "seeds": seeds, **times, "left_out": left_out}
        )
    return found


def _together() -> "list[Timing]":
    """What was measured for several experiments at once."""
    from byheart.lab.experiments import EXPERIMENTS
    from byheart.lab.timings import timings

    return [one for one in timings() if one.experiment not in EXPERIMENTS]


def _shown(known: list[dict[str, Any]]) -> Any:
    models = (">smoke", ">short", ">paper")
    times = (">H200, paper", ">2 cores, short", ">2 cores, smoke")
    title = "experiments: models at each scale, rows and seeds that come with Byheart, measured seconds"
    rows = table(title, "experiment", *models, ">shipped", ">seeds", *times)
    for one in known:
        name, *counts, _ = one.values()
        rows.add_row(name, *(number(value or None) for value in counts))
    return rows


def _listed(folder: Path, runs: "list[Run]") -> Any:
    rows = table(f"runs in {folder}", "run", "experiment", "scale", ">done", ">failed", ">models", "state", "began")
    for run in runs:
        found = state(run)
        counts = (number(found[name]) for name in ("done", "failed", "models"))
        told = literal(run.folder.name, run.name, found["scale"])
        rows.add_row(*told, *counts, found["state"], *literal(found["began"] or ""))
    return rows
