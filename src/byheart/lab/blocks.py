"""Mahdavi's claims on a table of results, in numbers: linear in H, growing in n, flat in d_h beyond n.

For each number N of examples: a line through what is not saturated, over heads or over the context's length; and over
d_h the slopes up to n and beyond it. What is measured is the accuracy of labels, and of real targets, which are uniform
in [0, 1], the share of their variance 1/12 that the network explains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byheart.errors import BadInput
from byheart.lab.linear import Flattening, Line, flattening, line, unsaturated
from byheart.lab.runs import is_number

Rows = Sequence[Mapping[str, Any]]
AXES = ("heads", "length", "head_dim")


@dataclass(frozen=True)
class Growth:
    """The line for one N; None where too few points are below saturation."""

    examples: int
    line: Line | None


@dataclass(frozen=True)
class Beyond:
    """The slopes up to d_h = n and beyond it for one N; None where one of them has too few points."""

    examples: int
    slopes: Flattening | None


def axis_of(rows: Rows) -> str | None:
    """What varies along the figure's axis; None if nothing does."""
    return next((name for name in AXES if len({row.get(name) for row in rows}) > 1), None)


def memorized(row: Mapping[str, Any]) -> float | None:
    """The share of the labels, or of the targets' variance, that the kept weights have memorized.

    >>> memorized({"answers": "targets", "best_loss": 1 / 24}), memorized({"answers": "labels", "best_accuracy": 0.25})
    (0.5, 0.25)
    """
    real = row.get("answers") == "targets"
    value = row.get("best_loss" if real else "best_accuracy")
    if not isinstance(value, int | float) or not is_number(value):
        return None
    return 1 - 12 * value if real else value


def growth(rows: Rows, along: str) -> list[Growth]:
    """A line for each N, along heads or length."""
    return [Growth(N, line(unsaturated(points))) for N, points in _by_examples(rows, along).items()]


def beyond_length(rows: Rows) -> list[Beyond]:
    """Slopes along d_h for each N, on either side of the length n of the contexts, which all must share."""
    lengths = [*{row.get("length") for row in rows}]
    if len(lengths) != 1 or lengths[0] is None:
        raise BadInput("the rows have no common length; expected one n, beyond which d_h is said not to matter")
    return [Beyond(N, flattening(points, lengths[0])) for N, points in _by_examples(rows, "head_dim").items()]


def _by_examples(rows: Rows, along: str) -> dict[int, list[tuple[float, float]]]:
    """Points (what varies, what is memorized) by N; rows that lack one of them are left out."""
    found: dict[int, list[tuple[float, float]]] = {}
    for row in rows:
        share = memorized(row)
        if share is not None and row.get("examples") and row.get(along):
            found.setdefault(row["examples"], []).append((float(row[along]), share))
    return dict(sorted(found.items()))
