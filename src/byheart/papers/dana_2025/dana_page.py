"""Pages about Dana's experiments: which figures and tables a table of results allows, and what it says."""

from functools import partial

from byheart.exhibits import AvailableFigure, DataTable, ResultsPage
from byheart.lab.linear import SATURATED
from byheart.lab.rows import is_number
from byheart.papers.built import built
from byheart.papers.curves import Rows, values
from byheart.papers.dana_2025.dana_claims import (
    claims,
    gap_cells,
    other_steps,
    point_cells,
    record,
    shipped_tables,
    slopes,
    summary,
)
from byheart.papers.dana_2025.dana_figures import (
    dims_figure,
    head_dims_figure,
    heads_figure,
    held_figure,
    mlp_figure,
    record_figure,
    slopes_figure,
)
from byheart.papers.dana_2025.gaps import gaps
from byheart.papers.dana_2025.held import held_of, quoted
from byheart.papers.dana_2025.published import beside, names
from byheart.papers.dana_2025.slopes import has_slopes, slopes_of
from byheart.papers.paper import Paper
from byheart.papers.wording import estimate_in_words, law_rows

AGAINST_MLP = "attention-mlp"
"""Name of the figure that compares heads with an MLP."""
PARTNERS = {
    "dana-2025-5-attention": "dana-2025-5-mlp",
    "dana-2025-5-mlp": "dana-2025-5-attention",
    "dana-2025-5-larger": "dana-2025-1-larger",
    "dana-2025-5-deeper": "dana-2025-1-deeper",
}
"""Experiments whose results stand in the same figure of the paper: heads against an MLP."""


def _figures(_: str, rows: Rows, __: object = ()) -> list[AvailableFigure]:
    plain = [row for row in rows if row.get("hidden") is None]
    varying = {name for name in ("model_dim", "head_dim", "heads") if len(values(plain, name)) > 1}
    figures = []
    if len(plain) != len(rows):
        caption = "Accuracy against parameters: more heads, or one head and a wider MLP, with published numbers."
        figures.append(AvailableFigure(AGAINST_MLP, caption, partial(mlp_figure, rows)))
    if "heads" in varying:
        caption = "Accuracy against heads, for each dimension, with published numbers and bounds."
        figures.append(AvailableFigure("heads", caption, partial(heads_figure, plain)))
    if varying == {"model_dim", "head_dim", "heads"} and has_slopes(plain):
        caption = "Accuracy gained per head, against the dimension (the paper's experiment 4)."
        figures.append(AvailableFigure("slopes", caption, partial(slopes_figure, plain)))
    if varying == {"head_dim"}:
        caption = "Accuracy against the heads' dimension, with published numbers and bounds."
        figures.append(AvailableFigure("head-dim", caption, partial(head_dims_figure, plain)))
    if varying == {"model_dim"}:
        caption = "Accuracy against the embedding's dimension, with published numbers and bounds."
        figures.append(AvailableFigure("model-dim", caption, partial(dims_figure, plain)))
    return figures


def _tables(experiment: str, rows: Rows) -> list[DataTable]:
    return [*_published(experiment, rows), *_slope_laws(rows)]


def _published(experiment: str, rows: Rows) -> list[DataTable]:
    """Return every published point, the slopes of the curves, and what the paper says about them."""
    if not (beside(rows) and any(is_number(row.get("last_accuracy")) for row in rows)):
        return []
    points = [point_cells(point) for point in gaps(experiment, rows).points]
    tables = [
        DataTable("Published points: training accuracy, as it was reported, and over all contexts (uniform)", points)
    ]
    if experiment in names():
        cells = [slope.cells() for slope in slopes(experiment, rows)]
        tables.append(DataTable(f"Slopes of accuracy below {SATURATED} (95 %)", cells))
    reported = [claim.cells() for claim in claims({experiment: rows})]
    return [*tables, DataTable("What the paper reports of them (95 %)", reported)] if reported else tables


def _slope_laws(rows: Rows) -> list[DataTable]:
    plain = [row for row in rows if row.get("hidden") is None]
    if len(values(plain, "heads")) > 1 and has_slopes(plain):
        return [DataTable("Laws fitted to the slopes over d", law_rows(slopes_of(plain).comparison))]
    return []


def _findings(experiment: str, rows: Rows) -> list[str]:
    findings = []
    if any(is_number(row.get("last_accuracy")) for row in rows) and beside(rows):
        apart = gaps(experiment, rows)
        findings.append(summary(apart) + other_steps(rows, beside(rows)))
        if apart.uniform is not None:
            side = "lower" if apart.uniform < 0 else "higher"
            findings.append(
                f"Over all contexts, each counted once, accuracy is {abs(apart.uniform):.3f} {side} than the reported"
                " one, which is over the sample that was trained on."
            )
    bounded = [row for row in rows if is_number(row.get("lower_bound")) and is_number(row.get("accuracy"))]
    if bounded:
        above = sum(row["accuracy"] > row["lower_bound"] for row in bounded)
        findings.append(f"{above:,} of {len(bounded):,} trained networks are above the proved lower bound.")
    for claim in claims({experiment: rows}):
        theirs = f"the paper says {claim.reported}; its points give {estimate_in_words(claim.published)}"
        what = f"{claim.what[0].upper()}{claim.what[1:]}"
        findings.append(f"{what}: {estimate_in_words(claim.here)} here; {theirs}.")
    return findings


DANA = Paper(
    "Dana, Pydi & Chevaleyre 2025, on the memorization of associations by attention-only Transformers",
    "How many associations does an attention-only Transformer memorize?",
    _figures,
    _tables,
    _findings,
)


def paper_page(name: str) -> ResultsPage:
    """Return the page about the whole paper: all published points against ours, slopes, and what is held."""
    tables = shipped_tables()
    experiments, all_slopes, reported = record(tables)
    *each, together = experiments
    rows = built("held")
    held = held_of(rows)
    caption = "Associations held by networks that were trained, each answer proved, beside what the theorem promises."
    figures = [
        AvailableFigure("published", "All published points: ours against theirs.", partial(record_figure, each)),
        AvailableFigure("held", caption, partial(held_figure, rows)),
    ]
    findings = [summary(together), quoted(held).in_words()]
    findings += [f"{part.name.removeprefix(f'{name}-')}: {summary(part)}" for part in each]
    listed = [
        DataTable(
            "Gaps by experiment: training accuracy, here minus published", [gap_cells(part) for part in experiments]
        ),
        DataTable("What the paper reports (95 %)", [claim.cells() for claim in reported]),
        DataTable("Slopes of accuracy below 0.9 (95 %)", [slope.cells() for slope in all_slopes]),
        DataTable("How many associations are held: single runs, each answer proved", [count.cells() for count in held]),
    ]
    return DANA.page(name, findings, figures, listed, sum(map(len, tables.values())))
