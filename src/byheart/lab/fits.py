"""Scaling laws: which curve goes through measurements, how sure its numbers are, and whether another would do as well.

Families, for measurements (x, y), repetitions at one x as so many points:

    linear a + b·x,   quadratic … + c·x²,   cubic … + d·x³,   power a·x^b,   power+offset a·x^b + c.

**Fit**: least squares, every point of equal weight. Polynomials are solved for. Of a power law only b is searched for
(on a grid, then by golden section), since a and c are linear once b is known; so no start has to be guessed.

**Intervals** come from the covariance s²(JᵀJ)⁻¹, s² = RSS / (points − parameters), times Student's quantile. For
Gaussian noise of one variance they are exact for polynomials; for power laws, where J is taken at the fit, they hold as
far as the curve is straight within the noise. Not checked: that the noise is Gaussian and equal along x. Accuracies
near 0 or 1 are less noisy than in the middle.

**Comparison**: AICc = m·log(RSS/m) + 2k + 2k(k + 1)/(m − k − 1), m points, k parameters with the noise's variance among
them; and two errors on what was held out: each x in turn (all its repetitions), and the largest x alone, which is what
"the law goes on" means. Where x-values are repeated, an F test says whether the curve misses their means by more than
the repetitions scatter. In-sample error is no criterion: the cubic would always win.

A fit that failed has a status, a reason and no numbers, so that nothing can be drawn.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.lab.quantiles import LEVEL, f_tail, student_quantile
from byheart.tasks.checks import Floats, floats

Family = Literal["linear", "quadratic", "cubic", "power", "power+offset"]
FAMILIES: tuple[Family, ...] = ("linear", "quadratic", "cubic", "power", "power+offset")
NAMES: dict[Family, tuple[str, ...]] = {
    "linear": ("a", "b"),
    "quadratic": ("a", "b", "c"),
    "cubic": ("a", "b", "c", "d"),
    "power": ("a", "b"),
    "power+offset": ("a", "b", "c"),
}
FORMULAS: dict[Family, str] = {
    "linear": "a + b·x",
    "quadratic": "a + b·x + c·x²",
    "cubic": "a + b·x + c·x² + d·x³",
    "power": "a·x^b",
    "power+offset": "a·x^b + c",
}
LARGEST_EXPONENT = 8.0
LEAST_EXPONENT = 0.01  # nearer to 0, a·x^b + c is a logarithm with a and c running away from each other
_GRID = 0.05
_SINGULAR = 1e-10
"""Least over largest singular value, columns of length one: below it, points do not tell the parameters apart."""


class _NoFit(Exception):  # noqa: N818 (it is an outcome, and is caught in this module)
    """There is no fit, and why."""


@dataclass(frozen=True)
class Estimate:
    """A parameter and the interval in which it lies with probability ``Fit.level``."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Fit:
    """One family through the points; numbers only if ``status`` is "fitted".

    ============== ==================================================================================
    field          meaning
    ============== ==================================================================================
    points         number of points, repetitions counted
    estimates      the parameters with their intervals
    noise          s, the standard deviation of points about the curve
    aicc           None where there are too few points for it
    leave_one_out  root of the mean squared error at an x that was left out; None if a refit failed
    extrapolation  error (predicted − mean measured) at the largest x, left out; None if the refit failed
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
        found = next((estimate for estimate in self.estimates if estimate.name == name), None)
        if found is None:
            raise BadInput(f"{self.family} has no parameter {name!r}; expected {', '.join(NAMES[self.family])}")
        return found

    def at(self, x: npt.ArrayLike) -> Floats:
        """The curve at x [...]."""
        self._check()
        return _curve(self.family, np.array([estimate.value for estimate in self.estimates]), np.asarray(x, float))

    def band(self, x: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Where the curve itself lies at x [...] with probability ``level``, at each x for itself."""
        self._check()
        assert self.covariance is not None
        asked = np.asarray(x, float)
        J = _jacobian(self.family, np.array([estimate.value for estimate in self.estimates]), asked.ravel())
        spread = np.sqrt(np.einsum("ij,jk,ik->i", J, self.covariance, J).clip(min=0)).reshape(asked.shape)
        half = student_quantile(self.level, self.points - len(self.estimates)) * spread
        return self.at(asked) - half, self.at(asked) + half

    def row(self) -> dict[str, float | int | str | None]:
        """One flat row for a table."""
        numbers: dict[str, float | int | str | None] = {
            "family": self.family,
            "status": self.status,
            "reason": self.reason,
            "points": self.points,
        }
        for estimate in self.estimates:
            numbers |= {
                estimate.name: estimate.value,
                f"{estimate.name}_low": estimate.low,
                f"{estimate.name}_high": estimate.high,
            }
        names = ("noise", "aicc", "leave_one_out", "extrapolation", "lack_of_fit")
        return numbers | {name: getattr(self, name) for name in names}

    def _check(self) -> None:
        if self.status == "failed":
            raise BadInput(f"the {self.family} fit failed ({self.reason}); there is no curve to ask for")


def fit(x: npt.ArrayLike, y: npt.ArrayLike, family: Family, *, level: float = LEVEL, held_out: bool = True) -> Fit:
    """The family's curve through points x [m], y [m]; without ``held_out``, no time goes into errors at left-out x.

    >>> found = fit([1, 2, 3, 4], [3.1, 4.9, 7.1, 8.9], "linear")
    >>> [(e.name, round(e.value, 3), round(e.low, 3), round(e.high, 3)) for e in found.estimates]
    [('a', 1.1, 0.433, 1.767), ('b', 1.96, 1.717, 2.203)]
    >>> fit([0, 1, 2, 3], [0, 1, 4, 9], "power").reason
    'x is 0.0 somewhere; expected x > 0'
    """
    xs, ys = _points(x, y)
    if family not in FAMILIES:
        raise BadInput(f"family is {family!r}; expected one of {', '.join(FAMILIES)}")
    try:
        values = _solve(family, xs, ys)
        covariance, noise = _covariance(family, values, xs, ys)
    except _NoFit as reason:
        return Fit(family, "failed", str(reason), len(xs), level)
    half = student_quantile(level, len(xs) - len(values)) * np.sqrt(np.diag(covariance))
    left_out = [_error_without(family, xs, ys, value) for value in np.unique(xs)] if held_out else [None]
    known = [error for error in left_out if error is not None]
    return Fit(
        family,
        "fitted",
        "",
        len(xs),
        level,
        tuple(
            Estimate(name, float(value), float(value - h), float(value + h))
            for name, value, h in zip(NAMES[family], values, half, strict=True)
        ),
        noise=noise,
        aicc=_aicc(family, values, xs, ys),
        leave_one_out=math.sqrt(sum(e * e for e in known) / len(known)) if len(known) == len(left_out) else None,
        extrapolation=left_out[-1],
        lack_of_fit=_lack_of_fit(family, values, xs, ys),
        covariance=covariance,
    )


@dataclass(frozen=True, eq=False)
class Comparison:
    """All families on the same points, the least AICc first, those without one behind, failed fits last."""

    fits: tuple[Fit, ...]

    @property
    def by_aicc(self) -> Fit | None:
        """The family that AICc prefers."""
        return min((f for f in self.fits if f.aicc is not None), key=lambda f: f.aicc or 0.0, default=None)

    @property
    def by_leave_one_out(self) -> Fit | None:
        """The family that predicts left-out x-values best."""
        able = (f for f in self.fits if f.leave_one_out is not None)
        return min(able, key=lambda f: f.leave_one_out or 0.0, default=None)

    @property
    def agreed(self) -> bool:
        """Whether both criteria prefer the same family; where not, the points do not decide."""
        return self.by_aicc is not None and self.by_aicc is self.by_leave_one_out

    @property
    def weights(self) -> dict[Family, float]:
        """Akaike's weights, exp(−ΔAICc/2) in proportion, of the families that have an AICc."""
        known = {f.family: f.aicc for f in self.fits if f.aicc is not None}
        least = min(known.values(), default=0.0)
        shares = {family: math.exp((least - value) / 2) for family, value in known.items()}
        return {family: share / sum(shares.values()) for family, share in shares.items()}


def compare(
    x: npt.ArrayLike, y: npt.ArrayLike, families: Sequence[Family] = FAMILIES, *, level: float = LEVEL
) -> Comparison:
    """Every family through the same points.

    >>> x = np.arange(1, 9)
    >>> compare(x, 2 * x**1.5 + [0.01, -0.01, 0.02, 0, -0.02, 0.01, 0, -0.01]).by_aicc.family
    'power'
    """
    if not families:
        raise BadInput("families is empty; expected at least one")
    found = [fit(x, y, family, level=level) for family in families]
    return Comparison(tuple(sorted(found, key=lambda f: (f.status == "failed", f.aicc is None, f.aicc or 0.0))))


def _points(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    xs = floats("x", x, ("N",))
    return xs, floats("y", y, (len(xs),))


def _solve(family: Family, xs: Floats, ys: Floats) -> Floats:
    """The parameters; _NoFit if the points do not determine them."""
    wanted, have = len(NAMES[family]), len(np.unique(xs))
    if have < wanted:
        raise _NoFit(f"{have} different x; expected at least {wanted}, one per parameter")
    if len(xs) == wanted:
        raise _NoFit(f"{wanted} points for {wanted} parameters; expected more points, or there is no interval")
    if family not in ("power", "power+offset"):
        return _linear(_powers(xs, wanted), ys)
    if xs.min() <= 0:
        raise _NoFit(f"x is {xs.min()} somewhere; expected x > 0")
    return _power(xs, ys, offset=family == "power+offset")


def _powers(xs: Floats, count: int) -> Floats:
    return xs[:, None] ** np.arange(count)


def _linear(design: Floats, ys: Floats) -> Floats:
    """Least squares, columns scaled to length one."""
    lengths = np.linalg.norm(design, axis=0)
    if (lengths == 0).any():
        raise _NoFit("the points do not tell the parameters apart (all x are 0)")
    solution, _, _, singular = np.linalg.lstsq(design / lengths, ys, rcond=None)
    if singular[-1] < _SINGULAR * singular[0]:
        raise _NoFit("the points do not tell the parameters apart (singular least squares)")
    return np.asarray(solution / lengths, np.float64)


def _power(xs: Floats, ys: Floats, *, offset: bool) -> Floats:
    """(a, b) or (a, b, c): the best b, with a and c solved for each b."""
    if not (np.ptp(ys) if offset else ys.any()):
        raise _NoFit("a is 0, so that b can be anything")
    unit = math.exp(float(np.log(xs).mean()))  # x in units of its mean: x^b neither over- nor underflows
    logs = np.log(xs / unit)

    def solved(b: Floats) -> tuple[Floats, Floats, Floats]:
        """a, c and the sum of squares that is left, for each of the exponents [g]."""
        powers = np.exp(b[:, None] * logs)
        means, level = (powers.mean(axis=1), ys.mean()) if offset else (np.zeros(len(b)), 0.0)
        about = powers - means[:, None]
        a = about @ (ys - level) / (about**2).sum(axis=1)
        c = level - a * means
        return a, c, ((ys - a[:, None] * powers - c[:, None]) ** 2).sum(axis=1)

    steps = round(LARGEST_EXPONENT / _GRID)
    grid = np.array([_GRID * k for k in range(-steps, steps + 1) if k or not offset])
    best = int(np.argmin(solved(grid)[2]))
    if best in (0, len(grid) - 1):
        raise _NoFit(f"the exponent runs beyond ±{LARGEST_EXPONENT:g}; the points are not a power law's")
    ends = float(grid[best - 1]), float(grid[best + 1])
    b = _golden(lambda b: float(solved(np.array([b]))[2][0]), *ends, skip_zero=offset)
    if offset and abs(b) < LEAST_EXPONENT:
        raise _NoFit(f"the exponent is {b:.2g}: a logarithm, of which a and c are not determined")
    a, c = (float(number[0]) for number in solved(np.array([b]))[:2])
    return np.array([a * unit**-b, b, c] if offset else [a * unit**-b, b])


def _golden(function: Callable[[float], float], low: float, high: float, *, skip_zero: bool) -> float:
    """The minimum of a function of one valley on [low, high]; b = 0 itself is no exponent beside an offset."""
    if skip_zero and low < 0 < high:
        sides = [_golden(function, *ends, skip_zero=False) for ends in ((low, -1e-6), (1e-6, high))]
        return min(sides, key=function)
    ratio = (math.sqrt(5) - 1) / 2
    first, second = high - ratio * (high - low), low + ratio * (high - low)
    left, right = function(first), function(second)
    for _ in range(60):
        if left < right:
            high, second, right = second, first, left
            first = high - ratio * (high - low)
            left = function(first)
        else:
            low, first, left = first, second, right
            second = low + ratio * (high - low)
            right = function(second)
    return (low + high) / 2


def _curve(family: Family, values: Floats, xs: Floats) -> Floats:
    if family in ("power", "power+offset"):
        power: Floats = values[0] * xs ** values[1] + (values[2] if len(values) > 2 else 0.0)
        return power
    return np.asarray(np.polynomial.polynomial.polyval(xs, values), np.float64)


def _jacobian(family: Family, values: Floats, xs: Floats) -> Floats:
    """Derivatives of the curve by the parameters, [m, k]."""
    if family not in ("power", "power+offset"):
        return _powers(xs, len(values))
    a, b = values[:2]
    columns = [xs**b, a * xs**b * np.log(xs), *([np.ones_like(xs)] if len(values) > 2 else [])]
    return np.stack(columns, axis=1)


def _covariance(family: Family, values: Floats, xs: Floats, ys: Floats) -> tuple[Floats, float]:
    J = _jacobian(family, values, xs)
    lengths = np.linalg.norm(J, axis=0)
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise _NoFit("the curve does not depend on one of the parameters, or overflows")
    _, singular, rows = np.linalg.svd(J / lengths, full_matrices=False)
    if singular[-1] < _SINGULAR * singular[0]:
        raise _NoFit("the points do not tell the parameters apart (singular covariance)")
    left = ys - _curve(family, values, xs)
    variance = float(left @ left) / (len(xs) - len(values))
    inverse = (rows.T / singular**2) @ rows
    return variance * inverse / np.outer(lengths, lengths), math.sqrt(variance)


def _aicc(family: Family, values: Floats, xs: Floats, ys: Floats) -> float | None:
    m, k = len(xs), len(values) + 1
    if m - k - 1 < 1:
        return None
    left = ys - _curve(family, values, xs)
    # On exact data all families that reach the rounding are equally good, and the fewest parameters decide.
    rounding = max((1e-14 * float(np.abs(ys).max())) ** 2, 1e-300)
    return m * math.log(max(float(left @ left) / m, rounding)) + 2 * k + 2 * k * (k + 1) / (m - k - 1)


def _error_without(family: Family, xs: Floats, ys: Floats, value: float) -> float | None:
    """Predicted minus mean measured at x = ``value``, from the other points; None if they allow no fit."""
    out = xs == value
    try:
        if len(np.unique(xs[~out])) < len(NAMES[family]):
            return None
        values = _solve_any(family, xs[~out], ys[~out])
    except _NoFit:
        return None
    return float(_curve(family, values, np.array([value]))[0] - ys[out].mean())


def _solve_any(family: Family, xs: Floats, ys: Floats) -> Floats:
    """As _solve, but as many points as parameters will do: a prediction needs no interval."""
    if len(xs) == len(NAMES[family]):
        xs, ys = np.repeat(xs, 2), np.repeat(ys, 2)
    return _solve(family, xs, ys)


def _lack_of_fit(family: Family, values: Floats, xs: Floats, ys: Floats) -> float | None:
    """F test: what the curve misses of the means at each x, against the scatter about these means."""
    different, places, counts = np.unique(xs, return_inverse=True, return_counts=True)
    means = np.bincount(places, ys) / counts
    within = float(((ys - means[places]) ** 2).sum())
    above, below = len(different) - len(values), len(xs) - len(different)
    if above < 1 or below < 1 or within == 0:
        return None
    missed = float((counts * (means - _curve(family, values, different)) ** 2).sum())
    return f_tail((missed / above) / (within / below), above, below)
