"""Kajitsuka & Sato 2025, "On the Optimal Memorization Capacity of Transformers": both theorems, as a program.

**Next-token** (their Theorem 1): N sequences that are distinct up to permutation, each with one label of C, are
memorized by FFN · uniform attention · FFN with Õ(√N) parameters, whatever their length n. **Seq-to-seq**: with one
label per token and consistent labels, Õ(√(nN)) parameters.

The network is that of :mod:`.gadgets.contextual` with grouped bit extraction
(:mod:`.gadgets.lookup`) as token stage and label stage. Hypotheses, checked: finite tokens; without
``positions`` no two sequences that are permutations of each other ask for different labels. The theorem's token-wise
(r, δ)-separation is not needed: floats are read as exact points of a grid (:mod:`.gadgets.vectors`), so
different tokens are always told apart, at six parameters per bit of the grid. With ``read="cells"`` vectors are the
reals that the theorem speaks of (:mod:`.gadgets.nearby`): the count depends on r/δ instead of on the floats' bits, and
the answers are right for every sequence whose tokens are each within a radius of those that were memorized.

``width="constant"`` with ``read="cells"`` is the theorem as stated, at width 5 (4 on a grid; the paper has about 14;
the input layer reads the d numbers of a token, an embedding table is not width): both stages find a key's group by a
chain of layers of three units. The default finds it with one wide layer, which takes fewer parameters of the same
order: 8 instead of 12 a group. Between the two ends, ``depth`` bounds the layers of the whole network, Õ(N/L)
parameters; token stage and label stage share the layers so that their parameters together are fewest. ``bits`` bounds
the bits of any weight, Õ(N/b) parameters.

The attention only averages, so the same holds for Deep Sets, as the paper remarks: ``mixing="sum"`` puts a sum over all
tokens in its place. It is the same network, number by number, less the attention's two parameters.

>>> from byheart.sizes import Size
>>> size = Size(examples=1000, length=32, labels=10, vocab=200)
>>> plan = CONSTRUCTION.plan(size, "next-token", KajitsukaSatoSettings())
>>> plan.dense - plan.embedding
2641
"""

from dataclasses import dataclass, replace

from byheart.constructions.construction import SEQUENCES, TOKEN_VECTORS, VECTORS, SequenceReading, Theorem, limited
from byheart.constructions.gadgets import contextual, lookup
from byheart.constructions.gadgets.contextual import Engine, Mixing
from byheart.tasks.theorems import sequence_hypotheses

NAME = "kajitsuka-sato-2025"


@dataclass(frozen=True)
class KajitsukaSatoSettings(SequenceReading):
    """Settings for how the network reads a sequence, and limits on its size."""

    bits: int | None = None
    """Largest number of bits of a weight, sign included (default: the number that makes the network smallest)."""
    depth: int | None = None
    """Largest number of layers (default: the number that makes the network smallest)."""
    width: lookup.Width = "free"
    """Width that makes the network smallest (free), or constant, as in the paper."""
    mixing: Mixing = "attention"
    """Uniform attention, or a sum over tokens without parameters in its place (Deep Sets)."""


def extraction(limits: lookup.Limits = lookup.NO_LIMITS) -> Engine:
    """Return grouped bit extraction as token stage and label stage, within ``limits``."""

    def stage(keys: int, labels: int, largest: int, own_bits: int, layers: int | None) -> lookup.Lookup:
        return lookup.design(keys, labels, largest, own_bits=own_bits, limits=replace(limits, depth=layers))

    return Engine(
        label_stage=lambda keys, labels, largest, layers: stage(keys, labels, largest, 0, layers),
        token_stage=stage,
        fold_labels=True,
        depth=limits.depth,
        shallowest=lookup.SHALLOWEST,
    )


_SEPARATED = "(r, δ)-separated tokens"
_DIFFERS = "width 5, beside the numbers of a token"
THEOREMS = (
    Theorem(
        "Theorem 1",
        says="N sequences with a label each are memorized with Õ(√N) parameters, whatever their length",
        assumes=f"{_SEPARATED}; no two sequences are permutations of each other",
        limits="constant width (about 14), one layer of uniform attention between two feed-forward networks",
        task=VECTORS,
        stated={"width": "constant", "read": "cells"},
        ours={},
        differs=_DIFFERS,
    ),
    Theorem(
        "seq-to-seq",
        says="N sequences with a label for every token are memorized with Õ(√(nN)) parameters",
        assumes=f"{_SEPARATED}; permuted sequences ask for permuted labels",
        limits="constant width (about 14), one layer of uniform attention between two feed-forward networks",
        task=TOKEN_VECTORS,
        stated={"width": "constant", "read": "cells"},
        ours={},
        differs=_DIFFERS,
    ),
    *limited(f"{_SEPARATED}; no two sequences are permutations of each other"),
    Theorem(
        "remark on Deep Sets",
        says="the same holds with a plain sum over the tokens in place of attention",
        assumes=f"{_SEPARATED}; no two sequences are permutations of each other",
        limits="constant width, no attention",
        task=SEQUENCES,
        stated={"width": "constant", "mixing": "sum"},
        ours={"mixing": "sum"},
        differs="shown on token ids, which are a distance of 1 apart",
    ),
    Theorem(
        "lower bound, next-token",
        says="Ω(√N) parameters are needed; with constants, √(2N log₂C) up to lower-order terms (ours)",
        assumes="one shape of network memorizes every labelling",
        limits="ReLU layers, one layer of uniform attention or none",
        shown_by="byheart bounds --examples 10000 --length 16 --vocab 64 --labels 2",
    ),
    Theorem(
        "reduction to ReLU networks",
        says="on sequences of equal tokens a Transformer is a plain ReLU network with as many parameters",
        assumes="all tokens of a sequence are equal; no positions",
        limits="any attention",
        shown_by="byheart collapse net -o plain",
    ),
    Theorem(
        "lower bound, seq-to-seq",
        says="Ω(√(nN/log(nN))) parameters are needed",
        assumes="one shape of network memorizes every dataset of N sequences of n tokens",
        limits="hardmax attention, ReLU layers",
        shown_by="byheart bounds --setting seq-to-seq --examples 10000 --length 16 --vocab 64 --labels 2",
        differs="order only; with constants it is proved for uniform attention (ours)",
    ),
)
CONSTRUCTION = contextual.construction(
    lambda settings: replace(
        extraction(lookup.Limits(settings.depth, settings.bits, settings.width)), mixing=settings.mixing
    ),
    name=NAME,
    paper="Kajitsuka & Sato 2025",
    summary="FFN · uniform attention · FFN: Õ(√N) next-token, Õ(√(nN)) seq-to-seq",
    settings=KajitsukaSatoSettings,
    orders={"next-token": "Õ(√N)", "seq-to-seq": "Õ(√(nN))"},
    theorems=THEOREMS,
    hypotheses=lambda task, settings: sequence_hypotheses(NAME, task, positions=settings.positions),
    colour="#1f5fa8",
)
