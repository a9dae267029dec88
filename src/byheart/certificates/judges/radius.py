"""Proofs that an exact network reads the whole ball around each token as it reads the token itself.

**Statement.** If every token x of a sequence moves, each on its own, to any real vector within the radius of x, then no
answer changes. The proof treats one ball at a time, and the layers in front of the first that mixes tokens. In these, a
token's stream depends on that token alone: if the stream is the same on the whole ball, so are the answers. The answers
at the centres are checked elsewhere.

**Proof of a ball.** Each unit is an affine function of the displacement ξ, ‖ξ‖₂ ≤ R, plus a number in an interval:
a·ξ + [low, high], exactly, in integers over a power of two. |a·ξ| ≤ R·‖a‖₂, the norm rounded up. If the argument of a
ReLU has one sign on the whole ball, the unit keeps its form or becomes 0. Otherwise it becomes the interval from 0 to
the largest argument, without slope. As soon as no unit of a layer has a slope, and every interval is one point, the
stream is constant. A ball that reaches the mixing layer, or the answer, otherwise is not proved; it may still be right.

In front of :class:`~byheart.networks.exact.Flatten` a point has several tokens, each with its own displacement:
|a·ξ| ≤ R·Σ_k ‖a_k‖₂.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from math import inf, isfinite, isqrt

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput, check_positive
from byheart.networks.exact import (
    Affine,
    Block,
    ExactNetwork,
    FeedForward,
    Flatten,
    Integers,
    Layer,
    Positions,
    Residual,
)
from byheart.networks.exact.evaluate import split
from byheart.networks.exact.exact_network import Inputs, check_inputs
from byheart.networks.exact.limbs import from_floats

Ids = NDArray[np.int64]
PRECISION = 1e-4
"""Relative precision of :func:`provable_radius`."""
_BALLS, _NUMBERS = 1 << 12, 1 << 24
"""Largest number of balls at a time; and of entries of slopes, if every unit had its own slope on every ball."""


def stated_radius(network: ExactNetwork) -> float | None:
    """Return the radius that a network's folder claims, if any; raise BadInput if it is not a positive number."""
    stated = network.about.get("radius")
    if stated is not None and (type(stated) is not float or not (isfinite(stated) and stated > 0)):
        raise BadInput(f"config.json: about.radius is {stated!r}; expected a positive number, or null")
    return stated


def check_radius(network: ExactNetwork, radius: float) -> None:
    """Raise BadInput unless ``radius`` is positive and finite, and the network reads vectors."""
    check_positive("radius", radius)
    if network.inputs != "vectors":
        raise BadInput("a radius is about vectors that may move; the network reads token ids")


def unproved(network: ExactNetwork, inputs: Inputs, radius: float) -> NDArray[np.bool_]:
    """Return the tokens [N, n] of ``inputs`` [N, n, d] on whose balls the stream is not proved to be constant.

    >>> from byheart.networks.exact import integers
    >>> ramp, difference = Affine(integers([[8], [8]]), integers([0, -1])), Affine(integers([[1, -1]]), integers([0]))
    >>> step = FeedForward((ramp, difference))
    >>> network = ExactNetwork((step,), inputs="vectors", outputs="last", length=1)
    >>> unproved(network, np.array([[[1.0]], [[0.25]], [[-1.0]]]), 0.5).tolist()
    [[False], [True], [False]]
    """
    check_radius(network, radius)
    check_inputs(network, inputs)
    N, n = inputs.shape[:2]
    front, rest = split(network)
    flat = bool(rest) and isinstance(rest[0], Flatten) and not front
    layers = rest[1:] if flat else front
    rows = np.ascontiguousarray(inputs.astype(np.float64).reshape((N, -1) if flat else (N * n, -1)))
    places = np.tile(np.arange(n), N) if not flat and any(isinstance(layer, Positions) for layer in layers) else None
    first, index = _different(rows, places)
    open_balls = np.zeros(len(first), dtype=np.bool_)
    chunk = max(1, min(_BALLS, _NUMBERS // (network.width * rows.shape[1])))
    for begin in range(0, len(first), chunk):
        some = first[begin : begin + chunk]
        at = np.zeros(len(some), dtype=np.int64) if places is None else places[some]
        open_balls[begin : begin + chunk] = ~_constant(layers, rows[some], at, n if flat else 1, Fraction(radius))
    doubtful = open_balls[index]
    return np.repeat(doubtful[:, None], n, axis=1) if flat else doubtful.reshape(N, n)


def provable_radius(network: ExactNetwork, inputs: Inputs, radius: float) -> float:
    """Return the largest radius that is proved for every token, to a relative ``PRECISION``, by bisection.

    The search starts at ``radius``. The result is 0 if 2^−64 times it is not proved, and infinite if 2^64 times it is.
    """

    def proved(distance: float) -> bool:
        return not unproved(network, inputs, distance).any()

    low, high = radius, 2 * radius
    while proved(high):
        low, high = high, 2 * high
        if low > radius * 2.0**63:
            return inf
    while not proved(low):
        low, high = low / 2, low
        if low < radius * 2.0**-64:
            return 0.0
    while high - low > PRECISION * low:
        middle = (low + high) / 2
        low, high = (middle, high) if proved(middle) else (low, middle)
    return low


def _different(rows: NDArray[np.float64], places: Ids | None) -> tuple[Ids, Ids]:
    """Return the index of each distinct row (at one place, if places matter), and every row's number among these."""
    index = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    keys = index if places is None else index * (int(places.max()) + 1) + places
    _, first, index = np.unique(keys, return_index=True, return_inverse=True)
    return first.astype(np.int64), index.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Forms:
    """Every unit on every ball, [K, width]: slopes[which]·ξ + [low, high], all over 2^exponent.

    ``high`` is ``low`` itself if all intervals are points. ``slopes[0]`` is 0, the slope of constants.
    """

    low: Integers
    high: Integers
    which: Ids
    slopes: list[Integers]
    exponent: int
    places: Ids
    """[K]: position of the token at the centre of each ball."""
    blocks: int
    """Number of tokens per point, each with a displacement of its own."""
    radius: Fraction
    """R: radius of the balls."""

    @property
    def constant(self) -> NDArray[np.bool_]:
        """True for the balls [K] on which every unit is one number."""
        points = np.ones(len(self.low), dtype=np.bool_)
        if self.high is not self.low:
            points = np.asarray((self.low == self.high).all(axis=1), np.bool_)
        return np.asarray(points & (self.which == 0).all(axis=1), np.bool_)

    def balls(self, chosen: NDArray[np.bool_]) -> "Forms":
        """Return the forms on the chosen balls."""
        low = self.low[chosen]
        high = low if self.high is self.low else self.high[chosen]
        return replace(self, low=low, high=high, which=self.which[chosen], places=self.places[chosen])

    def reaches(self) -> Integers:
        """Return R·‖a‖ for every slope, rounded up."""
        bounds = np.zeros(len(self.slopes), dtype=object)
        for index, slope in enumerate(self.slopes[1:], start=1):
            squares = (sum(int(a) ** 2 for a in block) for block in np.split(slope, self.blocks))
            norm = sum(isqrt(square - 1) + 1 if square else 0 for square in squares)
            bounds[index] = -(-self.radius.numerator * norm // self.radius.denominator)
        return bounds


def _constant(
    layers: tuple[Layer, ...], centres: NDArray[np.float64], places: Ids, blocks: int, radius: Fraction
) -> NDArray[np.bool_]:
    """Return the balls [K] on which some layer's stream, and so every later one, is constant."""
    forms = _start(centres, places, blocks, radius)
    left, constant = np.arange(len(centres)), np.zeros(len(centres), dtype=np.bool_)
    for step in _steps(layers):
        forms = step(forms)
        done = forms.constant
        constant[left[done]] = True
        left, forms = left[~done], forms.balls(~done)
        if not len(left):
            break
    return constant


def _start(centres: NDArray[np.float64], places: Ids, blocks: int, radius: Fraction) -> Forms:
    """Return the forms of x itself: the centre, and a slope of 1 in its own coordinate."""
    exact = from_floats(centres)
    low, exponent, dim = exact.numerators(), exact.exponent, centres.shape[1]
    slopes = [np.zeros(dim, dtype=object), *(np.eye(dim, dtype=np.int64).astype(object) << exponent)]
    which = np.tile(np.arange(1, dim + 1), (len(low), 1))
    return Forms(low, low, which, slopes, exponent, places, blocks, radius)


Step = Callable[[Forms], Forms]
"""Function from the forms in front of a layer to those behind it."""


def _steps(layers: tuple[Layer, ...]) -> Iterator[Step]:
    """Yield the layers as steps, each of which reads nothing but the forms that the step before it returns."""
    for layer in layers:
        match layer:
            case FeedForward(layers=chain, residual=False):
                yield from (partial(_affine, layer=affine) for affine in chain)
            case FeedForward(layers=chain):
                yield partial(_added, chain=chain)
            case Residual(blocks=blocks):
                yield from (partial(_block, block=block) for block in blocks)
            case Positions(W_pos=W_pos):
                yield partial(_moved, W_pos=W_pos)
            case _:
                raise AssertionError(f"{layer.name} is not token-wise")


def _affine(forms: Forms, layer: Affine) -> Forms:
    """Apply (W x + b)/2^shift, and the ReLU if the layer has one."""
    K, width = len(forms.low), len(layer.W)
    low, which = np.zeros((K, width), dtype=object), np.zeros((K, width), dtype=np.int64)
    high = low if forms.high is forms.low else low.copy()
    slopes = _Slopes(len(forms.slopes[0]))
    for unit, row in enumerate(layer.W):
        used = np.flatnonzero(row)
        w, bias = row[used], int(layer.b[unit]) << forms.exponent
        above, below = np.maximum(w, 0), np.minimum(w, 0)
        if high is low:
            low[:, unit] = forms.low[:, used] @ w + bias
        else:
            low[:, unit] = forms.low[:, used] @ above + forms.high[:, used] @ below + bias
            high[:, unit] = forms.high[:, used] @ above + forms.low[:, used] @ below + bias
        which[:, unit] = _slopes_of(w, forms.which[:, used], forms.slopes, slopes)
    result = replace(
        forms, low=low, high=high, which=which, slopes=slopes.different, exponent=forms.exponent + layer.shift
    )
    return _relu(result) if layer.relu else result


class _Slopes:
    """Distinct slopes, numbered; number 0 is the zero slope."""

    def __init__(self, dim: int) -> None:
        self.different: list[Integers] = [np.zeros(dim, dtype=object)]
        self.numbers: dict[tuple[int, ...], int] = {(0,) * dim: 0}

    def number(self, slope: Integers) -> int:
        """Return the number of a slope, which is added if it is new."""
        key = tuple(slope.tolist())
        if key not in self.numbers:
            self.numbers[key] = len(self.different)
            self.different.append(slope)
        return self.numbers[key]


def _slopes_of(w: Integers, which: Ids, before: list[Integers], slopes: _Slopes) -> Ids:
    """Return the slopes [K] of Σ_j w_j·(unit j), where unit j has the slope ``before[which[:, j]]``."""
    if not len(which) or not len(w):
        return np.zeros(len(which), dtype=np.int64)
    # Most units have the same slope on all balls; only the others have to be sorted into cases.
    varied = (which != which[0]).any(axis=0)
    first, cases = np.unique(which[:, varied], axis=0, return_index=True, return_inverse=True)[1:]
    numbers = []
    for ball in first:
        slope = np.zeros(len(before[0]), dtype=object)
        for weight, index in zip(w, which[ball], strict=True):
            if index:
                slope = slope + weight * before[index]
        numbers.append(slopes.number(slope))
    return np.array(numbers, dtype=np.int64)[cases.ravel()]


def _relu(forms: Forms) -> Forms:
    """Apply a ReLU: a unit keeps its form, becomes 0, or becomes an interval that begins at 0."""
    reach = forms.reaches()[forms.which]
    on, off = (forms.low >= reach).astype(np.bool_), (forms.high <= -reach).astype(np.bool_)
    low = np.where(on, forms.low, 0)
    # If no sign is in doubt, points stay points.
    if forms.high is forms.low and bool((on | off).all()):
        return replace(forms, low=low, high=low, which=np.where(on, forms.which, 0))
    high = np.where(on, forms.high, np.where(off, 0, forms.high + reach))
    return replace(forms, low=low, high=high, which=np.where(on, forms.which, 0))


def _beside(first: Forms, second: Forms) -> Forms:
    """Return the units of both, over one power of two."""
    exponent = max(first.exponent, second.exponent)
    lows, highs, slopes, whiches = [], [], [first.slopes[0]], []
    for forms in (first, second):
        more = exponent - forms.exponent
        lows.append(forms.low << more)
        highs.append(forms.high << more)
        whiches.append(np.where(forms.which == 0, 0, forms.which + len(slopes) - 1))
        slopes += [slope << more for slope in forms.slopes[1:]]
    low = np.concatenate(lows, axis=1)
    same = first.high is first.low and second.high is second.low
    high = low if same else np.concatenate(highs, axis=1)
    which = np.concatenate(whiches, axis=1)
    return replace(first, low=low, high=high, which=which, slopes=slopes, exponent=exponent)


def _added(forms: Forms, chain: tuple[Affine, ...]) -> Forms:
    """Return the output of a chain plus its input."""
    identity = np.eye(forms.low.shape[1], dtype=np.int64).astype(object)
    return _linear(_beside(forms, reduce(_affine, chain, forms)), np.concatenate([identity, identity], axis=1))


def _block(forms: Forms, block: Block) -> Forms:
    """Return Z + W_out relu(W_in Z + b_in)."""
    hidden = _affine(forms, Affine(block.W_in, block.b_in))
    identity = np.eye(forms.low.shape[1], dtype=np.int64).astype(object)
    return _linear(_beside(forms, hidden), np.concatenate([identity, block.W_out], axis=1))


def _linear(forms: Forms, W: Integers) -> Forms:
    """Return W Z."""
    return _affine(forms, Affine(W, np.zeros(len(W), dtype=object), relu=False))


def _moved(forms: Forms, W_pos: Integers) -> Forms:
    """Add every token's positional code."""
    added = W_pos[forms.places] << forms.exponent
    low = forms.low + added
    return replace(forms, low=low, high=low if forms.high is forms.low else forms.high + added)
