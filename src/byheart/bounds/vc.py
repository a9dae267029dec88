"""VC dimension with constants: the parameters that ReLU networks need, whatever their weights are.

**Lemma** (Warren 1968; in this form Anthony & Bartlett 1999, Theorem 8.3, used by Bartlett, Harvey, Liaw & Mehrabian
2019). M ≥ W polynomials of degree at most D in W ≥ 1 real variables take at most 2·(2eMD/W)^W patterns of signs, a
sign being positive or not. For M < W repeat some of them: 2·(2eD)^W. And no M signs have more than 2^M patterns.

**Setting.** A network is a chain of weight layers, skip connections allowed: affine maps, some followed by ReLUs; one
real output, rounded to one of C labels. The parameters are all entries of all layers. Fix the inputs and the signs of
all ReLU units in front of a unit, input by input. Then what the unit sees is one polynomial in the parameters, of
degree at most the number of weight layers so far: each multiplies once by its own entries and adds biases. The label
is told by C − 1 more signs, those of the output less ½, 3/2, …, so with all signs known the labelling is known. If
every labelling of m inputs is to be reached, then

    m·log₂C ≤ log₂(number of sign patterns).

With C = 2 this says that the m inputs are shattered, and the largest such m bounds the VC dimension; a pseudo-dimension
is the VC dimension with another threshold for every input, which changes no degree, so it obeys the same bound.

**Counting patterns in segments.** Cut the chain into segments of consecutive layers. In a segment whose ReLU layers
have k₁, k₂, … units, one input gives at most S = Σ_i k_i·2^{k₁ + … + k_{i−1}} polynomials, one for each unit and each
pattern of the units in front of it; their signs tell the pattern of the segment. With P inputs, W' parameters and D
layers up to the segment's end, each pattern of what is in front splits into at most 2·(2e·P·S·D/W')^{W'} patterns. The
numbers multiply over the segments; every way to cut is valid, and :func:`capacity` tries several.

- One layer per segment is Theorem 7 of Bartlett et al. (6 on arXiv): Π_i 2·(2e·m·k_i·i/W_i)^{W_i}, so O(WL log W).
- One segment for all is Goldberg & Jerrum 1995: S ≤ 2^U − 1 for U ReLU units, so O(WU).

**Whatever the shape.** A ReLU unit has a weight and a bias of its own, so U ≤ W/2, and a layer has a parameter, so
D ≤ W. The decision joins the one segment: S ≤ 2^U − 1 + (C − 1)·2^U < C·2^U. For W ≤ m, as the lemma wants it:

    m·log₂C ≤ 1 + W·(⌊W/2⌋ + log₂(2emC)).                                                                      (any)

A network with fewer parameters than the smallest such W misses a labelling: about √(2m·log₂C) are needed. W = m always
satisfies (any), so W ≤ m was no restriction. The right-hand side grows with W, so bisection finds the smallest W.

**At depth L.** Take one layer per segment. At most h ≤ L − 1 of them have ReLUs, with at most W/2 units in all, so
Π k_i ≤ (W/(2h))^h, and the h + 1 degrees are different numbers up to L. With the worst case h = min(L − 1, ⌊W/2⌋),

    m·log₂C ≤ h + 1 + W·(log₂(2emC/W) + h·log₂(em/h) + log₂(L·(L − 1)⋯(L − h))).                             (depth)

**Transformers.** Uniform attention, Z + W_O·W_V·mean(Z), is linear in Z with two weight layers: degrees grow by 2. What
stands in front of it sees the K different tokens (with positions: pairs of token and position), what stands behind it
the m questions. If K ≤ W, the signs of U' units in front have at most 2^{K·U'} ≤ 2^{W·U'} patterns, no more than they
were counted for above, so (any) holds; token ids come with a table of at least K entries, parameters as all others, so
without positions K ≤ W is always true for them. If K > W, K variables of which K − W are not used are still too few if
(any) does not allow K. If it does, let the units in front be a segment of their own:

    m·log₂C ≤ 2 + W·(⌊W/2⌋ + log₂(2eK) + log₂(2emC)).                                                       (tokens)

(depth) holds with max(m, K) for the m behind the logarithms, and W_V and W_O counted as two layers. On sequences of
equal tokens every attention, hardmax and softmax too, averages equal vectors and is the same linear map, so (any) and
(depth) hold for m constant sequences and any number of attention layers; :mod:`byheart.networks.exact.collapse` is that
argument as a program.

- Exact: (any), (depth), (tokens) and :func:`capacity` are proved for real weights, so for integers all the more.
  Entries that are fixed make a class smaller. Networks that use a layer twice are not covered: units share weights.
- If the table is fixed before the labels are known, its rows are inputs and the bounds hold for the other parameters.
- Floats: what the patterns allow is raised by 2⁻³² of itself, more than the logarithms can be wrong.
- Not checked here: that the questions differ, and that one shape serves all labellings.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from byheart.bounds.bound import Bound, may_differ
from byheart.bounds.counting import bits_needed, pairs_may_differ
from byheart.errors import BadInput

RAISED = 1 + 2.0**-32
_UNITS = (0, 4, 8, 16, 32, 64, 128, 256, 1024, math.inf)
"""Numbers of units per segment to try: from none (each layer is a segment) to all."""


@dataclass(frozen=True)
class WeightLayer:
    """A weight layer: its parameters, and its ReLU units (none: it is linear)."""

    parameters: int
    units: int = 0


@dataclass(frozen=True)
class WeightLayers:
    """Consecutive weight layers on the same inputs: ``per_question`` inputs each, but at most ``at_most`` in all."""

    layers: tuple[WeightLayer, ...]
    per_question: int = 1
    at_most: int | None = None

    def inputs(self, questions: int) -> int:
        """Return the number of inputs on which the layers are evaluated for ``questions`` questions."""
        total = self.per_question * questions
        return total if self.at_most is None else min(total, self.at_most)


def needed(examples: int, labels: int) -> int:
    """Return the smallest W that (any) allows for N questions: fewer parameters are never enough."""
    return fewest(examples, labels)


def fewest(questions: int, labels: int, *, depth: int | None = None, tokens: int = 0) -> int:
    """Return the smallest W that (any) allows and, if ``depth`` is given, (depth) as well.

    ``tokens`` is K, if units stand in front of an attention layer and no table ensures that K ≤ W.

    >>> fewest(10_000, 2), fewest(1_000_000, 2), fewest(10_000, 2, depth=3), fewest(10_000, 2, depth=300)
    (126, 1392, 258, 126)
    >>> fewest(10_000, 2, tokens=125), fewest(10_000, 2, tokens=100_000)
    (126, 111)
    """
    bits = bits_needed(questions, labels)
    shallow = 0 if depth is None else _smallest(bits, partial(_allowed_at_depth, max(questions, tokens), labels, depth))
    plain = _smallest(bits, partial(_allowed, questions, labels, 0))
    crowded = plain if tokens < plain else _smallest(bits, partial(_allowed, questions, labels, tokens))
    return max(shallow, crowded)


def _allowed(questions: int, labels: int, tokens: int, W: int) -> float:
    """Return the right-hand side of (any), or of (tokens) if ``tokens`` is positive."""
    in_front = 1 + W * math.log2(2 * math.e * tokens) if tokens else 0.0
    return 1 + W * (W // 2 + math.log2(2 * math.e * questions * labels)) + in_front


def _allowed_at_depth(inputs: int, labels: int, depth: int, W: int) -> float:
    """Return the right-hand side of (depth)."""
    if W == 0:
        return 1
    hidden, degree = min(depth - 1, W // 2), min(depth, W)
    degrees = (math.lgamma(degree + 1) - math.lgamma(degree - hidden)) / math.log(2)
    wide = hidden * math.log2(math.e * inputs / hidden) if hidden else 0.0
    return hidden + 1 + W * (math.log2(2 * math.e * inputs * labels / W) + wide + degrees)


def _smallest(bits: float, allowed: Callable[[int], float]) -> int:
    """Return the smallest W with ``allowed(W)`` ≥ ``bits``; ``allowed`` grows with W."""
    high = 1
    while allowed(high) * RAISED < bits:
        high *= 2
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if allowed(middle) * RAISED >= bits else (middle, high)
    return high


def capacity(stages: Sequence[WeightLayers], labels: int) -> int:
    """Return an upper bound on the number of questions for which a network of this shape reaches every labelling.

    Two ReLU units and an output on numbers: 2·(1 + 1) + (2 + 1) parameters.

    >>> capacity([WeightLayers((WeightLayer(4, units=2), WeightLayer(3)))], labels=2)
    65
    """
    if labels < 2:
        raise BadInput(f"labels is {labels}; expected at least 2: with one there is nothing to memorize")
    cuts = cuts_of(stages, labels)

    def reached(questions: int) -> bool:
        return bits_needed(questions, labels) <= pattern_bits(cuts, questions) * RAISED

    high = 1
    while reached(high):
        high *= 2
    low = high // 2  # pattern bits are concave in the questions, so the reached numbers are an interval from 0 on
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reached(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class _Segment:
    """The end of a segment: the stage whose inputs it sees, log₂S, and the weight layers and parameters so far."""

    stage: WeightLayers
    log2_polynomials: float
    degree: int
    variables: int


def cuts_of(stages: Sequence[WeightLayers], labels: int) -> list[list[_Segment]]:
    """Cut the network, with the decision among C labels at its end, into segments in several ways."""
    return [list(_segments(stages, labels, units)) for units in _UNITS]


def _segments(stages: Sequence[WeightLayers], labels: int, most_units: float) -> Iterator[_Segment]:
    """Yield segments of at most ``most_units`` units, or of one larger layer; the last includes the decision."""
    degree = variables = 0
    for index, stage in enumerate(stages, start=1):
        decision = (WeightLayer(0, units=labels - 1),) if index == len(stages) else ()
        units, segment = 0, None
        for layer in (*stage.layers, *decision):
            if segment is not None and units + layer.units > most_units:
                yield segment
                units, segment = 0, None
            degree, variables = degree + (layer.parameters > 0), variables + layer.parameters
            if layer.units:
                grown = units + math.log2(layer.units)
                if segment is not None:
                    grown = float(np.logaddexp2(segment.log2_polynomials, grown))
                units, segment = units + layer.units, _Segment(stage, grown, degree, variables)
        if segment is not None:
            yield segment


def pattern_bits(cuts: Sequence[Sequence[_Segment]], questions: int) -> float:
    """Return log₂ of the smallest of the cuts' bounds on the sign patterns of the whole network.

    >>> round(pattern_bits(cuts_of([WeightLayers((WeightLayer(2, units=1), WeightLayer(2)))], labels=2), questions=5))
    10
    """
    return min(
        math.fsum(
            _sign_bits(math.log2(segment.stage.inputs(questions)) + segment.log2_polynomials, segment)
            for segment in segments
        )
        for segments in cuts
    )


def _sign_bits(log2_polynomials: float, segment: _Segment) -> float:
    """Return log₂ of the lemma's bound on the sign patterns of M polynomials, from log₂M."""
    W = segment.variables
    if W == 0:
        return 0.0
    lemma = 1 + W * (math.log2(2 * math.e * segment.degree / W) + max(log2_polynomials, math.log2(W)))
    return min(lemma, 2**log2_polynomials) if log2_polynomials < 64 else lemma


SOURCE = (
    "Warren 1968; Goldberg & Jerrum 1995; Bartlett, Harvey, Liaw & Mehrabian 2019, Theorem 7; constants derived here"
)
AVERAGING = "feed-forward network, uniform attention, feed-forward network; ReLU, one number rounded to the label"
FIXED = "one shape for every labelling, fixed before the labels are known; real weights"
UNITS = "every ReLU unit has a weight and a bias of its own, every layer a parameter"
TOKENS = "tokens are ids with a table, or fewer different ones than W, or N ≤ ω (constant sequences)"
EVERY = "every labelling may be asked for"


def _few_tokens(examples: int, labels: int, vocab: int, dim: int | None = None) -> bool | None:
    """Return True if tokens are ids (which have a table), few vectors, or at least N vectors; otherwise None."""
    few = dim is None or vocab < fewest(examples, labels) or vocab >= examples
    return True if few else None


_bound = partial(Bound, paper="VC dimension", source=SOURCE, side="lower", kind="proved")

BOUNDS = (
    _bound(
        name="vc-next-token",
        setting="next-token",
        model=AVERAGING,
        expression="W with N log₂C ≤ 1 + W(⌊W/2⌋ + log₂(2eNC))",
        hypotheses=(FIXED, UNITS, TOKENS, EVERY, "the N inputs differ"),
        formula=needed,
        conditions={TOKENS: _few_tokens, "the N inputs differ": may_differ},
    ),
    _bound(
        name="vc-seq-to-seq",
        setting="seq-to-seq",
        model=AVERAGING,
        expression="W with nN log₂C ≤ 1 + W(⌊W/2⌋ + log₂(2enNC))",
        hypotheses=(
            *(FIXED, UNITS, "tokens are ids with a table, or fewer different ones than W", EVERY),
            "the nN pairs of token and sequence differ",
        ),
        formula=lambda examples, length, labels: fewest(examples * length, labels),
        conditions={"the nN pairs of token and sequence differ": pairs_may_differ},
    ),
    _bound(
        name="vc-points",
        setting="points",
        model="any feed-forward ReLU network, one number rounded to the label",
        expression="W with N log₂C ≤ 1 + W(⌊W/2⌋ + log₂(2eNC))",
        hypotheses=(FIXED, UNITS, EVERY, "the N inputs differ"),
        formula=needed,
        conditions={"the N inputs differ": may_differ},
    ),
    _bound(
        name="vc-points-depth",
        setting="points",
        model="any feed-forward ReLU network of at most L weight layers, one number rounded to the label",
        expression="also W with N log₂C ≤ L + W(log₂(2eNC/W) + (L − 1)log₂(eN/(L − 1)) + log₂L!)",
        hypotheses=(FIXED, UNITS, EVERY, "the N inputs differ"),
        formula=lambda examples, labels, depth: fewest(examples, labels, depth=depth),
        conditions={"the N inputs differ": may_differ},
    ),
)
