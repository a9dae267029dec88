"""Pages about Madden's experiments: which figures and tables a table of results allows, and what it says."""

from functools import partial
from typing import Any

from byheart.exhibits import AvailableFigure, DataTable, ResultsPage
from byheart.lab.fits import compare
from byheart.papers import results
from byheart.papers.curves import Rows
from byheart.papers.madden_2024.madden_experiments import EXPERIMENTS
from byheart.papers.madden_2024.madden_figures import law_in_words, loss_figure, settings_figure
from byheart.papers.madden_2024.widths import LEAST_POINTS, Width, growth, widths
from byheart.papers.paper import Paper, presence_in_words, presence_table
from byheart.papers.wording import law_rows, range_in_words

WIDTHS = "The least m within 1 % of the entropy, its parameters ω(17 + m) + 1088 + 17m, and N(ω − 1)"


def _figures(_: str, rows: Rows, __: object = ()) -> list[AvailableFigure]:
    caption = "Loss and entropy against hidden neurons, the excess, and the fewest neurons within 1 % of the entropy."
    return [AvailableFigure("loss-gap", caption, partial(loss_figure, rows))]


def _tables(_: str, rows: Rows) -> list[DataTable]:
    """Return the least m within 1 % for each n, and laws over n of the m at which 1 % is crossed."""
    if not rows:
        return []
    sizes = widths(rows)
    tables = [DataTable(WIDTHS, [_cells(width) for width in sizes])]
    crossed = [(width.stories, width.crossing) for width in sizes if width.crossing is not None]
    if len(crossed) >= LEAST_POINTS:
        laws = compare([n for n, _ in crossed], [m for _, m in crossed], ("linear", "quadratic", "power"))
        title = "Laws of the m at which the excess crosses 1 %, over the stories (95 %)"
        tables.append(DataTable(title, law_rows(laws)))
    return tables


def _cells(width: Width) -> dict[str, Any]:
    return {
        "stories": width.stories,
        "contexts": width.contexts,
        "vocab": width.vocab,
        "least hidden": width.told if width.least is None else width.least,
        "crossing": width.crossing,
        "least excess": width.nearest,
        "parameters": width.parameters,
        "needed by any N": width.needed,
    }


def _findings(_: str, rows: Rows) -> list[str]:
    sizes, findings = widths(rows), []
    enough = [width for width in sizes if width.least is not None]
    missed = [
        f"{width.told} for {width.stories:,} stories ({100 * width.nearest:.2g} % above at best)"
        for width in sizes
        if width.least is None
    ]
    if enough:
        listed = ", ".join(f"{width.told} for {width.stories:,} stories" for width in enough)
        findings.append(f"The fewest hidden neurons of the grid that come within 1 % of the entropy: {listed}.")
    if missed:
        findings.append(f"More than were tried: {', '.join(missed)}.")
    law = growth(sizes)
    if law.status == "fitted":
        where = ", where it is crossed" if missed else ""
        findings.append(f"Where the excess crosses 1 %, {law_in_words(law)}{where}.")
    if enough:
        shares = sorted((width.parameters or 0) / width.needed for width in enough)
        findings.append(
            f"They have {range_in_words(shares, '.2g')} times the N(ω − 1) parameters that any N distributions"
            " take; behind most of these contexts stands one token only."
        )
    return findings


MADDEN = Paper(
    "Madden, Fox & Thrampoulidis 2024, on the next-token prediction capacity of Transformers",
    "How many hidden units take the loss to the entropy of the data?",
    _figures,
    _tables,
    _findings,
)


def paper_page(name: str) -> ResultsPage:
    """Return the page about both settings: a figure that compares them, then each setting's figures and tables."""
    parts = {each: results.presence(each) for each in sorted(EXPERIMENTS)}
    rows_of = {each: results.table(each) for each, part in parts.items() if part.models}
    caption = "The fewest hidden neurons within 1 % of the entropy in both settings, and their parameters."
    figures = [AvailableFigure("settings", caption, partial(settings_figure, list(rows_of.values())))]
    tables, findings = [], [presence_in_words(name, parts)]
    for each, rows in rows_of.items():
        setting = each.removeprefix(f"{name}-")
        figures += [AvailableFigure(f"{setting}-{own.name}", own.caption, own.make) for own in _figures(each, rows)]
        tables += [DataTable(f"{setting}: {table.title}", table.rows) for table in _tables(each, rows)]
        findings += [f"{setting}: {finding}" for finding in _findings(each, rows)]
    return MADDEN.page(name, findings, figures, [*tables, presence_table(parts)], sum(map(len, rows_of.values())))
