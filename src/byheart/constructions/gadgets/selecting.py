"""Find the group that a key belongs to: three ways to look up one word per group.

**Task.** There are g groups; group i > 0 begins at the key t_i, with t_1 < t_2 < …. Group i has the number κ_i of its
first entry, κ_i < C(P + 1), and an integer 0 ≤ q_i ≤ 2^top. For a key z ∈ [0, P] let i be the last group with t_i ≤ z
(0 if there is none). A selection computes e = max(C·z + C − κ_i, 0) and q_i (+ z if the key is passed on), in the four
units e, relu(e − 1), relu(e − C), q that :mod:`.gadgets.lookup` reads.

**A step** [z ≥ t] is relu(z − t + 1) − relu(z − t), exactly, because z is an integer.

================  =====================  ===================  ==================================================
selection         width                  layers               parameters per group
================  =====================  ===================  ==================================================
:class:`Wide`     2g − 1                 2                    8
:class:`Chain`    2k + 1 (4 behind it)   g/k                  12 for k = 1, the default
:class:`Squares`  3k + 2                 2g/k²                18, up to O(1/k)
================  =====================  ===================  ==================================================

**Words.** Chains and squares look up κ and q of a group in one word, which is then unpacked.

1. The word of group i is w_i = 2^(top+1)·(C(P + 1) − κ_i) + q_i ≥ 0.
2. Let X = w_i + 2^(top+1)·C(z + 1) (+ z if the key is passed on). The part of X above bit top + 1 is
   U = C(P + 1) + C·z + C − κ_i ∈ [1, 2C(P + 1)], and the part below is q ≤ 2^top.
3. The triangle wave of period 2^(top+1) (:mod:`.gadgets.modular_hash`) ignores 2^(top+1)·U, so it returns q.
4. One unit carries X beside the wave, and then e = relu((X − q)/2^(top+1) − C(P + 1)).

Folding bit by bit takes 12 parameters for each bit of 2C(P + 1), once for all groups. If there is nothing to unpack (no
slots, and the key is not passed on), q is 0, and e is computed from X without folds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeAlias, TypeVar

from byheart.constructions.gadgets.modular_hash import wave, wave_shapes
from byheart.networks.exact import Affine, integers
from byheart.tasks.arrays import Ids

Count = TypeVar("Count", int, Ids)
Shapes: TypeAlias = list[tuple[str, int, int]]
"""Layers as (role, outputs, inputs)."""
READ = 4
"""Number of units behind any selection: e, relu(e − 1), relu(e − C) and q."""


class SelectionSizes(Protocol):
    """Sizes of the lookup that a selection belongs to."""

    @property
    def labels(self) -> int:
        """Number of labels, C."""

    @property
    def largest(self) -> int:
        """Largest key, P: keys are 0 to P."""

    @property
    def top(self) -> int:
        """Exponent of the bound 2^top on the groups' integers."""

    @property
    def own_bits(self) -> int:
        """Number of bits for the key itself; 0 if the key is not passed on."""

    @property
    def slots(self) -> int:
        """Number of entries of a group behind its first one."""

    @property
    def fold_bits(self) -> int:
        """Number of bits that one layer folds away."""


@dataclass(frozen=True)
class Groups:
    """The groups of one task: the keys where all but the first begin, the κ of their first entries, their integers."""

    thresholds: list[int]
    first: list[int]
    packed: list[int]


@dataclass(frozen=True)
class Wide:
    """All steps in one layer, and two sums of them in the next: the fewest parameters."""

    def spare_bits(self, sizes: SelectionSizes) -> int:
        """Return the number of bits beyond ``top`` that a weight may have, sign included."""
        return 3

    def depth(self, groups: Count) -> Count:
        """Count the layers in front of *read*."""
        return 0 * groups + 2

    def unpacking(self, sizes: SelectionSizes) -> int:
        """Count the layers that unpack words: there are no words."""
        return 0

    def shapes(self, sizes: SelectionSizes, groups: int) -> Shapes:
        """Return the shapes of :meth:`layers`."""
        steps = 2 * (groups - 1) + 1
        return [("steps", steps, 1), ("groups", 2, steps), ("read", READ, 2)]

    def layers(self, sizes: SelectionSizes, groups: Groups) -> list[Affine]:
        """Build the layers from z to e, relu(e − 1), relu(e − C) and q."""
        return [_steps(groups.thresholds), _groups(sizes, groups), _read(sizes)]


@dataclass(frozen=True)
class Chain:
    """Constant width: a chain of narrow layers that look at ``steps`` groups each.

    1. A layer has k steps and an accumulator: 2k + 1 units, and 4 behind the chain.
    2. Its thresholds are reached from relu(z − t), where t is the last threshold of the layer before, because
       relu(relu(z − t) − (t' − t)) = relu(z − t') for t' ≥ t. So z itself need not be kept.
    3. The accumulator is X for the groups compared so far, w_0 + Σ_j (w_j − w_(j−1))·[z ≥ t_j] + 2^(top+1)·C(z + 1).
       It is the X of the last of these groups that z reaches; it is never negative, so its ReLU changes nothing.

    With k = 1 a layer has three units, 12 parameters per group.
    """

    steps: int = 1

    @property
    def groups_per_layer(self) -> float:
        """Number of groups per layer if there are many groups."""
        return self.steps

    def spare_bits(self, sizes: SelectionSizes) -> int:
        """Return the number of bits beyond ``top`` that a weight may have, sign included."""
        return _word_spare_bits(sizes)

    def depth(self, groups: Count) -> Count:
        """Count the layers in front of those that unpack."""
        return -(-(groups - 1) // self.steps)

    def unpacking(self, sizes: SelectionSizes) -> int:
        """Count the layers that unpack words."""
        return _unpacking_depth(sizes)

    def shapes(self, sizes: SelectionSizes, groups: int) -> Shapes:
        """Return the shapes of :meth:`layers`."""
        shapes, inputs = [], 1
        for done in range(0, groups - 1, self.steps):
            units = 2 * min(self.steps, groups - 1 - done) + 1
            shapes.append(("step", units, inputs))
            inputs = units
        return [*shapes, *_unpack_shapes(sizes, inputs)]

    def layers(self, sizes: SelectionSizes, groups: Groups) -> list[Affine]:
        """Build the layers from z to e, relu(e − 1), relu(e − C) and q."""
        words = _words(sizes, groups)
        jumps = [after - before for before, after in pairwise(words)]
        factor, bias = _key_term(sizes)
        layers: list[Affine] = []
        # The first layer reads z alone; for later ones the last unit but one is relu(z − reached).
        X, bias, place, reached = [factor], bias + words[0], [1], 0
        for i in range(0, len(jumps), self.steps):
            thresholds = groups.thresholds[i : i + self.steps]
            biases = _step_biases(t - reached for t in thresholds)
            layers.append(Affine(integers([*[place] * len(biases), X]), integers([*biases, bias]), role="step"))
            X, bias = [*_step_row(jumps[i : i + self.steps]), 1], 0
            place, reached = [*[0] * (len(X) - 2), 1, 0], thresholds[-1]
        return [*layers, *_unpack(sizes, X, bias)]


@dataclass(frozen=True)
class Squares:
    """Squares of k² groups, in two layers of 3k + 2 units each, where k is ``side``.

    The groups of a square are k rows of k neighbours; t_ij and w_ij are the threshold and the word of the group in row
    i and column j. The layers keep z and an accumulator.

    * *Rows*: k steps tell which row z has reached: r_i = [z ≥ t_i0] − [z ≥ t_(i+1)0]. One r_i is 1 if z has reached the
      square at all.
    * *Columns*: relu(z − Σ_i r_i t_ij + 1) and relu(z − Σ_i r_i t_ij) are steps at the thresholds of *that* row, for
      j > 0. The weights are a dense matrix of thresholds.
    * *Picks*: let c_j tell which column z has reached, so that again one c_j is 1. For v larger than any word, the unit
      relu(Σ_i r_i w_ij − v(1 − c_j)) is the word of z's group for one j and 0 for all others. The weights are a dense
      matrix of words. Before z reaches the square all r_i are 0, and so are all picks, whatever c is.

    The picks of a square share their layer with the rows of the next one. The accumulator, which begins as
    2^(top+1)·C(z + 1) (+ z), adds the picks. If z has reached the next square, they were the last word of this one, and
    that word is subtracted again. The accumulator is never negative. In the end it is X, with the last picks added. A
    square takes 18k² + O(k) parameters.

    The first threshold is 0. An incomplete square is filled up with groups that begin at P + 1, beyond every key.
    """

    side: int

    @property
    def groups_per_layer(self) -> float:
        """Number of groups per layer if there are many groups."""
        return self.side**2 / 2

    def spare_bits(self, sizes: SelectionSizes) -> int:
        """Return the number of bits beyond ``top`` that a weight may have, sign included."""
        return _word_spare_bits(sizes)

    def depth(self, groups: Count) -> Count:
        """Count the layers in front of those that unpack."""
        return 2 * -(-groups // self.side**2) + 1

    def unpacking(self, sizes: SelectionSizes) -> int:
        """Count the layers that unpack words."""
        return _unpacking_depth(sizes)

    def shapes(self, sizes: SelectionSizes, groups: int) -> Shapes:
        """Return the shapes of :meth:`layers`."""
        k, squares = self.side, -(-groups // self.side**2)
        first = [("rows", 2 * k + 2, 1), ("columns", 3 * k, 2 * k + 2)]
        others = [("rows", 3 * k + 2, 3 * k), ("columns", 3 * k, 3 * k + 2)] * (squares - 1)
        return [*first, *others, ("picks", k + 1, 3 * k), *_unpack_shapes(sizes, k + 1)]

    def layers(self, sizes: SelectionSizes, groups: Groups) -> list[Affine]:
        """Build the layers from z to e, relu(e − 1), relu(e − C) and q."""
        k = self.side
        missing = -len(groups.first) % k**2
        thresholds = _in_rows([0, *groups.thresholds, *[sizes.largest + 1] * missing], k)
        words = _in_rows([*_words(sizes, groups), *[0] * missing], k)
        v = _word_scale(sizes) * (_key_span(sizes) + 1)
        layers: list[Affine] = []
        picks = _Picks([], [], last=0)
        for square in range(0, len(thresholds), k):
            t = thresholds[square : square + k]
            layers += [_rows(t, picks) if layers else _first_rows(sizes, t), _columns(t, picks)]
            picks = _picks(words[square : square + k], v)
        accumulator = _unit(1, 3 * k)
        layers.append(Affine(integers([accumulator, *picks.W]), integers([0, *picks.b]), role="picks"))
        return [*layers, *_unpack(sizes, [1] * (k + 1), 0)]


Selection: TypeAlias = Wide | Chain | Squares
"""Any way to find a key's group."""
WIDE, NARROW = Wide(), Chain()


def _step_biases(thresholds: Iterable[int]) -> list[int]:
    """Return the biases of relu(z − t + 1) and relu(z − t) for each threshold t."""
    return [ahead - t for t in thresholds for ahead in (1, 0)]


def _step_row(coefficients: Iterable[int]) -> list[int]:
    """Return Σ_i c_i·[z ≥ t_i] as a row over the pairs of units that make the steps.

    >>> _step_row([5, -2])
    [5, -5, -2, 2]
    """
    return [entry for c in coefficients for entry in (c, -c)]


# Words


def _word_scale(sizes: SelectionSizes) -> int:
    """Return the factor of κ in a word, 2^(top+1)."""
    return 2 << sizes.top


def _key_span(sizes: SelectionSizes) -> int:
    """Return C(P + 1), which is larger than any κ."""
    return sizes.labels * (sizes.largest + 1)


def _words(sizes: SelectionSizes, groups: Groups) -> list[int]:
    """Return each group's word, 2^(top+1)·(C(P + 1) − κ) + q."""
    scale, span = _word_scale(sizes), _key_span(sizes)
    return [scale * (span - kappa) + q for kappa, q in zip(groups.first, groups.packed, strict=True)]


def _key_term(sizes: SelectionSizes) -> tuple[int, int]:
    """Return factor and bias of 2^(top+1)·C(z + 1) (+ z), the difference between X and the word."""
    unit = _word_scale(sizes) * sizes.labels
    return unit + bool(sizes.own_bits), unit


def _word_spare_bits(sizes: SelectionSizes) -> int:
    """Bound the bits beyond ``top`` of X and of any weight that makes or unpacks it, sign included."""
    return _upper_bits(sizes) + 1


def _upper_bits(sizes: SelectionSizes) -> int:
    """Count the bits above a word's q: the bits of 2C(P + 1), and one that keeps the wave upright."""
    return (2 * _key_span(sizes)).bit_length() + 1


def _folded_bits(sizes: SelectionSizes) -> int:
    return _upper_bits(sizes) if sizes.slots or sizes.own_bits else 0


def _unpacking_depth(sizes: SelectionSizes) -> int:
    """Count the layers that unpack words."""
    return -(-_folded_bits(sizes) // sizes.fold_bits)


def _unpack_shapes(sizes: SelectionSizes, inputs: int) -> Shapes:
    """Return the shapes of :func:`_unpack`."""
    folds = wave_shapes(inputs, _folded_bits(sizes), carry=True, at_once=sizes.fold_bits, role="unpack")
    return [*folds, ("read", READ, folds[-1][1] if folds else inputs)]


def _unpack(sizes: SelectionSizes, X: list[int], bias: int) -> list[Affine]:
    """Build the layers from X, as a row over the units and a bias, to e, relu(e − 1), relu(e − C) and q."""
    unit, bits = _word_scale(sizes), _folded_bits(sizes)
    layers, rest = wave(X, bias, h=1 << sizes.top, bits=bits, carry=(X, bias), at_once=sizes.fold_bits, role="unpack")
    if bits:
        e, q, bias = [*(-entry for entry in rest[:-1]), 1], [unit * entry for entry in rest], 0
    else:
        e, q = X, [0] * len(X)
    start = bias - unit * _key_span(sizes)
    biases = [start, start - unit, start - sizes.labels * unit, 0]
    return [*layers, Affine(integers([e, e, e, q]), integers(biases), shift=sizes.top + 1, role="read")]


# Layers of Wide


def _steps(thresholds: list[int]) -> Affine:
    """Build the layer of z itself and a pair of units for each threshold."""
    biases = [0, *_step_biases(thresholds)]
    return Affine(integers([[1]] * len(biases)), integers(biases), role="steps")


def _groups(sizes: SelectionSizes, groups: Groups) -> Affine:
    """Build the layer of e = relu(C·z + C − κ) and q, the group's integer (+ z if the key is passed on)."""
    e_row = [sizes.labels, *_step_row(before - after for before, after in pairwise(groups.first))]
    q_row = [1 if sizes.own_bits else 0, *_step_row(after - before for before, after in pairwise(groups.packed))]
    biases = [sizes.labels - groups.first[0], groups.packed[0]]
    return Affine(integers([e_row, q_row]), integers(biases), role="groups")


def _read(sizes: SelectionSizes) -> Affine:
    """Build the layer of e, relu(e − 1), relu(e − C) and q: the spike for the group's first entry needs them."""
    return Affine(integers([[1, 0], [1, 0], [1, 0], [0, 1]]), integers([0, -1, -sizes.labels, 0]), role="read")


# Layers of Squares


def _in_rows(items: list[int], k: int) -> list[list[int]]:
    return [items[i : i + k] for i in range(0, len(items), k)]


def _unit(place: int, units: int) -> list[int]:
    """Return the row that reads the unit at ``place`` among ``units``."""
    return [int(unit == place) for unit in range(units)]


@dataclass(frozen=True)
class _Picks:
    """The picks of a square, as rows over its columns' layer with their biases; and the square's last word."""

    W: list[list[int]]
    b: list[int]
    last: int


def _picks(w: list[list[int]], v: int) -> _Picks:
    """Return relu(Σ_i r_i w_ij − v(1 − c_j)) for each column j, where c_j = [column ≥ j] − [column ≥ j + 1]."""
    k = len(w)
    W = [
        [0, 0, *(row[j] for row in w), *_step_row(v * ((step == j) - (step == j + 1)) for step in range(1, k))]
        for j in range(k)
    ]
    return _Picks(W, [0, *[-v] * (k - 1)], last=w[-1][-1])


def _first_rows(sizes: SelectionSizes, t: list[list[int]]) -> Affine:
    """Build from z the layer of z, the accumulator, and the steps at which the first square's rows begin."""
    factor, bias = _key_term(sizes)
    biases = [0, bias, *_step_biases(row[0] for row in t)]
    return Affine(integers([[1], [factor], *[[1]] * (2 * len(t))]), integers(biases), role="rows")


def _rows(t: list[list[int]], picks: _Picks) -> Affine:
    """Build the layer of z, the accumulator, the previous square's picks, and the steps at which the rows begin."""
    z, accumulator = (_unit(place, 3 * len(t)) for place in (0, 1))
    biases = [0, 0, *picks.b, *_step_biases(row[0] for row in t)]
    return Affine(integers([z, accumulator, *picks.W, *[z] * (2 * len(t))]), integers(biases), role="rows")


def _columns(t: list[list[int]], before: _Picks) -> Affine:
    """Build the layer of z, the accumulator, the r_i, and the steps at which the columns of z's row begin."""
    k, picked = len(t), len(before.W)

    def row(z: int, accumulator: int, pick: int, steps: Sequence[int]) -> list[int]:
        return [z, accumulator, *[pick] * picked, *_step_row(steps)]

    W = [row(1, 0, 0, [0] * k), row(0, 1, 1, [-before.last, *[0] * (k - 1)])]
    W += [row(0, 0, 0, [(step == i) - (step == i + 1) for step in range(k)]) for i in range(k)]
    for j in range(1, k):
        # Σ_i r_i t_ij = Σ_i [z ≥ t_i0]·(t_ij − t_(i−1)j)
        beginning = [t[i][j] - (t[i - 1][j] if i else 0) for i in range(k)]
        W += [row(1, 0, 0, [-t for t in beginning])] * 2
    return Affine(integers(W), integers([*[0] * (k + 2), *[1, 0] * (k - 1)]), role="columns")
