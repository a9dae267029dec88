"""Figures of Madden, Fox & Thrampoulidis 2024: the loss and the entropy of the data, against hidden neurons."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from byheart.lab.fits import FamilyFit
from byheart.papers.madden_2024.widths import WITHIN, Width, growth, widths
from byheart.report.lab.series import (
    MEASURED,
    PROVED,
    PROVED_BEFORE,
    Entry,
    Rows,
    Series,
    check_columns,
    colours,
    draw_line,
    draw_measured,
    heading,
    label,
    legend_below,
    name_ends,
    one,
    runs,
    series,
    values,
)
from byheart.report.style import INK, QUIET, canvas, save_picture

COLUMNS = ("stories", "hidden", "loss", "entropy", "relative_excess", "contexts", "vocab", "frozen")
WITHIN_LINE: dict[str, Any] = {"linestyle": "-.", "linewidth": 1}
ENTROPY: dict[str, Any] = {"linestyle": (0, (5, 2)), "linewidth": 0.9}
LEAST: dict[str, Any] = {"marker": "s", "markersize": 5, "linestyle": "none", "mfc": "white"}
CROSSING: dict[str, Any] = {"marker": "o", "markersize": 4.5, "linestyle": "none"}
MISSED: dict[str, Any] = {"marker": "^", "markersize": 7, "linestyle": "none", "mfc": "white"}
LAW: dict[str, Any] = {"linestyle": "-", "linewidth": 1.4}
SETTINGS = {False: "everything trained", True: "embedding and attention frozen"}
SHADES = {False: "#b3123f", True: "#1f3f8f"}
"""Of the settings, by ``frozen``."""


def draw_madden(rows: Rows, path: Path) -> None:
    """One setting: the loss and the excess above the entropy against m for each n, and the least m within 1 %."""
    check_columns(rows, *COLUMNS)
    picture, (left, middle, right) = canvas(path, columns=3, width=13.2, height=5.4)
    entries = [*_draw_losses(left, rows), *_draw_excess(middle, rows)]
    frozen = bool(one(rows, "frozen"))
    legend_below(picture, [*entries, *_draw_widths(right, {frozen: widths(rows)})], columns=3)
    heading(picture, f"Hidden neurons that take n stories of 10 tokens to their entropy; {SETTINGS[frozen]}")
    save_picture(picture, path)


def draw_settings(tables: Sequence[Rows], path: Path) -> None:
    """Both settings: the least m within 1 %, and the parameters that it has beside those that counting asks for."""
    found = {bool(one(rows, "frozen")): widths(rows) for rows in tables}
    picture, (left, right) = canvas(path, columns=2, width=10.4, height=5.4)
    entries = [*_draw_widths(left, found), *_draw_parameters(right, found)]
    legend_below(picture, entries)
    heading(picture, "Hidden neurons that take n stories of 10 tokens to their entropy, in both settings")
    save_picture(picture, path)


def law_told(law: FamilyFit) -> str:
    """A power law over the stories, with its interval.

    >>> from byheart.lab.fits import fit
    >>> law_told(fit([100, 200, 400], [10.0, 20.1, 39.9], "power"))
    'm = 0.1034·n^0.994 (95 %: 0.931 to 1.06)'
    """
    if law.status == "failed":
        return f"no power law: {law.reason}"
    a, b = law["a"], law["b"]
    return f"m = {a.value:.4g}·n^{b.value:.3g} ({law.level:.0%}: {b.low:.3g} to {b.high:.3g})".replace("%", " %")


def _draw_losses(axes: Any, rows: Rows) -> list[Entry]:
    """The loss of each n, and the entropy below which it cannot get."""
    from matplotlib.ticker import LogLocator, NullLocator

    curves = series(rows, "stories", "hidden", "loss")
    bounds = {row["stories"]: row["entropy"] for row in rows}
    axes.set(yscale="log")
    for curve, shade in zip(curves, colours(len(curves)), strict=True):
        axes.axhline(bounds[curve.key], color=shade, **ENTROPY)
        draw_measured(axes, curve, shade)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:g}")
    _name_curves(axes, curves)
    label(axes, "m, hidden neurons", "loss, nats a token", "The loss, and the entropy of the data")
    return [(f"measured, {runs(curves)}", MEASURED), ("the entropy: no model gets below it", ENTROPY)]


def _draw_excess(axes: Any, rows: Rows) -> list[Entry]:
    """How far above the entropy the loss is, as a share of it."""
    curves = series(rows, "stories", "hidden", "relative_excess")
    axes.set(yscale="log")
    for curve, shade in zip(curves, colours(len(curves)), strict=True):
        draw_measured(axes, curve, shade)
    axes.axhline(WITHIN, color=QUIET, **WITHIN_LINE)
    _name_curves(axes, curves)
    label(axes, "m, hidden neurons", "(loss − entropy) / entropy", "How far the loss is above the entropy")
    return [("1 % of the entropy", WITHIN_LINE)]


def _name_curves(axes: Any, curves: Sequence[Series]) -> None:
    """m on a scale of doublings, and n at the ends of the curves."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    name_ends(axes, curves, [f"n = {curve.key:,}" for curve in curves], colours(len(curves)))


def _draw_widths(axes: Any, found: Mapping[bool, Sequence[Width]]) -> list[Entry]:
    """The least m; if none of the grid is enough, an arrow upwards at the largest, which is no number."""
    entries: list[Entry] = []
    for frozen, some in found.items():
        shade, name = {"color": SHADES[frozen]}, f" ({SETTINGS[frozen]})" if len(found) > 1 else ""
        for style, points, told in _marks(some):
            axes.plot([n for n, _ in points], [m for _, m in points], **shade, **style)
            entries += [(f"{told}{name}", shade | style)] if points else []
        law = growth(some)
        if law.status == "fitted":
            xs = [width.stories for width in some if width.crossing is not None]
            axes.plot(xs, law.at(xs), **shade, **LAW)
            entries.append((f"fitted: {law_told(law)}", shade | LAW))
    every = {width.stories: width for some in found.values() for width in some}
    sizes = [every[n] for n in sorted(every)]
    draw_line(axes, [(width.stories, width.contexts) for width in sizes], INK, PROVED)
    draw_line(axes, [(width.stories, _counted(width)) for width in sizes], INK, PROVED_BEFORE)
    axes.set(yscale="log")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    _stories_below(axes, sizes, "m, hidden neurons", "The least m within 1 % of the entropy")
    return [
        *entries,
        ("proved: m = N, contexts, suffices", PROVED | {"color": INK}),
        ("proved: m that any N distributions need, by counting", PROVED_BEFORE | {"color": INK}),
    ]


def _marks(found: Sequence[Width]) -> list[tuple[dict[str, Any], list[tuple[int, float]], str]]:
    """The kinds of marks, where they stand, and what they are."""
    return [
        (
            LEAST,
            [(width.stories, width.least) for width in found if width.least is not None],
            "measured: least m of the grid",
        ),
        (
            CROSSING,
            [(width.stories, width.crossing) for width in found if width.crossing is not None],
            "measured: where the excess crosses 1 % between two m",
        ),
        (MISSED, [(width.stories, width.tried) for width in found if width.least is None], _missed(found)),
    ]


def _missed(found: Sequence[Width]) -> str:
    return "measured: " + ", ".join(dict.fromkeys(width.told for width in found if width.least is None)).replace(
        ">", "more than"
    )


def _draw_parameters(axes: Any, found: Mapping[bool, Sequence[Width]]) -> list[Entry]:
    """W at the least m, and N(ω − 1)."""
    for frozen, some in found.items():
        points = [(width.stories, width.parameters) for width in some if width.parameters is not None]
        axes.plot([n for n, _ in points], [W for _, W in points], color=SHADES[frozen], **LEAST)
    every = {width.stories: width for some in found.values() for width in some}
    sizes = [every[n] for n in sorted(every)]
    draw_line(axes, [(width.stories, width.needed) for width in sizes], INK, PROVED_BEFORE)
    axes.set(yscale="log")
    _stories_below(axes, sizes, "parameters", "ω(17 + m) + 1088 + 17m at the least m, and N(ω − 1)")
    return []


def _stories_below(axes: Any, sizes: Sequence[Width], y: str, title: str) -> None:
    axes.set_xticks(values([{"n": width.stories} for width in sizes], "n"))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    label(axes, "n, stories", y, title)


def _counted(size: Width) -> float:
    """The m with ω(17 + m) + 1088 + 17m = N(ω − 1): fewer parameters cannot fit every N distributions."""
    return max(1.0, (size.needed - 17 * size.vocab - 1088) / (size.vocab + 17))
