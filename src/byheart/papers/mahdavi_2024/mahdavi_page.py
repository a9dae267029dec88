"""Pages about Mahdavi's experiments: which figures and tables a table of results allows, and what it says."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from byheart.exhibits import AvailableFigure, DataTable, ResultsPage
from byheart.lab.crossing import crossing, probes_of
from byheart.lab.fits import compare, mean_interval
from byheart.lab.linear import SATURATED, unsaturated
from byheart.lab.rows import is_number
from byheart.papers import results
from byheart.papers.curves import Rows, shared_value, values
from byheart.papers.mahdavi_2024.mahdavi_claims import (
    Beyond,
    NeededSize,
    SaturationLine,
    axis_of,
    beyond_length,
    early,
    examples_per_unit,
    growth,
    memorized,
    needed,
    needed_line,
    same_step,
)
from byheart.papers.mahdavi_2024.mahdavi_experiments import EXPERIMENTS
from byheart.papers.mahdavi_2024.mahdavi_figures import GridPanel, grid_figure, saturation_figure, sweep_figure
from byheart.papers.paper import Paper, presence_in_words, presence_table, shipped_rows
from byheart.papers.wording import estimate_in_words, interval_cells, law_rows, range_in_words

EARLY_SHARE = 0.5
"""Share of all that is gained along an axis: the finding says so if the first step gains more at every N."""
BENT = 0.05
"""Probability of so bad a fit of a line below which the finding calls the curve bent."""
ORDERS = (("classification", "regression", "saturation"), ("heads", "context", "head-dim"), ("random", "fixed"))
"""Order of the experiments in the paper's study, by the words of their names."""
UNITS = {"heads": "head", "length": "token of context"}
UNITS_PLURAL = {"heads": "heads", "length": "tokens of context"}


def _figures(_: str, rows: Rows, __: object = ()) -> list[AvailableFigure]:
    if any(row.get("examples_by_saturated_heads") for row in rows):
        caption = "How many heads are saturated on an example."
        return [AvailableFigure("saturation", caption, partial(saturation_figure, rows))]
    along = next((name for name in ("heads", "length", "head_dim") if len(values(rows, name)) > 1), "heads")
    metric = "Error" if rows[0].get("answers") == "targets" else "Accuracy"
    caption = f"{metric} against {along.replace('_', ' ')}, for each number of examples."
    return [AvailableFigure(along.replace("_", "-"), caption, partial(sweep_figure, rows, along))]


def _tables(_: str, rows: Rows) -> list[DataTable]:
    if len(values(rows, "answers")) != 1:
        return []
    return claimed(rows) if _is_saturation(rows) else [*claimed(rows), *_crossings(rows), *_laws_over_heads(rows)]


def claimed(rows: Rows) -> list[DataTable]:
    """Return Mahdavi's claims for each N: lines along heads and n, slopes along d_h beyond n, and what N examples need.

    Of the experiment on saturation it is how many heads are saturated.
    """
    if _is_saturation(rows):
        return [DataTable("Heads that are saturated on an example: mean over seeds (95 %)", _saturated_cells(rows))]
    along = axis_of(rows)
    if along is None or not all("examples" in row for row in rows):
        return []
    if along == "head_dim":
        cells = [_beyond_cells(slopes) for slopes in beyond_length(rows)]
        return [DataTable("Slopes of accuracy over d_h, up to n and beyond, for each number of examples (95 %)", cells)]
    what = "the targets' variance explained" if values(rows, "answers") == ["targets"] else "accuracy"
    cells = [_growth_cells(line) for line in growth(rows, along)]
    reached = [_needed_cells(size, along) for size in needed(rows, along)]
    return [
        DataTable(f"Lines of {what} over {along}, below {SATURATED}, for each number of examples (95 %)", cells),
        DataTable(f"Where {what} reaches {SATURATED}, by {along}: mean over seeds (95 %)", reached),
    ]


def _is_saturation(rows: Rows) -> bool:
    return any(is_number(row.get("saturated_heads")) for row in rows)


def _saturated_cells(rows: Rows) -> list[dict[str, Any]]:
    """Return a row for each size: heads that are saturated on an example, on average over all examples."""
    by_size: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        if is_number(row.get("saturated_heads")):
            by_size.setdefault((row["heads"], row["examples"]), []).append(row["saturated_heads"])
    cells = []
    for (heads, examples), counts in sorted(by_size.items()):
        mean, low, high = mean_interval(counts)
        ends = {"saturated_heads": mean, "saturated_heads_low": low, "saturated_heads_high": high}
        share = {"saturated_share": mean / heads, "seeds": len(counts)}
        cells.append({"heads": heads, "examples": examples, **ends, **share})
    return cells


def _needed_cells(size: NeededSize, along: str) -> dict[str, Any]:
    """Return where 0.9 is reached, and how many seeds show it."""
    cells = interval_cells(along, size.mean)
    return {"examples": size.examples, **cells, "seeds": len(size.found), "of": size.seeds}


def _growth_cells(growing: SaturationLine) -> dict[str, Any]:
    """Return slope and R² with their intervals, the F test of straightness, and right answers beside proved ones."""
    line = growing.line
    cells = interval_cells("slope", None if line is None else line.slope)
    seeds = None if line is None else line.over_seeds
    cells |= {"over_seeds_low": None if seeds is None else seeds.low}
    cells |= {"over_seeds_high": None if seeds is None else seeds.high}
    cells |= interval_cells("r_squared", None if line is None else line.r_squared)
    cells |= {"lack_of_fit": None if line is None else line.lack_of_fit}
    right = {} if growing.right is None else interval_cells("right", growing.right) | {"proved": growing.proved}
    return {"examples": growing.examples, "points": None if line is None else line.points, **cells, **right}


def _beyond_cells(slopes: Beyond) -> dict[str, Any]:
    """Return slopes per dimension and per doubling on both sides of n, and how probable these are if they are equal."""
    cells: dict[str, Any] = {"examples": slopes.examples}
    for unit, bend in (("dimension", slopes.dimensions), ("doubling", slopes.doublings)):
        sides = (None, None) if bend is None else (bend.before.slope, bend.beyond.slope)
        cells |= interval_cells(f"a_{unit}_to_n", sides[0]) | interval_cells(f"a_{unit}_beyond_n", sides[1])
        cells[f"a_{unit}_equal"] = None if bend is None else bend.equal
    return {**cells, "saturated": slopes.saturated}


def _laws_over_heads(rows: Rows) -> list[DataTable]:
    """Return other laws beside a line through what is not saturated, for each N."""
    laws: list[Mapping[str, Any]] = []
    for examples in values(rows, "examples") if axis_of(rows) == "heads" else []:
        shares = [(row["heads"], memorized(row)) for row in rows if row.get("examples") == examples and "heads" in row]
        points = unsaturated([(x, y) for x, y in shares if y is not None])
        if points:
            compared = compare([x for x, _ in points], [y for _, y in points], ("linear", "quadratic", "power"))
            laws += law_rows(compared, examples=examples)
    return [DataTable(f"Laws over heads, below {SATURATED}, for each number of examples", laws)] if laws else []


def _crossings(rows: Rows) -> list[DataTable]:
    """Return for each N from how many heads (or what varies) on all labels are memorized with probability one half."""
    along = axis_of(rows)
    if along is None or values(rows, "answers") != ["labels"] or not all("best_accuracy" in row for row in rows):
        return []
    cells = []
    for examples in values(rows, "examples"):
        some = [row for row in rows if row["examples"] == examples]
        where = crossing(probes_of(some, along, "best_accuracy"), rising=True)
        interval = {"low": where.low, "high": where.high, "status": where.status}
        cells.append({"examples": examples, along: where.x, **interval, "runs": len(some)})
    return [DataTable(f"Where the probability of memorizing every label crosses ½, by {along} (95 % intervals)", cells)]


def _findings(_: str, rows: Rows) -> list[str]:
    shares = [row["saturated_share"] for row in rows if is_number(row.get("saturated_share"))]
    if shares:
        mean = sum(shares) / len(shares)
        return [f"On an example, {mean:.0%} of the heads are saturated on average ({len(shares)} runs)."]
    along = axis_of(rows)
    if along is None or any(row.get("answers") != rows[0].get("answers") for row in rows):
        return []
    return _flat(rows) if along == "head_dim" else _straight(rows, along)


def _straight(rows: Rows, along: str) -> list[str]:
    """Say how steep the lines are, how much they explain, where curves are bent, and what the theorem promises."""
    what = "the share of the targets' variance explained" if rows[0].get("answers") == "targets" else "accuracy"
    growing = growth(rows, along)
    lines = [(each.examples, each.line) for each in growing if each.line is not None]
    if not lines:
        return _needed(rows, along)
    slopes = ", ".join(f"{estimate_in_words(line.slope)} at N = {N:,}" for N, line in lines)
    explained = sorted(line.r_squared.value for _, line in lines)
    lowest = min(line.r_squared.low for _, line in lines)
    bent = [f"{N:,}" for N, line in lines if line.lack_of_fit is not None and line.lack_of_fit < BENT]
    return [
        f"Below {SATURATED}, {what} grows with every {UNITS[along]} by {slopes}.",
        f"Lines have R² = {range_in_words(explained, '.3f')} (the lowest interval begins at {lowest:.2f})"
        + (f"; at N = {', '.join(bent)} it is not quite straight (F test, p < {BENT})." if bent else "."),
        *_at_first(rows, along),
        *_beside_proved(growing, UNITS[along]),
        *_needed(rows, along),
    ]


def _at_first(rows: Rows, along: str) -> list[str]:
    """Say that growth ends early if the first step of the axis gains more than half of all."""
    gains = early(rows, along)
    if gains is None or min(gains.shares) <= EARLY_SHARE:
        return []
    shares = range_in_words(sorted(gains.shares), ".0%")
    return [
        f"From {gains.first:g} to {gains.second:g} {UNITS_PLURAL[along]} it gains {shares} of what it gains up to"
        f" {gains.last:g}: growth that ends early, and no line."
    ]


def _beside_proved(growing: Sequence[SaturationLine], unit: str) -> list[str]:
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
    sizes, units = needed(rows, along), UNITS_PLURAL[along]
    if step := same_step(sizes, values(rows, along)):
        where = f"between {step[0]:,} and {step[1]:,} {units}"
        return [f"Where {SATURATED} is crossed, it is {where}: one step, which does not tell how that grows with N."]
    through = needed_line(sizes)
    more = None if through is None else examples_per_unit(through)
    if through is None or more is None:
        return []
    whole = [size for size in sizes if len(size.found) == size.seeds]
    return [
        f"The {units} at which {SATURATED} is reached grow with N: one more for every {estimate_in_words(more, '.0f')}"
        f" examples (a line over {len(whole)} numbers of examples, R² = {through.r_squared.value:.3f})."
    ]


def _flat(rows: Rows) -> list[str]:
    """Say what a doubling of d_h gains up to n and beyond, and whether the two differ."""
    findings = []
    for slopes in beyond_length(rows):
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


def paper_page(name: str) -> ResultsPage:
    """Return the page about the whole paper: every sweep in its place, results or not, and the saturated heads.

    Labels and targets have a figure each, arranged as in the paper's study: a column for heads, context and d_h each,
    a row for random contexts and one for a fixed one.
    """
    tables_of = {each: shipped_rows(each) for each in sorted(EXPERIMENTS, key=_place)}
    parts = {each: results.presence(each) for each in tables_of}
    figures, tables, findings = [], [], [presence_in_words(name, parts)]
    for kind, answers in (("classification", "labels"), ("regression", "targets")):
        sweeps = [
            GridPanel([vars(config) for config in EXPERIMENTS[each]("paper").configs], rows, parts[each])
            for each, rows in tables_of.items()
            if f"-{kind}-" in each
        ]
        caption = f"Memorizing {answers}: what the heads, the context and the heads' dimension bring."
        figures.append(AvailableFigure(kind, caption, partial(grid_figure, kind.capitalize(), sweeps)))
    for each, rows in tables_of.items():
        if rows:
            sweep = each.removeprefix(f"{name}-")
            findings += [f"{sweep}: {finding}" for finding in _findings(each, rows)]
            tables += [DataTable(f"{sweep}: {table.title}", table.rows) for table in claimed(rows)]
    saturated = tables_of[f"{name}-saturation"]
    figures += _figures(name, saturated) if saturated else []
    return MAHDAVI.page(name, findings, figures, [*tables, presence_table(parts)], sum(map(len, tables_of.values())))


def _place(name: str) -> tuple[int, ...]:
    """Return where an experiment stands in the paper's study: labels first, then by what is swept, random first."""
    words = f"{name}-"
    return tuple(next((k for k, word in enumerate(order) if f"-{word}-" in words), 0) for order in ORDERS)
