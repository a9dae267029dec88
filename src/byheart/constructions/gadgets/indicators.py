"""One indicator per point: exactly 1 on the whole ball around the point, exactly 0 on the balls around all others.

**Statement.** Let K points of R^D be pairwise at least δ apart, and let R < δ/2 be a radius. For point i let U_i be a
set of directions such that every other point j has a u ∈ U_i with u·(x_j − x_i) > 2R‖u‖. Then

    relu(1 − s·Σ_{u ∈ U_i} relu(u·(x − x_i) − R‖u‖)),   s large,

is 1 for ‖x − x_i‖ ≤ R, where no inner term is positive, and 0 for ‖x − x_j‖ ≤ R, where u's term is at least
u·(x_j − x_i) − 2R‖u‖ > 0. The direction u = x_j − x_i always covers j, so U_i exists. A direction towards many points
at once covers all of them. In high dimension two or three directions are often enough.

**Network.** A chain of layers carries x and handles T points at a time, with a layer for their inner terms and a layer
for their indicators, whose hashes are added up. With T = 1 a point takes about 2m(m + |U|) parameters; with T of about
m/√|U|, the best choice, about 2m(|U| + 2√|U| + 1). Kim, Moon & Yun 2025 prove Õ(N·D²) in all. This network is larger
only if it needs more than D directions, and smaller if a few are enough.

**Fewer dimensions.** An orthonormal projection to m < D dimensions moves no ball farther, and keeps a separation of
about δ·√(m/D)·K^(−2/m). So for smaller radii the chain carries only m numbers.

Points that need not be told from each other have no indicator, and are read as 0. The arithmetic is exact, in units so
small that s = 1: distances are integer numbers of units, and R is 2^30 units.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from byheart.constructions.gadgets.vectors import Points
from byheart.errors import BadInput
from byheart.networks.exact import Affine, Integers, integers
from byheart.tasks.arrays import Floats, Ids

_RESOLUTION = 30
"""Binary logarithm of the number of units in the radius."""
_ENTRY_BITS = 30
"""Number of bits of the projection's weights."""
_MOST_BITS = 500
"""Largest number of bits of a coordinate in units, because squares have to be floats."""
_DIRECTION_BITS = 24
"""Number of bits of a direction's entries, without sign."""
_PROJECTIONS = 8
"""Number of random projections to choose from."""
_STEPS = 8
"""Number of steps towards a direction that covers more points."""
_FEWEST = 4
"""Smallest number of parameters per point."""
_SLACK = 1e-9
"""Relative tolerance for rounding; float64 sums of a thousand products are a thousand times more accurate."""


@dataclass(frozen=True)
class Balls:
    """Sizes of a reader by indicators.

    The points have ``dim`` coordinates, of which a projection keeps ``kept``. ``directions`` holds each point's number
    of directions, and ``together`` points share their layers.
    """

    dim: int
    kept: int
    directions: tuple[int, ...]
    together: int

    ratio = 1

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Numbers of directions of the points that share their layers."""
        return [self.directions[i : i + self.together] for i in range(0, len(self.directions), self.together)]

    @property
    def shapes(self) -> tuple[tuple[str, int, int], ...]:
        """Shapes of the projection, of two layers per group, and of the hash."""
        layers, inputs = [("project", self.kept, self.dim)], self.kept
        groups = self.groups
        for index, group in enumerate(groups):
            carried = (self.kept if index < len(groups) - 1 else 0) + (index > 0)
            layers += [
                ("outside", carried + sum(group), inputs),
                ("inside", carried + len(group), carried + sum(group)),
            ]
            inputs = carried + len(group)
        return (*layers, ("hash", 1, inputs))

    @property
    def dense(self) -> int:
        """Number of parameters."""
        return sum(outputs * (inputs + 1) for _, outputs, inputs in self.shapes)


@dataclass(frozen=True, eq=False)
class Projection:
    """A projection y = (W x + b)/2^shift, which is never negative on a ball."""

    W: Integers
    b: Integers
    shift: int
    images: Floats
    """Images of the points [K, m], rounded down to whole units."""
    moved: Floats
    """Changes of y [m, D] if x moves by one radius along each coordinate."""

    @property
    def layer(self) -> Affine:
        """Layer that computes y."""
        return Affine(integers(self.W), integers(self.b), shift=self.shift, role="project")


@dataclass(frozen=True, eq=False)
class BallReader:
    """A reader of vectors by indicators, with the directions that a search found."""

    points: Points
    front: Balls
    radius: float
    projection: Projection
    outside: tuple[tuple[Integers, Integers], ...]
    """Directions of each coded point, as rows over the projection's outputs, and their biases."""

    @property
    def chosen(self) -> dict[str, object]:
        """Radius, dimensions and number of directions, for the record."""
        sizes = f"{len(self.outside)} indicators in {self.front.kept} dimensions"
        return {"radius": self.radius, "balls": f"{sizes}, {sum(self.front.directions)} directions"}

    def draw(self, Q: int, rng: np.random.Generator) -> tuple[Ids, list[Affine]]:
        """Draw a code uniformly below Q for each coded point; return each point's code or 0 [K], and the layers."""
        codes = rng.integers(0, Q, size=len(self.outside))
        sums = np.zeros(len(self.points.points), dtype=np.int64)
        sums[self.points.coded] = codes
        return sums, self.layers(codes)

    def layers(self, codes: Ids) -> list[Affine]:
        """Build the layers from a vector's coordinates to the code of the ball that it lies in."""
        m, T = self.front.kept, self.front.together
        layers = [self.projection.layer]
        carried, collected = np.eye(m, dtype=object), np.zeros((0, m), dtype=object)
        for begin in range(0, len(codes), T):
            group, last = self.outside[begin : begin + T], begin + T >= len(codes)
            passing = collected if last else np.concatenate([carried, collected])
            terms = np.concatenate([rows @ carried for rows, _ in group])
            biases = np.concatenate([bias for _, bias in group])
            zeros = np.zeros(len(passing), dtype=object)
            rows = np.concatenate([passing, terms])
            layers.append(Affine(integers(rows), integers(np.concatenate([zeros, biases])), role="outside"))
            inside = np.zeros((len(passing) + len(group), len(rows)), dtype=object)
            inside[: len(passing), : len(passing)] = np.eye(len(passing), dtype=object)
            place = len(passing)
            for row, (_, bias) in enumerate(group, start=len(passing)):
                inside[row, place : place + len(bias)] = -1
                place += len(bias)
            ones = np.array([1] * len(group), dtype=object)
            layers.append(Affine(integers(inside), integers(np.concatenate([zeros, ones])), role="inside"))
            units = np.eye(len(inside), dtype=object)
            code = codes[begin : begin + T].astype(object) @ units[len(passing) :]
            collected = (code + units[len(passing) - 1] if len(collected) else code)[None]
            carried = units[:m]
        return [*layers, Affine(integers(collected), integers([0]), role="hash")]


def fewest(points: Points) -> int:
    """Return a lower bound on the number of parameters of a front of indicators."""
    return _FEWEST * len(points.coded)


def find_balls(points: Points, radius: float, rng: np.random.Generator) -> list[BallReader]:
    """Return the smallest reader among those of several dimensions; no reader if the radius is too close to δ/2."""
    readers: list[BallReader] = []
    for kept in _dimensions(points.dim):
        projection = _best_projection(points, radius, kept, rng)
        outside = _outside(points, radius, projection)
        if outside is not None:
            directions = tuple(len(bias) for _, bias in outside)
            most = min(len(directions), 4 * kept + 4)
            sizes = (Balls(points.dim, kept, directions, together) for together in range(1, most + 1))
            front = min(sizes, key=lambda size: size.dense)
            readers.append(BallReader(points, front, radius, projection, tuple(outside)))
    return sorted(readers, key=lambda reader: reader.front.dense)[:1]


def _dimensions(dim: int) -> list[int]:
    """Return the numbers of dimensions to try: 1, 2, 3, 4, 6, 8, 12, …, and all."""
    tried = sorted({*range(1, 4), *(2**k for k in range(2, 20)), *(3 * 2**k for k in range(1, 20))})
    return [m for m in tried if m < dim] + [dim]


def _best_projection(points: Points, radius: float, kept: int, rng: np.random.Generator) -> Projection:
    """Return the random projection, out of a few, that keeps the points farthest apart; the identity for all D."""
    if kept == points.dim:
        return _projection(points, radius, np.eye(kept))
    scaled = points.points / (float(np.abs(points.points).max()) or 1.0)
    drawn = [np.linalg.qr(rng.standard_normal((points.dim, kept)))[0].T for _ in range(_PROJECTIONS)]
    return _projection(points, radius, max(drawn, key=lambda rows: _separation(scaled @ rows.T, points.coded)))


def _separation(images: Floats, coded: Ids) -> float:
    """Return the smallest distance of a coded point to another point, squared."""
    norms = np.einsum("km,km->k", images, images)
    smallest = math.inf
    for i in coded:
        distances = norms + norms[i] - 2 * (images @ images[i])
        distances[i] = math.inf
        smallest = min(smallest, float(distances.min()))
    return smallest


def _projection(points: Points, radius: float, rows: Floats) -> Projection:
    """Return the projection to the dimensions of ``rows`` [m, D], in units of 2^−_RESOLUTION radii."""
    fraction, exponent = math.frexp(radius)
    # A radius is fraction·2^exponent, so y = x·2^_RESOLUTION/R needs entries divided by fraction, and this shift.
    entries = np.rint(rows * (2.0**_ENTRY_BITS / fraction))
    shift = _ENTRY_BITS - _RESOLUTION + exponent
    scale = max(0, -shift)
    W = integers([[int(w) << scale for w in row] for row in entries.tolist()])
    shift, (X, t) = shift + scale, points.exact
    along, R = X @ W.T, Fraction(radius)
    b = integers([-(int(along[:, k].min()) >> t) + math.ceil(R * points.reach(W[k])) for k in range(len(W))])
    images = (along + (b << t)) >> (shift + t)
    if max(int(image).bit_length() for image in images.ravel()) > _MOST_BITS:
        raise BadInput(f"radius is {radius!r}, which is too small beside the points; expected a larger one, or none")
    return Projection(W, b, shift, images.astype(np.float64), entries * (fraction * 2.0 ** (_RESOLUTION - _ENTRY_BITS)))


def _outside(points: Points, radius: float, projection: Projection) -> list[tuple[Integers, Integers]] | None:
    """Return directions and biases for each coded point; None if a point cannot be told from its nearest."""
    result = []
    for i in points.coded:
        others = np.delete(projection.images, i, axis=0) - projection.images[i]
        directions = _cover(others, projection, points)
        if directions is None:
            return None
        result.append((directions, _biases(points, Fraction(radius), projection, directions, int(i))))
    return result


def _cover(others: Floats, projection: Projection, points: Points) -> Integers | None:
    """Return directions [|U|, m] that together cover all ``others`` [K − 1, m]; None if some point stays uncovered."""
    # Images are rounded down to units, and beyond 2^53 to floats.
    rounding = 2 + 2.0**-52 * float(projection.images.max())
    directions, left = [], others
    while len(left):
        best, covered = None, np.zeros(len(left), dtype=np.bool_)
        for u in _candidates(left, points.blocks):
            reach = float(np.linalg.norm((u @ projection.moved).reshape(points.blocks, -1), axis=1).sum())
            # Two more units: one for the rounding of the biases, one that an indicator needs to be 0.
            far = left @ u - 2 * reach >= 2 * rounding * np.abs(u).sum() + _SLACK * reach + 2
            if far.sum() > covered.sum():
                best, covered = u, far
        if best is None:
            return None
        directions.append([int(entry) for entry in best])
        left = left[~covered]
    return integers(directions)


def _candidates(others: Floats, blocks: int) -> Iterator[Floats]:
    """Yield directions that may cover many of ``others``, and one that covers the nearest if any direction does.

    The first direction is the mean. Each further one gives more weight to the point that its predecessor leaves
    nearest.
    """
    lengths = np.linalg.norm(others, axis=1)
    units = others / np.maximum(lengths, 1.0)[:, None]
    mean = units.mean(axis=0)
    for step in range(_STEPS):
        yield _whole(mean)
        mean = mean + units[int(np.argmin(others @ mean))] / (step + 2)
    nearest = others[int(lengths.argmin())]
    yield _whole(nearest)
    if blocks > 1 and len(nearest) % blocks == 0:
        parts = nearest.reshape(blocks, -1)
        farthest = np.linalg.norm(parts, axis=1).argmax()
        yield _whole(np.where(np.arange(blocks)[:, None] == farthest, parts, 0.0).ravel())


def _whole(direction: Floats) -> Floats:
    """Return about the same direction with integers of _DIRECTION_BITS bits; 0 for the zero vector."""
    largest = float(np.abs(direction).max())
    return np.rint(direction / (largest or 1.0) * 2.0**_DIRECTION_BITS)


def _biases(points: Points, R: Fraction, projection: Projection, directions: Integers, i: int) -> Integers:
    """Return each direction's bias, which makes its term exactly 0 on the whole ball around point ``i``."""
    X, t = points.exact
    y = projection.W @ X[i] + (projection.b << t)
    scale = 1 << projection.shift
    ends = (Fraction(int(u @ y), scale << t) + R * points.reach(u @ projection.W) / scale for u in directions)
    return integers([-math.ceil(end) for end in ends])
