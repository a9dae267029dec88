"""Integer keys → labels by grouped bit extraction: the engine of Vardi, Yehudai & Shamir 2022, in exact integers.

**Task.** N different keys z ∈ [0, P] with labels y(z) ∈ [0, C); answer 0 for every other integer in [0, P].

**Idea of the paper.** Sort the keys and cut them into g groups of at most m neighbours. A step function of z (two
ReLUs per step) looks up one big integer per group, in which the group's keys and labels are written one after the other
in binary; a narrow deep part then peels one entry after the other off it with triangle maps and answers when the key
matches. g ~ m ~ √N up to logarithms, hence Õ(√N) parameters instead of N.

**What we do differently** (all of it makes the network smaller; the theorem is the same).

1. *Key and label are one number*, κ = C·z + y. With w = C·z − κ_j the query matches entry j iff −C < w ≤ 0, and then
   −w *is* the label: for another key the distance |C(z − z_j)| ≥ C exceeds any label.
2. *Differences, not keys.* Entry j holds Δ_j = κ_j − κ_(j−1), so w_j = w_(j−1) − Δ_j needs no copy of z. Δ is short:
   groups are cut wherever Δ ≥ 2^β, which happens at most F = ⌊C(P + 1)/2^β⌋ times because the Δ add up to at most that.
3. *One accumulator for everything.* The answer is collected in the low bits of the very integer that is peeled.

**The slot, step by step.** State: e = max(w + C, 0) ≥ 0 (0: the entry has been passed; then it stays passed) and
q = 2Δ·2^T' + rest ≤ 2^T with T = T' + β + 1.

* fold: Z ← Z − 2·relu(Z − 2^k) for k = T − 1, …, T' is the triangle wave of period 2·2^T'; since q's upper part 2Δ is
  even, the wave returns exactly ``rest``. Beside it one unit carries V = 2^(T'+1)·e − q + 2^T ≥ 0. Three units: 12
  parameters per bit.
* read: (V + rest − 2^T)/2^(T'+1) = e − Δ, so e' = relu(e − Δ). The label is the spike
  f(e') = (C − 1)e' − C·relu(e' − 1) + relu(e' − C): 0 at e' = 0, C − e' on [1, C], 0 beyond. On a match e' = C − y, so
  f = y. Four units.

A group with fewer than m entries is filled up with entries of label 0 behind its last key, which add nothing.

**Cost** (exactly, zeros counted): 8g − 2 for the step function and the group's integer, 12β + 31 for a slot, 17 for the
rest, g = ⌊(N + (m − 1)(F + 1))/m⌋. ``design`` minimises this over m and β; the count depends on N, C and P alone, never
on the keys. At P = N²/8 and C = 2 it is below 30·√(N log₂N).

**Limits.** ``depth`` bounds the layers: with few slots the groups are many, Õ(N/L) parameters. ``bits`` bounds the
bits of every weight, so the length of the groups' integers: Õ(N/b) parameters.
"""

from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from byheart.constructions.plan import Shape
from byheart.errors import BadInput
from byheart.networks.exact import Affine, Integers, integers
from byheart.tasks.checks import Ids


@dataclass(frozen=True)
class Limits:
    """What the user allows: layers in all, and bits of any weight (sign included)."""

    depth: int | None = None
    bits: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Lookup:
    """The sizes of one lookup network: everything about it except the keys and labels."""

    keys: int
    labels: int
    largest: int
    slots: int
    field: int
    groups: int
    own_bits: int = 0

    @property
    def answer_bits(self) -> int:
        """Bits under all fields: the answer, above ``own_bits`` bits of the key itself when it is passed on."""
        return (self.labels << self.own_bits).bit_length()

    @property
    def top(self) -> int:
        """The groups' integers are at most 2^top."""
        return self.answer_bits + self.slots * (self.field + 1)

    @property
    def weight_bits(self) -> int:
        """No weight has more bits than this, sign included."""
        return max(self.top + 3, (self.labels * (self.largest + 2)).bit_length() + 2)

    @property
    def shape(self) -> Shape:
        """Layers behind the single unit that holds the key."""
        steps = 2 * (self.groups - 1) + 1
        slot = [("fold", 3, 4), *[("fold", 3, 3)] * self.field, ("read", 4, 3)]
        return Shape((("steps", steps, 1), ("groups", 2, steps), ("read", 4, 2), *slot * self.slots, ("answer", 1, 4)))

    def layers(self, keys: Ids, labels: Integers) -> list[Affine]:
        """The layers for these different ``keys`` [N] and ``labels`` [N]; the input is one unit, the key.

        The last layer's single unit is the label, or label·2^own_bits + key where the key is passed on.
        """
        order = np.argsort(keys)
        kappa = [int(keys[i]) * self.labels + int(labels[i]) for i in order]
        first = _cut(self, kappa)
        thresholds = [kappa[i] // self.labels for i in first[1:]]
        packed = [_pack(self, kappa[i:j]) for i, j in zip(first, [*first[1:], len(kappa)], strict=True)]
        layers = [_steps(thresholds), _groups(self, [kappa[i] for i in first], packed), _first_read(self)]
        top = self.top
        for _ in range(self.slots):
            layers += _slot(self, top)
            top -= self.field + 1
        return [*layers, Affine(integers([_answer(self)]), integers([0]), role="answer")]


def design(
    keys: int, labels: int, largest: int, *, own_bits: int = 0, limits: Limits = NO_LIMITS, layers_before: int = 0
) -> Lookup:
    """The cheapest lookup network for ``keys`` different keys in [0, ``largest``].

    >>> design(keys=10_000, labels=2, largest=10**8 // 8).shape.dense
    9218
    """
    span = labels * (largest + 1)
    fields = range(labels.bit_length(), span.bit_length() + 1)
    best: Lookup | None = None
    best_cost = 0
    for field in fields:
        smallest = Lookup(keys, labels, largest, slots=0, field=field, groups=keys, own_bits=own_bits)
        cuts = min(keys, span >> field)
        slots = _candidates(smallest, cuts, _most_slots(smallest, limits, layers_before))
        groups = np.minimum(keys, (keys + slots * (cuts + 1)) // (slots + 1))
        cost = 8 * groups + slots * (12 * field + 31)
        if len(slots) and (best is None or cost.min() < best_cost):
            at = int(cost.argmin())
            best_cost = int(cost[at])
            best = Lookup(keys, labels, largest, int(slots[at]), field, int(groups[at]), own_bits)
    if best is None or (limits.bits is not None and best.weight_bits > limits.bits):
        raise BadInput(
            f"the lookup of {labels} labels under keys up to {largest} needs at least {layers_before + 4} layers and "
            f"{smallest.weight_bits} bits per weight; got depth={limits.depth}, bits={limits.bits}"
        )
    return best


def _candidates(smallest: Lookup, cuts: int, most: int) -> Ids:
    """Numbers of slots up to ``most`` among which the cheapest is.

    With x = slots + 1 the cost is within 8 of 8(N − cuts − 1)/x + (12β + 31)x + constant. Around the minimum at
    x₀ = √(8N'/(12β + 31)) that convex function is more than 8 larger than there once |x − x₀| > √(x₀³/N') + 1.
    """
    if most < 0:
        return np.arange(0)
    N = max(1, smallest.keys - cuts - 1)
    best = (8 * N / (12 * smallest.field + 31)) ** 0.5
    reach = (best**3 / N) ** 0.5 + 3
    low, high = max(0, int(best - reach) - 1), min(most, int(best + reach))
    return np.arange(min(low, high), high + 1)


def _most_slots(smallest: Lookup, limits: Limits, layers_before: int) -> int:
    """Slots within the limits; negative if there are none."""
    most = smallest.keys - 1
    if limits.depth is not None:
        most = min(most, (limits.depth - layers_before - 4) // (smallest.field + 2))
    if limits.bits is not None:
        most = min(most, (limits.bits - 3 - smallest.answer_bits) // (smallest.field + 1))
    return most


def _cut(sizes: Lookup, kappa: list[int]) -> list[int]:
    """Where the groups begin: exactly ``groups``, none with more than slots + 1 entries or a long difference."""
    begins, size = [0], 1
    for i in range(1, len(kappa)):
        if size > sizes.slots or kappa[i] - kappa[i - 1] >= 1 << sizes.field:
            begins.append(i)
            size = 0
        size += 1
    # Fewer than planned: cutting a group in two is always allowed.
    taken = set(begins)
    spare = (i for i in range(len(kappa)) if i not in taken)
    return sorted([*begins, *islice(spare, sizes.groups - len(begins))])


def _pack(sizes: Lookup, kappa: list[int]) -> int:
    """The differences of a group's entries, first one highest, each with the zero bit that keeps the wave upright."""
    differences = [after - before for before, after in pairwise(kappa)]
    filler = [sizes.labels - kappa[-1] % sizes.labels] + [sizes.labels] * sizes.slots
    value = 0
    for difference in [*differences, *filler][: sizes.slots]:
        value = (value << (sizes.field + 1)) | (difference << 1)
    return value << sizes.answer_bits


def _steps(thresholds: list[int]) -> Affine:
    """z itself, and for every threshold t the pair relu(z − t + 1), relu(z − t): their difference is [z ≥ t]."""
    biases = [0]
    for t in thresholds:
        biases += [1 - t, -t]
    return Affine(integers([[1]] * len(biases)), integers(biases), role="steps")


def _groups(sizes: Lookup, first: list[int], packed: list[int]) -> Affine:
    """e = relu(C·z + C − κ of the group's first entry) and q = the group's integer (+ z where the key is passed on)."""
    e_row, q_row = [sizes.labels], [1 if sizes.own_bits else 0]
    for i in range(1, len(first)):
        e_row += [first[i - 1] - first[i], first[i] - first[i - 1]]
        q_row += [packed[i] - packed[i - 1], packed[i - 1] - packed[i]]
    return Affine(integers([e_row, q_row]), integers([sizes.labels - first[0], packed[0]]), role="groups")


def _first_read(sizes: Lookup) -> Affine:
    """e, relu(e − 1), relu(e − C) and q: what the spike needs, for the group's first entry."""
    return Affine(integers([[1, 0], [1, 0], [1, 0], [0, 1]]), integers([0, -1, -sizes.labels, 0]), role="read")


def _answer(sizes: Lookup) -> list[int]:
    """q + f(e) as a row over (e, relu(e − 1), relu(e − C), q): the answer is added in its place."""
    C, unit = sizes.labels, 1 << sizes.own_bits
    return [(C - 1) * unit, -C * unit, unit, 1]


def _slot(sizes: Lookup, top: int) -> list[Affine]:
    """Peel one difference off q ≤ 2^top, and read: field + 2 layers."""
    bottom = top - sizes.field - 1
    q = _answer(sizes)
    V = [-entry for entry in q]
    V[0] += 2 << bottom
    layers = [Affine(integers([q, q, V]), integers([0, -(1 << (top - 1)), 1 << top]), role="fold")]
    for k in reversed(range(bottom, top - 1)):
        layers.append(Affine(integers([[1, -2, 0], [1, -2, 0], [0, 0, 1]]), integers([0, -(1 << k), 0]), role="fold"))
    scale = 2 << bottom
    rows = [[1, -2, 1]] * 3 + [[scale, -2 * scale, 0]]
    biases = [-(1 << top), -(1 << top) - scale, -(1 << top) - sizes.labels * scale, 0]
    return [*layers, Affine(integers(rows), integers(biases), shift=bottom + 1, role="read")]
