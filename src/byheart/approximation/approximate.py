"""Kajitsuka & Sato 2024, universal approximation, as a program: a function in, a Transformer close to it out.

**Theorem.** FFN · one attention layer · FFN approximates every continuous permutation-equivariant f on [0, 1]^{n×d} in
the distance d_p(f, g) = (∫ Σ_k |f(X)_k − g(X)_k|^p dX)^{1/p}, 1 ≤ p < ∞: quantise, and memorize the grid.

**Letters.** g cells per coordinate, M multisets of n of the g^d cells, ρ = 2^−k ramps, 2^−s the step between levels.

1. *Quantise*: coordinate x becomes its cell number g + ⌊g·x⌋, from g to 2g − 1 (x = 1 belongs to the last cell). With
   y = 2^k·g·x, two ReLUs at each inner boundary j = 1 … g − 1 make one step,
   relu(y − 2^k·j + 1) − relu(y − 2^k·j) = 0 for g·x ≤ j − ρ, 1 for g·x ≥ j, a ramp between. The ramp lies *below* the
   boundary, so that the boundary itself, which ⌊·⌋ counts to the upper cell, is right. All weights are integers.
2. *The grid task*: all M multisets of cells, one label per token, the level of f at the cells' centres.
3. *Memorize* it with any construction for vectors and one label per token; by default the softmax attention layer of
   the same paper. The grid is certified: on all M sequences every answer is right.
4. *Value*: clip the level to those that occur, and scale it: (lowest + level) / 2^s.

What is proved, and what measured. Off the ramps the network is the staircase of f by construction. On the ramps a
memorizing network may answer anything, so step 4 clips it (7 parameters in all): if f and the network are never further
apart than ``spread``, the ramps cost at most spread·(n·n·d·ρ)^{1/p}; k is chosen so that this is at most ε/1000.
How far f is from its staircase, and ``spread``, are *measured* on random points, as f is a black box. g is the
smallest number of cells (of 1, 2, …, 64, then about every 64th more) whose measured error, with three standard errors,
is below 0.97 ε. Not checked: continuity.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np

from byheart.approximation.functions import Target, check_equivariance
from byheart.approximation.measure import DistanceEstimate, check_p, distance, random_points
from byheart.certificates import Certificate, certify
from byheart.constructions import CONSTRUCTIONS, Built, build
from byheart.errors import BadInput
from byheart.networks import Account, count
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
from byheart.progress import Report
from byheart.tasks import SeqToSeq
from byheart.tasks.arrays import Floats
from byheart.tasks.distinct import distinct, first_positions

DEFAULT = "kajitsuka-sato-2024"
LARGEST_GRID = 200_000
"""Most sequences of a grid; fewer for constructions with units for every question, which certify slowly."""
_LARGEST_GRIDS = {DEFAULT: 10_000, "interpolate": 20_000}
RAMP_BITS = 8
"""Least k: cell numbers below 2^19, on ramps over points that are multiples of 2^−40, then fit floats."""
_LARGEST_INPUT = 256
_SAMPLES = 20_000
_ROOM = 0.97
_SURE = 3.0
_RAMP_SHARE = 1 / 1000
_ROUNDING_SHARE = 1 / 4


@dataclass(frozen=True)
class Design:
    """The choices made before anything is built, and the measurement behind them."""

    cells: int
    """g, cells per coordinate."""
    step_bits: int
    """s: levels are multiples of 2^−s."""
    ramp_bits: int
    """k: ramps are 2^−k of a cell wide."""
    ramps: float
    """Most that the ramps add to the error, by the measured spread."""
    expected: DistanceEstimate
    """The staircase's distance from the function, measured on random points, with three standard errors."""


@dataclass(frozen=True, eq=False)
class Approximation:
    """A network that approximates ``target``, with its parts and its certificate."""

    target: Target
    epsilon: float
    p: float
    design: Design
    task: SeqToSeq
    """The grid, memorized."""
    built: Built
    certificate: Certificate
    """Certificate that the memorizing part answers the whole grid right."""
    network: ExactNetwork
    account: Account

    def close(self, measured: DistanceEstimate) -> bool:
        """Return True if the grid is certified and the measured distance's upper limit plus the ramps is at most ε."""
        return self.certificate.certified and measured.high + self.design.ramps <= self.epsilon


def approximate(
    target: Target,
    *,
    length: int,
    epsilon: float,
    dim: int = 1,
    p: float = 2.0,
    construction: str = DEFAULT,
    seed: int = 0,
    report: Report | None = None,
) -> Approximation:
    """Build a network within ``epsilon`` of ``target`` in d_p on sequences of ``length`` tokens in [0, 1]^``dim``.

    >>> from byheart.approximation import find
    >>> made = approximate(find("rank"), length=3, epsilon=0.1)
    >>> made.design.cells, made.task.size.examples, made.account.dense, made.certificate.certified
    (5, 35, 481, True)
    """
    check_sizes(length, dim, epsilon, construction, seed)
    check_p(p)
    tell: Report = report or (lambda *_: None)
    tell(0, 3, "choosing the grid")
    check_equivariance(target, length, dim, np.random.default_rng([seed, 1]))
    largest = _LARGEST_GRIDS.get(construction, LARGEST_GRID)
    design = choose(target, length=length, dim=dim, epsilon=epsilon, p=p, seed=seed, largest=largest)
    task, lowest = grid_task(target, design, length=length, dim=dim)
    tell(1, 3, f"memorizing {task.size.examples:,} sequences")
    built = build(construction, task, seed=seed)
    tell(2, 3, f"certifying {task.size.examples:,} sequences")
    certificate = certify(built.network, task)
    assert isinstance(built.network, ExactNetwork)
    layers = (
        quantise(design.cells, dim, design.ramp_bits),
        *built.network.layers,
        _value(task.label_count, lowest, design.step_bits),
    )
    network = ExactNetwork(layers, inputs="vectors", outputs="every", length=length, dim=dim)
    return Approximation(target, epsilon, p, design, task, built, certificate, network, count(network))


def choose(
    target: Target, *, length: int, dim: int, epsilon: float, p: float, seed: int = 0, largest: int = LARGEST_GRID
) -> Design:
    """Choose the smallest grid that is fine enough on random points, which are not those of :func:`measure`."""
    points = random_points(_SAMPLES, length, dim, np.random.default_rng([seed, 2]))
    values = target(points)
    s = -math.floor(math.log2(2 * _ROUNDING_SHARE * epsilon / length ** (1 / p)))
    cells, expected = 0, None
    for cells in _candidates():
        if grid_size(cells, length, dim) > largest:
            break
        staircase = _rounded(target(centres(numbers(points, cells), cells)), s) * 2.0**-s
        spread = float(max(values.max(), staircase.max()) - min(values.min(), staircase.min()))
        k = _ramp_bits(spread * (length * length * dim) ** (1 / p) / (_RAMP_SHARE * epsilon), p)
        ramps = spread * (length * length * dim * 2.0**-k) ** (1 / p)
        expected = distance(values - staircase, p, z=_SURE)
        if expected.high + ramps <= _ROOM * epsilon:
            return Design(cells, s, k, ramps, expected)
    reached = "" if expected is None else f"; one step coarser the measured error is {expected.error:.3g}"
    further = f", or a construction that goes further (kajitsuka-sato-2025: {LARGEST_GRID:,})"
    hint = "" if largest == LARGEST_GRID else further
    raise BadInput(
        f"{target.name}: epsilon {epsilon:g} takes {cells} cells per coordinate or more, which makes "
        f"{grid_size(cells, length, dim):,} sequences; expected at most {largest:,}{reached}; "
        f"use a larger epsilon, a smaller length or a smaller dim{hint}"
    )


def grid_task(target: Target, design: Design, *, length: int, dim: int) -> tuple[SeqToSeq, int]:
    """Return all multisets of cells, labelled by the levels at their centres, and the lowest level, label 0."""
    vectors = grid(design.cells, length, dim)
    levels = _rounded(target(centres(vectors, design.cells)), design.step_bits)
    # Equal tokens have equal values, but a sum in another order may round to another level: the first one counts.
    ids = distinct(vectors.reshape(-1, dim)).ids.reshape(-1, length)
    levels = np.take_along_axis(levels, first_positions(ids, np.arange(len(ids))), axis=1)
    lowest = int(levels.min())
    labels = (levels - lowest).astype(np.int64)
    return SeqToSeq(vectors=vectors, labels=labels, label_count=int(labels.max()) + 1), lowest


def check_sizes(length: int, dim: int, epsilon: float, construction: str, seed: int) -> None:
    """Raise BadInput for sizes that no approximation can have."""
    for name, value in (("length", length), ("dim", dim)):
        if value < 1:
            raise BadInput(f"{name} is {value}; expected 1 or more")
    if length * dim > _LARGEST_INPUT:
        raise BadInput(f"length × dim is {length * dim}; expected at most {_LARGEST_INPUT} numbers per sequence")
    if not 1e-100 <= epsilon <= 1e100:
        raise BadInput(f"epsilon is {epsilon}; expected a positive number, the largest distance allowed")
    if seed < 0:
        raise BadInput(f"seed is {seed}; expected 0 or more")
    able = [name for name, known in CONSTRUCTIONS.items() if "seq-to-seq" in known.covers]
    if construction not in able:
        raise BadInput(f"{construction!r} does not memorize one label per token of vectors; expected {', '.join(able)}")


def _candidates() -> Iterator[int]:
    """Yield 1, 2, …, 64, then larger numbers in steps of about 1/64, since the error need not fall at each."""
    cells = 1
    while True:
        yield cells
        cells += max(1, cells // 64)


def _rounded(values: Floats, step_bits: int) -> Floats:
    """Round to multiples of 2^−s; return the factors."""
    return np.rint(values * 2.0**step_bits)


def _ramp_bits(factor: float, p: float) -> int:
    """Return the least k ≥ RAMP_BITS with factor·2^(−k/p) ≤ 1."""
    return max(RAMP_BITS, math.ceil(p * math.log2(factor))) if factor > 0 else RAMP_BITS


def _value(labels: int, lowest: int, step_bits: int) -> FeedForward:
    """Return the layer that maps a level to (lowest + the level, clipped to 0 … labels − 1) / 2^s."""
    clip = Affine(integers([[1], [1]]), integers([0, 1 - labels]), role="clip")
    scale = 1 << max(0, -step_bits)
    W, b = integers([[scale, -scale]]), integers([scale * lowest])
    value = Affine(W, b, shift=max(0, step_bits), relu=False, role="scale")
    return FeedForward((clip, value), name="value")


def quantise(cells: int, dim: int, ramp_bits: int) -> FeedForward:
    """Return the layer that maps each of ``dim`` coordinates to its cell number, with ramps of 2^−``ramp_bits`` cells.

    >>> from byheart.networks.exact import ExactNetwork
    >>> from byheart.networks.exact.evaluate import evaluate
    >>> network = ExactNetwork((quantise(4, 1, 10),), inputs="vectors", outputs="every", length=3)
    >>> evaluate(network, np.array([[[0.0], [0.7], [1.0]], [[0.25], [0.25 - 2**-12], [0.25 - 2**-13]]])).tolist()
    [[4, 6, 7], [5, 4, Fraction(9, 2)]]
    """
    if cells == 1:
        always = Affine(integers([[0] * dim] * dim), integers([1] * dim), relu=False, role="only_cell")
        return FeedForward((always,), name="quantise")
    steps = 2 * (cells - 1)
    slopes, biases = np.zeros((dim * steps, dim), object), np.zeros(dim * steps, object)
    sums = np.zeros((dim, dim * steps), object)
    for axis in range(dim):
        for j in range(1, cells):
            row = axis * steps + 2 * (j - 1)
            slopes[row : row + 2, axis] = cells << ramp_bits
            biases[row], biases[row + 1] = 1 - (j << ramp_bits), -(j << ramp_bits)
            sums[axis, row], sums[axis, row + 1] = 1, -1
    ramps = Affine(integers(slopes), integers(biases), role="ramps")
    cell = Affine(integers(sums), integers([cells] * dim), relu=False, role="cell")
    return FeedForward((ramps, cell), name="quantise")


def numbers(points: Floats, cells: int) -> Floats:
    """Return the cell numbers of ``points``, as :func:`quantise` gives them off the ramps."""
    return cells + np.minimum(np.floor(points * cells), cells - 1.0)


def centres(numbers: Floats, cells: int) -> Floats:
    """Return the centres of the cells with these numbers."""
    return (numbers - cells + 0.5) / cells


def grid_size(cells: int, length: int, dim: int) -> int:
    """Count the multisets of ``length`` cells out of ``cells``^``dim``."""
    return math.comb(cells**dim + length - 1, length)


def grid(cells: int, length: int, dim: int) -> Floats:
    """Return all multisets of cells, each once, as sequences of cell numbers: [M, n, d]."""
    table = np.array(list(product(range(cells, 2 * cells), repeat=dim)), np.float64)
    chosen = list(combinations_with_replacement(range(len(table)), length))
    return np.asarray(table[np.array(chosen)], np.float64)
