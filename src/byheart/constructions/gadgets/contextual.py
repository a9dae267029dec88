"""FFN · uniform attention · FFN: the Transformer of Kajitsuka & Sato 2025, with the label stage left open.

**Letters.** N sequences of n tokens, C labels. u_k is the integer that stands for the token at position k.

1. *Token code.* Token ids: the embedding table, u = W_E[t], drawn uniformly from [0, Q). Vectors, and tokens with
   positions: a hash z of the token (:mod:`.gadgets.modular_hash`), then a token stage that answers a
   random code from [0, Q) on the few tokens that tell the sequences apart (:mod:`.gadgets.distinguish`)
   and 0 on all others. In seq-to-seq every token must also be known by itself: u = code·2^B + z.
2. *Uniform attention* with W_V = n, W_O = 2, or a plain sum over tokens in its place (Deep Sets: the same numbers
   without attention parameters), gives the stream u_k + 2·Σ_j u_j at position k: an integer combination of codes whose
   coefficients, modulo 2, tell which token stands at k, and beyond that, how often every token occurs. Different
   questions have different coefficients, so by the hash property they get different keys fold_Q(u_k + 2Σ_j u_j) with a
   probability bounded away from 0: drawn, checked on all N (or nN) keys, drawn again.
3. *Label stage.* Keys → labels: grouped extraction (:mod:`.gadgets.lookup`) or the plain interpolator
   (:mod:`.gadgets.interpolation`).

The stream is one integer wide all the way. Everything is exact; only the number of draws is random.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from byheart.constructions.construction import Construction, Made, VectorReading
from byheart.constructions.gadgets.assemble import network_for
from byheart.constructions.gadgets.demand import LookupDemand, Setting, demand_of, worst_demand
from byheart.constructions.gadgets.hypotheses import consistent
from byheart.constructions.gadgets.lookup_sizes import Engine, LookupSizes
from byheart.constructions.gadgets.modular_hash import draw_modulus, fold, fold_layers, fold_shapes
from byheart.constructions.gadgets.nearby import check_radius, find_reader, points_of, typical_front
from byheart.constructions.gadgets.task_questions import pad_keys, select_keys
from byheart.constructions.gadgets.tokens import TRIES, EmbeddedTokens, coded_tokens
from byheart.constructions.gadgets.vectors import Reader
from byheart.constructions.plan import Part, Plan, TokenwiseShape, plan_of
from byheart.networks.exact import FeedForward, TokenSum, UniformAttention, integers
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import NextToken, SeqToSeq, Task


def construction(engine: Callable[[Any], Engine], *, name: str, **entry: Any) -> Construction:
    """The construction of such networks whose keys become labels by the engine that the settings call for."""

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
    """How vectors are read; settings that do not say so read them as the floats that they are."""
    return settings if isinstance(settings, VectorReading) else VectorReading()


def _worst(size: Size, setting: Setting, settings: Any) -> LookupDemand:
    """The largest demand that a task of this size can have, its vectors as they typically are."""
    worst = worst_demand(size, setting, positions=settings.positions)
    if _vector_reading(settings).read == "grid" or size.dim is None:
        return worst
    return replace(worst, front=typical_front(worst))


def plan(sizes: LookupSizes) -> Plan:
    """The network's tensors, from the sizes alone."""
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
    """The network that has memorized ``task``."""
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
