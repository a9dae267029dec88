"""Kajitsuka & Sato 2025, "On the Optimal Memorization Capacity of Transformers": both theorems, as a program.

**Next-token** (their Theorem 1): N sequences that are distinct up to permutation, each with one label of C, are
memorized by FFN · uniform attention · FFN with Õ(√N) parameters, whatever their length n. **Seq-to-seq**: with one
label per token and consistent labels, Õ(√(nN)) parameters.

The network is that of :mod:`.gadgets.contextual` with grouped bit extraction
(:mod:`.gadgets.lookup`) as token stage and label stage. Hypotheses, checked: finite tokens; without
``positions`` no two sequences that are permutations of each other ask for different labels. The theorem's token-wise
(r, δ)-separation is not needed: floats are read as exact points of a grid (:mod:`.gadgets.grid`), so
different tokens are always told apart, at six parameters per bit of the grid.

The attention only averages, so the same holds for Deep Sets, as the paper remarks: ``mixing="sum"`` puts a sum over all
tokens in its place. It is the same network, number by number, less the attention's two parameters.

Where we differ from the paper: the step function that finds a key's group is one wide layer instead of a narrow deep
chain (8 instead of about 40 parameters per group), so the width is not constant. The parameters are fewer, of the same
order.

>>> from byheart.size import Size
>>> plan = CONSTRUCTION.plan(Size(examples=1000, length=32, labels=10, vocab=200), "next-token", Settings())
>>> plan.dense - plan.embedding
2641
"""

from dataclasses import dataclass, replace

from byheart.constructions.construction import Reading
from byheart.constructions.gadgets import contextual, lookup
from byheart.constructions.gadgets.sizes import Engine, Mixing
from byheart.tasks.theorems import of_sequences

NAME = "kajitsuka-sato-2025"


@dataclass(frozen=True)
class Settings(Reading):
    """How the network reads a sequence, and how many bits a weight may have."""

    bits: int | None = None
    """At most this many bits in any weight, sign included (default: as many as make it smallest)."""
    mixing: Mixing = "attention"
    """Uniform attention, or a sum over tokens in its place, without parameters (Deep Sets)."""


def extraction(bits: int | None) -> Engine:
    """Grouped bit extraction as token stage and label stage, with a limit on the bits per weight."""
    limits = lookup.Limits(bits=bits)
    return Engine(
        label_stage=lambda keys, labels, largest: lookup.design(keys, labels, largest, limits=limits),
        token_stage=lambda keys, labels, largest, own: lookup.design(
            keys, labels, largest, own_bits=own, limits=limits
        ),
        fold_labels=True,
    )


CONSTRUCTION = contextual.construction(
    lambda settings: replace(extraction(settings.bits), mixing=settings.mixing),
    name=NAME,
    paper="Kajitsuka & Sato 2025",
    summary="FFN · uniform attention · FFN: Õ(√N) next-token, Õ(√(nN)) seq-to-seq",
    settings=Settings,
    orders={"next-token": "Õ(√N)", "seq-to-seq": "Õ(√(nN))"},
    hypotheses=lambda task, settings: of_sequences(NAME, task, positions=settings.positions),
    colour="#1f5fa8",
)
