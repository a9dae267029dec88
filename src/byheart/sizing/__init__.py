"""How large a model must be to memorize data, and whether a model at hand has room.

:mod:`.data` reads and measures the data, :mod:`.needs` lists the parameters and bytes that hold them and compares these
with a model, and :mod:`.picture` draws. Every number has one of the four kinds of :mod:`byheart.bounds.bound`, and a
source.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from byheart.errors import BadInput
from byheart.networks.causal import read_model
from byheart.sizing.data import SAMPLE_MIB, Data, read
from byheart.sizing.needs import STORED, Need, Room, needs, room
from byheart.tasks.questions import QuestionsLike

__all__ = ["Sizing", "size"]

BITS = (16, 32)
"""Bits per parameter for which counting is done by default."""
MAX_BITS = 1 << 10
MAX_PARAMETERS = 10**18


@dataclass(frozen=True, eq=False, repr=False)
class Sizing:
    """How large a model must be for the data, and whether a model at hand has room."""

    data: Data
    needs: tuple[Need, ...]
    room: Room | None = None

    def as_json(self) -> dict[str, Any]:
        """Return all numbers, for programs."""
        data = self.data
        size = data.size
        values = {
            "data": data.name,
            "bytes": data.bytes,
            "facts": data.facts,
            "looked_at": data.looked_at,
            "estimate": data.looked_at is not None,
            "places": data.places,
            "questions": size.examples,
            "window": size.length,
            "labels": size.labels,
            "vocab": size.vocab,
            "entropies": [asdict(entropy) for entropy in data.entropies],
            "needs": [asdict(need) | {"bytes": need.bytes} for need in self.needs],
        }
        room = None if self.room is None else asdict(self.room) | {"verdict": self.room.verdict}
        return values | {"room": room}

    def __repr__(self) -> str:
        size = self.data.size
        return f"<Sizing: {self.data.name}, {size.examples:,} questions of {size.length:,} tokens>"


def size(
    data: QuestionsLike,
    *,
    model: Path | str | None = None,
    parameters: int | None = None,
    bits: Sequence[int] | None = None,
    sample: int = SAMPLE_MIB,
) -> Sizing:
    """Find how large a model must be to memorize ``data``, and whether a model at hand has room.

    ``data``: a task, a text or several by name, paths of texts, of folders of texts or of a task.
    ``model`` is a folder, of which config.json alone is read. Alternatively, give its number of ``parameters``.
    ``bits`` per parameter, for the numbers that counting proves (default: 16 and 32, and the model's own).
    If files have more than ``sample`` MiB, a sample of that size is read, and the numbers are estimates.

    >>> sizing = size("To be, or not to be, that is the question.", parameters=10_000)
    >>> sizing
    <Sizing: text, 42 questions of 8 tokens>
    >>> {need.what: need.parameters for need in sizing.needs if need.kind == "fitted"}["compiled, rectangular"]
    2661
    >>> sizing.room.verdict
    'It has room: the data take 0.4 % to 0.75 % of its capacity at trained rates.'
    """
    name, count, stored = _model(model, parameters)
    counted = _bits(bits, stored)
    if type(sample) is not int or not 1 <= sample <= 1 << 20:
        raise BadInput(f"sample is {sample}; expected 1 to {1 << 20:,}, in MiB")
    measured = read(data, sample << 20)
    stated = counted[0] if bits is not None and len(counted) == 1 else None
    width = stored or stated or STORED
    rows = needs(measured, counted, width)
    if count is None:
        return Sizing(measured, tuple(rows))
    is_assumed = not (stored or stated)
    return Sizing(measured, tuple(rows), room(measured, rows, name, count, width, assumed=is_assumed))


def _model(model: Path | str | None, parameters: int | None) -> tuple[str, int | None, int | None]:
    """Return the model's name, its number of parameters, and the bits of each, as far as they are known."""
    if model is not None and parameters is not None:
        raise BadInput("model and parameters are both given; expected one of the two")
    if model is not None:
        config = read_model(Path(model))
        return f"{model} ({config.family}, {config.parameters:,} parameters)", config.parameters, config.bits
    if parameters is not None and (type(parameters) is not int or not 1 <= parameters <= MAX_PARAMETERS):
        raise BadInput(f"parameters is {shortened(parameters)}; expected a whole number from 1 to 10¹⁸")
    return f"a model of {parameters:,} parameters" if parameters else "", parameters, None


def _bits(bits: Sequence[int] | None, stored: int | None) -> tuple[int, ...]:
    values = tuple(sorted({*BITS, stored} - {None})) if bits is None else tuple(bits)  # type: ignore[type-var]
    wrong = [b for b in values if type(b) is not int or not 1 <= b <= MAX_BITS]
    if wrong or not values:
        raise BadInput(f"bits is {list(values)}; expected whole numbers from 1 to {MAX_BITS:,}")
    return values  # type: ignore[return-value]
