"""Figures of Madden, Fox & Thrampoulidis 2024: the loss and the entropy of the data, against hidden neurons."""

from collections.abc import Mapping, Sequence

from byheart.exhibits import (
    INK,
    MEASURED,
    PROVED,
    PROVED_BEFORE,
    QUIET,
    Axis,
    Curve,
    EndLabel,
    Entry,
    Figure,
    Mark,
    Panel,
    Rule,
    Style,
    colours,
    line,
)
from byheart.lab.fits import FamilyFit
from byheart.papers.curves import Rows, Series, check_columns, runs_in_words, series, shared_value
from byheart.papers.madden_2024.widths import WITHIN, Width, growth, widths

COLUMNS = ("stories", "hidden", "loss", "entropy", "relative_excess", "contexts", "vocab", "frozen")
WITHIN_LINE: Style = {"linestyle": "-.", "linewidth": 1}
ENTROPY: Style = {"linestyle": (0, (5, 2)), "linewidth": 0.9}
LEAST: Style = {"marker": "s", "markersize": 5, "linestyle": "none", "mfc": "white"}
CROSSING: Style = {"marker": "o", "markersize": 4.5, "linestyle": "none"}
MISSED: Style = {"marker": "^", "markersize": 7, "linestyle": "none", "mfc": "white"}
LAW: Style = {"linestyle": "-", "linewidth": 1.4}
SETTINGS = {False: "everything trained", True: "embedding and attention frozen"}
SHADES = {False: "#b3123f", True: "#1f3f8f"}
"""Colour of each setting, by ``frozen``."""
WHOLE = "{x:,.0f}"
Settings = Mapping[bool, Sequence[Width]]
"""The widths of each setting, by ``frozen``."""


def loss_figure(rows: Rows) -> Figure:
    """Declare one setting: loss and excess above the entropy against m for each n, and the least m within 1 %."""
    check_columns(rows, *COLUMNS)
    frozen = bool(shared_value(rows, "frozen"))
    losses = series(rows, "stories", "hidden", "loss")
    least, more = _widths_panel({frozen: widths(rows)})
    measured = (f"measured, {runs_in_words(losses)}", MEASURED)
    return Figure(
        [_losses_panel(losses, rows), _excess_panel(series(rows, "stories", "hidden", "relative_excess")), least],
        columns=3,
        width=13.2,
        height=5.4,
        legend=[measured, ("the entropy: no model gets below it", ENTROPY), ("1 % of the entropy", WITHIN_LINE), *more],
        legend_columns=3,
        heading=f"Hidden neurons that take n stories of 10 tokens to their entropy; {SETTINGS[frozen]}",
    )


def settings_figure(tables: Sequence[Rows]) -> Figure:
    """Declare both settings: the least m within 1 %, and its parameters beside those that counting needs."""
    settings = {bool(shared_value(rows, "frozen")): widths(rows) for rows in tables}
    least, entries = _widths_panel(settings)
    return Figure(
        [least, _parameters_panel(settings)],
        columns=2,
        width=10.4,
        height=5.4,
        legend=entries,
        heading="Hidden neurons that take n stories of 10 tokens to their entropy, in both settings",
    )


def law_in_words(law: FamilyFit) -> str:
    """Return a power law over the stories, with its interval.

    >>> from byheart.lab.fits import fit
    >>> law_in_words(fit([100, 200, 400], [10.0, 20.1, 39.9], "power"))
    'm = 0.1034·n^0.994 (95 %: 0.931 to 1.06)'
    """
    if law.status == "failed":
        return f"no power law: {law.reason}"
    a, b = law["a"], law["b"]
    return f"m = {a.value:.4g}·n^{b.value:.3g} ({law.level:.0%}: {b.low:.3g} to {b.high:.3g})".replace("%", " %")


def _losses_panel(curves: Sequence[Series], rows: Rows) -> Panel:
    """Declare the loss of each n, and the entropy below which it cannot get."""
    entropies = {row["stories"]: row["entropy"] for row in rows}
    marks: list[Mark] = []
    for curve, shade in zip(curves, colours(len(curves)), strict=True):
        marks += [Rule({**ENTROPY, "color": shade}, y=entropies[curve.key]), curve.drawn(shade)]
    y = Axis("loss, nats a token", scale="log", is_round=True, has_minor_ticks=False, number_format="{x:g}")
    return Panel(_hidden_axis(), y, marks, "The loss, and the entropy of the data", _names(curves))


def _excess_panel(curves: Sequence[Series]) -> Panel:
    """Declare how far above the entropy the loss is, as a share of it."""
    marks: list[Mark] = [curve.drawn(shade) for curve, shade in zip(curves, colours(len(curves)), strict=True)]
    marks.append(Rule({**WITHIN_LINE, "color": QUIET}, y=WITHIN))
    y = Axis("(loss − entropy) / entropy", scale="log")
    return Panel(_hidden_axis(), y, marks, "How far the loss is above the entropy", _names(curves))


def _hidden_axis() -> Axis:
    return Axis("m, hidden neurons", scale="log2", number_format=WHOLE)


def _names(curves: Sequence[Series]) -> list[EndLabel]:
    shades = colours(len(curves))
    return [curve.named(f"n = {curve.key:,}", shade) for curve, shade in zip(curves, shades, strict=True)]


def _widths_panel(settings: Settings) -> tuple[Panel, list[Entry]]:
    """Declare the least m; where no m of the grid is enough, an arrow upwards at the largest, which is no number."""
    marks: list[Mark] = []
    entries: list[Entry] = []
    for frozen, some in settings.items():
        which = f" ({SETTINGS[frozen]})" if len(settings) > 1 else ""
        for kind, points, text in _kinds_of_marks(some):
            style = {**kind, "color": SHADES[frozen]}
            marks.append(Curve([n for n, _ in points], [m for _, m in points], style))
            entries += [(f"{text}{which}", style)] if points else []
        law = growth(some)
        if law.status == "fitted":
            xs = [width.stories for width in some if width.crossing is not None]
            style = {**LAW, "color": SHADES[frozen]}
            marks.append(Curve(xs, law.at(xs).tolist(), style))
            entries.append((f"fitted: {law_in_words(law)}", style))
    sizes = _all_sizes(settings)
    proved: list[tuple[Style, list[tuple[float, float]], str]] = [
        (PROVED, [(width.stories, width.contexts) for width in sizes], "m = N, contexts, suffices"),
        (
            PROVED_BEFORE,
            [(width.stories, _needed_width(width)) for width in sizes],
            "m that any N distributions need, by counting",
        ),
    ]
    for kind, points, text in proved:
        style = {**kind, "color": INK}
        marks.append(line(points, style))
        entries.append((f"proved: {text}", style))
    y = Axis("m, hidden neurons", scale="log", number_format=WHOLE)
    return Panel(_stories_axis(sizes), y, marks, "The least m within 1 % of the entropy"), entries


def _all_sizes(settings: Settings) -> list[Width]:
    """Return one width for each number of stories of any setting, ascending."""
    sizes = {width.stories: width for some in settings.values() for width in some}
    return [sizes[stories] for stories in sorted(sizes)]


def _kinds_of_marks(some: Sequence[Width]) -> list[tuple[Style, list[tuple[float, float]], str]]:
    """Return the kinds of marks, where they stand, and their names in the legend."""
    enough = [width for width in some if width.least is not None]
    crossed = [(width.stories, width.crossing) for width in some if width.crossing is not None]
    missed = [width for width in some if width.least is None]
    beyond = ", ".join(dict.fromkeys(width.told for width in missed)).replace(">", "more than")
    return [
        (LEAST, [(width.stories, width.least or 0) for width in enough], "measured: least m of the grid"),
        (CROSSING, list(crossed), "measured: where the excess crosses 1 % between two m"),
        (MISSED, [(width.stories, width.tried) for width in missed], f"measured: {beyond}"),
    ]


def _parameters_panel(settings: Settings) -> Panel:
    """Declare the number of parameters W at the least m, and N(ω − 1)."""
    marks: list[Mark] = []
    for frozen, some in settings.items():
        points = [(width.stories, width.parameters) for width in some if width.parameters is not None]
        marks.append(Curve([n for n, _ in points], [W for _, W in points], {**LEAST, "color": SHADES[frozen]}))
    sizes = _all_sizes(settings)
    marks.append(line([(width.stories, width.needed) for width in sizes], {**PROVED_BEFORE, "color": INK}))
    title = "ω(17 + m) + 1088 + 17m at the least m, and N(ω − 1)"
    return Panel(_stories_axis(sizes), Axis("parameters", scale="log"), marks, title)


def _stories_axis(sizes: Sequence[Width]) -> Axis:
    return Axis("n, stories", ticks=[width.stories for width in sizes], number_format=WHOLE)


def _needed_width(size: Width) -> float:
    """Return the m with ω(17 + m) + 1088 + 17m = N(ω − 1): fewer parameters cannot fit every N distributions."""
    return max(1.0, (size.needed - 17 * size.vocab - 1088) / (size.vocab + 17))
