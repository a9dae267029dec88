"""Capacity as a success probability: find where it crosses one half, with a confidence interval.

A probe (x, successes, tries) counts the tries at size x that memorized everything. Training is noisy, so bisection on
single outcomes finds a different "capacity" every time. Here every probe is kept, and

    P(success at x) = σ(s·(c − x)),  s ≥ 0   (success falls as x grows; ``rising`` reverses it)

is fitted by maximum likelihood. The result is c, where the probability is ½.

**Interval**: profile likelihood, {c : 2(max ℓ − max_s ℓ(c, s)) ≤ χ²₁}. ℓ is concave in (s·c, s), so its superlevel sets
are convex, and c = s·c / s takes an interval of values on them: one interval, whose ends are roots. An end is open
(None) if ℓ stays above the threshold for ever, that is, if a constant probability on the other side of ½ is as likely.
The level is asymptotic: at 6 points of 8 tries, 95 % intervals held c in 93 % of 400 simulations, and of 20 tries in
94.5 %. Whether the curve is logistic is not checked.

**Separation**: if all tries below some x succeed and all above fail, the likelihood has no maximum (s → ∞), but its
supremum and the interval still exist, and the interval contains the gap. If all tries fail, or all succeed, one end is
open, and there is no estimate.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from byheart.errors import BadInput
from byheart.lab.fits import LEVEL, check_level
from byheart.tasks.arrays import Floats, check_count

Ends = tuple[float | None, float | None]
Status = Literal["found", "separated", "all fail", "all succeed", "no trend"]


@dataclass(frozen=True)
class Probe:
    """Number of tries at x, and how many of them succeeded."""

    x: float
    successes: int
    tries: int

    def __post_init__(self) -> None:
        if not math.isfinite(self.x):
            raise BadInput(f"x is {self.x}; expected a finite number")
        if not 0 <= self.successes <= check_count("tries", self.tries):
            raise BadInput(f"successes are {self.successes} of {self.tries} tries; expected 0 to {self.tries}")


def probes_of(rows: Sequence[Mapping[str, Any]], x: str, metric: str, at_least: float = 1.0) -> list[Probe]:
    """Return a table's runs as probes. A run without a ``metric`` has failed, like one below ``at_least``.

    >>> probes_of([{"heads": 5, "accuracy": a} for a in (1.0, 0.98, None)], "heads", "accuracy")
    [Probe(x=5.0, successes=1, tries=3)]
    """
    outcomes: dict[float, list[bool]] = {}
    for row in rows:
        outcomes.setdefault(float(row[x]), []).append(row[metric] is not None and row[metric] >= at_least)
    return [Probe(x, sum(tried), len(tried)) for x, tried in sorted(outcomes.items())]


@dataclass(frozen=True)
class Crossing:
    """The point at which the probability of success is ½.

    ``x`` is the estimate (the middle of the gap, if separated), or None if there is none. ``low`` and ``high`` are the
    ends of the interval, None if open. ``slope`` is s, per unit of x or of log x, or None if it is infinite.
    """

    status: Status
    x: float | None
    low: float | None
    high: float | None
    slope: float | None
    level: float
    rising: bool
    scale: Literal["linear", "log"]
    reason: str = ""


def crossing(
    probes: Sequence[Probe],
    *,
    rising: bool = False,
    scale: Literal["linear", "log"] = "linear",
    level: float = LEVEL,
) -> Crossing:
    """Find the x, or log x, at which success falls through ½ as x grows (or rises, with ``rising``).

    >>> half = crossing([Probe(100, 9, 10), Probe(200, 5, 10), Probe(300, 2, 10)])
    >>> half.status, round(half.x), round(half.low), round(half.high)
    ('found', 211, 155, 274)
    >>> gap = crossing([Probe(100, 5, 5), Probe(200, 0, 5)])
    >>> gap.status, gap.x, round(gap.low, 6), round(gap.high, 6)
    ('separated', 150.0, 100.0, 200.0)
    >>> crossing([Probe(100, 5, 5)]).high is None
    True
    """
    from scipy.special import chdtri

    table = _Table(probes, rising, scale)
    status, reason = table.status()
    c, start = table.best(status)
    supremum = max(table.limit(-1), table.limit(+1), table.profile(start))
    least = supremum - float(chdtri(1, 1 - check_level(level))) / 2
    ends = [table.end(start, direction, least) for direction in (-1, +1)]
    x, low, high = (None if at is None else table.outside(at) for at in (c, *(ends[::-1] if rising else ends)))
    slope = table.steepness(start) if status == "found" else None
    return Crossing(status, x, low, high, slope, level, rising, scale, reason)


@dataclass(frozen=True)
class CrossingEstimate:
    """The crossing of all rows with the same ``settings``, and their number of tries."""

    settings: dict[str, Any]
    tries: int
    crossing: Crossing


def crossings(
    rows: Sequence[Mapping[str, Any]],
    along: str,
    by: Sequence[str],
    metric: str,
    *,
    at_least: float = 1.0,
    **options: Any,
) -> list[CrossingEstimate]:
    """Find the crossing ``along`` one column of a table, for each choice of the columns ``by``.

    ``options`` are those of :func:`crossing`. Raise BadInput if a column is missing or has other values than numbers.

    >>> rows = [{"heads": H, "examples": N, "accuracy": H / N} for N in (5, 10) for H in (1, 5, 10)]
    >>> estimates = crossings(rows, "heads", ["examples"], "accuracy", rising=True)
    >>> [(estimate.settings, estimate.tries, estimate.crossing.x) for estimate in estimates]
    [({'examples': 5}, 3, 3.0), ({'examples': 10}, 3, 7.5)]
    """
    if not math.isfinite(at_least):
        raise BadInput(f"at_least is {at_least}; expected a finite number")
    if not rows:
        raise BadInput("the table has no rows; expected at least one: are the run's models done?")
    for name in (along, metric, *by):
        if any(name not in row for row in rows):
            raise BadInput(f"the table has no column {name!r} in every row; expected one of {', '.join(rows[0])}")
    for name, kinds in ((along, int | float), (metric, int | float | None)):
        invalid = next((row[name] for row in rows if not isinstance(row[name], kinds)), None)
        if invalid is not None:
            raise BadInput(f"{name} is {invalid!r} in a row; expected numbers")
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(repr([row[name] for name in by]), []).append(row)
    return [
        CrossingEstimate(
            {name: group[0][name] for name in by},
            len(group),
            crossing(probes_of(group, along, metric, at_least), **options),
        )
        for group in groups.values()
    ]


class _Table:
    """Probes on the scale on which success falls: x [m] ascending and different, k successes of n tries [m]."""

    def __init__(self, probes: Sequence[Probe], rising: bool, scale: str) -> None:
        if not probes:
            raise BadInput("there are no probes; expected at least one")
        if scale == "log" and min(probe.x for probe in probes) <= 0:
            raise BadInput(f"x is {min(probe.x for probe in probes)} somewhere; expected x > 0 on a logarithmic scale")
        self.sign, self.log = (-1.0 if rising else 1.0), scale == "log"
        positions = np.array([self.sign * (math.log(probe.x) if self.log else probe.x) for probe in probes])
        self.x, places = np.unique(positions, return_inverse=True)
        self.k = np.bincount(places, [float(probe.successes) for probe in probes])
        self.n = np.bincount(places, [float(probe.tries) for probe in probes])
        self.share = float(self.k.sum() / self.n.sum())
        self.unit = float(np.ptp(self.x)) or max(1.0, abs(float(self.x[0])))

    def outside(self, c: float) -> float:
        """Convert c to the user's scale. On a logarithmic scale, values beyond all floats become 0 or infinite."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.sign * c)) if self.log else self.sign * c

    def status(self) -> tuple[Status, str]:
        """Return the kind of estimate that the probes allow, and the reason if there is none."""
        if not self.k.any():
            return "all fail", "no try succeeded"
        if (self.k == self.n).all():
            return "all succeed", "every try succeeded"
        if len(self.x) == 1:
            return "no trend", "there is one x only"
        terms = (self.k - self.n * self.share) * (self.x - self.x.mean())
        if terms.sum() >= -1e-12 * np.abs(terms).sum():  # a sum of zero with rounding errors is no trend
            return "no trend", "the slope is zero"
        if self.x[self.k > 0].max() <= self.x[self.k < self.n].min():
            return "separated", "no x with failures lies below one with successes: the slope is infinite"
        return "found", ""

    def best(self, status: Status) -> tuple[float | None, float]:
        """Return the likeliest c, if there is one, and a c from which to search, which is as likely."""
        middle = float(self.x.mean())
        if status == "found":  # where the profile stops rising
            c = self.root(lambda c: float(self.excess(c, self.steepness(c)).sum()), middle, +1)
            return c, c
        if status != "separated":
            return None, middle
        # Complete: any c in the gap. Quasi-complete: both outcomes at one x, which c nears from the likelier side.
        last, first = float(self.x[self.k > 0].max()), float(self.x[self.k < self.n].min())
        c, share = (last + first) / 2, float((self.k / self.n)[self.x == last][0])
        return c, c + (1e-9 * self.unit * float(np.sign(share - 0.5)) if last == first else 0.0)

    def limit(self, direction: int) -> float:
        """Return the supremum of ℓ for c → ±∞: the probability is constant, and at least or at most ½."""
        from scipy.special import xlog1py, xlogy

        share = max(self.share, 0.5) if direction > 0 else min(self.share, 0.5)
        return float(xlogy(self.k.sum(), share) + xlog1py((self.n - self.k).sum(), -share))

    def profile(self, c: float) -> float:
        """Return the supremum of ℓ(c, s) over s ≥ 0, without the binomial coefficients."""
        z = self.steepness(c) * (c - self.x)
        return -float(self.k @ np.logaddexp(0.0, -z) + (self.n - self.k) @ np.logaddexp(0.0, z))

    def steepness(self, c: float) -> float:
        """Return the s ≥ 0 at which ℓ(c, s) is largest: a root of the derivative or an end, as ℓ is concave in s."""
        from scipy.optimize import brentq

        ahead = c - self.x
        if self.excess(c, 0.0) @ ahead <= 0:
            return 0.0
        steepest = min(750 / float(np.abs(ahead[ahead != 0]).min()), 1e250)  # σ(±750) is 0 or 1 in float64
        if self.excess(c, steepest) @ ahead >= 0:
            return steepest
        near = 1e-15 / float(np.abs(ahead).max())
        return float(brentq(lambda s: self.excess(c, s) @ ahead, 0.0, steepest, xtol=near, rtol=1e-15, maxiter=2000))

    def excess(self, c: float, s: float) -> Floats:
        """Return successes minus their expected number [m]. Their sum is ∂ℓ/∂c / s; weighted by c − x, it is ∂ℓ/∂s."""
        from scipy.special import expit

        return np.asarray(self.k - self.n * expit(s * (c - self.x)), np.float64)

    def end(self, start: float, direction: int, least: float) -> float | None:
        """Return the c in this direction at which the profile falls below ``least``, or None if it never does."""
        if self.limit(direction) >= least:
            return None
        return self.root(lambda c: self.profile(c) - least, start, direction)

    def root(self, function: Callable[[float], float], start: float, direction: int) -> float:
        """Return the point in this direction at which a function changes from positive to negative."""
        from scipy.optimize import brentq

        before = behind = start
        step = direction * self.unit
        while function(before) < 0:
            before, step = before - step, 2 * step
        while function(behind) >= 0:
            behind, step = behind + step, 2 * step
        return float(brentq(function, before, behind, xtol=1e-13 * self.unit, maxiter=2000))
