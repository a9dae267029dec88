"""Kajitsuka & Sato 2024: one layer, one softmax head of rank one, a feed-forward network with 2nN units; seq-to-seq.

**Letters.** N sequences of n tokens in R^d (ids: d = 1, the embedding). v ∈ Z^d is a direction in which different
tokens have different y = v·x. W_K = W_V = v, W_Q is a multiple of v, and W_O = (1, 0, …): all of them have rank one.

1. *Attention.* The token at position k sees the Boltzmann operator of its sequence at inverse temperature β_k = γ·y_k,

       boltz_k = Σ_j y_j e^{β_k y_j} / Σ_j e^{β_k y_j},

   and v·Z_k = y_k + v_1 boltz_k / 2^shift is its *context id*. The shift is so large that ids of different tokens keep
   the order of the tokens.
2. *Steps.* Sort the K ≤ nN different ids. Between two neighbours there is a step of two ReLUs, and the steps weighted
   by the labels' differences add up to the label at every id: 2(K − 1) hidden units, and an error of zero, although the
   ids are irrational (:func:`stair_layers`).

**Different questions have different ids.** The paper proves it for sequences without a repeated token, and scores more
than 4 log n apart (``scale="paper"``). More is true: tokens may repeat, and any rational γ ≠ 0 suffices. Let the y be
integers over a common denominator D, P(E) = Σ_j E^{D·y_j}, and R(E) the same for another sequence. Equal ids at the
same token mean that E·P'/P and E·R'/R agree at E = e^{β/D}. That number is transcendental (Lindemann), so they agree
as rational functions. Then P/R is constant, and it is 1 because P(1) = R(1) = n: the sequences hold the same tokens.
The only exception is a token with y = 0, where all scores are equal. So γ is free. It determines the distance between
ids: the paper's scores, which grow with the number of tokens, give about e^{−2r}, hundreds or thousands of bits; scores
that span 4 (``scale="gentle"``, ours) need a few dozen.

**Exactness.** The weights are integers over powers of two. Ids are enclosed in ball arithmetic, with enough bits to
separate all neighbours. The build reports ``id_bits`` = log₂(largest id / smallest distance of two ids), the bits that
tell ids apart; ``precision`` is the largest number that is accepted.

**Hardmax is not enough.** ``attention="hardmax"`` builds a hardmax layer instead. It attends to the largest (or
smallest) token alone, so it confuses sequences that differ elsewhere; the error names two of the task's sequences with
different labels. More heads do not help: :mod:`.gadgets.confused` gives two that any number of hardmax heads confuse.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from operator import mul
from typing import Literal

import numpy as np
from flint import arb, fmpq, fmpz

from byheart.constructions.construction import TOKENS, Construction, Made, Reading, Theorem
from byheart.constructions.gadgets import vectors
from byheart.constructions.gadgets.demand import Setting, TaskQuestions, collect_questions, most_questions
from byheart.constructions.gadgets.hypotheses import check_table, consistent
from byheart.constructions.plan import Part, Plan, TokenwiseShape, network_for, plan_of
from byheart.errors import BadInput
from byheart.networks.balls import precision, rounded_outward
from byheart.networks.exact import (
    Affine,
    Embedding,
    FeedForward,
    HardmaxAttention,
    Integers,
    Layer,
    Positions,
    SoftmaxAttention,
    integers,
)
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import NextToken, SeqToSeq, Task
from byheart.tasks.arrays import Ids
from byheart.tasks.distinct import count_tokens
from byheart.tasks.theorems import Hypothesis, no_token_twice, sequence_hypotheses

FEWEST_BITS = 64
"""Number of bits to begin with when ids are told apart."""


@dataclass(frozen=True)
class Multiset:
    """Different integers and their numbers of occurrences."""

    values: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Interval:
    """Closed interval that encloses a real number."""

    low: Fraction
    high: Fraction


class NotApartError(Exception):
    """Error for two values that the allowed bits do not tell apart; it holds their places in the list."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)
        self.first, self.second = first, second


def boltz(beta: Fraction, multiset: Multiset, bits: int) -> Interval:
    """Enclose the Boltzmann average of a multiset at β in an interval whose ends are multiples of 2^−bits.

    >>> value = boltz(Fraction(1), Multiset((0, 1), (1, 1)), 64)  # e/(1 + e)
    >>> float(value.low), float(value.high)
    (0.7310585786300049, 0.7310585786300049)
    """
    if beta == 0:
        mean = Fraction(sum(map(mul, multiset.values, multiset.counts)), sum(multiset.counts))
        return Interval(mean, mean)
    # Differences to the value with the largest weight: no exponent is positive, and few digits cancel.
    top = max(multiset.values) if beta > 0 else min(multiset.values)
    exact = fmpq(fmpz(beta.numerator), fmpz(beta.denominator))
    with precision(bits):
        weights = [
            count * arb(exact * (value - top)).exp()
            for value, count in zip(multiset.values, multiset.counts, strict=True)
        ]
        terms = [weight * (value - top) for weight, value in zip(weights, multiset.values, strict=True)]
        low, high = rounded_outward(sum(terms[1:], terms[0]) / sum(weights[1:], weights[0]), bits)
    return Interval(top + Fraction(low, 1 << bits), top + Fraction(high, 1 << bits))


def apart(beta: Fraction, multisets: Sequence[Multiset], most_bits: int) -> list[Interval]:
    """Enclose boltz(β; ·) of different multisets in disjoint intervals.

    The number of bits doubles until the intervals are disjoint; the result has 64 bits more. If ``most_bits`` are not
    enough, :class:`NotApartError` names two multisets whose intervals touch.

    >>> [round(float(v.low), 3) for v in apart(Fraction(1), [Multiset((0, 1), (1, 1)), Multiset((0, 2), (1, 1))], 64)]
    [0.731, 1.762]
    """
    bits = FEWEST_BITS
    while True:
        values = [boltz(beta, multiset, bits) for multiset in multisets]
        order = sorted(range(len(values)), key=lambda i: values[i].low)
        touching = next(((i, j) for i, j in pairwise(order) if values[i].high >= values[j].low), None)
        if touching is None:
            # Intervals that are barely disjoint say little about the distance; 64 bits more determine it well.
            return [boltz(beta, multiset, bits + 64) for multiset in multisets]
        if bits >= most_bits:
            raise NotApartError(*touching)
        bits = min(2 * bits, most_bits)


def stair_shape(ids: int, dim: int) -> TokenwiseShape:
    """Return the shape of the stairs for ``ids`` ids, read from a stream of width ``dim``."""
    units = max(1, 2 * (ids - 1))
    return TokenwiseShape((("steps", units, dim), ("answer", 1, units)))


def stair_layers(ids: Sequence[Interval], labels: Sequence[int], direction: Sequence[int]) -> list[Affine]:
    """Build the layers that answer labels[q] if direction·Z lies in ids[q]; the ids are sorted and disjoint.

    >>> chain = stair_layers([Interval(Fraction(0), Fraction(1)), Interval(Fraction(2), Fraction(3))], [5, 7], [1])
    >>> chain[0].W.tolist(), chain[0].b.tolist(), chain[1].W.tolist(), chain[1].b.tolist()
    ([[2], [2]], [-2, -3], [[2, -2]], [5])
    """
    rows, biases, answer = [], [], []
    for q in range(len(ids) - 1):
        s, start = _step(ids[q].high, ids[q + 1].low)
        rows += [[entry << s for entry in direction]] * 2
        biases += [-start, -start - 1]
        jump = labels[q + 1] - labels[q]
        answer += [jump, -jump]
    if not rows:
        rows, biases, answer = [[0 for _ in direction]], [0], [0]
    return [
        Affine(integers(rows), integers(biases), role="steps"),
        Affine(integers([answer]), integers([labels[0]]), role="answer", relu=False),
    ]


def _step(low: Fraction, high: Fraction) -> tuple[int, int]:
    """Return s and t·2^s with low ≤ t and t + 2^−s ≤ high."""
    room = (high - low) / 2
    s = max(0, room.denominator.bit_length() - room.numerator.bit_length() + 1)
    while s > 0 and Fraction(1, 1 << (s - 1)) <= room:
        s -= 1
    return s, -((-low.numerator << s) // low.denominator)


NAME = "kajitsuka-sato-2024"
SPAN = 4
"""Largest difference between two gentle scores of one sequence."""
_DIRECTIONS = 16
"""Number of directions to choose from."""
_SHOWN = 16
"""Length of the longest sequence that an error message shows."""
_COUNTABLE = 10**9
"""Number of bits from which an error message shows a power of two."""


@dataclass(frozen=True)
class RankSettings(Reading):
    """Settings for how the network reads a sequence, and how sharply it attends."""

    scale: Literal["gentle", "paper"] = "gentle"
    """Scores within 4 of each other, or, as in the paper's proof, more than 4 log n apart."""
    attention: Literal["softmax", "hardmax"] = "softmax"
    """Attention layer; hardmax shows that it is not enough, unless the task is very easy."""
    precision: int = 16_384
    """Largest number of bits to tell context ids apart, at least 64."""


@dataclass(frozen=True)
class RankDemand:
    """The number K of different questions: pairs of a token and the multiset of its sequence."""

    size: Size
    positions: bool
    questions: int


@dataclass(frozen=True, eq=False)
class _Asked(TaskQuestions):
    """A task's questions, one per pair of a token and the multiset of its sequence, sorted by token."""

    multisets: list[tuple[Ids, Ids]]
    """Different tokens of each question's sequence, and their numbers of occurrences."""

    def __len__(self) -> int:
        return len(self.token)


@dataclass(frozen=True)
class _Line:
    """Tokens on a line: y = Y/2^exponent = v·(x + position's code), different for different tokens."""

    direction: tuple[int, ...]
    values: tuple[int, ...]
    exponent: int
    front: tuple[Layer, ...]

    @property
    def gap(self) -> int:
        """Smallest distance of two tokens."""
        ordered = sorted(set(self.values))
        return min((after - before for before, after in pairwise(ordered)), default=1)

    @property
    def span(self) -> int:
        """Largest distance of two tokens, at least 1."""
        return max(1, max(self.values) - min(self.values))

    @property
    def shift(self) -> int:
        """Smallest shift for which v_1 · boltz / 2^shift varies by at most half the smallest distance of two tokens."""
        return max(0, (-(-2 * self.direction[0] * self.span // self.gap) - 1).bit_length())

    def head(self, gamma: Fraction, factor: int) -> tuple[Integers, Integers, Integers, Integers]:
        """Return W_Q, W_K, W_V and W_O of rank one: γ's numerator times v, v, v, and ``factor`` in the first row."""
        v = integers([list(self.direction)])
        return gamma.numerator * v, v, v, integers([[factor * int(i == 0)] for i in range(len(self.direction))])


def worst_demand(size: Size, setting: Setting, settings: RankSettings) -> RankDemand:
    """Return the largest demand of a task of ``size``."""
    return RankDemand(size, settings.positions, most_questions(size, setting, positions=settings.positions))


def plan(demand: RankDemand) -> Plan:
    """Plan the network's tensors, with 2(K − 1) hidden units.

    >>> size = Size(examples=50, length=6, labels=4, vocab=30)
    >>> p = plan(worst_demand(size, "seq-to-seq", RankSettings()))
    >>> p.dense - p.embedding, p.width
    (1799, 598)
    """
    size, dim = demand.size, demand.size.dim or 1
    parts: list[Part] = []
    if size.dim is None:
        parts.append(("embedding", (("W_E", (size.vocab, 1)),)))
    if demand.positions:
        parts.append(("positions", (("W_pos", (size.length, dim)),)))
    row = (1, dim)
    parts.append(("attention", (("W_Q", row), ("W_K", row), ("W_V", row), ("W_O", (dim, 1)))))
    parts.append(("label", stair_shape(demand.questions, dim)))
    return plan_of(parts, input_width=dim, extra_depth=1 if size.dim is not None else 2)


def build(task: Task, settings: RankSettings, rng: np.random.Generator, report: Report | None = None) -> Made:
    """Build a network that has memorized ``task``."""
    if settings.precision < FEWEST_BITS:
        raise BadInput(f"precision is {settings.precision}; expected at least {FEWEST_BITS} bits")
    checked = consistent(NAME, task, positions=settings.positions)
    asked = _asked(checked, settings.positions)
    line = _on_a_line(checked, asked.first, settings.positions, rng)
    gamma = _gamma(line, checked.size.length, settings)
    attention: SoftmaxAttention | HardmaxAttention
    if settings.attention == "hardmax":
        attention, ids = _hardmax(line, asked, gamma)
    else:
        attention, ids = _softmax(line, asked, gamma, settings)
    answer = {interval: int(label) for interval, label in zip(ids, asked.labels, strict=True)}
    distinct_ids = sorted(answer, key=lambda interval: interval.low)
    id_bits = _bits_apart(distinct_ids)
    if id_bits > settings.precision:
        raise BadInput(
            f"{NAME}: telling the context ids apart takes {id_bits:,} bits; the precision limit is "
            f"{settings.precision:,}: tokens are too close together. {_HINT}"
        )
    ordered = _filled_up(distinct_ids, len(asked))
    labels = [answer.get(interval, 0) for interval in ordered]
    layers = stair_layers(ordered, labels, line.direction)
    network = network_for(checked, (*line.front, attention, FeedForward(tuple(layers), name="label")))
    planned = plan(RankDemand(checked.size, settings.positions, len(asked)))
    return Made(network, planned, {"questions": len(asked), "id_bits": id_bits})


def hypotheses(task: Task, settings: RankSettings) -> list[Hypothesis]:
    """Check the hypotheses of all theorems on sequences, and that no token repeats (which our proof does not need)."""
    common = sequence_hypotheses(NAME, task, positions=settings.positions)
    return common if settings.positions else [*common, no_token_twice(task)]


def _softmax(
    line: _Line, asked: _Asked, gamma: Fraction, settings: RankSettings
) -> tuple[SoftmaxAttention, list[Interval]]:
    """Return the softmax layer, and disjoint intervals around v·Z for all questions."""
    down, shift = (1 << 2 * line.exponent) * gamma.denominator, line.shift
    factor = Fraction(line.direction[0], 1 << shift)
    ids: list[Interval] = []
    for own in np.split(np.arange(len(asked)), np.flatnonzero(np.diff(asked.token)) + 1):
        Y = line.values[asked.token[own[0]]]
        multisets = [_valued(line, *asked.multisets[q]) for q in own]
        beta = Fraction(gamma.numerator * Y, down)
        try:
            # A few bits more than are accepted: ids that just pass must be told apart for certain.
            values = _means(multisets, asked.labels[own]) if Y == 0 else apart(beta, multisets, settings.precision + 64)
        except NotApartError as pair:
            places = _place(asked, own[pair.first]), _place(asked, own[pair.second])
            raise BadInput(_too_close(places, settings, abs(beta) * line.span)) from pair
        ids += [_over(line, Interval(Y + factor * value.low, Y + factor * value.high)) for value in values]
    return SoftmaxAttention(*line.head(gamma, 1), gamma.denominator.bit_length() - 1, shift), ids


def _means(multisets: list[Multiset], labels: Ids) -> list[Interval]:
    """Return the multisets' means, the operator's values at y = 0; NotApartError if equal means differ in label."""
    means, first = [boltz(Fraction(0), multiset, FEWEST_BITS) for multiset in multisets], dict[Interval, int]()
    for q, mean in enumerate(means):
        if labels[first.setdefault(mean, q)] != labels[q]:
            raise NotApartError(first[mean], q)
    return means


def _hardmax(line: _Line, asked: _Asked, gamma: Fraction) -> tuple[HardmaxAttention, list[Interval]]:
    """Return a hardmax layer with v·Z = y + M·v_1·(the attended token), and the ids; BadInput if ids do not suffice."""
    # Tokens are multiples of their greatest common divisor; means, the values at y = 0, of its n-th part.
    M = 1 << (2 * asked.ids.shape[1] * line.span // max(1, math.gcd(*line.values))).bit_length()
    ids, first_questions = [], dict[tuple[int, Fraction], int]()
    for q, token in enumerate(asked.token.tolist()):
        Y, others = line.values[token], _valued(line, *asked.multisets[q])
        # Scores are γ·y·y_j: the largest token wins for y > 0, the smallest for y < 0, and all tie for y = 0.
        extreme = max(others.values) if Y > 0 else min(others.values)
        top = boltz(Fraction(0), others, FEWEST_BITS).low if Y == 0 else Fraction(extreme)
        first = first_questions.setdefault((Y, top), q)
        if asked.labels[first] != asked.labels[q]:
            raise BadInput(_confused(asked, first, q, Y))
        value = Y + M * line.direction[0] * top
        ids.append(_over(line, Interval(value, value)))
    return HardmaxAttention(*line.head(gamma, M)), ids


def _filled_up(ids: list[Interval], count: int) -> list[Interval]:
    """Append unused ids until there are ``count``: hardmax attention may give several questions one id."""
    last = ids[-1].high
    return ids + [Interval(last + i, last + i) for i in range(1, count - len(ids) + 1)]


def _bits_apart(ordered: list[Interval]) -> int:
    """Return log₂(largest id / smallest distance of two ids), rounded up; 1 for a single id."""
    if len(ordered) == 1:
        return 1
    largest = max(abs(ordered[0].low), abs(ordered[-1].high))
    ratio = largest / min(after.low - before.high for before, after in pairwise(ordered))
    return max(1, (ratio.numerator // ratio.denominator).bit_length())


def _over(line: _Line, value: Interval) -> Interval:
    """Convert an interval to the units of the stream."""
    return Interval(value.low / (1 << line.exponent), value.high / (1 << line.exponent))


def _valued(line: _Line, tokens: Ids, counts: Ids) -> Multiset:
    return Multiset(tuple(line.values[token] for token in tokens), tuple(counts.tolist()))


def _asked(task: NextToken | SeqToSeq, positions: bool) -> _Asked:
    """Return the task's different questions; sequences that are permutations of each other count once."""
    every = collect_questions(task, positions=positions)
    rows, inverse = np.unique(np.sort(every.ids, axis=1), axis=0, return_inverse=True)
    pairs = every.token * len(rows) + inverse.ravel()[every.sequence]
    questions, first = np.unique(pairs, return_index=True)
    runs = count_tokens(rows)
    cuts = np.flatnonzero(np.diff(runs.sequence)) + 1
    multisets = list(zip(np.split(runs.token, cuts), np.split(runs.count, cuts), strict=True))
    token, sequence, labels, places = (a[first] for a in (every.token, every.sequence, every.labels, every.places))
    asked_in = [multisets[question % len(rows)] for question in questions]
    return _Asked(task, every.ids, every.first, token, sequence, labels, places, asked_in)


def _on_a_line(task: NextToken | SeqToSeq, first: Ids, positions: bool, rng: np.random.Generator) -> _Line:
    """Map tokens to a line: ids to y = ω + t or n(ω + t) + k, vectors by the best of a few directions.

    ``first`` holds the place of each token's first occurrence. The best direction keeps tokens farthest apart.
    """
    n, places = task.size.length, first % task.size.length
    if task.tokens is not None:
        check_table(task)
        step = n if positions else 1
        table = step * (task.vocab + np.arange(task.vocab))
        front: tuple[Layer, ...] = (Embedding(integers(table[:, None])),)
        values = table[task.tokens.ravel()[first]] + (places if positions else 0)
        if positions:
            front = (*front, Positions(integers(np.arange(n)[:, None])))
        return _Line((1,), tuple(values.tolist()), 0, front)
    assert task.vectors is not None
    points = vectors.from_floats(task.vectors.reshape(-1, task.vectors.shape[2])[first])
    rows = zip(points.mantissa, points.place, strict=True)
    X = [[int(m) << int(p) for m, p in zip(*row, strict=True)] for row in rows]
    drawn = [_directed(X, places, points.exponent, n if positions else 0, rng, b) for b in range(4, 4 + _DIRECTIONS)]
    different = [line for line in drawn if len(set(line.values)) == len(line.values)]
    if not different:
        raise BadInput(f"{NAME}: {_DIRECTIONS} directions did not tell {len(X)} tokens apart; please report this task")
    zero = [not any(row) for row in X]

    def keeps_off_zero(line: _Line) -> bool:
        return all(at_zero or value != 0 for value, at_zero in zip(line.values, zero, strict=True))

    return max(different, key=lambda line: (keeps_off_zero(line), Fraction(line.gap, line.span)))


def _directed(X: list[list[int]], places: Ids, exponent: int, n: int, rng: np.random.Generator, bits: int) -> _Line:
    """Draw a direction of ``bits`` bits. With positions (n > 0) they move tokens by more than tokens differ."""
    d = len(X[0])
    v = [1] if d == 1 else [int(entry) for entry in rng.integers(1 << (bits - 1), 1 << bits, size=d)]
    values = [sum(a * x for a, x in zip(v, row, strict=True)) for row in X]
    if n == 0:
        return _Line(tuple(v), tuple(values), exponent, ())
    unit = v[0] << exponent
    step = (max(values) - min(values)) // unit + 1
    moved = [value + int(k + 1) * step * unit for value, k in zip(values, places, strict=True)]
    W_pos = [[(k + 1) * step * int(i == 0) for i in range(d)] for k in range(n)]
    return _Line(tuple(v), tuple(moved), exponent, (Positions(integers(W_pos)),))


def _gamma(line: _Line, length: int, settings: RankSettings) -> Fraction:
    """Choose γ for the scores γ·y·y': they span at most 4 (gentle), or are more than 4 log n apart (paper)."""
    largest, smallest = (choose(abs(value) for value in line.values) for choose in (max, min))
    unit = Fraction(1 << 2 * line.exponent)
    if settings.scale == "gentle":
        bound = SPAN * unit / (max(1, largest) * line.span)
        power = bound.numerator.bit_length() - bound.denominator.bit_length() - 1
        return Fraction(1 << max(power, 0), 1 << max(-power, 0))
    if smallest == 0:
        raise BadInput(f"{NAME}: a token lies at 0, where all scores are equal; move the vectors, or use scale=gentle")
    bound = Fraction(4 * math.log(length) + 1e-9) * unit / (smallest * line.gap)
    power = max(0, 8 + bound.denominator.bit_length() - bound.numerator.bit_length())
    return Fraction((bound.numerator << power) // bound.denominator + 1, 1 << power)


def _place(asked: _Asked, question: int) -> str:
    example, position = divmod(int(asked.places[question]), asked.ids.shape[1])
    row = asked.task.inputs[example]
    shown = f" ({' '.join(map(str, row.tolist()))})" if row.ndim == 1 and len(row) <= _SHOWN else ""
    return f"example {example}{shown}, position {position}"


_HINT = "Raise --precision, or use --scale gentle, or move tokens apart (and away from 0)"


def _too_close(places: tuple[str, str], settings: RankSettings, scores: Fraction) -> str:
    """Explain why two places cannot be told apart, at a token whose scores have the span ``scores``."""
    if scores == 0:
        return (
            f"{NAME}: {places[0]} and {places[1]} ask for different labels at a token that lies at 0, which sees no "
            "more than the mean of its sequence, and the means are equal; move tokens away from 0"
        )
    # A token whose score lies this far below the largest weighs e^−scores.
    bits = int(scores / Fraction(math.log(2)))
    many = f"{bits:,}" if bits < _COUNTABLE else f"2^{bits.bit_length() - 1}"
    return (
        f"{NAME}: the context ids of {places[0]} and {places[1]} agree within the precision limit of "
        f"{settings.precision:,} bits: tokens are too close together; by the span of the scores it may take {many} "
        f"bits or more. {_HINT}"
    )


def _confused(asked: _Asked, first: int, second: int, Y: int) -> str:
    seen = "the mean of the sequence is" if Y == 0 else "the same token is"
    hint = "" if Y == 0 else ". Softmax attention tells them apart"
    return (
        f"{NAME}: one hardmax layer confuses {_place(asked, first)} with {_place(asked, second)}: the same token asks, "
        f"{seen} attended to, and nothing else is seen; asked for label {asked.labels[first]} and "
        f"label {asked.labels[second]}{hint}"
    )


THEOREMS = (
    Theorem(
        "memorization",
        says="one layer with one softmax head of rank one memorizes N sequences with O(d(2nN + d)) parameters",
        assumes="(r, δ)-separated tokens, no token twice in a sequence, equal questions have equal answers",
        limits="one layer, one head, W_Q, W_K, W_V of rank one, 2nN hidden units",
        task=TOKENS,
        stated={"scale": "paper"},
        ours={"scale": "gentle"},
        differs="2(K − 1) units for K different questions, so fewer; tokens may repeat; shown on token ids, so d = 1",
    ),
    Theorem(
        "hardmax",
        says="no layer of hardmax heads, however many, tells all sequences apart",
        assumes="a layer of hardmax heads",
        limits="one layer",
        shown_by="byheart task confused --heads 8 -o c.npz (and build with --attention hardmax or softmax)",
    ),
    Theorem(
        "universal approximation",
        says="one such layer between two feed-forward networks approximates continuous equivariant functions",
        assumes="a continuous permutation-equivariant function on a compact set, ε > 0",
        limits="one layer, one head of rank one",
        shown_by="byheart approximate --function rank --length 3 --epsilon 0.3 0.2 0.1",
    ),
)
CONSTRUCTION = Construction(
    name=NAME,
    paper="Kajitsuka & Sato 2024",
    summary="one layer, one softmax head of rank one, 2nN units",
    settings=RankSettings,
    build=build,
    covers=("next-token", "seq-to-seq"),
    plan=lambda size, setting, settings: plan(worst_demand(size, setting, settings)),
    orders={"seq-to-seq": "O(d(2nN + d))"},
    hypotheses=hypotheses,
    theorems=THEOREMS,
    colour="#7a4fb5",
    flags="--scale paper",
)
