"""The plain interpolator, the baseline of all tables: the same Transformer with one hidden unit per question.

The front is that of :mod:`.gadgets.contextual`; the label stage is a zigzag through all keys, the token
stage (where tokens are vectors or have positions) a sum of spikes; see :mod:`.gadgets.interpolation`.

>>> from byheart.sizes import Size
>>> plan = CONSTRUCTION.plan(Size(examples=1000, length=32, labels=10, vocab=200), "next-token", SequenceReading())
>>> plan.dense - plan.embedding
3003
"""

from byheart.constructions.construction import SequenceReading
from byheart.constructions.gadgets import contextual
from byheart.constructions.gadgets.interpolation import Spikes, Zigzag
from byheart.constructions.gadgets.lookup_sizes import Engine

INTERPOLATION = Engine(
    label_stage=lambda keys, labels, *_: Zigzag(keys, labels),
    token_stage=lambda keys, labels, _, own_bits, __: Spikes(keys, labels, own_bits),
    fold_labels=False,
)


CONSTRUCTION = contextual.construction(
    lambda _: INTERPOLATION,
    name="interpolate",
    summary="the plain one-hidden-layer interpolator: 3 parameters per label, every table's baseline",
    settings=SequenceReading,
    orders=dict.fromkeys(("next-token", "seq-to-seq"), "naive: 3 per label"),
    colour="#8c8c8c",
)
