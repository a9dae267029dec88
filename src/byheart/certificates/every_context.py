"""Bounds on the features of a float Transformer that hold for every context, whatever tokens it reads.

Two ends and a grid describe a feature's values: every value is ``offset`` + k·``unit``, for an integer k, and lies
between ``low`` and ``high``. ``unit`` is a power of two. A feature with one value has the unit infinity.

The module follows the features from sublayer to sublayer. For each, it proves two things or raises :class:`Unproved`:

1. *Nothing is rounded.* Every sum has terms that are multiples of some u, and neither its positive nor its negative
   terms add up to more than 2^p·u; the format has p bits. So every partial sum, in any order, is a number of the
   format. (:mod:`byheart.networks.transformer.proved` uses the same argument for single contexts.)
2. *Every sigmoid is 0 or 1, and every softmax has one weight 1.* A unit that reads one feature x is monotone in x,
   rounded or not. So it is enough to check the two grid points around its threshold. A unit that reads x and x² is
   checked for every integer x that the feature may be.

A sum of steps that is added to the feature x that it reads is followed piece by piece; this gives x mod m its bounds.
If the same steps are added to another feature f with weights λ times as large, f − λx changes by a constant only. This
bounds f, too.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.transformer.proved import BITS, FAR, HIGH, LARGEST, SMALLEST
from byheart.networks.transformer.spec import GatedBlocks, Mixture, Sublayer, WindowAttention
from byheart.networks.transformer.transformer_network import TransformerNetwork

Array = NDArray[np.float64]
BELOW = 1 - 2.0**-53
"""Makes a bound strict: the float64 before 2^53 is 2^53·BELOW."""
EXACT = 2.0**52
"""Sums of multiples of u are not rounded in float64 up to this times u, whatever their signs."""
MOST_INTEGERS = 1 << 13
"""Largest magnitude of the integers x for which a unit with x and x² is checked."""
CELLS = 1 << 22
"""Number of pairs of an integer and a unit that are checked at a time."""


class Unproved(BadInput):
    """A step that no proof was found for; the message says where."""


class Values(NamedTuple):
    """The ends and grids of several quantities, as arrays of one shape."""

    low: Array
    high: Array
    unit: Array
    offset: Array

    @property
    def grain(self) -> Array:
        """Largest power of two that divides all values; infinite for 0."""
        return np.minimum(self.unit, last_bit(self.offset))

    @property
    def size(self) -> Array:
        """Largest absolute value."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def reshaped(self, *shape: int) -> "Values":
        """Return the same quantities in another shape."""
        return Values(*(part.reshape(shape) for part in self))


@dataclass(frozen=True)
class Link:
    """A bound on f − ``factor``·x for a feature f; x is the feature ``of``."""

    of: int
    factor: Fraction
    low: Fraction
    high: Fraction
    versions: tuple[int, int]
    """Versions of f and of x that the link holds for."""


def last_bit(x: Array) -> Array:
    """Return the value of the last bit of each float64 that is set; infinite for 0.

    >>> last_bit(np.array([12.0, -0.75, 0.0])).tolist()
    [4.0, 0.25, inf]
    """
    mantissa, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    last: Array = np.where(whole == 0, np.inf, np.ldexp((whole & -whole).astype(np.float64), exponent - 53))
    return last


def remainder(x: Array, unit: Array) -> Array:
    """Return x less a multiple of ``unit``, with the sign of x, without rounding; x where the unit is infinite."""
    finite = np.where(np.isfinite(unit), unit, 1.0)
    rest: Array = np.where(np.isfinite(unit), np.fmod(x, finite), x)
    return rest


def one_sided(low: Array, high: Array, axis: int) -> Array:
    """Return a bound on the sum of the positive and that of the negative terms, which lie between ``low`` and ``high``.

    Float64 rounds the bound itself, so it is made a little larger if several terms are added up.
    """
    sides = []
    for side in (np.clip(high, 0, None), np.clip(-low, 0, None)):
        total = side.sum(axis=axis)
        sides.append(np.where((side > 0).sum(axis=axis) > 1, total / BELOW, total))
    largest: Array = np.maximum(sides[0], sides[1])
    return largest


def times(a: Array, b: Array) -> Array:
    """Return a·b, where 0 times infinity is infinity: 0 has an infinite grid."""
    with np.errstate(invalid="ignore"):
        product = a * b
    return np.where(np.isnan(product), np.inf, product)


class ContextFreeValues:
    """The values of all features of the stream after some of the sublayers, for every context."""

    def __init__(self, network: TransformerNetwork) -> None:
        spec = network.spec
        self.weights = {name: tensor.astype(np.float64) for name, tensor in network.tensors()}
        self.bits, self.far, self.high_mark = 2.0 ** BITS[spec.precision], FAR[spec.precision], HIGH[spec.precision]
        self.smallest, self.largest = SMALLEST[spec.precision], LARGEST[spec.precision]
        none = np.zeros(spec.stream)
        self.stream = Values(none.copy(), none.copy(), np.full(spec.stream, np.inf), none.copy())
        self.versions = np.zeros(spec.stream, np.int64)
        self.squares: dict[int, tuple[int, int]] = {}
        """Map from a feature that holds a square to its root: a feature, and its version."""
        self.links: dict[int, Link] = {}
        self._steps_seen: dict[tuple[object, ...], tuple[_Steps, list[Values]]] = {}
        """Cache of steps by sublayer, group and values read. Copies of this object share it."""
        W = self.weights["embedding.W_E"]
        for column, feature in enumerate(spec.embeds):
            codes = W[:, column]
            unit = np.array(last_bit(codes).min())
            self._set(feature, "embedding", float(codes.min()), float(codes.max()), float(unit), 0.0)

    def copied(self) -> "ContextFreeValues":
        """Return an independent copy."""
        other = object.__new__(ContextFreeValues)
        other.__dict__.update(self.__dict__)
        other.stream = Values(*(part.copy() for part in self.stream))
        other.versions, other.squares, other.links = self.versions.copy(), dict(self.squares), deepcopy(self.links)
        return other

    def fix(self, feature: int, value: float) -> None:
        """Suppose that a feature has one value."""
        self._set(feature, "a case", value, value, np.inf, value)

    def widen(self, feature: int, numbers: range) -> None:
        """Suppose that a feature may be any of these integers."""
        self._set(feature, "a case", float(numbers[0]), float(numbers[-1]), 1.0, 0.0)

    def states(self, name: str, W: Array, x: Array, b: Array) -> NDArray[np.bool_]:
        """Return which units σ(W x + b) are 1; raise Unproved unless all others are 0."""
        on, off = self._is_beyond(W, x, b, 1), self._is_beyond(W, x, b, -1)
        if not (on | off).all():
            raise Unproved(f"{name}: unit {int(np.argmin(on | off))} may be neither 0 nor 1")
        return on

    def pieces_of(self, layer: GatedBlocks, group: int) -> list[tuple[float, float, float]]:
        """Return the pieces of what a group of steps adds to its first feature: two ends, and the number added."""
        feature = layer.reads[group]
        W, W_out = self.weights[f"{layer.name}.W_in"][group, :, 0], self.weights[f"{layer.name}.W_out"][group]
        b = self.weights.get(f"{layer.name}.b_in", np.zeros((layer.groups, layer.units)))[group]
        steps = _Steps.of(self.of([feature]), self._starts(layer.name, W, b, feature), W_out)
        return [(float(a), float(b), float(c)) for a, b, c in zip(*steps.pieces(0), strict=True)]

    def of(self, features: Sequence[int]) -> Values:
        """Return the values of some features."""
        index = np.array(features, dtype=np.int64)
        return Values(*(part[index] for part in self.stream))

    def integers(self, feature: int) -> range | None:
        """Return the integers that a feature may be; None if it may be another number, or there are too many."""
        low, high, unit, offset = (float(part[feature]) for part in self.stream)
        if min(unit, float(last_bit(np.array(offset)))) < 1 or not -MOST_INTEGERS <= low <= high < MOST_INTEGERS:
            return None
        return range(int(low), int(high) + 1)

    def is_square(self, square: int, root: int) -> bool:
        """Return True if one feature is the square of the other."""
        return self.squares.get(square) == (root, int(self.versions[root]))

    def apply(self, layer: Sublayer) -> None:
        """Replace the values by those after a sublayer; raise Unproved if no proof is found."""
        if isinstance(layer, WindowAttention):
            self._attention(layer)
        elif isinstance(layer, Mixture):
            raise Unproved(f"{layer.name} is a mixture, which is not understood")
        elif layer.act == "sigmoid" and layer.up == "none" and len(layer.reads) == layer.groups:
            self._steps(layer)
        elif layer.act == "sigmoid" and layer.up in ("none", "diagonal"):
            self._selection(layer)
        elif layer.act == "relu" and layer.up in ("none", "dense"):
            self._rectified(layer)
        else:
            raise Unproved(f"{layer.name} is of a kind that is not understood")

    def _attention(self, layer: WindowAttention) -> None:
        """Apply attention whose every head looks at one offset. It reads a value there or, before the beginning, 0."""
        name, heads = layer.name, layer.heads
        heads_offsets(self.weights, layer, self.far)
        seen = self.of(layer.reads)
        grain = seen.grain
        inputs = Values(np.minimum(seen.low, 0), np.maximum(seen.high, 0), grain, np.zeros_like(grain))
        v = self._affine(name, self.weights[f"{name}.W_V"][None], None, inputs.reshaped(1, -1))
        out = self._affine(name, self.weights[f"{name}.W_O"][None], None, v.reshaped(1, heads * layer.d_head))
        self._add(name, layer.writes, out.reshaped(-1))

    def _affine(self, name: str, W: Array, b: Array | None, x: Values) -> Values:
        """Return W x + b, in groups: W [G, units, k], x [G, k], b [G, units]."""
        low, high, unit, offset = (part[:, None, :] for part in x)
        here = W != 0
        ends = np.where(here, W * low, 0.0), np.where(here, W * high, 0.0)
        lower, upper = np.minimum(*ends), np.maximum(*ends)
        bias = np.zeros(W.shape[:2]) if b is None else b
        bits = last_bit(W)
        grain = np.where(here, times(bits, x.grain[:, None, :]), np.inf)
        if not self._fit(np.maximum(-lower, upper), grain).all():
            raise Unproved(f"{name}: a product may be rounded")
        least = np.minimum(grain.min(axis=2, initial=np.inf), last_bit(bias))
        terms = [np.concatenate([part, bias[:, :, None]], axis=2) for part in (lower, upper)]
        if not self._fit(one_sided(terms[0], terms[1], axis=2), least).all():
            raise Unproved(f"{name}: a sum may be rounded")
        units = np.where(here, times(bits, np.broadcast_to(unit, W.shape)), np.inf).min(axis=2, initial=np.inf)
        shifts = np.concatenate([np.where(here, W * offset, 0.0), bias[:, :, None]], axis=2)
        shifts = remainder(shifts, units[:, :, None])
        exact = np.abs(shifts).sum(axis=2) <= EXACT * least
        units = np.where(exact, units, least)
        shift = np.where(exact, remainder(shifts.sum(axis=2), units), 0.0)
        return Values(lower.sum(axis=2) + bias, upper.sum(axis=2) + bias, units, shift)

    def _fit(self, total: Array, least: Array) -> NDArray[np.bool_]:
        """Return where sums of multiples of ``least``, none beyond ``total``, are never rounded."""
        small = (total <= self.bits * least) & (total <= self.largest) & (least >= self.smallest)
        return np.asarray(small | (total == 0))

    def _rectified(self, layer: GatedBlocks) -> None:
        """Apply a layer of ReLUs."""
        name, groups = layer.name, layer.groups
        first = "in" if layer.up == "none" else "gate"
        W, b = self.weights[f"{name}.W_{first}"], self.weights.get(f"{name}.b_{first}")
        x = self.of(layer.reads).reshaped(groups, -1)
        inner, W_out = self._affine(name, W, b, x), self.weights[f"{name}.W_out"]
        hidden = _relu(inner)
        if layer.up == "dense":
            up = self.of(layer.up_reads).reshaped(groups, -1)
            other = self._affine(name, self.weights[f"{name}.W_up"], self.weights.get(f"{name}.b_up"), up)
            out = self._affine(name, W_out, None, self._product(name, hidden, other))
        else:
            out = self._affine(name, W_out, None, hidden)
            if _is_identity(W, b, W_out):
                whole = Values(*(part[:, :1] for part in inner))
                out = self._affine(name, W_out[:, :, :1], None, whole)
            elif W.shape[2] == 1 and np.isin(W, (1.0, -1.0)).all():
                out = _bent(W[:, :, 0], np.zeros(W.shape[:2]) if b is None else b, W_out, x, out)
        fresh = self.of(layer.writes)
        self._add(name, layer.writes, out.reshaped(-1))
        if layer.up == "dense" and _all_ones(self.weights, layer):
            pairs = zip(layer.reads, layer.up_reads, layer.writes, x.low[:, 0], fresh.size, strict=True)
            for read, other_read, write, low, size in pairs:
                if read == other_read and low >= 0 and size == 0 and layer.writes.count(write) == 1:
                    self.squares[write] = (read, int(self.versions[read]))

    def _product(self, name: str, a: Values, b: Values) -> Values:
        """Return a·b, entry by entry. If a has one value, a power of two, the grid is that of b times a."""
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
        grain = times(a.grain, b.grain)
        if not self._fit(np.maximum(-low, high), grain).all():
            raise Unproved(f"{name}: a product may be rounded")
        is_power = (a.low == a.high) & (a.low == last_bit(a.low))
        unit = np.where(is_power, times(a.low, b.unit), grain)
        unit = np.where(low == high, np.inf, unit)
        return Values(low, high, unit, remainder(np.where(is_power, a.low * b.offset, low), unit))

    def _steps(self, layer: GatedBlocks) -> None:
        """Apply sums of steps: each reads one feature, and is added to other features or to that one itself."""
        name, outs = layer.name, len(layer.writes) // layer.groups
        W, W_out = self.weights[f"{name}.W_in"][:, :, 0], self.weights[f"{name}.W_out"]
        b = self.weights.get(f"{name}.b_in", np.zeros(W.shape))
        parts: list[Values] = []
        own: dict[int, tuple[float, float]] = {}
        links: dict[int, Link] = {}
        for g, feature in enumerate(layer.reads):
            writes = layer.writes[g * outs : (g + 1) * outs]
            key = (name, g, *(float(part[feature]) for part in self.stream))
            if key not in self._steps_seen:
                steps = _Steps.of(self.of([feature]), self._starts(name, W[g], b[g], feature), W_out[g])
                self._check_sums(name, steps)
                self._steps_seen[key] = steps, [steps.added(row) for row in range(outs)]
            steps, added = self._steps_seen[key]
            new = dict(zip(writes, added, strict=True))
            parts += added
            single = [write for write in new if layer.writes.count(write) == 1]
            if feature in single:
                row = writes.index(feature)
                own[feature] = steps.moved(row)
                linked = self._linked(steps, feature, row, writes)
                for write in set(single) & set(linked):
                    links[write] = linked[write]
                    own[write] = self._narrowed(write, linked[write], new[write], own[feature])
        self._add(name, layer.writes, Values(*(np.concatenate(group) for group in zip(*parts, strict=True))), own)
        self.links |= links

    def _starts(self, name: str, W: Array, b: Array, feature: int) -> Array:
        """Return the least grid point for which each unit is 1, or infinity; raise Unproved unless all are 0 or 1."""
        low, high, unit, offset = (float(part[feature]) for part in self.stream)
        step = unit if np.isfinite(unit) else 1.0
        if (W < 0).any():
            raise Unproved(f"{name}: a unit falls as its feature grows, which is not understood")
        positive = W > 0
        threshold = -b / np.where(positive, W, 1.0)
        with np.errstate(over="ignore"):
            first = np.clip(offset + np.ceil((threshold - offset) / step) * step, low, high + step)
        first = np.where(positive, first, np.where(b > 0, low, high + step))
        on, before = np.minimum(first, high), np.maximum(first - step, low)
        fine = ((first > high) | self._is_beyond(W, on, b, 1)) & ((first <= low) | self._is_beyond(W, before, b, -1))
        if not fine.all():
            raise Unproved(f"{name}: unit {int(np.argmin(fine))} may be neither 0 nor 1")
        return np.where(first > high, np.inf, first)

    def _is_beyond(self, W: Array, x: Array, b: Array, sign: int) -> NDArray[np.bool_]:
        """Return where σ(W x + b) is 1 for certain (``sign`` 1), or 0 (−1)."""
        product = W * x
        value, total = product + b, np.abs(product) + np.abs(b)
        grain = times(last_bit(W), last_bit(x))
        least = np.minimum(grain, last_bit(b))
        exact = self._fit(np.abs(product), grain) & self._fit(np.maximum(np.abs(product), np.abs(b)), least)
        error = np.where(exact, 0.0, total * (16 / self.bits))
        within = total <= self.largest
        return np.asarray(within & (value - error >= self.high_mark if sign > 0 else value + error <= -self.far))

    def _check_sums(self, name: str, steps: "_Steps") -> None:
        """Raise Unproved unless no sum of steps is rounded."""
        used = steps.weights[:, np.isfinite(steps.starts)]
        if not self._fit(one_sided(used, used, axis=1), last_bit(used).min(axis=1, initial=np.inf)).all():
            raise Unproved(f"{name}: a sum may be rounded")

    def _linked(self, steps: "_Steps", x: int, row: int, writes: Sequence[int]) -> dict[int, Link]:
        """Return links of features to ``x`` that receive the same steps, times a factor."""
        links = {}
        moving, still = steps.toggling, steps.always
        for other, f in enumerate(writes):
            if f == x or not moving.any() or not steps.weights[row, moving].all():
                continue
            factor = Fraction(steps.weights[other, moving][0]) / Fraction(steps.weights[row, moving][0])
            pairs = zip(steps.weights[row, moving], steps.weights[other, moving], strict=True)
            if any(Fraction(b) != factor * Fraction(a) for a, b in pairs):
                continue
            change = sum(
                (Fraction(steps.weights[other, j]) - factor * Fraction(steps.weights[row, j]) for j in still),
                Fraction(0),
            )
            known, versions = self.links.get(f), (int(self.versions[f]), int(self.versions[x]))
            if known is None or (known.of, known.factor, known.versions) != (x, factor, versions):
                ends = sorted(factor * Fraction(end) for end in (self.stream.low[x], self.stream.high[x]))
                low, high = Fraction(self.stream.low[f]) - ends[1], Fraction(self.stream.high[f]) - ends[0]
            else:
                low, high = known.low, known.high
            links[f] = Link(x, factor, low + change, high + change, (versions[0] + 1, versions[1] + 1))
        return links

    def _narrowed(self, f: int, link: Link, new: Values, x_ends: tuple[float, float]) -> tuple[float, float]:
        """Return the ends of ``f`` after ``new`` was added: those of the sum, narrowed by the link."""
        before = self.of([f])
        low, high = (_down(np.append(before.low, new.low)), _up(np.append(before.high, new.high)))
        unit = np.minimum(before.unit, new.unit)
        offset = Fraction(float(remainder(before.offset + new.offset, unit)[0]))
        ends = sorted(link.factor * Fraction(end) for end in x_ends)
        if np.isfinite(unit[0]):  # the ends are points of the grid
            grid = Fraction(float(unit[0]))
            least = offset + grid * ceil((link.low + ends[0] - offset) / grid)
            most = offset + grid * floor((link.high + ends[1] - offset) / grid)
            low = max(low, float(least)) if Fraction(float(least)) == least else low
            high = min(high, float(most)) if Fraction(float(most)) == most else high
        return low, high

    def _selection(self, layer: GatedBlocks) -> None:
        """Apply groups of units of which at most one is 1; x, read with x², selects it."""
        name, groups = layer.name, layer.groups
        first = "in" if layer.up == "none" else "gate"
        W, W_out = self.weights[f"{name}.W_{first}"], self.weights[f"{name}.W_out"]
        b = self.weights.get(f"{name}.b_{first}", np.zeros(W.shape[:2]))
        reads = np.array(layer.reads).reshape(groups, -1)
        for g, own in enumerate(reads.tolist()):
            same = g > 0 and own == reads[g - 1].tolist()
            if same and np.array_equal(W[g], W[g - 1]) and np.array_equal(b[g], b[g - 1]):
                continue
            if len(own) != 2 or not self.is_square(own[1], own[0]) or (numbers := self.integers(own[0])) is None:
                raise Unproved(f"{name}: group {g} reads no integer with its square")
            self.check_selection(name, W[g], b[g], numbers)
        entries = Values(np.ones(W.shape[:2]), np.ones(W.shape[:2]), np.ones(W.shape[:2]), np.zeros(W.shape[:2]))
        if layer.up == "diagonal":
            scale = self.weights[f"{name}.W_up"][:, :, None, None].reshape(-1, 1, 1)
            up = self.of(layer.up_reads).reshaped(-1, 1)
            entries = self._affine(name, scale, None, up).reshaped(*W.shape[:2])
        low, high = (W_out * end[:, None, :] for end in (entries.low, entries.high))
        grain = np.where(W_out != 0, times(last_bit(W_out), entries.grain[:, None, :]), np.inf)
        lower, upper = np.minimum(low, high), np.maximum(low, high)
        if not self._fit(np.maximum(-lower, upper), grain).all():
            raise Unproved(f"{name}: a product may be rounded")
        unit = grain.min(axis=2)
        values = Values(np.minimum(lower.min(axis=2), 0), np.maximum(upper.max(axis=2), 0), unit, np.zeros(unit.shape))
        self._add(name, layer.writes, values.reshaped(-1))

    def check_selection(self, name: str, W: Array, b: Array, numbers: range) -> NDArray[np.int64]:
        """Return which unit is 1 for each integer, −1 if none is; raise Unproved unless all others are 0.

        The units have the weights ``W`` [units, 2] for x and x², and the biases ``b``.
        """
        chosen = np.full(len(numbers), -1)
        portion = max(1, CELLS // len(b))
        for first in range(0, len(numbers), portion):
            x = np.array(numbers[first : first + portion], dtype=np.float64)[:, None]
            terms = np.stack(np.broadcast_arrays(W[:, 0] * x, W[:, 1] * x * x, b))
            value, total = terms.sum(axis=0), np.abs(terms).sum(axis=0)
            grain = np.minimum(times(last_bit(W[:, 0]), last_bit(x)), times(last_bit(W[:, 1]), last_bit(x * x)))
            exact = self._fit(one_sided(terms, terms, axis=0), np.minimum(grain, last_bit(b)))
            error = np.where(exact, 0.0, total * (16 / self.bits))
            on, off = value - error >= self.high_mark, value + error <= -self.far
            if not ((on | off) & (total <= self.largest)).all() or (on.sum(axis=1) > 1).any():
                raise Unproved(f"{name}: for some number, not exactly one unit is 1 and all others are 0")
            chosen[first : first + portion] = np.where(on.any(axis=1), on.argmax(axis=1), -1)
        return chosen

    def _add(
        self, name: str, writes: Sequence[int], values: Values, own: "dict[int, tuple[float, float]] | None" = None
    ) -> None:
        """Add values to features of the stream; ``own`` holds better ends than those of the sum, for some of them."""
        fresh = self.of(writes)
        if own is None and len(set(writes)) == len(writes) and not fresh.size.any():
            self._fill(name, np.array(writes), values)
            return
        rows: dict[int, list[int]] = {}
        for row, feature in enumerate(writes):
            rows.setdefault(feature, []).append(row)
        for feature, parts in rows.items():
            before = self.of([feature])
            every = Values(*(np.append(old, new[parts]) for old, new in zip(before, values, strict=True)))
            low, high = _down(every.low), _up(every.high)
            total, least = one_sided(every.low, every.high, axis=0), every.grain.min(initial=np.inf)
            if len(parts) > 1 and not self._fit(total, least).all():
                raise Unproved(f"{name}: a sum of several parts may be rounded")
            if own and feature in own:
                low, high = own[feature]
            unit, grain = float(every.unit.min()), float(every.grain.min())
            offsets = remainder(every.offset, np.array(unit))
            exact = np.abs(offsets).sum() <= EXACT * grain
            offset = float(remainder(offsets.sum(), np.array(unit))) if exact else 0.0
            self._set(feature, name, low, high, unit if exact else grain, offset)

    def _fill(self, name: str, writes: NDArray[np.int64], values: Values) -> None:
        """Set features that are 0 to their first values."""
        if not self._fit(values.size, values.grain).all():
            raise Unproved(f"{name}: a sum may be rounded")
        constant = values.low == values.high
        unit, offset = np.where(constant, np.inf, values.unit), np.where(constant, values.low, values.offset)
        for part, value in zip(self.stream, (values.low, values.high, unit, offset), strict=True):
            part[writes] = value
        self.versions[writes] += 1

    def _set(self, feature: int, name: str, low: float, high: float, unit: float, offset: float) -> None:
        if not isfinite(low) or not isfinite(high):
            raise Unproved(f"{name}: a sum may be infinite")
        if low == high:
            unit, offset = np.inf, low
        grain = min(unit, float(last_bit(np.array(offset))))
        if not self._fit(np.array(max(abs(low), abs(high))), np.array(grain)).all():
            raise Unproved(f"{name}: a sum may be rounded")
        for part, value in zip(self.stream, (low, high, unit, offset), strict=True):
            part[feature] = value
        self.versions[feature] += 1


@dataclass(frozen=True)
class _Steps:
    """Steps of one feature between ``low`` and ``high``: from ``starts`` on, they add ``weights`` [rows, units]."""

    low: float
    high: float
    unit: float
    starts: Array
    weights: Array

    @classmethod
    def of(cls, x: Values, starts: Array, weights: Array) -> "_Steps":
        low, high, unit, _ = (float(part[0]) for part in x)
        return cls(low, high, unit, starts, weights)

    @property
    def always(self) -> NDArray[np.int64]:
        """Units that are always 1."""
        return np.flatnonzero(self.starts <= self.low)

    @property
    def toggling(self) -> NDArray[np.bool_]:
        """True for the units that are 1 for some values only."""
        return np.isfinite(self.starts) & (self.starts > self.low)

    def pieces(self, row: int) -> tuple[Array, Array, Array]:
        """Return the first and the last value of every piece, and the number that is added there."""
        moving = self.toggling
        starts, weights = self.starts[moving], self.weights[row, moving]
        begins = np.unique(np.append(starts, self.low))
        sums = np.array([weights[starts <= begin].sum() for begin in begins]) + self.weights[row, self.always].sum()
        ends = np.append(begins[1:] - (self.unit if np.isfinite(self.unit) else 0), self.high)
        return begins, ends, sums

    def added(self, row: int) -> Values:
        """Return the values that are added to the feature that a row writes."""
        _, _, sums = self.pieces(row)
        unit = last_bit(self.weights[row, self.toggling]).min(initial=np.inf)
        still = np.array(self.weights[row, self.always].sum())
        offset = remainder(still, np.array(unit))
        return Values(*(np.array([float(part)]) for part in (sums.min(), sums.max(), unit, offset)))

    def moved(self, row: int) -> tuple[float, float]:
        """Return the ends of the feature that the steps read, after a row was added to it."""
        begins, ends, sums = self.pieces(row)
        lows = [_down(np.array(pair)) for pair in zip(begins, sums, strict=True)]
        highs = [_up(np.array(pair)) for pair in zip(ends, sums, strict=True)]
        return min(lows), max(highs)


def _down(terms: Array) -> float:
    """Return the sum of some floats, rounded down."""
    exact = sum((Fraction(float(term)) for term in terms), Fraction(0))
    value = float(exact)
    return value if Fraction(value) <= exact else float(np.nextafter(value, -np.inf))


def _up(terms: Array) -> float:
    """Return the sum of some floats, rounded up."""
    return -_down(-terms) + 0.0  # never −0.0


def _relu(x: Values) -> Values:
    """Return the values of relu(x)."""
    low, high = np.clip(x.low, 0, None), np.clip(x.high, 0, None)
    unit = np.where(x.low >= 0, x.unit, np.where(x.high <= 0, np.inf, x.grain))
    return Values(low, high, unit, np.where(x.low >= 0, x.offset, 0.0))


def _is_identity(W: Array, b: Array | None, W_out: Array) -> bool:
    """Return True for relu(a) − relu(−a), which is a."""
    pair = b is None and W.shape[1] == 2
    return pair and bool((W[:, 1] == -W[:, 0]).all() and (W_out[:, :, 1] == -W_out[:, :, 0]).all())


def _bent(W: Array, b: Array, W_out: Array, x: Values, out: Values) -> Values:
    """Narrow the ends of W_out·relu(W x + b) for single x: they lie at the ends of x, or where it bends."""
    low, high = x.low, x.high
    points = np.concatenate([low, high, np.clip(-b * W, low, high)], axis=1)  # [G, points]; W is 1 or −1
    hidden = np.clip(W[:, :, None] * points[:, None, :] + b[:, :, None], 0, None)
    values = np.einsum("gou,gup->gop", W_out, hidden)
    return out._replace(low=values.min(axis=2), high=values.max(axis=2))


def _all_ones(weights: dict[str, Array], layer: GatedBlocks) -> bool:
    """Return True if a layer is relu(x)·x for each of its features."""
    single = layer.units == 1 and len(layer.reads) == len(layer.writes) == layer.groups
    plain = single and not layer.bias and not layer.up_bias
    return plain and all((weights[f"{layer.name}.{name}"] == 1).all() for name in ("W_gate", "W_up", "W_out"))


def heads_offsets(weights: dict[str, Array], layer: WindowAttention, far: float) -> list[int]:
    """Return the offset, in steps of its window, at which each head looks; raise Unproved if it looks at several."""
    name = layer.name
    if weights[f"{name}.W_Q"].any() and weights[f"{name}.W_K"].any():
        raise Unproved(f"{name}: where a head looks depends on the tokens, which is not understood")
    bias = weights[f"{name}.bias"]
    largest = bias.max(axis=1, keepdims=True)
    if ((bias == largest).sum(axis=1) > 1).any() or ((bias < largest) & (largest - bias < far)).any():
        raise Unproved(f"{name}: a head looks at several positions")
    return [int(offset) for offset in bias.argmax(axis=1)]
