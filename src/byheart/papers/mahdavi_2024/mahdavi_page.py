"""Figures, tables, findings and pages of Mahdavi, Liao & Thrampoulidis 2024: heads, n, d_h; saturated heads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from byheart import exhibits as fig
from byheart.bounds import mahdavi_2024
from byheart.lab.crossing import crossing, probes_of
from byheart.lab.fits import compare, mean_interval
from byheart.lab.linear import SATURATED, unsaturated
from byheart.lab.rows import is_number
from byheart.papers import results
from byheart.papers.curves import (
    Cells,
    Rows,
    check_columns,
    end_labels,
    estimate_in_words,
    grouped_rows,
    law_rows,
    range_in_words,
    runs_in_words,
    series,
    shared_sizes,
    shared_value,
    values,
)
from byheart.papers.mahdavi_2024 import EXPERIMENTS
from byheart.papers.mahdavi_2024 import mahdavi_claims as mahdavi
from byheart.papers.paper import Paper, shipped_rows

AXIS_NAMES = {"heads": "H, heads", "length": "n, tokens of a context", "head_dim": "d_h, dimension of a head"}
LETTERS = {"heads": "H", "length": "n", "head_dim": "d_h"}
CONTEXTS = {"random": "a context for each example", "fixed": "one context for all"}
UNITS = {"heads": ("head", "heads"), "length": ("token of context", "tokens of context")}
AT_LENGTH: fig.Style = {"linestyle": "-.", "linewidth": 1}
OVER_SEEDS = "mean ± s.d. over seeds"
"""Legend of several blocks, which may have different numbers of seeds: their titles say how many."""
BAR_COLOUR = "#6f8fb5"
MOST_NAMED_BARS = 20
"""Largest number of heads at which every bar has its number below it."""
EARLY_SHARE = 0.5
"""Share of all that is gained along an axis: the finding says so if the first step gains more at every N."""
BENT = 0.05
"""Probability of so bad a fit of a line below which the finding calls the curve bent."""
ORDERS = (("classification", "regression", "saturation"), ("heads", "context", "head-dim"), ("random", "fixed"))
"""Order of the experiments in the paper's study, by the words of their names."""


def sweep_figure(rows: Rows, along: str) -> fig.Figure:
    """Declare one sweep: accuracy, or the mean squared error, along heads, length or head_dim."""
    kind = "Regression" if values(rows, "answers") == ["targets"] else "Classification"
    panel, entries = _panel(rows, along, before=f"{kind}: ")
    return fig.Figure([panel], legend=entries)


@dataclass(frozen=True)
class GridPanel:
    """One of the paper's sweeps: the planned configs, the results that there are, and how much of the plan they are."""

    planned: Rows
    rows: Rows
    presence: results.Presence

    @property
    def along(self) -> str:
        """The setting that the sweep varies."""
        return mahdavi.axis_of(self.planned) or mahdavi.AXES[0]

    @property
    def place(self) -> tuple[str, str]:
        """Row and column of the sweep in the figure: its kind of context, and what it varies."""
        return shared_value(self.planned, "context"), self.along

    def panel(self) -> tuple[fig.Panel, list[fig.Entry]]:
        """Return the sweep's panel with its legend; a panel without curves if there are no results."""
        if self.rows:
            return _panel(self.rows, self.along, after=f"\n{self.presence}", repeated=OVER_SEEDS)
        title = f"{_sizes_in_words(self.planned)}\n{self.presence}"
        return fig.Panel(
            fig.Axis(AXIS_NAMES[self.along], ticks=()), fig.Axis(ticks=()), title=title, blank="no results yet"
        ), []


def grid_figure(kind: str, sweeps: Sequence[GridPanel]) -> fig.Figure:
    """Declare all sweeps of labels, or of targets: a row for each kind of context, a column for each setting.

    A sweep without results has an empty panel that says so; one that is not complete says how much of it is there.
    """
    places = {sweep.place: sweep for sweep in sweeps}
    contexts = [context for context in CONTEXTS if any(context == place[0] for place in places)]
    settings = [along for along in mahdavi.AXES if any(along == place[1] for place in places)]
    grid = [(context, along) for context in contexts for along in settings]
    cells = [index for index, place in enumerate(grid) if place in places]
    panels, entries = zip(*(places[grid[index]].panel() for index in cells), strict=True)
    return fig.Figure(
        panels,
        rows=len(contexts),
        columns=len(settings),
        cells=cells,
        width=max(8.4, 4.0 * len(settings)),
        height=0.7 + 3.7 * len(contexts),
        legend=list({text: style for some in entries for text, style in some}.items()),
        heading=f"{kind} by one attention layer: what is memorized",
    )


def _panel(
    rows: Rows, along: str, *, before: str = "", after: str = "", repeated: str | None = None
) -> tuple[fig.Panel, list[fig.Entry]]:
    """Return a panel with a curve for each N, and its legend; ``before`` and ``after`` stand around its title.

    ``repeated`` says what points are means of; if None, the legend says of how many runs.
    """
    check_columns(rows, "examples", along, "answers", "context", "heads", "length", "head_dim")
    has_targets = shared_value(rows, "answers") == "targets"
    curves = series(rows, "examples", along, "best_loss" if has_targets else "best_accuracy")
    marks: list[fig.Mark] = [fig.Rule({**fig.PROVED_BEFORE, "color": fig.QUIET}, y=1 / 12)] if has_targets else []
    for curve, shade in fig.shaded(curves):
        marks.append(curve.drawn(shade))
        if not has_targets:
            shares = sorted({(row[along], _promised_share(row)) for row in rows if row["examples"] == curve.key})
            marks.append(fig.Curve([x for x, _ in shares], [y for _, y in shares], {**fig.PROVED, "color": shade}))
    entries: list[fig.Entry] = [
        (f"measured, {repeated or runs_in_words(curves)}", fig.MEASURED),
        ("1/12, the variance of the targets: nothing learned", fig.PROVED_BEFORE)
        if has_targets
        else ("proved: (H(min(n, d_h) − 1) + 1) / N", fig.PROVED),
    ]
    if along == "head_dim" and len(values(rows, "length")) == 1:
        marks.append(fig.Rule({**AT_LENGTH, "color": fig.QUIET}, x=shared_value(rows, "length")))
        entries.append(("d_h = n: beyond it the proved number does not grow", AT_LENGTH))
    panel = fig.Panel(
        fig.Axis(AXIS_NAMES[along], is_whole=any(curve.is_whole for curve in curves)),
        fig.Axis("mean squared error", "log")
        if has_targets
        else fig.Axis("accuracy over all N examples", limits=(0, 1.03)),
        marks,
        f"{before}{_sizes_in_words(rows)}{after}",
        end_labels(curves, "N = {:,}"),
    )
    return panel, entries


def _sizes_in_words(rows: Rows) -> str:
    """Return the kind of context, and the sizes that all rows share."""
    return f"{CONTEXTS[shared_value(rows, 'context')]}; {shared_sizes(rows, LETTERS)}"


def _promised_share(row: Mapping[str, Any]) -> float:
    """Return the share of the N examples that Mahdavi's theorem promises."""
    promised = mahdavi_2024.capacity(row["heads"], row["length"], row["head_dim"])
    return min(1.0, promised / int(row["examples"]))


def saturation_figure(rows: Rows) -> fig.Figure:
    """Declare on what share of the examples 0, 1, …, H heads are saturated: a panel for each (H, N)."""
    check_columns(rows, "heads", "examples", "examples_by_saturated_heads")
    panels = [_saturation_panel(some, *size) for size, some in grouped_rows(rows, "heads", "examples").items()]
    return fig.Figure(
        panels,
        columns=len(panels),
        width=max(5.2, 4.2 * len(panels)),
        height=4.2,
        heading="On how many heads an example is saturated (one weight of more than 0.99)",
    )


def _saturation_panel(rows: Rows, H: int, N: int) -> fig.Panel:
    shares = np.array([list(map(int, str(row["examples_by_saturated_heads"]).split())) for row in rows]) / N
    heights = shares.mean(axis=0)
    spread = shares.std(axis=0, ddof=1).tolist() if len(shares) > 1 else None
    repeated = f"mean ± s.d. of {len(shares)} runs" if len(shares) > 1 else "a single run"
    mean = float((heights * np.arange(H + 1)).sum())
    ticks = range(H + 1) if H <= MOST_NAMED_BARS else range(0, H + 1, H // 10)
    return fig.Panel(
        fig.Axis("saturated heads", ticks=ticks, has_grid=False),
        fig.Axis("share of the examples", limits=(0, None)),
        [fig.BarChart(heights.tolist(), spread, BAR_COLOUR)],
        f"H = {H}, N = {N:,}: {mean:.2f} of {H} heads on average\n(measured, {repeated})",
    )


def _figures(_: str, rows: Rows, __: object = ()) -> list[fig.AvailableFigure]:
    if any(row.get("examples_by_saturated_heads") for row in rows):
        caption = "How many heads are saturated on an example."
        return [fig.AvailableFigure("saturation", caption, partial(saturation_figure, rows))]
    along = next((name for name in mahdavi.AXES if len(values(rows, name)) > 1), "heads")
    metric = "Error" if rows[0].get("answers") == "targets" else "Accuracy"
    caption = f"{metric} against {along.replace('_', ' ')}, for each number of examples."
    return [fig.AvailableFigure(along.replace("_", "-"), caption, partial(sweep_figure, rows, along))]


def _tables(experiment: str, rows: Rows) -> list[fig.DataTable]:
    if len(values(rows, "answers")) != 1:
        return []
    tables = _claimed(experiment, rows)
    return tables if _saturated(rows) else [*tables, *_crossings(rows), *_laws_over_heads(rows)]


def _claimed(_: str, rows: Rows) -> list[fig.DataTable]:
    """Return Mahdavi's claims for each N: lines along heads and n, slopes along d_h beyond n, and what N examples need.

    Of the experiment on saturation it is how many heads are saturated.
    """
    if saturated := _saturated(rows):
        cells = [_saturated_cells(some, *size) for size, some in grouped_rows(saturated, "heads", "examples").items()]
        return [fig.DataTable("Heads that are saturated on an example: mean over seeds (95 %)", cells)]
    along = mahdavi.axis_of(rows)
    if along is None or not all("examples" in row for row in rows):
        return []
    if along == "head_dim":
        cells = [slopes.cells() for slopes in mahdavi.beyond_length(rows)]
        return [
            fig.DataTable("Slopes of accuracy over d_h, up to n and beyond, for each number of examples (95 %)", cells)
        ]
    what = "the targets' variance explained" if values(rows, "answers") == ["targets"] else "accuracy"
    lines = f"Lines of {what} over {along}, below {SATURATED}, for each number of examples (95 %)"
    reached = f"Where {what} reaches {SATURATED}, by {along}: mean over seeds (95 %)"
    return [
        fig.DataTable(lines, [line.cells() for line in mahdavi.growth(rows, along)]),
        fig.DataTable(reached, [size.cells(along) for size in mahdavi.needed(rows, along)]),
    ]


def _saturated(rows: Rows) -> Rows:
    return [row for row in rows if is_number(row.get("saturated_heads"))]


def _saturated_cells(rows: Rows, heads: int, examples: int) -> Cells:
    """Return how many heads are saturated on an example, on average over all examples, for networks of one size."""
    mean, low, high = mean_interval([row["saturated_heads"] for row in rows])
    ends = {"saturated_heads": mean, "saturated_heads_low": low, "saturated_heads_high": high}
    return {"heads": heads, "examples": examples, **ends, "saturated_share": mean / heads, "seeds": len(rows)}


def _laws_over_heads(rows: Rows) -> list[fig.DataTable]:
    """Return other laws beside a line through what is not saturated, for each N."""
    laws: list[Cells] = []
    for examples, shares in (
        mahdavi.shares_by_examples(rows, "heads").items() if mahdavi.axis_of(rows) == "heads" else ()
    ):
        if points := unsaturated(shares):
            compared = compare([x for x, _ in points], [y for _, y in points], ("linear", "quadratic", "power"))
            laws += law_rows(compared, examples=examples)
    return [fig.DataTable(f"Laws over heads, below {SATURATED}, for each number of examples", laws)] if laws else []


def _crossings(rows: Rows) -> list[fig.DataTable]:
    """Return for each N from how many heads (or what varies) on all labels are memorized with probability one half."""
    along = mahdavi.axis_of(rows)
    if along is None or values(rows, "answers") != ["labels"] or not all("best_accuracy" in row for row in rows):
        return []
    cells = []
    for (examples,), some in grouped_rows(rows, "examples").items():
        where = crossing(probes_of(some, along, "best_accuracy"), rising=True)
        interval = {"low": where.low, "high": where.high, "status": where.status}
        cells.append({"examples": examples, along: where.x, **interval, "runs": len(some)})
    return [
        fig.DataTable(f"Where the probability of memorizing every label crosses ½, by {along} (95 % intervals)", cells)
    ]


def _findings(_: str, rows: Rows) -> list[str]:
    shares = [row["saturated_share"] for row in rows if is_number(row.get("saturated_share"))]
    if shares:
        mean = sum(shares) / len(shares)
        return [f"On an example, {mean:.0%} of the heads are saturated on average ({len(shares)} runs)."]
    along = mahdavi.axis_of(rows)
    if along is None or any(row.get("answers") != rows[0].get("answers") for row in rows):
        return []
    return _flat(rows) if along == "head_dim" else [*_straight(rows, along), *_needed(rows, along)]


def _straight(rows: Rows, along: str) -> list[str]:
    """Say how steep the lines are, how much they explain, where curves are bent, and what the theorem promises."""
    what = "the share of the targets' variance explained" if rows[0].get("answers") == "targets" else "accuracy"
    growing, (unit, units) = mahdavi.growth(rows, along), UNITS[along]
    lines = [(each.examples, each.line) for each in growing if each.line is not None]
    if not lines:
        return []
    slopes = ", ".join(f"{estimate_in_words(line.slope)} at N = {N:,}" for N, line in lines)
    explained = sorted(line.r_squared.value for _, line in lines)
    lowest = min(line.r_squared.low for _, line in lines)
    bent = [f"{N:,}" for N, line in lines if line.lack_of_fit is not None and line.lack_of_fit < BENT]
    findings = [
        f"Below {SATURATED}, {what} grows with every {unit} by {slopes}.",
        f"Lines have R² = {range_in_words(explained, '.3f')} (the lowest interval begins at {lowest:.2f})"
        + (f"; at N = {', '.join(bent)} it is not quite straight (F test, p < {BENT})." if bent else "."),
    ]
    gains = mahdavi.early(rows, along)
    if gains is not None and min(gains.shares) > EARLY_SHARE:
        shares = range_in_words(sorted(gains.shares), ".0%")
        findings.append(
            f"From {gains.first:g} to {gains.second:g} {units} it gains {shares} of what it gains up to"
            f" {gains.last:g}: growth that ends early, and no line."
        )
    return [*findings, *_beside_proved(growing, unit)]


def _beside_proved(growing: Sequence[mahdavi.SaturationLine], unit: str) -> list[str]:
    """Compare right answers per head, or per token, with what the proved number grows by."""
    right = sorted(line.right.value for line in growing if line.right is not None)
    proved = growing[0].proved
    if not right or not proved:
        return []
    times = [value / proved for value in right]
    return [
        f"That is {range_in_words(right, ',.0f')} right answers with every {unit}, {range_in_words(times, '.1f')} times"
        f" the {proved:,.0f} by which the proved H(min(n, d_h) − 1) + 1 grows."
    ]


def _needed(rows: Rows, along: str) -> list[str]:
    """Say how fast what N examples need grows with N, and how straight."""
    sizes, units = mahdavi.needed(rows, along), UNITS[along][1]
    if step := mahdavi.same_step(sizes, values(rows, along)):
        where = f"between {step[0]:,} and {step[1]:,} {units}"
        return [f"Where {SATURATED} is crossed, it is {where}: one step, which does not tell how that grows with N."]
    through = mahdavi.needed_line(sizes)
    more = None if through is None else mahdavi.examples_per_unit(through)
    if through is None or more is None:
        return []
    return [
        f"The {units} at which {SATURATED} is reached grow with N: one more for every {estimate_in_words(more, '.0f')}"
        f" examples (a line over {sum(size.is_whole for size in sizes)} numbers of examples,"
        f" R² = {through.r_squared.value:.3f})."
    ]


def _flat(rows: Rows) -> list[str]:
    """Say what a doubling of d_h gains up to n and beyond, and whether the two differ."""
    findings = []
    for slopes in mahdavi.beyond_length(rows):
        bend = slopes.doublings
        if slopes.saturated:
            findings.append(f"At N = {slopes.examples:,}, accuracy reaches {SATURATED}: it says nothing about d_h.")
        elif bend is not None:
            n = shared_value(rows, "length")
            findings.append(
                f"At N = {slopes.examples:,}, accuracy gains {estimate_in_words(bend.before.slope)} with a doubling of"
                f" d_h up to n = {n:,}, and {estimate_in_words(bend.beyond.slope)} beyond (equal slopes: p ="
                f" {bend.equal:.2g})."
            )
    return findings


MAHDAVI = Paper(
    "Mahdavi, Liao & Thrampoulidis 2024, on the memorization capacity of multi-head attention",
    "How many examples do the heads of one attention layer memorize?",
    _figures,
    _tables,
    _findings,
)


def paper_page(name: str) -> fig.ResultsPage:
    """Return the page about the whole paper: every sweep in its place, results or not, and the saturated heads.

    Labels and targets have a figure each, arranged as in the paper's study: a column for heads, context and d_h each,
    a row for random contexts and one for a fixed one.
    """
    rows_of = {each: shipped_rows(each) for each in sorted(EXPERIMENTS, key=_place)}
    figures = []
    for kind, answers in (("classification", "labels"), ("regression", "targets")):
        sweeps = [
            GridPanel([vars(config) for config in EXPERIMENTS[each]("paper").configs], rows, results.presence(each))
            for each, rows in rows_of.items()
            if f"-{kind}-" in each
        ]
        caption = f"Memorizing {answers}: what the heads, the context and the heads' dimension bring."
        figures.append(fig.AvailableFigure(kind, caption, partial(grid_figure, kind.capitalize(), sweeps)))
    saturated = rows_of[f"{name}-saturation"]
    figures += _figures(name, saturated) if saturated else []
    return MAHDAVI.page_of_all(name, rows_of, figures, _claimed)


def _place(name: str) -> tuple[int, ...]:
    """Return where an experiment stands in the paper's study: labels first, then by what is swept, random first."""
    words = f"{name}-"
    return tuple(next((k for k, word in enumerate(order) if f"-{word}-" in words), 0) for order in ORDERS)
