"""FFN · uniform attention · FFN: the Transformer of Kajitsuka & Sato 2025, with the label stage left open.

**Letters.** N sequences of n tokens, C labels. u_k is the integer that stands for the token at position k.

1. *Token code.* For token ids it is a row of the embedding table, u = W_E[t], drawn uniformly from [0, Q). Vectors, and
   tokens with positions, are first hashed to an integer z (:mod:`.gadgets.modular_hash`). A token stage then maps the
   few tokens that tell the sequences apart (:func:`.demand.distinguishing_tokens`) to random codes from [0, Q), and all
   others to 0. In seq-to-seq tasks the network must also know every token by itself, so u = code·2^B + z.
2. *Uniform attention* has W_V = n and W_O = 2. A plain sum over tokens may take its place (Deep Sets: the same numbers
   without attention parameters). The stream at position k is then u_k + 2·Σ_j u_j, an integer combination of codes. Its
   coefficients modulo 2 tell which token stands at k, and the rest tells how often every token occurs. Different
   questions have different coefficients, so by the hash property they get different keys fold_Q(u_k + 2Σ_j u_j) with a
   probability bounded away from 0. The codes are drawn, checked on all N (or nN) keys, and drawn again if a check
   fails.
3. *Label stage.* It maps keys to labels, by grouped extraction (:mod:`.gadgets.lookup`) or by the plain interpolator
   (:mod:`byheart.constructions.interpolate`).

The stream is one integer wide in all layers. Everything is exact; only the number of draws is random.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from byheart.constructions.construction import Construction, Made, VectorReading
from byheart.constructions.gadgets import modular_hash, vectors
from byheart.constructions.gadgets.demand import (
    LookupDemand,
    Setting,
    demand_of,
    different_tokens,
    pad_keys,
    select_keys,
    worst_demand,
)
from byheart.constructions.gadgets.hypotheses import check_table, consistent
from byheart.constructions.gadgets.modular_hash import TRIES, draw_modulus, fold, fold_layers, fold_shapes, multiply
from byheart.constructions.gadgets.nearby import check_radius, find_reader, points_of, typical_front
from byheart.constructions.gadgets.vectors import Reader
from byheart.constructions.plan import Part, Plan, TokenwiseShape, network_for, plan_of
from byheart.errors import BadInput
from byheart.networks.exact import (
    Affine,
    Embedding,
    FeedForward,
    Integers,
    Layer,
    Positions,
    TokenSum,
    UniformAttention,
    integers,
)
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import NextToken, SeqToSeq, Task, token_ids
from byheart.tasks.arrays import Ids

Mixing = Literal["attention", "sum"]


class LookupStage(Protocol):
    """A token-wise network from one key to one label. Its shape is known before the keys are."""

    @property
    def shape(self) -> TokenwiseShape:
        """Roles and widths of the layers."""

    def layers(self, keys: Ids, labels: Integers) -> list[Affine]:
        """Build the layers that answer ``labels`` [K] on ``keys`` [K]."""


@dataclass(frozen=True)
class Engine:
    """A way to turn keys into labels. Stages are functions of (keys, labels, largest key[, own bits], most layers)."""

    label_stage: Callable[[int, int, int, int | None], LookupStage]
    token_stage: Callable[[int, int, int, int, int | None], LookupStage]
    fold_labels: bool
    """True if keys are folded into a small range in front of the label stage."""
    depth: int | None = None
    """Largest number of layers of the whole network; None: no limit."""
    shallowest: int = 0
    """Smallest number of layers of a stage if ``depth`` is given."""
    mixing: Mixing = "attention"
    """Layer that combines the tokens of a sequence: uniform attention, or a plain sum."""


@dataclass(frozen=True)
class LookupSizes:
    """All sizes of the network, which follow from the demand alone."""

    demand: LookupDemand
    engine: Engine

    @property
    def label_modulus(self) -> int:
        """Smallest modulus Q for the questions."""
        return modular_hash.question_modulus(self.demand.questions, self.demand.size.labels)

    @property
    def token_modulus(self) -> int:
        """Smallest modulus Q for the tokens.

        No marked token may collide with another token. In seq-to-seq tasks no two tokens of a sequence may either.
        """
        d = self.demand
        pairs = d.marked * d.tokens if d.setting == "next-token" else 2 * d.marked * d.tokens + d.size.length * d.tokens
        smallest = modular_hash.SMALLEST_ALONE if d.size.dim == 1 else modular_hash.SMALLEST
        return max(smallest, 2 * d.tokens + 1, pairs // 2)

    @property
    def own_bits(self) -> int:
        """Number B of bits for the token's own hash below its code; 0 if the hash is not passed on."""
        passed_on = self.demand.coded and self.demand.setting == "seq-to-seq"
        return modular_hash.largest_key(self.token_modulus).bit_length() if passed_on else 0

    @property
    def label_ratio(self) -> int:
        """Bound on the stream behind the attention, in multiples of Q."""
        return (2 * self.demand.size.length + 1) << self.own_bits

    @property
    def label_folds(self) -> int:
        """Number of folds in front of the label stage."""
        wide = self.label_ratio * modular_hash.largest_modulus(self.label_modulus) >= 1 << 62
        return modular_hash.folds_needed(self.label_ratio) if self.engine.fold_labels or wide else 0

    @property
    def token_folds(self) -> int:
        """Number of folds in front of the token stage, for W_E + W_pos or for the hash of a vector (+ W_pos)."""
        size, bits, front = self.demand.size, self.demand.grid_bits, self.demand.front
        ratio = 1 if size.dim is None else front.ratio if front is not None else vectors.ratio(size.dim, bits)
        return modular_hash.folds_needed(ratio + self.demand.positions)

    @property
    def projection(self) -> TokenwiseShape:
        """Shape of the layers from a vector to its hash."""
        front = self.demand.front
        return TokenwiseShape((("hash", 1, self.demand.size.dim or 1),) if front is None else front.shapes)

    @property
    def fold_layers(self) -> int:
        """Number of layers that fold, in front of both stages."""
        token_folds = self.token_folds if self.demand.coded else 0
        return sum(len(modular_hash.fold_shapes(1, folds)) for folds in (token_folds, self.label_folds))

    @property
    def label_stage(self) -> LookupStage:
        """Stage from keys to labels."""
        return self._stages[-1]

    @property
    def token_stage(self) -> LookupStage:
        """Stage from marked tokens to codes below Q."""
        return self._stages[0]

    @cached_property
    def _stages(self) -> list[LookupStage]:
        """Token stage, if there is one, and label stage, within the depth that the engine allows."""
        coded, depth = self.demand.coded, self.engine.depth
        free = [*([self._token_stage(None)] if coded else []), self._label_stage(None)]
        if depth is None:
            return free
        # Besides the stages and folds there are the embedding or projection, and the attention.
        layers = depth - 1 - len(self.projection.layers) - self.fold_layers
        if sum(_depth(stage) for stage in free) <= layers:
            return free
        if layers < (least := len(free) * self.engine.shallowest):
            raise BadInput(f"this task needs at least {depth - layers + least} layers; got depth={depth}")
        return self._divided(layers) if coded else [self._label_stage(layers)]

    def _divided(self, layers: int) -> list[LookupStage]:
        """Return both stages with at most ``layers`` layers together, the smallest of about a hundred divisions."""
        least = self.engine.shallowest
        divided = []
        for most in range(least, layers - least + 1, 1 + (layers - 2 * least) // _DIVISIONS):
            token = self._token_stage(most)
            divided.append([token, self._label_stage(layers - _depth(token))])
        return min(divided, key=lambda stages: sum(stage.shape.dense for stage in stages))

    def _label_stage(self, layers: int | None) -> LookupStage:
        Q = modular_hash.largest_modulus(self.label_modulus)
        largest = Q // 2 if self.label_folds else self.label_ratio * Q
        return self.engine.label_stage(self.demand.questions, self.demand.size.labels, largest, layers)

    def _token_stage(self, layers: int | None) -> LookupStage:
        codes, largest = modular_hash.largest_modulus(self.label_modulus), modular_hash.largest_key(self.token_modulus)
        return self.engine.token_stage(self.demand.marked, codes, largest, self.own_bits, layers)


_DIVISIONS = 100
"""Approximate number of ways to divide the layers between the two stages that are compared."""


def _depth(stage: LookupStage) -> int:
    return len(stage.shape.layers)


class EmbeddedTokens:
    """Token ids, whose codes are the rows of the embedding table."""

    def __init__(self, task: NextToken | SeqToSeq) -> None:
        check_table(task)
        assert task.tokens is not None
        self.ids: Ids = task.tokens
        self.codes = task.vocab
        self.chosen: dict[str, object] = {}

    def values(self, codes: Ids, modulus: int | None) -> Ids:
        """Return u for every token; codes are below the modulus already."""
        return codes

    def layers(self, codes: Ids) -> list[Layer]:
        """Build the embedding."""
        return [Embedding(integers(codes[:, None]))]


@dataclass(frozen=True, eq=False)
class CodedTokens:
    """Vectors, or tokens with positions. ``front`` computes ``hashes`` [K], the token stage the codes of ``marked``."""

    ids: Ids
    hashes: Ids
    marked: Ids
    front: list[Layer]
    folding: list[Affine]
    sizes: LookupSizes
    chosen: dict[str, object] = field(default_factory=dict)

    @property
    def codes(self) -> int:
        """Number of random codes needed."""
        return len(self.marked)

    def values(self, codes: Ids, modulus: int | None) -> Ids:
        """Return u = code·2^B + hash (modulo ``modulus`` if there is one), or just the code where B = 0."""
        u = np.zeros(len(self.hashes), dtype=np.int64)
        u[self.marked] = codes
        B = self.sizes.own_bits
        if B == 0:
            return u
        if modulus is None:
            return (u << B) + self.hashes
        return (multiply(u, np.array([pow(2, B, modulus)]), modulus) + self.hashes) % modulus

    def layers(self, codes: Ids) -> list[Layer]:
        """Build the embedding or projection, the positional codes, and the token stage."""
        stage = self.sizes.token_stage.layers(self.hashes[self.marked], integers(codes))
        return [*self.front, FeedForward((*self.folding, *stage), name="token_code")]


def coded_tokens(
    task: NextToken | SeqToSeq, sizes: LookupSizes, rng: np.random.Generator, reader: Reader | None = None
) -> CodedTokens:
    """Draw hashes until no marked token collides with another and, in seq-to-seq, no two tokens of a sequence do."""
    tokens = different_tokens(task, positions=sizes.demand.positions)
    marked, first = tokens.marked, tokens.first
    draw = _vector_hash(task, sizes, first, reader) if task.vectors is not None else _pair_hash(task, first)
    for draws in range(1, TRIES):
        Q = draw_modulus(sizes.token_modulus, rng)
        sums, front = draw(Q, rng)
        hashes = fold(sums, Q)
        if tokens.apart(hashes):
            chosen: dict[str, object] = {"token_modulus": Q, "token_draws": draws, "marked_tokens": len(marked)}
            folding = fold_layers([1], 0, Q, sizes.token_folds)
            chosen |= {} if reader is None else reader.chosen
            return CodedTokens(tokens.ids, hashes, marked, front, folding, sizes, chosen)
    raise RuntimeError(f"{TRIES} draws did not tell {len(hashes)} tokens apart; please report this task")


_Draw = Callable[[int, np.random.Generator], tuple[Ids, list[Layer]]]


def _pair_hash(task: NextToken | SeqToSeq, first: Ids) -> _Draw:
    """Return the hash (token id t, position k) ↦ W_E[t] + W_pos[k], with both tables uniform below Q."""
    check_table(task)
    assert task.tokens is not None
    tokens, places = task.tokens.ravel()[first], first % task.size.length

    def draw(Q: int, rng: np.random.Generator) -> tuple[Ids, list[Layer]]:
        W_E, W_pos = rng.integers(0, Q, size=task.vocab), rng.integers(0, Q, size=task.size.length)
        return W_E[tokens] + W_pos[places], [Embedding(integers(W_E[:, None])), Positions(integers(W_pos[:, None]))]

    return draw


def _vector_hash(task: NextToken | SeqToSeq, sizes: LookupSizes, first: Ids, reader: Reader | None) -> _Draw:
    """Return the hash x ↦ v·X + offset + a, or what ``reader`` makes of x (+ W_pos[k]).

    v, a and W_pos are uniform below Q.
    """
    assert task.vectors is not None
    n, d = task.vectors.shape[1:]
    points = vectors.from_floats(task.vectors.reshape(-1, d)[first])
    places, numbers = first % n, token_ids(task).ravel()[first]

    def read(Q: int, rng: np.random.Generator) -> tuple[Ids, list[Affine]]:
        if reader is None:
            sums, project = vectors.draw_hash(points, sizes.demand.grid_bits, Q, rng)
            return sums, [project]
        sums, layers = reader.draw(Q, rng)
        return sums[numbers], layers

    def draw(Q: int, rng: np.random.Generator) -> tuple[Ids, list[Layer]]:
        sums, layers = read(Q, rng)
        front: list[Layer] = [FeedForward(tuple(layers), name="projection")]
        if not sizes.demand.positions:
            return sums, front
        W_pos = rng.integers(0, Q, size=int(n))
        return sums + W_pos[places], [*front, Positions(integers(W_pos[:, None]))]

    return draw


def construction(engine: Callable[[Any], Engine], *, name: str, **entry: Any) -> Construction:
    """Return the construction of these networks with the ``engine`` for the settings; ``entry`` holds other fields."""

    def made(task: Task, settings: Any, rng: np.random.Generator, report: Report | None = None) -> Made:
        checked = consistent(name, task, positions=settings.positions)
        vectors = _vector_reading(settings)
        check_radius(vectors.radius, vectors.read)
        demand = demand_of(task, positions=settings.positions)
        if vectors.read == "grid":
            return build(checked, LookupSizes(demand, engine(settings)), rng)
        points = points_of(name, checked, positions=settings.positions)
        reader = find_reader(points, vectors.radius, rng)
        return build(checked, LookupSizes(replace(demand, front=reader.front), engine(settings)), rng, reader)

    return Construction(
        name=name,
        build=made,
        plan=lambda size, setting, s: plan(LookupSizes(_worst(size, setting, s), engine(s))),
        covers=("next-token", "seq-to-seq"),
        **entry,
    )


def _vector_reading(settings: Any) -> VectorReading:
    """Return the settings for reading vectors; settings without such fields read vectors as exact floats."""
    return settings if isinstance(settings, VectorReading) else VectorReading()


def _worst(size: Size, setting: Setting, settings: Any) -> LookupDemand:
    """Return the largest demand of a task of ``size``, with vectors of typical bits and separation."""
    worst = worst_demand(size, setting, positions=settings.positions)
    if _vector_reading(settings).read == "grid" or size.dim is None:
        return worst
    return replace(worst, front=typical_front(worst))


def plan(sizes: LookupSizes) -> Plan:
    """Plan the network's tensors from the sizes alone."""
    size, demand = sizes.demand.size, sizes.demand
    parts: list[Part] = []
    if size.dim is None:
        parts.append(("embedding", (("W_E", (size.vocab, 1)),)))
    else:
        parts.append(("projection", sizes.projection))
    if demand.positions:
        parts.append(("positions", (("W_pos", (size.length, 1)),)))
    if demand.coded:
        parts.append(
            ("token_code", TokenwiseShape((*fold_shapes(1, sizes.token_folds), *sizes.token_stage.shape.layers)))
        )
    attends = sizes.engine.mixing == "attention"
    if attends:
        parts.append(("attention", (("W_V", (1, 1)), ("W_O", (1, 1)))))
    parts.append(("label", TokenwiseShape((*fold_shapes(1, sizes.label_folds), *sizes.label_stage.shape.layers))))
    return plan_of(parts, input_width=size.dim or 1, extra_depth=(size.dim is None) + attends)


def build(
    task: NextToken | SeqToSeq, sizes: LookupSizes, rng: np.random.Generator, reader: Reader | None = None
) -> Made:
    """Build a network that has memorized ``task``; ``reader`` reads vectors as cells or balls."""
    front = coded_tokens(task, sizes, rng, reader) if sizes.demand.coded else EmbeddedTokens(task)
    labels = task.labels.ravel()
    for draws in range(1, TRIES):
        Q = draw_modulus(sizes.label_modulus, rng)
        codes = rng.integers(0, Q, size=front.codes)
        own = front.values(codes, Q if sizes.label_folds else None)[front.ids]
        asking = own[:, -1:] if isinstance(task, NextToken) else own
        stream = (asking + 2 * own.sum(axis=1, keepdims=True)).ravel()
        keys = fold(stream, Q) if sizes.label_folds else stream
        chosen = select_keys(keys, labels)
        if chosen is not None:
            keys, answers = pad_keys(keys[chosen], labels[chosen], sizes.demand.questions)
            layers = [*fold_layers([1], 0, Q, sizes.label_folds), *sizes.label_stage.layers(keys, integers(answers))]
            attention = UniformAttention(W_V=integers([[task.size.length]]), W_O=integers([[2]]))
            mixing = attention if sizes.engine.mixing == "attention" else TokenSum()
            label = FeedForward(tuple(layers), name="label")
            about = {} if reader is None else {"radius": reader.radius}
            network = network_for(task, (*front.layers(codes), mixing, label), about)
            return Made(network, plan(sizes), {"modulus": Q, "draws": draws, **front.chosen})
    raise RuntimeError(f"{TRIES} draws of codes did not tell {len(labels)} questions apart; please report this task")
