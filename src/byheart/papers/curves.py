"""Tables of results, the curves in them, and numbers with their intervals.

A table is a list of flat rows, config and metrics side by side. Rows that differ in nothing but the seed are
repetitions: a point is their mean, and its error bar their standard deviation (none for a single run). Rows without a
number, as of runs that diverged, are left out.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from byheart.errors import BadInput
from byheart.exhibits import MEASURED, Curve, EndLabel, Style, shaded
from byheart.lab.fits import Estimate, FamilyComparison
from byheart.lab.rows import is_number

Rows: TypeAlias = Sequence[Mapping[str, Any]]
Cells: TypeAlias = dict[str, Any]
"""A row of a table for people or programs."""
SIZES = (
    *("model_dim", "head_dim", "heads", "vocab", "layers", "length", "examples", "labels", "demand", "learning_rate"),
    *("stories", "contexts", "parameters"),
)
"""Columns of positive numbers, in every row that has them."""
NUMBERS = (
    *("accuracy", "last_accuracy", "best_accuracy", "best_loss", "lower_bound", "previous_bound", "relative_excess"),
    *("bits_per_parameter", "hidden", "steps", "seed", "loss", "entropy"),
)
"""Columns of numbers, or None."""


@dataclass(frozen=True)
class Series:
    """A curve: for each x the mean, the standard deviation (0 for one run) and the number of runs."""

    key: Any
    xs: list[float]
    means: list[float]
    deviations: list[float]
    runs: list[int]

    @property
    def is_whole(self) -> bool:
        """True if every x is a whole number, as heads, tokens and dimensions are."""
        return all(x == int(x) for x in self.xs)

    def drawn(self, colour: str, style: Style | None = None) -> Curve:
        """Return the means with their error bars."""
        shown = {**MEASURED, **(style or {}), "color": colour}
        return Curve(self.xs, self.means, shown, below=self.deviations, above=self.deviations)


def check_numbers(rows: Rows) -> None:
    """Raise BadInput if a column that figures and tables compute with holds anything but numbers."""
    for row in rows:
        for name in SIZES:
            if name in row and not (is_number(row[name]) and row[name] > 0):
                raise BadInput(f"{name} is {row[name]!r} in a row of the table; expected a positive number")
        for name in NUMBERS:
            if not isinstance(row.get(name), int | float | None):
                raise BadInput(f"{name} is {row[name]!r} in a row of the table; expected a number")


def check_columns(rows: Rows, *columns: str) -> None:
    """Raise BadInput if the table is empty or lacks a column."""
    if not rows:
        raise BadInput("the table has no rows; expected at least one: are the run's configs done?")
    missing = [column for column in columns if any(column not in row for row in rows)]
    if missing:
        raise BadInput(f"the table has no {', '.join(missing)}; expected the columns {', '.join(columns)}")


def series(rows: Rows, by: str | None, x: str, y: str) -> list[Series]:
    """Return one curve for each value of ``by`` (a single one if None), x ascending."""
    check_columns(rows, *([by] if by else []), x, y)
    curves: dict[Any, dict[float, list[float]]] = {}
    for row in rows:
        if is_number(row[x]) and is_number(row[y]):
            curves.setdefault(row[by] if by else None, {}).setdefault(row[x], []).append(row[y])
    return [_series(key, points) for key, points in sorted(curves.items(), key=lambda item: item[0] or 0)]


def _series(key: Any, points: dict[float, list[float]]) -> Series:
    runs = [points[x] for x in sorted(points)]
    deviations = [statistics.stdev(values) if len(values) > 1 else 0.0 for values in runs]
    return Series(key, sorted(points), [statistics.fmean(v) for v in runs], deviations, [len(v) for v in runs])


def end_labels(curves: Sequence[Series], name: str) -> list[EndLabel]:
    """Return the names of the curves for their right ends; ``name`` is a format of the curve's key."""
    return [EndLabel(name.format(curve.key), curve.means, shade) for curve, shade in shaded(curves)]


def grouped_rows(rows: Rows, *columns: str) -> dict[Any, list[Mapping[str, Any]]]:
    """Return the rows by their values of the columns, ascending; None, which a row may lack, comes first.

    >>> grouped_rows([{"n": 2, "m": 1}, {"n": 1}], "n", "m")
    {(1, None): [{'n': 1}], (2, 1): [{'n': 2, 'm': 1}]}
    """
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(column) for column in columns), []).append(row)
    order = sorted(groups, key=lambda key: [(value is not None, value) for value in key])
    return {key: groups[key] for key in order}


def values(rows: Rows, column: str) -> list[Any]:
    """Return the different values of a column in ascending order; rows that lack it have none."""
    return sorted({row[column] for row in rows if row.get(column) is not None})


def shared_value(rows: Rows, column: str) -> Any:
    """Return the value that all rows share; raise BadInput if they have several."""
    different = values(rows, column)
    if len(different) != 1:
        raise BadInput(f"{column} is {different} in this table; expected one value")
    return different[0]


def shared_sizes(rows: Rows, letters: Mapping[str, str]) -> str:
    """Return the sizes that all rows share, by the letters of their columns.

    >>> shared_sizes([{"heads": 2, "vocab": 9}, {"heads": 3, "vocab": 9}], {"heads": "H", "vocab": "ω"})
    'ω = 9'
    """
    shared = {letter: values(rows, column) for column, letter in letters.items()}
    return ", ".join(f"{letter} = {different[0]}" for letter, different in shared.items() if len(different) == 1)


def runs_in_words(curves: Sequence[Series]) -> str:
    """Say how many runs the points are means of.

    >>> runs_in_words([Series(None, [1, 2], [0, 0], [0, 0], [5, 4])])
    'mean ± s.d. of 4 to 5 runs'
    """
    counts = sorted({number for curve in curves for number in curve.runs})
    if not counts:
        raise BadInput("no row has a number to draw; expected some that did not diverge")
    return "single runs" if counts == [1] else f"mean ± s.d. of {range_in_words(counts, '')} runs"


def range_in_words(ordered: Sequence[float], digits: str) -> str:
    """Return the first number and the last.

    >>> range_in_words([0.5, 0.75], ".2f"), range_in_words([0.5], ".2f")
    ('0.50 to 0.75', '0.50')
    """
    return " to ".join(dict.fromkeys(f"{end:{digits}}" for end in (ordered[0], ordered[-1])))


def estimate_in_words(estimate: Estimate, digits: str = ".3g") -> str:
    """Return a number with its interval.

    >>> estimate_in_words(Estimate("b", -0.5, -0.75, 1000.0))
    '−0.5 (−0.75 to 1e+03)'
    """
    value, low, high = (f"{end:,{digits}}" for end in (estimate.value, estimate.low, estimate.high))
    return f"{value} ({low} to {high})".replace("-", "−")


def interval_cells(name: str, estimate: Estimate | None) -> Cells:
    """Return a number and the ends of its interval as cells."""
    ends = (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def law_rows(comparison: FamilyComparison, **first: Any) -> list[Cells]:
    """Return a row for each family, the preferred one first, with Akaike's weights beside AICc."""
    preferred = {id(comparison.by_aicc): "AICc", id(comparison.by_leave_one_out): "left out"}
    preferred |= {id(comparison.by_aicc): "AICc, left out"} if comparison.agreed else {}
    weights = comparison.weights
    return [
        {**first, **law.row(), "weight": weights.get(law.family), "preferred by": preferred.get(id(law))}
        for law in comparison.fits
    ]
