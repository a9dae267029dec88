"""k² groups in two layers of 3k + 2 units: the width's square is used.

The groups of a square are k rows of k neighbours; t_ij and w_ij are the threshold and the word (:mod:`.words`) of the
group in row i and column j. z is kept, beside an accumulator.

* *Rows*: k steps say at which row z has arrived: r_i = [z ≥ t_i0] − [z ≥ t_(i+1)0], one of which is 1 if the square is
  reached at all.
* *Columns*: relu(z − Σ_i r_i t_ij + 1) and relu(z − Σ_i r_i t_ij) are steps at the thresholds of *that* row, j > 0: a
  dense matrix of thresholds.
* *Picks*: with c_j the column, again one of which is 1, relu(Σ_i r_i w_ij − v(1 − c_j)) is the word of z's group in
  one unit and 0 in the others, for v larger than any word: a dense matrix of words. Before the square is reached all
  r_i are 0, and so are all picks, whatever c is.

The picks of a square share their layer with the rows of the next one. The accumulator, which begins as
2^(top+1)·C(z + 1) (+ z), adds the picks; where z has reached the next square, they were the last word of this one,
which is taken away again. It is never negative. In the end it is X, picks added. 18k² + O(k) parameters a square.

The first threshold is 0. Squares that are not full are filled up with groups that begin at P + 1, where no key is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from byheart.constructions.gadgets.selecting import words
from byheart.constructions.gadgets.selecting.groups import Count, Groups, SelectionSizes, Shapes, of_steps, step_biases
from byheart.networks.exact import Affine, integers


@dataclass(frozen=True)
class Squares:
    """``side``² groups in two layers: width 3·side + 2."""

    side: int

    @property
    def groups_a_layer(self) -> float:
        """When there are many groups."""
        return self.side**2 / 2

    def spare_bits(self, sizes: SelectionSizes) -> int:
        """No weight has more bits than ``top`` and these, sign included."""
        return words.spare_bits(sizes)

    def depth(self, groups: Count) -> Count:
        """Layers for this many groups, in front of those that unpack."""
        return 2 * -(-groups // self.side**2) + 1

    def unpacking(self, sizes: SelectionSizes) -> int:
        """Layers that unpack words."""
        return words.unpacking(sizes)

    def shapes(self, sizes: SelectionSizes, groups: int) -> Shapes:
        """The layers."""
        k, squares = self.side, -(-groups // self.side**2)
        first = [("rows", 2 * k + 2, 1), ("columns", 3 * k, 2 * k + 2)]
        others = [("rows", 3 * k + 2, 3 * k), ("columns", 3 * k, 3 * k + 2)] * (squares - 1)
        return [*first, *others, ("picks", k + 1, 3 * k), *words.unpack_shapes(sizes, k + 1)]

    def layers(self, sizes: SelectionSizes, groups: Groups) -> list[Affine]:
        """From z to e, relu(e − 1), relu(e − C) and q."""
        k = self.side
        missing = -len(groups.first) % k**2
        thresholds = _in_rows([0, *groups.thresholds, *[sizes.largest + 1] * missing], k)
        of_groups = _in_rows([*words.words(sizes, groups), *[0] * missing], k)
        v = words.scale(sizes) * (words.span(sizes) + 1)
        layers: list[Affine] = []
        picks = _Picks([], [], last=0)
        for square in range(0, len(thresholds), k):
            t = thresholds[square : square + k]
            layers += [_rows(t, picks) if layers else _first_rows(sizes, t), _columns(t, picks)]
            picks = _picks(of_groups[square : square + k], v)
        accumulator = _unit(1, 3 * k)
        layers.append(Affine(integers([accumulator, *picks.W]), integers([0, *picks.b]), role="picks"))
        return [*layers, *words.unpack(sizes, [1] * (k + 1), 0)]


def _in_rows(items: list[int], k: int) -> list[list[int]]:
    return [items[i : i + k] for i in range(0, len(items), k)]


def _unit(place: int, units: int) -> list[int]:
    """The row that reads one unit of this many."""
    return [int(unit == place) for unit in range(units)]


@dataclass(frozen=True)
class _Picks:
    """The picks of a square, as rows over its columns' layer with their biases; and the square's last word."""

    W: list[list[int]]
    b: list[int]
    last: int


def _picks(w: list[list[int]], v: int) -> _Picks:
    """relu(Σ_i r_i w_ij − v(1 − c_j)) for every column j, c_j being the steps' [column ≥ j] − [column ≥ j + 1]."""
    k = len(w)
    W = [
        [0, 0, *(row[j] for row in w), *of_steps(v * ((step == j) - (step == j + 1)) for step in range(1, k))]
        for j in range(k)
    ]
    return _Picks(W, [0, *[-v] * (k - 1)], last=w[-1][-1])


def _first_rows(sizes: SelectionSizes, t: list[list[int]]) -> Affine:
    """z, the accumulator, and the steps at which the first square's rows begin, from z."""
    factor, bias = words.of_key(sizes)
    biases = [0, bias, *step_biases(row[0] for row in t)]
    return Affine(integers([[1], [factor], *[[1]] * (2 * len(t))]), integers(biases), role="rows")


def _rows(t: list[list[int]], picks: _Picks) -> Affine:
    """z, the accumulator, the picks of the square before, and the steps at which this one's rows begin."""
    z, accumulator = (_unit(place, 3 * len(t)) for place in (0, 1))
    biases = [0, 0, *picks.b, *step_biases(row[0] for row in t)]
    return Affine(integers([z, accumulator, *picks.W, *[z] * (2 * len(t))]), integers(biases), role="rows")


def _columns(t: list[list[int]], before: _Picks) -> Affine:
    """z, the accumulator, the r_i, and the steps at which the columns of z's row begin, from z and all of *rows*."""
    k, picked = len(t), len(before.W)

    def row(z: int, accumulator: int, pick: int, steps: Sequence[int]) -> list[int]:
        return [z, accumulator, *[pick] * picked, *of_steps(steps)]

    W = [row(1, 0, 0, [0] * k), row(0, 1, 1, [-before.last, *[0] * (k - 1)])]
    W += [row(0, 0, 0, [(step == i) - (step == i + 1) for step in range(k)]) for i in range(k)]
    for j in range(1, k):
        # Σ_i r_i t_ij = Σ_i [z ≥ t_i0]·(t_ij − t_(i−1)j)
        beginning = [t[i][j] - (t[i - 1][j] if i else 0) for i in range(k)]
        W += [row(1, 0, 0, [-t for t in beginning])] * 2
    return Affine(integers(W), integers([*[0] * (k + 2), *[1, 0] * (k - 1)]), role="columns")
