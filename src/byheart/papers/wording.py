"""Numbers with their intervals, as words of a finding and as cells of a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from byheart.lab.fits import Estimate, FamilyComparison


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


def interval_cells(name: str, estimate: Estimate | None) -> dict[str, Any]:
    """Return a number and the ends of its interval as cells."""
    ends = (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def law_rows(comparison: FamilyComparison, **first: Any) -> list[Mapping[str, Any]]:
    """Return a row for each family, the preferred one first, with Akaike's weights beside AICc."""
    preferred = {id(comparison.by_aicc): "AICc", id(comparison.by_leave_one_out): "left out"}
    preferred |= {id(comparison.by_aicc): "AICc, left out"} if comparison.agreed else {}
    weights = comparison.weights
    return [
        {**first, **law.row(), "weight": weights.get(law.family), "preferred by": preferred.get(id(law))}
        for law in comparison.fits
    ]
