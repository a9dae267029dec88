"""Capacity as a success probability: where does it cross one half, and how sure is that?

A probe is (x, successes, tries): at size x, so many of the tries memorized everything. Training is noisy, so that
bisecting on single outcomes finds a different "capacity" every time; here every probe is kept, and

    P(success at x) = σ(s·(c − x)),  s ≥ 0   (success falls as x grows; ``rising`` turns it round)

is fitted by maximum likelihood, Newton's method. What is asked for is c, where the probability is ½.

**Interval**: profile likelihood, {c : 2(max ℓ − max_s ℓ(c, s)) ≤ χ²₁}. ℓ is concave in (s·c, s), so its superlevel sets
are convex, and c = s·c / s takes an interval of values on them: one interval, whose ends are found by bisection. An end
is open (None) where ℓ stays above the threshold for ever, that is, where a constant probability on the other side of ½
is as likely. The level is asymptotic: at 6 points of 8 tries, 95 % intervals held c in 93 % of 400 simulations, and of
20 tries in 94.5 %. That the curve is logistic is not checked.

**Separation**: if all tries below some x succeed and all above fail, the likelihood has no maximum (s → ∞), but its
supremum and the interval exist all the same; the gap is always in it. If everything fails, or everything succeeds, one
end is open, and there is no estimate.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from byheart.errors import BadInput
from byheart.lab.quantiles import LEVEL, normal_quantile
from byheart.tasks.checks import Floats, count

Ends = tuple[float | None, float | None]
Status = Literal["found", "separated", "all fail", "all succeed", "no trend"]


@dataclass(frozen=True)
class Probe:
    """So many tries at x, and how many of them succeeded."""

    x: float
    successes: int
    tries: int

    def __post_init__(self) -> None:
        if not math.isfinite(self.x):
            raise BadInput(f"x is {self.x}; expected a finite number")
        if not 0 <= self.successes <= count("tries", self.tries):
            raise BadInput(f"successes are {self.successes} of {self.tries} tries; expected 0 to {self.tries}")


def probes_of(rows: Sequence[Mapping[str, Any]], x: str, metric: str, at_least: float = 1.0) -> list[Probe]:
    """A table's runs as probes: one succeeded whose ``metric`` is ``at_least`` so much; without a number it failed.

    >>> probes_of([{"heads": 5, "accuracy": a} for a in (1.0, 0.98, None)], "heads", "accuracy")
    [Probe(x=5.0, successes=1, tries=3)]
    """
    outcomes: dict[float, list[bool]] = {}
    for row in rows:
        outcomes.setdefault(float(row[x]), []).append(row[metric] is not None and row[metric] >= at_least)
    return [Probe(x, sum(tried), len(tried)) for x, tried in sorted(outcomes.items())]


@dataclass(frozen=True)
class Crossing:
    """Where the probability of success is ½.

    ``x`` is the estimate (the middle of the gap, if separated), None if there is none; ``low`` and ``high`` are the
    ends of the interval, None where it is open. ``slope`` is s, per unit of x or of log x; None if it is infinite.
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
    """Where success falls through ½ as x grows (or rises, with ``rising``), on x or on log x.

    >>> found = crossing([Probe(100, 9, 10), Probe(200, 5, 10), Probe(300, 2, 10)])
    >>> found.status, round(found.x), round(found.low), round(found.high)
    ('found', 211, 155, 274)
    >>> gap = crossing([Probe(100, 5, 5), Probe(200, 0, 5)])
    >>> gap.status, gap.x, gap.low, gap.high
    ('separated', 150.0, 100.0, 200.0)
    >>> crossing([Probe(100, 5, 5)]).high is None
    True
    """
    table = _Table(probes, rising, scale)
    drop = normal_quantile(level) ** 2 / 2
    status, c, s, ends, reason = _fitted(table, drop)
    low, high = (None if end is None else table.outside(end) for end in (reversed(ends) if rising else ends))
    return Crossing(status, None if c is None else table.outside(c), low, high, s, level, rising, scale, reason)


def _fitted(table: "_Table", drop: float) -> tuple[Status, float | None, float | None, Ends, str]:
    """Status, c, s, the interval, and the reason, on the table's own scale, where success falls."""
    x, k, n = table.x, table.k, table.n
    if not k.any():
        return "all fail", None, None, (None, table.end(float(x[0]) - table.unit, +1, -drop)), "no try succeeded"
    if (k == n).all():
        return "all succeed", None, None, (table.end(float(x[-1]) + table.unit, -1, -drop), None), "every try succeeded"
    last, first = float(x[k > 0].max()), float(x[k < n].min())
    if last <= first and len(x) > 1:
        # Complete: any c in the gap. Quasi-complete: both outcomes at one x, which c approaches from the likelier side.
        c, share = (last + first) / 2, float((k / n)[x == last][0])
        start = c + (math.copysign(1e-9 * table.unit, share - 0.5) if last == first and share != 0.5 else 0.0)
        least = table.binomial() - drop
        ends = table.end(start, -1, least), table.end(start, +1, least)
        return "separated", c, None, ends, "no x with failures lies below one with successes: the slope is infinite"
    if not table.falls():
        side = +1 if 2 * k.sum() > n.sum() else -1
        least = table.limit(side) - drop
        far = _far(table, side, least)
        reason = "the slope is zero" if len(x) > 1 else "there is one x only"
        return "no trend", None, None, (table.end(far, -1, least), table.end(far, +1, least)), reason
    c, s = table.newton()
    least = table.log_likelihood(c, s) - drop
    return "found", c, s, (table.end(c, -1, least), table.end(c, +1, least)), ""


def _far(table: "_Table", direction: int, least: float) -> float:
    """A c so far outside that the constant probability, its limit, is nearly reached."""
    middle, step = float(table.x.mean()), table.unit
    while table.profile(middle + direction * step) < least:
        step *= 2
    return middle + direction * step


class _Table:
    """Probes on the scale on which success falls: x [m] ascending and different, k successes of n tries [m]."""

    def __init__(self, probes: Sequence[Probe], rising: bool, scale: str) -> None:
        if not probes:
            raise BadInput("there are no probes; expected at least one")
        if scale == "log" and min(probe.x for probe in probes) <= 0:
            raise BadInput(f"x is {min(probe.x for probe in probes)} somewhere; expected x > 0 on a logarithmic scale")
        self.sign, self.log = (-1.0 if rising else 1.0), scale == "log"
        given = np.array([self.sign * (math.log(probe.x) if self.log else probe.x) for probe in probes])
        self.x, places = np.unique(given, return_inverse=True)
        self.k = np.bincount(places, [float(probe.successes) for probe in probes])
        self.n = np.bincount(places, [float(probe.tries) for probe in probes])
        self.unit = float(np.ptp(self.x)) or max(1.0, abs(float(self.x[0])))

    def outside(self, c: float) -> float:
        """c as an x of the user's."""
        return math.exp(self.sign * c) if self.log else self.sign * c

    def log_likelihood(self, c: float, s: float) -> float:
        """ℓ(c, s), without the binomial coefficients."""
        z = s * (c - self.x)
        return float(self.k @ _log_sigmoid(z) + (self.n - self.k) @ _log_sigmoid(-z))

    def profile(self, c: float) -> float:
        """sup over s ≥ 0 of ℓ(c, s): concave in s, so a root of its derivative, or an end."""
        ahead = c - self.x
        if float((self.k - self.n / 2) @ ahead) <= 0:
            return self.log_likelihood(c, 0.0)
        least = float(np.abs(ahead[ahead != 0]).min())
        low, high, s = 0.0, min(750 / least, 1e250), 1 / self.unit  # σ(±750) is 0 or 1 in float64
        for _ in range(200):
            p = np.exp(_log_sigmoid(s * ahead))
            slope, curvature = float((self.k - self.n * p) @ ahead), float((self.n * p * (1 - p)) @ ahead**2)
            low, high = (s, high) if slope > 0 else (low, s)
            step = s + slope / curvature if curvature > 0 else math.inf
            # Newton, kept between the ends; where it does not move inside them, double or halve instead.
            following = step if low < step < high else (min(2 * s, high) if slope > 0 else (low + s) / 2)
            if abs(following - s) <= 1e-10 * s:
                break
            s = following
        return self.log_likelihood(c, s)

    def limit(self, direction: int) -> float:
        """sup of ℓ for c → ±∞: a constant probability of at least, or at most, ½."""
        share = float(self.k.sum() / self.n.sum())
        share = max(share, 0.5) if direction > 0 else min(share, 0.5)
        return _binomial(self.k.sum(), self.n.sum(), share)

    def binomial(self) -> float:
        """ℓ if every x had a probability of its own: the supremum where the data are separated."""
        return sum(_binomial(k, n, k / n) for k, n in zip(self.k, self.n, strict=True))

    def end(self, start: float, direction: int, least: float) -> float | None:
        """Where the profile falls below ``least``, going from ``start``; None if it never does."""
        if self.limit(direction) >= least:
            return None
        inside, step = start, self.unit
        while self.profile(outer := start + direction * step) >= least:
            inside, step = outer, 2 * step
        for _ in range(60):
            middle = (inside + outer) / 2
            inside, outer = (middle, outer) if self.profile(middle) >= least else (inside, middle)
        return outer

    def falls(self) -> bool:
        """Whether the likelihood grows from the constant probability towards s > 0."""
        share = self.k.sum() / self.n.sum()
        return float((self.k - self.n * share) @ (self.x - self.x.mean())) < 0

    def newton(self) -> tuple[float, float]:
        """The maximum (c, s) of ℓ, for data that are not separated and fall: logit p = a − b·(x − mean) / unit."""
        z = (self.x - self.x.mean()) / self.unit
        J = np.stack([np.ones_like(z), -z], axis=1)
        theta = np.zeros(2)

        def value(theta: Floats) -> float:
            return float(self.k @ _log_sigmoid(J @ theta) + (self.n - self.k) @ _log_sigmoid(-J @ theta))

        for _ in range(100):
            p = np.exp(_log_sigmoid(J @ theta))
            gradient = J.T @ (self.k - self.n * p)
            step = np.linalg.solve((J.T * (self.n * p * (1 - p))) @ J, gradient)
            while value(theta + step) < value(theta) and np.abs(step).max() > 1e-12:
                step = step / 2
            theta = theta + step
            if np.abs(step).max() <= 1e-12 * max(1.0, float(np.abs(theta).max())):
                break
        a, b = theta
        return float(self.x.mean() + a / b * self.unit), float(b / self.unit)


def _log_sigmoid(z: Floats) -> Floats:
    return np.asarray(-np.logaddexp(0.0, -z), np.float64)


def _binomial(k: float, n: float, share: float) -> float:
    """k log p + (n − k) log(1 − p), with 0 log 0 = 0."""
    return float((k * math.log(share) if k else 0.0) + ((n - k) * math.log1p(-share) if n - k else 0.0))
