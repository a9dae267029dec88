"""Scaling laws: fit curves to measurements, with intervals of their parameters, and compare families of curves.

:func:`student_quantile` and :func:`mean_interval` serve all statistics of the lab and of the papers.

Families, for measurements (x, y); repetitions at one x are separate points:

    linear a + b·x,   quadratic … + c·x²,   cubic … + d·x³,   power a·x^b,   power+offset a·x^b + c.

**Fit**: least squares, every point of equal weight. Polynomials are solved directly. For a power law only b is searched
(on a grid, then from its best by Levenberg–Marquardt), because a and c are linear once b is known. So no start has to
be guessed.

**Intervals** come from the covariance s²(JᵀJ)⁻¹, s² = RSS / (points − parameters), times Student's quantile. For
Gaussian noise of one variance they are exact for polynomials. For power laws, where J is taken at the fit, they hold as
far as the curve is straight within the noise. It is not checked that the noise is Gaussian and equal along x;
accuracies near 0 or 1 are less noisy than in the middle.

**Comparison**: AICc = m·log(RSS/m) + 2k + 2k(k + 1)/(m − k − 1), with m points and k parameters, counting the noise's
variance; and two errors on held-out points: at each x in turn (all its repetitions), and at the largest x alone, which
tests extrapolation. If x-values are repeated, an F test compares the curve's distance from their means with the scatter
of repetitions. In-sample error is no criterion: the cubic would always win.

A fit that failed has a status and a reason but no numbers, so that nothing can be drawn.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.tasks.arrays import Floats, as_floats

LEVEL = 0.95
"""Default confidence level of all intervals."""
Family = Literal["linear", "quadratic", "cubic", "power", "power+offset"]
FORMULAS: dict[Family, str] = {
    "linear": "a + b·x",
    "quadratic": "a + b·x + c·x²",
    "cubic": "a + b·x + c·x² + d·x³",
    "power": "a·x^b",
    "power+offset": "a·x^b + c",
}
FAMILIES = tuple(FORMULAS)
NAMES = {family: [name for name in "abcd" if name in formula] for family, formula in FORMULAS.items()}
LARGEST_EXPONENT = 8.0
"""Largest absolute value of a power law's exponent."""
LEAST_EXPONENT = 0.01
"""Smallest exponent of a power law with an offset. Near 0, a·x^b + c is a logarithm whose a and c diverge."""
_GRID = 0.05
_LARGEST_CONDITION = 1e10
"""Largest ratio of singular values, for columns of length one, at which points determine the parameters."""


def student_quantile(level: float, degrees: int) -> float:
    """Return the t such that a Student variable lies within ±t with probability ``level``.

    >>> round(student_quantile(0.95, 4), 6), round(student_quantile(0.95, 1000), 4)
    (2.776445, 1.9623)
    """
    from scipy.special import stdtrit

    if degrees < 1:
        raise BadInput(f"degrees of freedom are {degrees}; expected at least 1: more points than parameters")
    return float(stdtrit(degrees, (1 + check_level(level)) / 2))


def mean_interval(values: list[float], level: float = LEVEL) -> tuple[float, float | None, float | None]:
    """Return the mean of independent repetitions and its Student interval, whose ends are None for a single value.

    >>> [round(number, 4) for number in mean_interval([1.0, 2.0, 3.0])]
    [2.0, -0.4841, 4.4841]
    """
    if not values:
        raise BadInput("there are no repetitions; expected at least one")
    mean = statistics.fmean(values)
    if len(values) == 1:
        return mean, None, None
    half = student_quantile(level, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def check_level(level: float) -> float:
    """Return ``level``. Raise BadInput unless it is between 0 and 1."""
    if not 0 < level < 1:
        raise BadInput(f"level is {level}; expected between 0 and 1, like {LEVEL}")
    return level


class _NoFit(Exception):  # noqa: N818 (an outcome, which this module catches)
    """Raised if there is no fit, with the reason."""


@dataclass(frozen=True)
class Estimate:
    """A parameter and the interval in which it lies with probability ``FamilyFit.level``."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class FamilyFit:
    """One family through the points; numbers only if ``status`` is "fitted".

    ============== ==================================================================================
    field          meaning
    ============== ==================================================================================
    points         number of points, repetitions counted
    estimates      the parameters with their intervals
    noise          s, the standard deviation of points about the curve
    aicc           None where there are too few points for it
    leave_one_out  root of the mean squared error at an x that was held out; None if a refit failed
    extrapolation  error (predicted − mean measured) at the largest x, held out; None if the refit failed
    lack_of_fit    probability of so bad a fit if the family were right; None without repetitions
    ============== ==================================================================================
    """

    family: Family
    status: Literal["fitted", "failed"]
    reason: str = ""
    points: int = 0
    level: float = LEVEL
    estimates: tuple[Estimate, ...] = ()
    noise: float | None = None
    aicc: float | None = None
    leave_one_out: float | None = None
    extrapolation: float | None = None
    lack_of_fit: float | None = None
    covariance: Floats | None = None

    def __getitem__(self, name: str) -> Estimate:
        self._check()
        if name not in NAMES[self.family]:
            raise BadInput(f"{self.family} has no parameter {name!r}; expected {', '.join(NAMES[self.family])}")
        return self.estimates[NAMES[self.family].index(name)]

    def at(self, x: npt.ArrayLike) -> Floats:
        """Return the values of the curve at x [...]."""
        return _curve(self.family, self._values(), np.asarray(x, float))

    def band(self, x: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Return the ends of the curve's interval with probability ``level``, for each x [...] separately."""
        J = _jacobian(self.family, self._values(), np.asarray(x, float))
        assert self.covariance is not None
        spread = np.sqrt(((J @ self.covariance) * J).sum(axis=-1).clip(min=0))
        half = student_quantile(self.level, self.points - len(self.estimates)) * spread
        return self.at(x) - half, self.at(x) + half

    def row(self) -> dict[str, float | int | str | None]:
        """Return one flat row for a table."""
        row: dict[str, Any] = {name: getattr(self, name) for name in ("family", "status", "reason", "points")}
        for estimate in self.estimates:
            name = estimate.name
            row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        criteria = ("noise", "aicc", "leave_one_out", "extrapolation", "lack_of_fit")
        return row | {name: getattr(self, name) for name in criteria}

    def _values(self) -> Floats:
        self._check()
        return np.array([estimate.value for estimate in self.estimates])

    def _check(self) -> None:
        if self.status == "failed":
            raise BadInput(f"the {self.family} fit failed ({self.reason}); there is no curve to ask for")


def fit(
    x: npt.ArrayLike, y: npt.ArrayLike, family: Family, *, level: float = LEVEL, held_out: bool = True
) -> FamilyFit:
    """Fit a family's curve to points x [m], y [m]. Without ``held_out``, no errors at held-out x are computed.

    >>> law = fit([1, 2, 3, 4], [3.1, 4.9, 7.1, 8.9], "linear")
    >>> [(e.name, round(e.value, 3), round(e.low, 3), round(e.high, 3)) for e in law.estimates]
    [('a', 1.1, 0.433, 1.767), ('b', 1.96, 1.717, 2.203)]
    >>> fit([0, 1, 2, 3], [0, 1, 4, 9], "power").reason
    'x is 0.0 somewhere; expected x > 0'
    """
    xs = as_floats("x", x, ("N",))
    ys = as_floats("y", y, (len(xs),))
    if family not in FAMILIES:
        raise BadInput(f"family is {family!r}; expected one of {', '.join(FAMILIES)}")
    try:
        if len(np.unique(xs)) == len(xs) == (needed := len(NAMES[family])):
            raise _NoFit(f"{needed} points for {needed} parameters; expected more points, or there is no interval")
        values = _solve(family, xs, ys)
        J, lengths = _normed(_jacobian(family, values, xs))
    except _NoFit as reason:
        return FamilyFit(family, "failed", str(reason), len(xs), level)
    free = len(xs) - len(values)
    squares = float(((ys - _curve(family, values, xs)) ** 2).sum())
    inverse = np.linalg.pinv(J) / lengths[:, None]
    covariance = squares / free * inverse @ inverse.T
    half = student_quantile(level, free) * np.sqrt(np.diag(covariance))
    ends = zip(NAMES[family], values.tolist(), (values - half).tolist(), (values + half).tolist(), strict=True)
    errors = [_error_without(family, xs, ys, value) for value in np.unique(xs)] if held_out else [None]
    defined = [error for error in errors if error is not None]
    return FamilyFit(
        family,
        "fitted",
        "",
        len(xs),
        level,
        tuple(Estimate(*end) for end in ends),
        noise=math.sqrt(squares / free),
        aicc=_aicc(squares, len(xs), len(values), float(np.abs(ys).max())),
        leave_one_out=math.sqrt(np.mean(np.square(defined))) if len(defined) == len(errors) else None,
        extrapolation=errors[-1],
        lack_of_fit=_lack_of_fit(family, values, xs, ys),
        covariance=covariance,
    )


@dataclass(frozen=True, eq=False)
class FamilyComparison:
    """All families on the same points: by ascending AICc, then those without one, then failed fits."""

    fits: tuple[FamilyFit, ...]

    @property
    def by_aicc(self) -> FamilyFit | None:
        """The family that AICc prefers."""
        return min((f for f in self.fits if f.aicc is not None), key=lambda f: f.aicc or 0.0, default=None)

    @property
    def by_leave_one_out(self) -> FamilyFit | None:
        """The family with the best predictions at held-out x."""
        able = (f for f in self.fits if f.leave_one_out is not None)
        return min(able, key=lambda f: f.leave_one_out or 0.0, default=None)

    @property
    def agreed(self) -> bool:
        """True if both criteria prefer the same family; otherwise the points do not decide."""
        return self.by_aicc is not None and self.by_aicc is self.by_leave_one_out

    @property
    def weights(self) -> dict[Family, float]:
        """Akaike's weights, proportional to exp(−ΔAICc/2), of the families that have an AICc."""
        criteria = {f.family: f.aicc for f in self.fits if f.aicc is not None}
        least = min(criteria.values(), default=0.0)
        shares = {family: math.exp((least - aicc) / 2) for family, aicc in criteria.items()}
        return {family: share / sum(shares.values()) for family, share in shares.items()}


def compare(
    x: npt.ArrayLike, y: npt.ArrayLike, families: Sequence[Family] = FAMILIES, *, level: float = LEVEL
) -> FamilyComparison:
    """Fit every family to the same points.

    >>> x = np.arange(1, 9)
    >>> compare(x, 2 * x**1.5 + [0.01, -0.01, 0.02, 0, -0.02, 0.01, 0, -0.01]).by_aicc.family
    'power'
    """
    if not families:
        raise BadInput("families is empty; expected at least one")
    fits = [fit(x, y, family, level=level) for family in families]
    return FamilyComparison(tuple(sorted(fits, key=lambda f: (f.status == "failed", f.aicc is None, f.aicc or 0.0))))


def _solve(family: Family, xs: Floats, ys: Floats) -> Floats:
    """Return the parameters. Raise _NoFit if the points do not determine them."""
    needed, distinct = len(NAMES[family]), len(np.unique(xs))
    if distinct < needed:
        raise _NoFit(f"{distinct} different x; expected at least {needed}, one per parameter")
    if family.startswith("power"):
        return _power(xs, ys, offset=family == "power+offset")
    design, lengths = _normed(xs[:, None] ** np.arange(needed))
    return np.asarray(np.linalg.lstsq(design, ys)[0] / lengths, np.float64)


def _power(xs: Floats, ys: Floats, *, offset: bool) -> Floats:
    """Return (a, b) or (a, b, c): the best b, with a and c solved for at each b.

    With an offset, (x^b − 1)/b replaces x^b: it gives the same curves, and those of log x at b = 0.
    """
    from scipy.optimize import least_squares
    from scipy.special import boxcox

    if xs.min() <= 0:
        raise _NoFit(f"x is {xs.min()} somewhere; expected x > 0")
    if not (np.ptp(ys) if offset else ys.any()):
        raise _NoFit("a is 0, so that b can be anything")
    unit = math.exp(float(np.log(xs).mean()))  # x in units of its mean: x^b neither over- nor underflows
    level = float(ys.mean()) if offset else 0.0

    def solved(b: Floats) -> tuple[Floats, Floats, Floats]:
        """Factor and offset [g, 1], and what is left of the points [g, m], for each of the exponents [g]."""
        shape = boxcox(xs / unit, b[:, None]) if offset else (xs / unit) ** b[:, None]
        mean = shape.mean(axis=1, keepdims=True) if offset else np.zeros((len(b), 1))
        factor = ((shape - mean) @ (ys - level))[:, None] / ((shape - mean) ** 2).sum(axis=1, keepdims=True)
        return factor, level - factor * mean, ys - level - factor * (shape - mean)

    grid = np.linspace(-LARGEST_EXPONENT, LARGEST_EXPONENT, 1 + round(2 * LARGEST_EXPONENT / _GRID))
    best = int(np.argmin((solved(grid)[2] ** 2).sum(axis=1)))
    if best in (0, len(grid) - 1):
        raise _NoFit(f"the exponent runs beyond ±{LARGEST_EXPONENT:g}; the points are not a power law's")
    exact = {"method": "lm", "jac": "3-point", "xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    search = least_squares(lambda b: solved(b)[2][0], grid[best], **exact)
    if not search.success:
        raise _NoFit(f"the search for the exponent did not converge: {search.message}")
    b = float(search.x[0])
    if offset and abs(b) < LEAST_EXPONENT:
        raise _NoFit(f"the exponent is {b:.2g}: a logarithm, of which a and c are not determined")
    factor, c = (float(number[0, 0]) for number in solved(np.array([b]))[:2])
    return np.array([factor / b * unit**-b, b, c - factor / b] if offset else [factor * unit**-b, b])


def _normed(J: Floats) -> tuple[Floats, Floats]:
    """Return columns of length one, and their lengths before. Raise _NoFit unless the points distinguish them."""
    lengths = np.linalg.norm(J, axis=0)
    if not (np.isfinite(lengths).all() and lengths.all()):
        raise _NoFit("the curve does not depend on one of the parameters, or overflows")
    if np.linalg.cond(J / lengths) > _LARGEST_CONDITION:
        raise _NoFit("the points do not tell the parameters apart")
    return J / lengths, lengths


def _curve(family: Family, values: Floats, xs: Floats) -> Floats:
    if family.startswith("power"):
        return np.asarray(values[0] * xs ** values[1] + values[2:].sum(), np.float64)
    return np.asarray(np.polynomial.polynomial.polyval(xs, values), np.float64)


def _jacobian(family: Family, values: Floats, xs: Floats) -> Floats:
    """Return the derivatives of the curve by the parameters, [..., k] at x [...]."""
    powers = xs[..., None] ** (values[1] if family.startswith("power") else np.arange(len(values)))
    if not family.startswith("power"):
        return np.asarray(powers)
    columns = [powers, values[0] * powers * np.log(xs)[..., None], np.ones_like(powers)]
    return np.concatenate(columns[: len(values)], axis=-1)


def _aicc(squares: float, points: int, parameters: int, largest: float) -> float | None:
    """Return AICc from the sum of squares, or None for too few points. The noise's variance is one more parameter."""
    m, k = points, parameters + 1
    if m - k - 1 < 1:
        return None
    # On exact data all families that reach the rounding are equally good, and the fewest parameters decide.
    rounding = max((1e-14 * largest) ** 2, 1e-300)
    return m * math.log(max(squares / m, rounding)) + 2 * k + 2 * k * (k + 1) / (m - k - 1)


def _error_without(family: Family, xs: Floats, ys: Floats, value: float) -> float | None:
    """Return predicted minus mean measured y at x = ``value``, from the other points, or None if they allow no fit."""
    out = xs == value
    try:
        values = _solve(family, xs[~out], ys[~out])
    except _NoFit:
        return None
    return float(_curve(family, values, np.array(value)) - ys[out].mean())


def _lack_of_fit(family: Family, values: Floats, xs: Floats, ys: Floats) -> float | None:
    """Return the p-value of an F test: the curve's distance from means at each x, against the scatter about them."""
    from scipy.special import fdtrc

    different, places, counts = np.unique(xs, return_inverse=True, return_counts=True)
    means = np.bincount(places, ys) / counts
    within = float(((ys - means[places]) ** 2).sum())
    above, below = len(different) - len(values), len(xs) - len(different)
    if above < 1 or below < 1 or within == 0:
        return None
    missed = float((counts * (means - _curve(family, values, different)) ** 2).sum())
    return float(fdtrc(above, below, (missed / above) / (within / below)))
