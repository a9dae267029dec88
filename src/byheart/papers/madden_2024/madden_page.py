"""Madden's question, answered from a table of results: how many hidden units are enough?

For n stories with N contexts over ω tokens, the *least m* is the smallest of the grid all of whose runs come within 1 %
of the entropy. The grid doubles; so the *crossing* is where the relative excess is 1 % on the line, in log m and log
excess, through the least m and the one before it (of several runs the largest excess counts). Where no m of the grid is
enough there is neither: the answer is "more than the largest", and no law is fitted through it.

Two numbers of the theory stand beside it: N hidden units are always enough, and arbitrary N distributions take N(ω − 1)
parameters (no fewer have enough dimensions). These data are not arbitrary: most contexts have one token that follows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from byheart import exhibits as fig
from byheart.lab.fits import FamilyFit, compare, fit
from byheart.lab.models.madden import MaddenDecoder
from byheart.lab.rows import is_number
from byheart.papers.curves import (
    Cells,
    Rows,
    check_columns,
    end_labels,
    grouped_rows,
    law_rows,
    range_in_words,
    runs_in_words,
    series,
    shared_value,
)
from byheart.papers.madden_2024 import EXPERIMENTS
from byheart.papers.paper import Paper, shipped_rows

WITHIN = 0.01
"""Largest relative excess that counts as memorized."""
LEAST_EXCESS = 1e-9
"""Relative excess of a loss at the entropy, or below it by rounding, when its logarithm is taken."""
LEAST_POINTS = 3
"""Number of crossings that a law takes."""
WITHIN_LINE: fig.Style = {"linestyle": "-.", "linewidth": 1}
ENTROPY: fig.Style = {"linestyle": (0, (5, 2)), "linewidth": 0.9}
LEAST: fig.Style = {"marker": "s", "markersize": 5, "linestyle": "none", "mfc": "white"}
CROSSING: fig.Style = {"marker": "o", "markersize": 4.5, "linestyle": "none"}
MISSED: fig.Style = {"marker": "^", "markersize": 7, "linestyle": "none", "mfc": "white"}
LAW: fig.Style = {"linestyle": "-", "linewidth": 1.4}
SETTINGS = {False: "everything trained", True: "embedding and attention frozen"}
SHADES = {False: "#b3123f", True: "#1f3f8f"}
"""Colour of each setting, by ``frozen``."""
WHOLE = "{x:,.0f}"
HIDDEN_AXIS = fig.Axis("m, hidden neurons", scale="log2", number_format=WHOLE)


@dataclass(frozen=True)
class Width:
    """The number of hidden units that is enough for n stories."""

    stories: int
    """Number of stories, n."""
    contexts: int
    """Number of contexts, N."""
    vocab: int
    """Number of tokens, ω."""
    tried: int
    """Largest m of the grid."""
    least: int | None
    """Least m that is enough; None if no m of the grid is."""
    crossing: float | None
    """Crossing of 1 % between the least m and the one before; None if there is no such pair."""
    nearest: float
    """Least relative excess of all m; infinite if no run has one."""

    @property
    def parameters(self) -> int | None:
        """Number of parameters at the least m, ω(17 + m) + 1088 + 17m."""
        return None if self.least is None else MaddenDecoder(self.vocab, self.least).parameters

    @property
    def needed(self) -> int:
        """Number of parameters that arbitrary N distributions take, N(ω − 1)."""
        return self.contexts * (self.vocab - 1)

    @property
    def needed_width(self) -> float:
        """The m with ω(17 + m) + 1088 + 17m = N(ω − 1): fewer parameters cannot fit every N distributions."""
        return max(1.0, (self.needed - 17 * self.vocab - 1088) / (self.vocab + 17))

    @property
    def least_in_words(self) -> str:
        """The least m in words, like "16" or "> 512"."""
        return f"> {self.tried:,}" if self.least is None else f"{self.least:,}"

    def cells(self) -> Cells:
        """Return a row of a table."""
        return {
            "stories": self.stories,
            "contexts": self.contexts,
            "vocab": self.vocab,
            "least hidden": self.least_in_words if self.least is None else self.least,
            "crossing": self.crossing,
            "least excess": self.nearest,
            "parameters": self.parameters,
            "needed by any N": self.needed,
        }


Settings = Mapping[bool, Sequence[Width]]
"""The widths of each setting, by ``frozen``."""


def widths(rows: Rows) -> list[Width]:
    """Return the width for each number of stories in a table."""
    return [_width(some) for some in grouped_rows(rows, "stories").values()]


def _width(rows: Rows) -> Width:
    worst: dict[int, float] = {}
    for row in rows:
        excess = row["relative_excess"] if is_number(row["relative_excess"]) else math.inf
        worst[row["hidden"]] = max(worst.get(row["hidden"], -math.inf), excess)
    least = min((m for m, excess in worst.items() if excess <= WITHIN), default=None)
    before = max((m for m in worst if least is not None and m < least), default=None)
    crossing = None
    if least is not None and before is not None and math.isfinite(worst[before]):
        high, low = math.log(worst[before]), math.log(max(worst[least], LEAST_EXCESS))
        share = (high - math.log(WITHIN)) / (high - low)
        crossing = math.exp((1 - share) * math.log(before) + share * math.log(least))
    sizes = rows[0]["stories"], rows[0]["contexts"], rows[0]["vocab"], max(worst)
    return Width(*sizes, least, crossing, min(worst.values()))


def crossings(sizes: Sequence[Width]) -> tuple[list[int], list[float]]:
    """Return the numbers of stories whose excess crosses 1 %, and where."""
    crossed = [(width.stories, width.crossing) for width in sizes if width.crossing is not None]
    return [n for n, _ in crossed], [m for _, m in crossed]


def growth(sizes: Sequence[Width]) -> FamilyFit:
    """Return the power law a·n^b through the crossings, a failed one if there are too few."""
    xs, ys = crossings(sizes)
    if len(xs) < LEAST_POINTS:
        return FamilyFit("power", "failed", f"{len(xs)} crossings; expected 3 or more", len(xs))
    return fit(xs, ys, "power")


def law_in_words(law: FamilyFit) -> str:
    """Return a power law over the stories, with its interval.

    >>> law_in_words(fit([100, 200, 400], [10.0, 20.1, 39.9], "power"))
    'm = 0.1034·n^0.994 (95 %: 0.931 to 1.06)'
    """
    a, b = law["a"], law["b"]
    return f"m = {a.value:.4g}·n^{b.value:.3g} ({law.level:.0%}: {b.low:.3g} to {b.high:.3g})".replace("%", " %")


def loss_figure(rows: Rows) -> fig.Figure:
    """Declare one setting: loss and excess above the entropy against m for each n, and the least m within 1 %."""
    columns = ("stories", "hidden", "loss", "entropy", "relative_excess", "contexts", "vocab", "frozen")
    check_columns(rows, *columns)
    frozen = bool(shared_value(rows, "frozen"))
    losses, excesses = (series(rows, "stories", "hidden", metric) for metric in ("loss", "relative_excess"))
    entropies = {row["stories"]: row["entropy"] for row in rows}
    loss_marks, excess_marks = list[fig.Mark](), list[fig.Mark]()
    for curve, shade in fig.shaded(losses):
        loss_marks += [fig.Rule({**ENTROPY, "color": shade}, y=entropies[curve.key]), curve.drawn(shade)]
    excess_marks += [curve.drawn(shade) for curve, shade in fig.shaded(excesses)]
    excess_marks.append(fig.Rule({**WITHIN_LINE, "color": fig.QUIET}, y=WITHIN))
    loss = fig.Axis("loss, nats a token", scale="log", is_round=True, has_minor_ticks=False, number_format="{x:g}")
    excess = fig.Axis("(loss − entropy) / entropy", scale="log")
    titles = ("The loss, and the entropy of the data", "How far the loss is above the entropy")
    least, more = _widths_panel({frozen: widths(rows)})
    measured = (f"measured, {runs_in_words(losses)}", fig.MEASURED)
    return fig.Figure(
        [
            fig.Panel(HIDDEN_AXIS, loss, loss_marks, titles[0], end_labels(losses, "n = {:,}")),
            fig.Panel(HIDDEN_AXIS, excess, excess_marks, titles[1], end_labels(excesses, "n = {:,}")),
            least,
        ],
        columns=3,
        width=13.2,
        height=5.4,
        legend=[measured, ("the entropy: no model gets below it", ENTROPY), ("1 % of the entropy", WITHIN_LINE), *more],
        legend_columns=3,
        heading=f"Hidden neurons that take n stories of 10 tokens to their entropy; {SETTINGS[frozen]}",
    )


def settings_figure(tables: Sequence[Rows]) -> fig.Figure:
    """Declare both settings: the least m within 1 %, and its parameters beside those that counting needs."""
    settings = {bool(shared_value(rows, "frozen")): widths(rows) for rows in tables}
    least, entries = _widths_panel(settings)
    marks: list[fig.Mark] = []
    for frozen, some in settings.items():
        points = [(width.stories, width.parameters) for width in some if width.parameters is not None]
        marks.append(fig.Curve([n for n, _ in points], [W for _, W in points], {**LEAST, "color": SHADES[frozen]}))
    sizes = _all_sizes(settings)
    marks.append(fig.line([(width.stories, width.needed) for width in sizes], {**fig.PROVED_BEFORE, "color": fig.INK}))
    title = "ω(17 + m) + 1088 + 17m at the least m, and N(ω − 1)"
    return fig.Figure(
        [least, fig.Panel(_stories_axis(sizes), fig.Axis("parameters", scale="log"), marks, title)],
        columns=2,
        width=10.4,
        height=5.4,
        legend=entries,
        heading="Hidden neurons that take n stories of 10 tokens to their entropy, in both settings",
    )


def _widths_panel(settings: Settings) -> tuple[fig.Panel, list[fig.Entry]]:
    """Declare the least m; where no m of the grid is enough, an arrow upwards at the largest, which is no number."""
    marks: list[fig.Mark] = []
    entries: list[fig.Entry] = []
    for frozen, some in settings.items():
        which = f" ({SETTINGS[frozen]})" if len(settings) > 1 else ""
        for kind, xs, ys, text in _kinds_of_marks(some):
            style = {**kind, "color": SHADES[frozen]}
            marks.append(fig.Curve(xs, ys, style))
            entries += [(f"{text}{which}", style)] if xs else []
        law = growth(some)
        if law.status == "fitted":
            xs, _ = crossings(some)
            style = {**LAW, "color": SHADES[frozen]}
            marks.append(fig.Curve(xs, law.at(xs).tolist(), style))
            entries.append((f"fitted: {law_in_words(law)}", style))
    sizes = _all_sizes(settings)
    enough, needed = {**fig.PROVED, "color": fig.INK}, {**fig.PROVED_BEFORE, "color": fig.INK}
    marks.append(fig.line([(width.stories, width.contexts) for width in sizes], enough))
    marks.append(fig.line([(width.stories, width.needed_width) for width in sizes], needed))
    entries += [("proved: m = N, contexts, suffices", enough)]
    entries += [("proved: m that any N distributions need, by counting", needed)]
    y = fig.Axis("m, hidden neurons", scale="log", number_format=WHOLE)
    return fig.Panel(_stories_axis(sizes), y, marks, "The least m within 1 % of the entropy"), entries


def _all_sizes(settings: Settings) -> list[Width]:
    """Return one width for each number of stories of any setting, ascending."""
    sizes = {width.stories: width for some in settings.values() for width in some}
    return [sizes[stories] for stories in sorted(sizes)]


def _kinds_of_marks(some: Sequence[Width]) -> list[tuple[fig.Style, list[int], list[float], str]]:
    """Return the kinds of marks, where they stand, and their names in the legend."""
    enough = [(width.stories, width.least) for width in some if width.least is not None]
    missed = [width for width in some if width.least is None]
    beyond = ", ".join(dict.fromkeys(width.least_in_words for width in missed)).replace(">", "more than")
    return [
        (LEAST, [n for n, _ in enough], [m for _, m in enough], "measured: least m of the grid"),
        (CROSSING, *crossings(some), "measured: where the excess crosses 1 % between two m"),
        (MISSED, [width.stories for width in missed], [width.tried for width in missed], f"measured: {beyond}"),
    ]


def _stories_axis(sizes: Sequence[Width]) -> fig.Axis:
    return fig.Axis("n, stories", ticks=[width.stories for width in sizes], number_format=WHOLE)


def _figures(_: str, rows: Rows, __: object = ()) -> list[fig.AvailableFigure]:
    caption = "Loss and entropy against hidden neurons, the excess, and the fewest neurons within 1 % of the entropy."
    return [fig.AvailableFigure("loss-gap", caption, partial(loss_figure, rows))]


def _tables(_: str, rows: Rows) -> list[fig.DataTable]:
    """Return the least m within 1 % for each n, and laws over n of the m at which 1 % is crossed."""
    if not rows:
        return []
    sizes = widths(rows)
    title = "The least m within 1 % of the entropy, its parameters ω(17 + m) + 1088 + 17m, and N(ω − 1)"
    tables = [fig.DataTable(title, [width.cells() for width in sizes])]
    xs, ys = crossings(sizes)
    if len(xs) >= LEAST_POINTS:
        title = "Laws of the m at which the excess crosses 1 %, over the stories (95 %)"
        tables.append(fig.DataTable(title, law_rows(compare(xs, ys, ("linear", "quadratic", "power")))))
    return tables


def _findings(_: str, rows: Rows) -> list[str]:
    sizes, findings = widths(rows), []
    enough = [width for width in sizes if width.least is not None]
    missed = [
        f"{width.least_in_words} for {width.stories:,} stories ({100 * width.nearest:.2g} % above at best)"
        for width in sizes
        if width.least is None
    ]
    if enough:
        listed = ", ".join(f"{width.least_in_words} for {width.stories:,} stories" for width in enough)
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


def paper_page(name: str) -> fig.ResultsPage:
    """Return the page about both settings: a figure that compares them, then each setting's figures and tables."""
    rows_of = {each: shipped_rows(each) for each in sorted(EXPERIMENTS)}
    shipped = {each.removeprefix(f"{name}-"): rows for each, rows in rows_of.items() if rows}
    caption = "The fewest hidden neurons within 1 % of the entropy in both settings, and their parameters."
    figures = [fig.AvailableFigure("settings", caption, partial(settings_figure, list(shipped.values())))]
    for setting, rows in shipped.items():
        figures += [fig.AvailableFigure(f"{setting}-{own.name}", own.caption, own.make) for own in _figures(name, rows)]
    return MADDEN.page_of_all(name, rows_of, figures, _tables)
