"""Figures, tables and pages as data: what stands in them, in the order in which it is drawn.

Papers declare their figures with these classes; :mod:`byheart.report.drawing` draws every one of them. Styles and
colours are in matplotlib's words. Each kind of number has one kind of mark: *proved* (lines), *published* (hollow
marks), *fitted* (thin lines), *measured* (full marks, with the number of runs in the legend).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Style: TypeAlias = Mapping[str, Any]
Entry: TypeAlias = tuple[str, Style]
"""An entry of a legend: its text and the style of its mark."""
Limits: TypeAlias = tuple[float | None, float | None]
"""The lower and upper end of an axis; None for an end that follows from the data."""

INK = "#222222"
QUIET = "#757575"
FAINT = "#b5b5b5"
RAMP = ("#eda63b", "#d9603b", "#b3123f", "#6d1a78", "#1f3f8f")
"""Colours of curves that have an order, from small to large."""
PROVED: Style = {"linestyle": (0, (5, 2)), "linewidth": 1.3}
PROVED_BEFORE: Style = {"linestyle": (0, (1, 1.6)), "linewidth": 1.4}
PUBLISHED: Style = {"linestyle": "none", "marker": "D", "markersize": 6.5, "markerfacecolor": "none"}
BUILT: Style = {"linestyle": "none", "marker": "+", "markersize": 6.5, "markeredgewidth": 1.3}
MEASURED: Style = {"marker": "o", "markersize": 4, "linewidth": 1.4, "capsize": 2, "elinewidth": 1}
DASH: Style = {"marker": "_", "markersize": 14}
RAMP_STEPS = 256
"""Number of colours that the ramp is divided into, as matplotlib's colour maps are."""


@dataclass(frozen=True)
class Curve:
    """Points joined by a line, marked, or both; with error bars if ``below`` and ``above`` give their lengths.

    On a logarithmic axis an error bar that would reach 0 has no lower half.
    """

    xs: Sequence[float]
    ys: Sequence[float]
    style: Style
    below: Sequence[float] | None = None
    above: Sequence[float] | None = None


@dataclass(frozen=True)
class Rule:
    """A straight line through the whole panel, at one x or at one y."""

    style: Style
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True)
class Band:
    """The area between two curves."""

    xs: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    colour: str


@dataclass(frozen=True)
class BarChart:
    """A bar for each of 0, 1, 2, …, with error bars if ``spread`` gives their lengths."""

    heights: Sequence[float]
    spread: Sequence[float] | None
    colour: str


@dataclass(frozen=True)
class Annotation:
    """A text beside a point, moved by ``shift``, which is in printer's points."""

    text: str
    x: float
    y: float
    shift: tuple[float, float]
    style: Style


@dataclass(frozen=True)
class EndLabel:
    """The name of a curve at its right end; ``ys`` are the curve's values, which say which of two names is higher."""

    text: str
    ys: Sequence[float]
    colour: str


@dataclass(frozen=True)
class Axis:
    """An axis: its name, scale and ticks; None for what matplotlib chooses."""

    name: str = ""
    scale: str = "linear"
    """linear, log (base 10) or log2."""
    limits: Limits | None = None
    floor: float | None = None
    """Lowest value that the axis may reach, wherever the data would take it."""
    ticks: Sequence[float] | None = None
    tick_names: Sequence[str] | None = None
    is_whole: bool = False
    """True if all ticks are whole numbers."""
    is_round: bool = False
    """True if ticks of a logarithmic axis are round numbers: 1, 2 and 5 times powers of ten, or powers only if there
    are more than two of them."""
    has_minor_ticks: bool = True
    most_ticks: int | None = None
    number_format: str | None = None
    is_inverted: bool = False
    has_grid: bool = True


Mark: TypeAlias = Curve | Rule | Band | BarChart | Annotation


@dataclass(frozen=True)
class Panel:
    """One pair of axes, with its marks in the order in which they are drawn."""

    x: Axis
    y: Axis
    marks: Sequence[Mark] = ()
    title: str = ""
    names: Sequence[EndLabel] = ()
    blank: str = ""
    """Text that stands in an empty panel, which has no ticks."""


@dataclass(frozen=True)
class Figure:
    """Panels in a grid, with one legend and one heading."""

    panels: Sequence[Panel]
    rows: int = 1
    columns: int = 1
    cells: Sequence[int] | None = None
    """Places of the panels in the grid, counted row by row; None if they fill it."""
    width: float = 8.4
    """Width in inches."""
    height: float = 4.6
    """Height in inches."""
    legend: Sequence[Entry] = ()
    legend_columns: int = 2
    legend_inside: Style | None = None
    """Place and size of the legend within the only panel; None for a legend below all panels."""
    heading: str = ""
    shares_x: bool = False
    """True if all panels have the same limits of x."""


@dataclass(frozen=True)
class AvailableFigure:
    """A figure that a table of results allows: its file's name without the ending, its caption, and how to make it.

    ``make`` raises BadInput if the table has too little for the figure.
    """

    name: str
    caption: str
    make: Callable[[], Figure]


@dataclass(frozen=True)
class Lead:
    """The beginning of a page: the paper, its question, and the findings."""

    paper: str = ""
    question: str = ""
    findings: Sequence[str] = ()


@dataclass(frozen=True)
class DataTable:
    """Rows of plain values under a heading; columns are those of all rows, in the order of first appearance."""

    title: str
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ResultsPage:
    """A page about results; ``about`` says which models they are of."""

    name: str
    lead: Lead
    figures: Sequence[AvailableFigure]
    tables: Sequence[DataTable]
    about: Mapping[str, Any] = field(default_factory=dict)


def line(points: Sequence[tuple[float, float]], style: Style) -> Curve:
    """Return a line through points; a single point becomes a dash, since its line would not be visible."""
    return Curve([x for x, _ in points], [y for _, y in points], {**style, **(DASH if len(points) == 1 else {})})


def shaded(items: Sequence[T]) -> list[tuple[T, str]]:
    """Return each item with its own colour of the ramp."""
    return list(zip(items, colours(len(items)), strict=True))


def colours(count: int) -> list[str]:
    """Return ``count`` colours of the ramp in its order, from its first to its last.

    >>> colours(3)
    ['#eda63b', '#b2123f', '#1f3f8f']
    """
    return [_ramp_colour(index / (count - 1)) for index in range(count)] if count > 1 else [RAMP[2]][:count]


def _ramp_colour(share: float) -> str:
    """Return the colour at a share of the ramp, 0 to 1, rounded down to one of :data:`RAMP_STEPS` steps."""
    steps = RAMP_STEPS - 1
    place = min(int(RAMP_STEPS * share), steps) / steps * (len(RAMP) - 1)
    left = min(int(place), len(RAMP) - 2)
    first, second = (bytes.fromhex(colour[1:]) for colour in RAMP[left : left + 2])
    mixed = (round(a + (place - left) * (b - a)) for a, b in zip(first, second, strict=True))
    return "#" + bytes(mixed).hex()
