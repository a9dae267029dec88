"""One indicator a point: exactly 1 on the whole ball around it, exactly 0 on the balls around all others.

**Statement.** K points of R^D, any two at least δ apart, and a radius R < δ/2. For point i let U_i be directions such
that every other point j has a u ∈ U_i with u·(x_j − x_i) > 2R‖u‖. Then

    relu(1 − s·Σ_{u ∈ U_i} relu(u·(x − x_i) − R‖u‖)),   s large,

is 1 for ‖x − x_i‖ ≤ R, where no inner term is positive, and 0 for ‖x − x_j‖ ≤ R, where u's term is at least
u·(x_j − x_i) − 2R‖u‖ > 0. The direction u = x_j − x_i always does it for j, so U_i exists; one that points towards many
others at once does it for all of them. In high dimension two or three are often enough.

**Network.** A chain carries x, and T points at a time: a layer with their inner terms, a layer with their indicators,
whose hashes are added up. With T = 1 that is about 2m(m + |U|) parameters a point; with T of about m/√|U|, the best,
about 2m(|U| + 2√|U| + 1). Kim, Moon & Yun 2025 prove Õ(N·D²) in all; this is not more unless more than D directions
are needed, and less where a few do.

**Fewer dimensions.** An orthonormal projection to m < D dimensions moves no ball farther, and keeps a separation of
about δ·√(m/D)·K^(−2/m): for smaller radii the chain carries m numbers only.

Points that need not be told from each other have no indicator: they are read as 0. In exact arithmetic, with units so
small that s = 1: distances are integers of units, R is 2^30 of them.
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
"""The radius is 2^this many units."""
_ENTRY_BITS = 30
_MOST_BITS = 500
"""Of a coordinate in these units: squares have to be floats."""
"""Of the projection's weights."""
_DIRECTION_BITS = 24
"""Of a direction's entries, without sign."""
_PROJECTIONS = 8
"""Random projections of which the best is taken."""
_STEPS = 8
"""Towards a direction that covers more points."""
_FEWEST = 4
"""Parameters that a point takes at least."""
_SLACK = 1e-9
"""Relative; float64 sums of a thousand products are a thousand times better."""


@dataclass(frozen=True)
class Balls:
    """The sizes: ``dim`` coordinates, ``kept`` of them carried along, directions of every point, points at a time."""

    dim: int
    kept: int
    directions: tuple[int, ...]
    together: int

    ratio = 1

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The directions of the points that are handled together."""
        return [self.directions[i : i + self.together] for i in range(0, len(self.directions), self.together)]

    @property
    def shapes(self) -> tuple[tuple[str, int, int], ...]:
        """The projection, two layers for every group, and the hash."""
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
        """Parameters."""
        return sum(outputs * (inputs + 1) for _, outputs, inputs in self.shapes)


@dataclass(frozen=True, eq=False)
class Projection:
    """y = (W x + b)/2^shift, never negative on a ball, and where it takes the points, to the next unit below."""

    W: Integers
    b: Integers
    shift: int
    images: Floats
    moved: Floats
    """[m, D]: u·moved is what u·y changes by if x moves by one radius along each coordinate."""

    @property
    def layer(self) -> Affine:
        """The layer that computes it."""
        return Affine(integers(self.W), integers(self.b), shift=self.shift, role="project")


@dataclass(frozen=True, eq=False)
class BallReader:
    """The directions that were found: for every coded point, rows over the projection's outputs and their biases."""

    points: Points
    front: Balls
    radius: float
    projection: Projection
    outside: tuple[tuple[Integers, Integers], ...]

    @property
    def chosen(self) -> dict[str, object]:
        """The radius, and how it was reached."""
        sizes = f"{len(self.outside)} indicators in {self.front.kept} dimensions"
        return {"radius": self.radius, "balls": f"{sizes}, {sum(self.front.directions)} directions"}

    def draw(self, Q: int, rng: np.random.Generator) -> tuple[Ids, list[Affine]]:
        """A number uniform below Q for every coded point, 0 for the others."""
        codes = rng.integers(0, Q, size=len(self.outside))
        sums = np.zeros(len(self.points.points), dtype=np.int64)
        sums[self.points.coded] = codes
        return sums, self.layers(codes)

    def layers(self, codes: Ids) -> list[Affine]:
        """From the coordinates to the code of the ball that they are in."""
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
            found = codes[begin : begin + T].astype(object) @ units[len(passing) :]
            collected = (found + units[len(passing) - 1] if len(collected) else found)[None]
            carried = units[:m]
        return [*layers, Affine(integers(collected), integers([0]), role="hash")]


def fewest(points: Points) -> int:
    """No such front has fewer parameters."""
    return _FEWEST * len(points.coded)


def find_balls(points: Points, radius: float, rng: np.random.Generator) -> list[BallReader]:
    """The smallest front of those that keep few dimensions; none if the radius is too close to δ/2 for the units."""
    found: list[BallReader] = []
    for kept in _dimensions(points.dim):
        projection = _best_projection(points, radius, kept, rng)
        outside = _outside(points, radius, projection)
        if outside is not None:
            directions = tuple(len(bias) for _, bias in outside)
            most = min(len(directions), 4 * kept + 4)
            sizes = (Balls(points.dim, kept, directions, together) for together in range(1, most + 1))
            front = min(sizes, key=lambda one: one.dense)
            found.append(BallReader(points, front, radius, projection, tuple(outside)))
    return sorted(found, key=lambda one: one.front.dense)[:1]


def _dimensions(dim: int) -> list[int]:
    """Numbers of dimensions to try: 1, 2, 3, 4, 6, 8, 12, …, and all."""
    tried = sorted({*range(1, 4), *(2**k for k in range(2, 20)), *(3 * 2**k for k in range(1, 20))})
    return [m for m in tried if m < dim] + [dim]


def _best_projection(points: Points, radius: float, kept: int, rng: np.random.Generator) -> Projection:
    """Of a few random ones, that which keeps the points farthest apart; all coordinates are kept as they are."""
    if kept == points.dim:
        return _projection(points, radius, np.eye(kept))
    scaled = points.points / (float(np.abs(points.points).max()) or 1.0)
    drawn = [np.linalg.qr(rng.standard_normal((points.dim, kept)))[0].T for _ in range(_PROJECTIONS)]
    return _projection(points, radius, max(drawn, key=lambda rows: _separation(scaled @ rows.T, points.coded)))


def _separation(images: Floats, coded: Ids) -> float:
    """The smallest distance of a coded point to another, squared."""
    norms = np.einsum("km,km->k", images, images)
    smallest = math.inf
    for i in coded:
        distances = norms + norms[i] - 2 * (images @ images[i])
        distances[i] = math.inf
        smallest = min(smallest, float(distances.min()))
    return smallest


def _projection(points: Points, radius: float, rows: Floats) -> Projection:
    """The projection to the dimensions of ``rows`` [m, D], in units of 2^−_RESOLUTION radii."""
    fraction, exponent = math.frexp(radius)
    # A radius is fraction·2^exponent, so y = x·2^_RESOLUTION/R asks for entries over fraction, and for this shift.
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
    """Directions and biases for every coded point, or None if some point cannot be told from its nearest."""
    result = []
    for i in points.coded:
        others = np.delete(projection.images, i, axis=0) - projection.images[i]
        directions = _cover(others, projection, points)
        if directions is None:
            return None
        result.append((directions, _biases(points, Fraction(radius), projection, directions, int(i))))
    return result


def _cover(others: Floats, projection: Projection, points: Points) -> Integers | None:
    """Directions [|U|, m], each of which is far enough outside for some of ``others`` [K − 1, m], together for all."""
    # Images are rounded down to units, and beyond 2^53 to floats.
    rounding = 2 + 2.0**-52 * float(projection.images.max())
    found, left = [], others
    while len(left):
        best, covered = None, np.zeros(len(left), dtype=np.bool_)
        for u in _candidates(left, points.blocks):
            reach = float(np.linalg.norm((u @ projection.moved).reshape(points.blocks, -1), axis=1).sum())
            # Two units more: one that biases are rounded by, one that an indicator needs to be 0.
            far = left @ u - 2 * reach >= 2 * rounding * np.abs(u).sum() + _SLACK * reach + 2
            if far.sum() > covered.sum():
                best, covered = u, far
        if best is None:
            return None
        found.append([int(entry) for entry in best])
        left = left[~covered]
    return integers(found)


def _candidates(others: Floats, blocks: int) -> Iterator[Floats]:
    """Directions that may be far outside for many of ``others``, and one that is for the nearest if any is.

    The first is their mean; each further one gives more weight to the point that its predecessor leaves nearest.
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
    """Integers of _DIRECTION_BITS bits in about this direction; 0 if it is none."""
    largest = float(np.abs(direction).max())
    return np.rint(direction / (largest or 1.0) * 2.0**_DIRECTION_BITS)


def _biases(points: Points, R: Fraction, projection: Projection, directions: Integers, i: int) -> Integers:
    """For every direction the bias that makes its term 0 on the whole ball around point ``i``, exactly."""
    X, t = points.exact
    y = projection.W @ X[i] + (projection.b << t)
    scale = 1 << projection.shift
    ends = (Fraction(int(u @ y), scale << t) + R * points.reach(u @ projection.W) / scale for u in directions)
    return integers([-math.ceil(end) for end in ends])
