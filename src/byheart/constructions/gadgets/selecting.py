"""Which group does a key belong to? Three ways to look up one word a group: wide, narrow, and anything between.

**Task.** g groups, of which group i > 0 begins at the key t_i, t_1 < t_2 < …. Group i has the number κ_i of its first
entry, κ_i < C(P + 1), and an integer 0 ≤ q_i ≤ 2^top. For a key z ∈ [0, P] let i be the last group with t_i ≤ z (0 if
there is none). Wanted are e = max(C·z + C − κ_i, 0) and q_i (+ z where the key is passed on), in the four units e,
relu(e − 1), relu(e − C), q from which :mod:`.gadgets.lookup` goes on.

**A step** [z ≥ t] is relu(z − t + 1) − relu(z − t), exactly, because z is an integer.

:class:`Wide`: all steps in one layer, and two sums of them in the next. 8 parameters a group, width 2g − 1.

The other two carry κ_i and q_i in *one* word, w_i = 2^(top+1)·(C(P + 1) − κ_i) + q_i ≥ 0, from which e and q are
unpacked at the end. With X = w_i + 2^(top+1)·C(z + 1) (+ z) the part above bit top + 1 is
U = C(P + 1) + C·z + C − κ_i ∈ [1, 2C(P + 1)] and the part below is q ≤ 2^top. Folding X at 2^(K−1), …, 2^top, K being
top + 1 and the bits of 2C(P + 1), is the triangle wave of period 2^(top+1), which 2^(top+1)·U does not move: it leaves
q. One unit carries X, and e = relu((X − q)/2^(top+1) − C(P + 1)). 12 parameters a bit, once. Where there is nothing to
unpack (no slots, the key not passed on) q is 0 and e is read off X without folds.

:class:`Chain`: *constant width*. A layer has k steps and an accumulator; 2k + 1 units. The next thresholds are
reached from relu(z − t) of the last one, since relu(relu(z − t) − (t' − t)) = relu(z − t') for t' ≥ t, so z itself
need not be kept. The accumulator is X for the groups seen so far, w_0 + Σ_j (w_j − w_(j−1))·[z ≥ t_j] +
2^(top+1)·C(z + 1): the word of the last of them that is reached, never negative, so its ReLU does nothing. With k = 1:
three units, 12 parameters a group.

:class:`Squares`: k² groups in two layers of 3k + 2 units (Yang & Yang 2026 ask for w² a layer; the network is ours).
The groups of a square are k rows of k neighbours. *Rows*: k steps say at which row z has arrived,
r_i = [z ≥ row i] − [z ≥ row i + 1], one of which is 1 if the square is reached at all. *Columns*: relu(z − Σ_i r_i t_ij
+ 1) and relu(z − Σ_i r_i t_ij) are steps at the thresholds of *that* row: a dense matrix of thresholds. *Picks*: with
c_j the column, again one of which is 1, relu(Σ_i r_i w_ij − v(1 − c_j)) is the word of z's group in one unit and 0 in
the others, for v larger than any word: a dense matrix of words. (Before the square is reached all r_i are 0, and so are
all picks, whatever c is.) The picks of a square share their layer with the rows of the next one. The accumulator adds
the picks; where z has reached the next square, the last word of this one is taken away again. 18k² + O(k) parameters a
square. Squares that are not full are filled up with groups that begin at P + 1, where no key is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeAlias, TypeVar

from byheart.networks.exact import Affine, integers
from byheart.tasks.checks import Ids

T = TypeVar("T")
Count = TypeVar("Count", int, Ids)
_READ = 4
"""Units behind any selection: e, relu(e − 1), relu(e − C) and q."""
Shapes: TypeAlias = list[tuple[str, int, int]]
"""Layers as (role, outputs, inputs)."""


class Sizes(Protocol):
    """What a selection has to know of the lookup that it is a part of."""

    @property
    def labels(self) -> int:
        """C."""

    @property
    def largest(self) -> int:
        """P: keys are 0 to P."""

    @property
    def top(self) -> int:
        """The groups' integers are at most 2^top."""

    @property
    def own_bits(self) -> int:
        """Not 0 where the key is passed on."""

    @property
    def slots(self) -> int:
        """Entries of a group behind its first one."""


@dataclass(frozen=True)
class Groups:
    """The groups of one task: where all but the first begin, the κ of their first entries, and their integers."""

    thresholds: list[int]
    first: list[int]
    packed: list[int]


@dataclass(frozen=True)
class Wide:
    """All groups in one layer: the fewest parameters."""

    def spare_bits(self, sizes: Sizes) -> int:
        """No weight has more bits than ``top`` and these, sign included."""
        return 3

    def depth(self, groups: Count) -> Count:
        """Layers for so many groups, in front of the one that reads."""
        return 0 * groups + 2

    def folds(self, sizes: Sizes) -> int:
        """Layers that unpack."""
        return 0

    def shapes(self, sizes: Sizes, groups: int) -> Shapes:
        """The layers."""
        steps = 2 * (groups - 1) + 1
        return [("steps", steps, 1), ("groups", 2, steps), ("read", 4, 2)]

    def layers(self, sizes: Sizes, groups: Groups) -> list[Affine]:
        """From z to e, relu(e − 1), relu(e − C) and q."""
        return [_steps(groups.thresholds), _groups(sizes, groups), _first_read(sizes)]


def _steps(thresholds: list[int]) -> Affine:
    """z itself, and for every threshold t the pair relu(z − t + 1), relu(z − t): their difference is [z ≥ t]."""
    biases = [0]
    for t in thresholds:
        biases += [1 - t, -t]
    return Affine(integers([[1]] * len(biases)), integers(biases), role="steps")


def _groups(sizes: Sizes, groups: Groups) -> Affine:
    """e = relu(C·z + C − κ of the group's first entry) and q = the group's integer (+ z where the key is passed on)."""
    e_row, q_row = [sizes.labels], [1 if sizes.own_bits else 0]
    first, packed = groups.first, groups.packed
    for i in range(1, len(first)):
        e_row += [first[i - 1] - first[i], first[i] - first[i - 1]]
        q_row += [packed[i] - packed[i - 1], packed[i - 1] - packed[i]]
    return Affine(integers([e_row, q_row]), integers([sizes.labels - first[0], packed[0]]), role="groups")


def _first_read(sizes: Sizes) -> Affine:
    """e, relu(e − 1), relu(e − C) and q: what the spike needs, for the group's first entry."""
    return Affine(integers([[1, 0], [1, 0], [1, 0], [0, 1]]), integers([0, -1, -sizes.labels, 0]), role="read")


@dataclass(frozen=True)
class Chain:
    """Group after group, ``steps`` of them a layer: width 2·steps + 1, but at least 4 behind it."""

    steps: int = 1

    @property
    def width(self) -> int:
        """Units of the widest layer of the lookup."""
        return max(_READ, 2 * self.steps + 1)

    def spare_bits(self, sizes: Sizes) -> int:
        """No weight has more bits than ``top`` and these, sign included."""
        return _word_bits(sizes) + 1

    @property
    def groups_a_layer(self) -> float:
        """Of many groups."""
        return self.steps

    def depth(self, groups: Count) -> Count:
        """Layers for so many groups, in front of those that unpack."""
        return -(-(groups - 1) // self.steps)

    def folds(self, sizes: Sizes) -> int:
        """Layers that unpack."""
        return _folds(sizes)

    def shapes(self, sizes: Sizes, groups: int) -> Shapes:
        """The layers."""
        shapes, inputs = [], 1
        for batch in _batches(range(groups - 1), self.steps):
            shapes.append(("step", 2 * len(batch) + 1, inputs))
            inputs = 2 * len(batch) + 1
        return [*shapes, *_unpack_shapes(sizes, inputs)]

    def layers(self, sizes: Sizes, groups: Groups) -> list[Affine]:
        """From z to e, relu(e − 1), relu(e − C) and q."""
        words = _words(sizes, groups)
        factor = _scale(sizes) * sizes.labels
        X, bias, before = [factor + bool(sizes.own_bits)], words[0] + factor, 0
        layers: list[Affine] = []
        for batch in _batches([*zip(groups.thresholds, pairwise(words), strict=True)], self.steps):
            # The last unit but one is relu(z − before); in front of the first layer it is z itself.
            place = [0] * len(X)
            place[max(0, len(X) - 2)] = 1
            biases = _pairs(t - before for t, _ in batch)
            layers.append(Affine(integers([*[place] * len(biases), X]), integers([*biases, bias]), role="step"))
            X, bias = [jump for _, (old, new) in batch for jump in (new - old, old - new)] + [1], 0
            before = batch[-1][0]
        return [*layers, *_unpack(sizes, X, bias)]


@dataclass(frozen=True)
class Squares:
    """``side``² groups in two layers: width 3·side + 2."""

    side: int

    @property
    def width(self) -> int:
        """Units of the widest layer of the lookup."""
        return max(_READ, 3 * self.side + 2)

    def spare_bits(self, sizes: Sizes) -> int:
        """No weight has more bits than ``top`` and these, sign included."""
        return _word_bits(sizes) + 1

    @property
    def groups_a_layer(self) -> float:
        """Of many groups."""
        return self.side**2 / 2

    def depth(self, groups: Count) -> Count:
        """Layers for so many groups, in front of those that unpack."""
        return 2 * -(-groups // self.side**2) + 1

    def folds(self, sizes: Sizes) -> int:
        """Layers that unpack."""
        return _folds(sizes)

    def shapes(self, sizes: Sizes, groups: int) -> Shapes:
        """The layers."""
        k, squares = self.side, -(-groups // self.side**2)
        rows = [("rows", 2 * k + 2, 1), *[("rows", 3 * k + 2, 3 * k)] * (squares - 1)]
        columns = [("columns", 3 * k, 2 * k + 2), *[("columns", 3 * k, 3 * k + 2)] * (squares - 1)]
        both = [shape for pair in zip(rows, columns, strict=True) for shape in pair]
        return [*both, ("picks", k + 1, 3 * k), *_unpack_shapes(sizes, k + 1)]

    def layers(self, sizes: Sizes, groups: Groups) -> list[Affine]:
        """From z to e, relu(e − 1), relu(e − C) and q."""
        k, words = self.side, _words(sizes, groups)
        missing = -len(words) % k**2
        starts = _batches([0, *groups.thresholds, *[sizes.largest + 1] * missing], k**2)
        squares = _batches([*words, *[0] * missing], k**2)
        layers: list[Affine] = []
        picks, last = _Rows([], []), 0
        for t, w in zip(starts, squares, strict=True):
            layers.append(_rows(t[::k], picks) if layers else _first_rows(sizes, t[::k]))
            layers.append(_columns(_batches(t, k), last if picks.W else None))
            picks, last = _picks(_batches(w, k), _scale(sizes) * (sizes.labels * (sizes.largest + 1) + 1)), w[-1]
        accumulator = [0, 1, *[0] * (3 * k - 2)]
        layers.append(Affine(integers([accumulator, *picks.W]), integers([0, *picks.b]), role="picks"))
        return [*layers, *_unpack(sizes, [1] * (k + 1), 0)]


Selection: TypeAlias = Wide | Chain | Squares
"""Any way to find a key's group."""
WIDE, NARROW = Wide(), Chain()


def _batches(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """All items in order, ``size`` at a time; the last batch may have fewer."""
    return [items[i : i + size] for i in range(0, len(items), size)]


@dataclass(frozen=True)
class _Rows:
    """Some rows of a layer, with their biases."""

    W: list[list[int]]
    b: list[int]


def _pairs(thresholds: Iterable[int]) -> list[int]:
    """The biases of relu(z − t + 1) and relu(z − t), threshold by threshold."""
    return [one - t for t in thresholds for one in (1, 0)]


def _first_rows(sizes: Sizes, starts: Sequence[int]) -> Affine:
    """z, the accumulator 2^(top+1)·C(z + 1) (+ z), and the steps at which the first square's rows begin."""
    factor = _scale(sizes) * sizes.labels
    W = [[1], [factor + bool(sizes.own_bits)], *[[1]] * (2 * len(starts))]
    return Affine(integers(W), integers([0, factor, *_pairs(starts)]), role="rows")


def _rows(starts: Sequence[int], picks: _Rows) -> Affine:
    """z, the accumulator, the picks of the square before, and the steps at which this one's rows begin."""
    z, accumulator = ([int(unit == one) for unit in range(len(picks.W[0]))] for one in (0, 1))
    W = [z, accumulator, *picks.W, *[z] * (2 * len(starts))]
    return Affine(integers(W), integers([0, 0, *picks.b, *_pairs(starts)]), role="rows")


def _columns(t: Sequence[Sequence[int]], last: int | None) -> Affine:
    """z, the accumulator, the r_i, and the steps at which the row's columns begin, all but the first.

    ``last`` is the last word of the square before, whose picks are among the units; None in front of the first.
    """
    k = len(t)
    between = [] if last is None else [0] * k
    steps = [[*[0] * (2 * i), 1, -1, *[0] * (2 * (k - i - 1))] for i in range(k)]  # s_i = [z ≥ row i] over its pair
    z = [1, 0, *between, *[0] * (2 * k)]
    accumulator = [0, 1, *(1 for _ in between), -(last or 0), last or 0, *[0] * (2 * k - 2)]
    arrived = [[a - b for a, b in zip(s, after, strict=True)] for s, after in zip(steps, [*steps[1:], [0] * (2 * k)])]
    W = [z, accumulator, *([0, 0, *between, *r] for r in arrived)]
    for j in range(1, k):
        # Σ_i r_i t_ij over the pairs.
        threshold = [sum(t[i][j] * arrived[i][unit] for i in range(k)) for unit in range(2 * k)]
        W += [[1, 0, *between, *(-entry for entry in threshold)]] * 2
    return Affine(integers(W), integers([0] * (k + 2) + [1, 0] * (k - 1)), role="columns")


def _picks(w: Sequence[Sequence[int]], v: int) -> _Rows:
    """relu(Σ_i r_i w_ij − v(1 − c_j)) for all columns j; v is larger than any word."""
    k = len(w)
    W = []
    for j in range(k):
        gates = [v * ((m == j) - (m == j + 1)) for m in range(1, k)]
        W.append([0, 0, *(row[j] for row in w), *(entry for gate in gates for entry in (gate, -gate))])
    return _Rows(W, [0, *[-v] * (k - 1)])


def _scale(sizes: Sizes) -> int:
    """What one step of κ is worth in a word."""
    return 2 << sizes.top


def _words(sizes: Sizes, groups: Groups) -> list[int]:
    """2^(top+1)·(C(P + 1) − κ) + q, group by group."""
    span, scale = sizes.labels * (sizes.largest + 1), _scale(sizes)
    return [scale * (span - kappa) + q for kappa, q in zip(groups.first, groups.packed, strict=True)]


def _word_bits(sizes: Sizes) -> int:
    """X is below 2^top times this power of two: what stands above its q, and the bit that keeps the wave upright."""
    return (2 * sizes.labels * (sizes.largest + 1)).bit_length() + 1


def _folds(sizes: Sizes) -> int:
    """Folds that unpack a word, one for each of these bits, where it has a q at all."""
    return _word_bits(sizes) if sizes.slots or sizes.own_bits else 0


def _unpack_shapes(sizes: Sizes, inputs: int) -> Shapes:
    folds = _folds(sizes)
    return [*[("unpack", 3, inputs if k == 0 else 3) for k in range(folds)], ("read", _READ, 3 if folds else inputs)]


def _unpack(sizes: Sizes, X: list[int], bias: int) -> list[Affine]:
    """From X, as a row over the units and a bias, to e, relu(e − 1), relu(e − C) and q."""
    top, scale, folds = sizes.top, _scale(sizes), _folds(sizes)
    rows, biases, layers = [X, X, X], [bias] * 3, []
    for k in reversed(range(top, top + folds)):
        biases[1] -= 1 << k
        layers.append(Affine(integers(rows), integers(biases), role="unpack"))
        rows, biases = [[1, -2, 0], [1, -2, 0], [0, 0, 1]], [0, 0, 0]
    e, q = ([-1, 2, 1], [scale, -2 * scale, 0]) if folds else (X, [0] * len(X))
    start = (0 if folds else bias) - scale * sizes.labels * (sizes.largest + 1)
    starts = [start, start - scale, start - sizes.labels * scale, 0]
    return [*layers, Affine(integers([e, e, e, q]), integers(starts), shift=top + 1, role="read")]
