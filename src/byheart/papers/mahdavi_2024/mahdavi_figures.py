"""Figures of Mahdavi, Liao & Thrampoulidis 2024: accuracy and error against heads, n and d_h; saturated heads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byheart.bounds import mahdavi_2024
from byheart.errors import BadInput
from byheart.exhibits import (
    MEASURED,
    PROVED,
    PROVED_BEFORE,
    QUIET,
    Axis,
    BarChart,
    Curve,
    Entry,
    Figure,
    Mark,
    Panel,
    Rule,
    Style,
    colours,
)
from byheart.papers.curves import Rows, check_columns, runs_in_words, series, shared_value, values
from byheart.papers.mahdavi_2024.mahdavi_claims import AXES, axis_of
from byheart.papers.results import Presence

NAMES = {"heads": "H, heads", "length": "n, tokens of a context", "head_dim": "d_h, dimension of a head"}
LETTERS = {"heads": "H", "length": "n", "head_dim": "d_h"}
CONTEXTS = {"random": "a context for each example", "fixed": "one context for all"}
AT_LENGTH: Style = {"linestyle": "-.", "linewidth": 1}
OVER_SEEDS = "mean ± s.d. over seeds"
"""Legend of several blocks, which may have different numbers of seeds: their titles say how many."""
BAR_COLOUR = "#6f8fb5"
MOST_NAMED_BARS = 20
"""Largest number of heads at which every bar has its number below it."""


def sweep_figure(rows: Rows, along: str) -> Figure:
    """Declare one sweep: accuracy, or the mean squared error, along heads, length or head_dim."""
    if along not in NAMES:
        raise BadInput(f"along is {along!r}; expected one of {', '.join(NAMES)}")
    kind = "Regression" if values(rows, "answers") == ["targets"] else "Classification"
    panel, entries = _panel(rows, along, before=f"{kind}: ")
    return Figure([panel], legend=entries)


@dataclass(frozen=True)
class GridPanel:
    """One of the paper's sweeps: the planned configs, the results that there are, and how much of the plan they are."""

    planned: Rows
    rows: Rows
    presence: Presence

    @property
    def along(self) -> str:
        """The setting that the sweep varies."""
        return axis_of(self.planned) or AXES[0]

    @property
    def place(self) -> tuple[str, str]:
        """Row and column of the sweep in the figure: its kind of context, and what it varies."""
        return shared_value(self.planned, "context"), self.along


def grid_figure(kind: str, sweeps: Sequence[GridPanel]) -> Figure:
    """Declare all sweeps of labels, or of targets: a row for each kind of context, a column for each setting.

    A sweep without results has an empty panel that says so; one that is not complete says how much of it is there.
    """
    places = {sweep.place: sweep for sweep in sweeps}
    contexts = [context for context in CONTEXTS if any(context == place[0] for place in places)]
    settings = [along for along in AXES if any(along == place[1] for place in places)]
    grid = [(context, along) for context in contexts for along in settings]
    cells = [index for index, place in enumerate(grid) if place in places]
    panels, entries = [], dict[str, Style]()
    for index in cells:
        panel, more = _panel_of_sweep(places[grid[index]])
        panels.append(panel)
        entries |= dict(more)
    return Figure(
        panels,
        rows=len(contexts),
        columns=len(settings),
        cells=cells,
        width=max(8.4, 4.0 * len(settings)),
        height=0.7 + 3.7 * len(contexts),
        legend=list(entries.items()),
        heading=f"{kind} by one attention layer: what is memorized",
    )


def _panel_of_sweep(sweep: GridPanel) -> tuple[Panel, list[Entry]]:
    """Return a sweep's panel with its legend; a panel without curves if there are no results."""
    if sweep.rows:
        return _panel(sweep.rows, sweep.along, after=f"\n{sweep.presence}", repeated=OVER_SEEDS)
    title = f"{_sizes_in_words(sweep.planned)}\n{sweep.presence}"
    return Panel(Axis(NAMES[sweep.along], ticks=()), Axis(ticks=()), title=title, blank="no results yet"), []


def _panel(
    rows: Rows, along: str, *, before: str = "", after: str = "", repeated: str | None = None
) -> tuple[Panel, list[Entry]]:
    """Return a panel with a curve for each N, and its legend; ``before`` and ``after`` stand around its title.

    ``repeated`` says what points are means of; if None, the legend says of how many runs.
    """
    check_columns(rows, "examples", along, "answers", "context", "heads", "length", "head_dim")
    has_targets = shared_value(rows, "answers") == "targets"
    curves = series(rows, "examples", along, "best_loss" if has_targets else "best_accuracy")
    shades = colours(len(curves))
    variance: Style = {**PROVED_BEFORE, "color": QUIET}
    marks: list[Mark] = [Rule(variance, y=1 / 12)] if has_targets else []
    for curve, shade in zip(curves, shades, strict=True):
        marks.append(curve.drawn(shade))
        if not has_targets:
            shares = sorted({(row[along], _promised_share(row)) for row in rows if row["examples"] == curve.key})
            marks.append(Curve([x for x, _ in shares], [y for _, y in shares], {**PROVED, "color": shade}))
    entries: list[Entry] = [
        (f"measured, {repeated or runs_in_words(curves)}", MEASURED),
        ("1/12, the variance of the targets: nothing learned", PROVED_BEFORE)
        if has_targets
        else ("proved: (H(min(n, d_h) − 1) + 1) / N", PROVED),
    ]
    if along == "head_dim" and len(values(rows, "length")) == 1:
        marks.append(Rule({**AT_LENGTH, "color": QUIET}, x=shared_value(rows, "length")))
        entries.append(("d_h = n: beyond it the proved number does not grow", AT_LENGTH))
    error = Axis("mean squared error", scale="log")
    panel = Panel(
        Axis(NAMES[along], is_whole=any(curve.is_whole for curve in curves)),
        error if has_targets else Axis("accuracy over all N examples", limits=(0, 1.03)),
        marks,
        f"{before}{_sizes_in_words(rows)}{after}",
        [curve.named(f"N = {curve.key:,}", shade) for curve, shade in zip(curves, shades, strict=True)],
    )
    return panel, entries


def _sizes_in_words(rows: Rows) -> str:
    """Return the kind of context, and the sizes that all rows share."""
    shared = [f"{letter} = {shared_value(rows, c)}" for c, letter in LETTERS.items() if len(values(rows, c)) == 1]
    return f"{CONTEXTS[shared_value(rows, 'context')]}; {', '.join(shared)}"


def _promised_share(row: Mapping[str, Any]) -> float:
    """Return the share of the N examples that Mahdavi's theorem promises."""
    promised = mahdavi_2024.capacity(row["heads"], row["length"], row["head_dim"])
    return min(1.0, promised / int(row["examples"]))


def saturation_figure(rows: Rows) -> Figure:
    """Declare on what share of the examples 0, 1, …, H heads are saturated: a panel for each (H, N)."""
    check_columns(rows, "heads", "examples", "examples_by_saturated_heads")
    sizes = sorted({(row["heads"], row["examples"]) for row in rows})
    return Figure(
        [_saturation_panel([row for row in rows if (row["heads"], row["examples"]) == size], *size) for size in sizes],
        columns=len(sizes),
        width=max(5.2, 4.2 * len(sizes)),
        height=4.2,
        heading="On how many heads an example is saturated (one weight of more than 0.99)",
    )


def _saturation_panel(rows: Rows, H: int, N: int) -> Panel:
    shares = np.array([list(map(int, str(row["examples_by_saturated_heads"]).split())) for row in rows]) / N
    heights = shares.mean(axis=0)
    spread = shares.std(axis=0, ddof=1).tolist() if len(shares) > 1 else None
    repeated = f"mean ± s.d. of {len(shares)} runs" if len(shares) > 1 else "a single run"
    mean = float((heights * np.arange(H + 1)).sum())
    ticks = range(H + 1) if H <= MOST_NAMED_BARS else range(0, H + 1, H // 10)
    return Panel(
        Axis("saturated heads", ticks=ticks, has_grid=False),
        Axis("share of the examples", limits=(0, None)),
        [BarChart(heights.tolist(), spread, BAR_COLOUR)],
        f"H = {H}, N = {N:,}: {mean:.2f} of {H} heads on average\n(measured, {repeated})",
    )
