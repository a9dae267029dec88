"""Integer keys → labels by grouped bit extraction: the engine of Vardi, Yehudai & Shamir 2022, in exact integers.

**Task.** N different keys z ∈ [0, P] with labels y(z) ∈ [0, C); answer 0 for every other integer in [0, P].

**Idea of the paper.** Sort the keys and cut them into g groups of at most m neighbours. A step function of z (two
ReLUs per step) looks up one big integer per group, in which the group's keys and labels are written one after the other
in binary; a narrow deep part then peels one entry after the other off it with triangle maps and answers when the key
matches. g ~ m ~ √N up to logarithms, hence Õ(√N) parameters instead of N.

**What we do differently** (all of it makes the network smaller; the theorem is the same).

1. *Key and label are one number*, κ = C·z + y. With w = C·z − κ_j the query matches entry j if and only if −C < w ≤ 0,
   and then −w *is* the label: for another key the distance |C(z − z_j)| ≥ C exceeds any label.
2. *Differences, not keys.* Entry j holds Δ_j = κ_j − κ_(j−1), so w_j = w_(j−1) − Δ_j needs no copy of z. Δ is short:
   groups are cut wherever Δ ≥ 2^β. The Δ add up to at most C(P + 1), so there are at most F = ⌊C(P + 1)/2^β⌋ such cuts.
3. *One accumulator.* The answer is collected in the low bits of the integer that is peeled.

**The slot, step by step.** The state is e = max(w + C, 0) and q = 2Δ·2^T' + rest ≤ 2^T with T = T' + β + 1. If e is 0,
the entry has been passed, and e stays 0.

* fold: Z ← Z − 2·relu(Z − 2^k) for k = T − 1, …, T' is the triangle wave of period 2·2^T'. Since q's upper part 2Δ is
  even, the wave returns exactly ``rest``. Beside it one unit carries V = 2^(T'+1)·e − q + 2^T ≥ 0. These three units
  take 12 parameters per bit.
* read: (V + rest − 2^T)/2^(T'+1) = e − Δ, so e' = relu(e − Δ). The label is the spike
  f(e') = (C − 1)e' − C·relu(e' − 1) + relu(e' − C): 0 at e' = 0, C − e' on [1, C], 0 beyond. On a match e' = C − y, so
  f = y. There are four units.

A group with fewer than m entries is filled up with entries of label 0 behind its last key, which add nothing.

**Cost** (exact, zeros included): 8g − 2 for the step function and the group's integer, 12β + 31 per slot, and 17 for
the rest, with g = ⌊(N + (m − 1)(F + 1))/m⌋. ``design`` minimizes this over m and β. The count depends on N, C and P
alone, never on the keys. At P = N²/8 and C = 2 it is below 30·√(N log₂N).

**Limits.**

* ``depth`` bounds the layers. With few slots there are many groups, and Õ(N/L) parameters.
* ``bits`` bounds the bits of every weight, and so the length of the groups' integers: Õ(N/b) parameters.
* ``width="constant"`` turns the step function into a chain of layers of three units (:mod:`.gadgets.selecting`), and
  nothing is wider than the four units of *read*. This takes 12 instead of 8 parameters per group, and once 12 for each
  bit of 2C(P + 1): about a quarter more in all. The depth is g + (m − 1)(β + 2) + log₂(CP) + O(1), so Õ(√N) like the
  parameters.

**Any shape.** :func:`shallowest` finds groups by squares, w²/18 groups per layer of width w, and folds log₂(w − 1) bits
per layer (:mod:`byheart.constructions.yang_2026`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Literal, TypeAlias

import numpy as np

from byheart.constructions.gadgets.modular_hash import wave, wave_shapes
from byheart.constructions.gadgets.selecting import NARROW, WIDE, Chain, Count, Groups, Selection, Squares, Wide
from byheart.constructions.plan import TokenwiseShape
from byheart.errors import BadInput
from byheart.networks.exact import Affine, Integers, integers
from byheart.tasks.arrays import Floats, Ids

Width: TypeAlias = Literal["free", "constant"]
"""Width that makes the network smallest (free), or the same width for any number of keys (constant)."""


@dataclass(frozen=True)
class Limits:
    """Limits from the user on the number of layers, on the bits of any weight (sign included), and on the width."""

    depth: int | None = None
    bits: int | None = None
    width: Width = "free"

    def __post_init__(self) -> None:
        if self.depth is not None and self.width == "constant":
            why = "a network of constant width has the depth that it needs"
            raise BadInput(f"depth is {self.depth} and width is constant; expected one of the two: {why}")

    @property
    def selection(self) -> Selection:
        """Selection that finds a key's group."""
        return NARROW if self.width == "constant" else WIDE


NO_LIMITS = Limits()
SHALLOWEST = 4
"""Number of layers of a lookup of free width without slots."""


@dataclass(frozen=True)
class Lookup:
    """The sizes of a lookup network, which determine everything except the keys and labels."""

    keys: int
    labels: int
    largest: int
    slots: int
    field: int
    groups: int
    own_bits: int = 0
    selection: Selection = WIDE
    fold_bits: int = 1

    @property
    def answer_bits(self) -> int:
        """Number of bits below all fields: the answer, and below it ``own_bits`` bits of the key if it is passed on."""
        return (self.labels << self.own_bits).bit_length()

    @property
    def top(self) -> int:
        """Exponent of the bound 2^top on the groups' integers."""
        return self.answer_bits + self.slots * (self.field + 1)

    @property
    def weight_bits(self) -> int:
        """Largest number of bits of a weight, sign included."""
        return max(self.top + self.selection.spare_bits(self), (self.labels * (self.largest + 2)).bit_length() + 2)

    @property
    def depth(self) -> int:
        """Number of layers: those that select, *read*, those of the slots, and *answer*."""
        selecting = self.selection.depth(self.groups) + self.selection.unpacking(self)
        return selecting + 1 + self.slots * _slot_depth(self.field, self.fold_bits) + 1

    @property
    def shape(self) -> TokenwiseShape:
        """Shape of the layers behind the single unit that holds the key."""
        folds = wave_shapes(4, self.field + 1, carry=True, at_once=self.fold_bits)
        slot = [*folds, ("read", 4, folds[-1][1])]
        return TokenwiseShape((*self.selection.shapes(self, self.groups), *slot * self.slots, ("answer", 1, 4)))

    def layers(self, keys: Ids, labels: Integers) -> list[Affine]:
        """Build the layers for different ``keys`` [N] with ``labels`` [N]. The input is one unit, the key.

        The last layer's single unit is the label, or label·2^own_bits + key if the key is passed on.
        """
        order = np.argsort(keys)
        kappa = [int(keys[i]) * self.labels + int(labels[i]) for i in order]
        first = _cut(self, kappa)
        thresholds = [kappa[i] // self.labels for i in first[1:]]
        packed = [_pack(self, kappa[i:j]) for i, j in zip(first, [*first[1:], len(kappa)], strict=True)]
        layers = self.selection.layers(self, Groups(thresholds, [kappa[i] for i in first], packed))
        top = self.top
        for _ in range(self.slots):
            layers += _slot(self, top)
            top -= self.field + 1
        return [*layers, Affine(integers([_answer(self)]), integers([0]), role="answer")]


def design(
    keys: int, labels: int, largest: int, *, own_bits: int = 0, limits: Limits = NO_LIMITS, layers_before: int = 0
) -> Lookup:
    """Return the lookup network with the fewest parameters for ``keys`` different keys in [0, ``largest``].

    >>> [design(10_000, 2, 10**8 // 8, limits=Limits(width=width)).shape.dense for width in ("free", "constant")]
    [9218, 11735]
    """
    smallest = Lookup(keys, labels, largest, 0, labels.bit_length(), keys, own_bits, limits.selection)
    best = _cheapest(smallest, _PARAMETERS, lambda fields: _most_slots(smallest, fields, limits, layers_before))
    if best is None or (limits.bits is not None and best.weight_bits > limits.bits):
        layers = f"{layers_before + SHALLOWEST} layers and " if limits.width == "free" else ""
        raise BadInput(
            f"the lookup of {labels} labels under keys up to {largest} needs at least {layers}"
            f"{smallest.weight_bits} bits per weight; got depth={limits.depth}, bits={limits.bits}"
        )
    return best


def shallowest(keys: int, labels: int, largest: int, selection: Chain | Squares, fold_bits: int = 1) -> Lookup:
    """Return the lookup network with the fewest layers for this selection and number of bits folded at once.

    >>> [len(shallowest(10_000, 2, 10**8 // 8, how).shape.layers) for how in (NARROW, Squares(8), Squares(32))]
    [967, 171, 23]
    """
    smallest = Lookup(keys, labels, largest, 0, labels.bit_length(), keys, 0, selection, fold_bits)
    best = _cheapest(smallest, _LAYERS, lambda fields: np.full_like(fields, keys - 1))
    assert best is not None
    return best


def _slot_depth(field: Count, fold_bits: int) -> Count:
    return -(-(field + 1) // fold_bits) + 1


@dataclass(frozen=True)
class _Price:
    """The quantity to minimize, parameters or layers: the price of a layer of three units, and of a slot."""

    layer: int
    slot: Callable[[Ids, int], Ids]
    """Price of a slot, as a function of its field and of the number of bits folded at once."""

    def groups(self, selection: Selection, groups: Ids) -> Ids:
        """Return the price of a selection among ``groups`` groups, up to a constant."""
        return _WIDE_GROUP * groups if isinstance(selection, Wide) else self.layer * selection.depth(groups)

    def group(self, selection: Selection) -> float:
        """Return the price of one group among many."""
        return _WIDE_GROUP if isinstance(selection, Wide) else self.layer / selection.groups_per_layer


_WIDE_GROUP = 8
_PARAMETERS = _Price(layer=12, slot=lambda field, _: 12 * field + 31)
_LAYERS = _Price(layer=1, slot=_slot_depth)


def _cheapest(smallest: Lookup, price: _Price, most: Callable[[Ids], Ids]) -> Lookup | None:
    """Return the cheapest lookup among all fields and all numbers of slots that ``most`` allows; None if there is none.

    ``smallest`` is the lookup without slots. Among equally cheap lookups the one with the shortest field is returned,
    then the one with the fewest slots.
    """
    keys, span, selection = smallest.keys, smallest.labels * (smallest.largest + 1), smallest.selection
    fields = np.arange(smallest.labels.bit_length(), span.bit_length() + 1)[:, None]
    fields = fields[most(fields).ravel() >= 0]
    if not len(fields):
        return None
    cuts = np.array([min(keys, span >> field) for field in fields.ravel().tolist()])[:, None]
    slot = price.slot(fields, smallest.fold_bits)
    slots = _candidates(price.group(selection) * np.maximum(1, keys - cuts - 1) / slot, most(fields))
    groups = np.minimum(keys, (keys + slots * (cuts + 1)) // (slots + 1))
    # If words are packed, the first slot makes it necessary to unpack them.
    unpacking = price.layer * (selection.unpacking(replace(smallest, slots=1)) - selection.unpacking(smallest))
    cost = price.groups(selection, groups) + slots * slot + unpacking * (slots > 0)
    at = np.unravel_index(cost.argmin(), cost.shape)
    return replace(smallest, field=int(fields[at[0], 0]), slots=int(slots[at]), groups=int(groups[at]))


def _candidates(squared: Floats, most: Ids) -> Ids:
    """Return numbers of slots up to ``most`` [fields, 1] that contain the cheapest: 0, and all near the minimum.

    1. Let a be the price of a group, b that of a slot, and N' = N − cuts − 1. With x = slots + 1 the cost is within s,
       the price of a group and two layers, of aN'/x + bx + constant.
    2. This convex function has its minimum at x₀ = √(aN'/b), the root of ``squared``. It is more than s larger than
       there once |x − x₀| > √(s·x/b), where s < 2b.
    """
    best = np.sqrt(squared)
    reach = np.sqrt(2 * best) + 4
    low, high = np.maximum(0, (best - reach).astype(np.int64) - 1), np.minimum(most, (best + reach).astype(np.int64))
    low = np.minimum(low, high)
    near = np.minimum(low + np.arange(int((high - low).max()) + 1), high)
    return np.hstack([np.zeros_like(low), near])


def _most_slots(smallest: Lookup, fields: Ids, limits: Limits, layers_before: int) -> Ids:
    """Return the largest number of slots of each field within the limits; negative if no lookup is."""
    most = np.full_like(fields, smallest.keys - 1)
    if limits.depth is not None:
        most = np.minimum(most, (limits.depth - layers_before - SHALLOWEST) // (fields + 2))
    if limits.bits is not None:
        spare = smallest.selection.spare_bits(smallest) + smallest.answer_bits
        most = np.minimum(most, (limits.bits - spare) // (fields + 1))
    return most


def _cut(sizes: Lookup, kappa: list[int]) -> list[int]:
    """Return where exactly ``groups`` groups begin; no group has more than slots + 1 entries or a long difference."""
    begins, size = [0], 1
    for i in range(1, len(kappa)):
        if size > sizes.slots or kappa[i] - kappa[i - 1] >= 1 << sizes.field:
            begins.append(i)
            size = 0
        size += 1
    # If there are fewer groups than planned, more cuts are made: cutting a group in two is always allowed.
    taken = set(begins)
    spare = (i for i in range(len(kappa)) if i not in taken)
    return sorted([*begins, *islice(spare, sizes.groups - len(begins))])


def _pack(sizes: Lookup, kappa: list[int]) -> int:
    """Pack the differences of a group's entries, first one highest, each with a zero bit to keep the wave upright."""
    differences = [after - before for before, after in pairwise(kappa)]
    filler = [sizes.labels - kappa[-1] % sizes.labels] + [sizes.labels] * sizes.slots
    value = 0
    for difference in [*differences, *filler][: sizes.slots]:
        value = (value << (sizes.field + 1)) | (difference << 1)
    return value << sizes.answer_bits


def _answer(sizes: Lookup) -> list[int]:
    """Return q + f(e) as a row over (e, relu(e − 1), relu(e − C), q): the answer is added in its place."""
    C, unit = sizes.labels, 1 << sizes.own_bits
    return [(C - 1) * unit, -C * unit, unit, 1]


def _slot(sizes: Lookup, top: int) -> list[Affine]:
    """Build the layers that peel one difference off q ≤ 2^top and read it.

    There are field + 2 layers, or fewer if a layer folds several bits.
    """
    bottom = top - sizes.field - 1
    q, scale = _answer(sizes), 2 << bottom
    V = [-entry for entry in q]
    V[0] += scale
    layers, rest = wave(q, 0, h=1 << bottom, bits=sizes.field + 1, carry=(V, 1 << top), at_once=sizes.fold_bits)
    e = [*rest[:-1], 1]
    biases = [-(1 << top), -(1 << top) - scale, -(1 << top) - sizes.labels * scale, 0]
    rows = [e, e, e, [scale * entry for entry in rest]]
    return [*layers, Affine(integers(rows), integers(biases), shift=bottom + 1, role="read")]
