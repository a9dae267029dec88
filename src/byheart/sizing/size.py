"""``byheart.size``: the one call."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from byheart.errors import BadInput
from byheart.networks.causal import read_model
from byheart.sizing.data import MOST, Data, read
from byheart.sizing.needs import STORED, Need, needs
from byheart.sizing.room import Room, room
from byheart.tasks.questions import QuestionsLike

BITS = (16, 32)
MOST_BITS = 1 << 10
MOST_PARAMETERS = 10**18


@dataclass(frozen=True, eq=False, repr=False)
class Sizing:
    """How large a model must be for the data, and whether a model at hand has room."""

    data: Data
    needs: tuple[Need, ...]
    room: Room | None = None

    def as_json(self) -> dict[str, Any]:
        """All of it, for programs."""
        data = self.data
        size = data.size
        told = {
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
        return told | {"room": room}

    def __repr__(self) -> str:
        size = self.data.size
        return f"<Sizing: {self.data.name}, {size.examples:,} questions of {size.length:,} tokens>"


def size(
    data: QuestionsLike,
    *,
    model: Path | str | None = None,
    parameters: int | None = None,
    bits: Sequence[int] | None = None,
    sample: int = MOST,
) -> Sizing:
    """How large must a model be to memorize ``data``, and has a model room for it?

    ``data``: a task, a text or several by name, paths of texts, of folders of texts or of a task. ``model``: a folder
    with a config.json, which alone is read; or just so many ``parameters``. ``bits``: of one parameter, for what
    counting proves (None: 16 and 32, or the model's own). Of more than ``sample`` MiB in files, only so many are looked
    at, and numbers are estimates.

    >>> found = size("To be, or not to be, that is the question.", parameters=10_000)
    >>> found
    <Sizing: text, 42 questions of 8 tokens>
    >>> {need.what: need.parameters for need in found.needs if need.kind == "fitted"}["compiled, rectangular"]
    2661
    >>> found.room.verdict
    'It has room: the data take 0.4 % to 0.75 % of its capacity at trained rates.'
    """
    name, count, stored = _model(model, parameters)
    chosen = _bits(bits, stored)
    if type(sample) is not int or not 1 <= sample <= 1 << 20:
        raise BadInput(f"sample is {sample}; expected 1 to {1 << 20:,}, in MiB")
    measured = read(data, sample << 20)
    told = chosen[0] if bits is not None and len(chosen) == 1 else None
    one = stored or told or STORED
    found = needs(measured, chosen, one)
    if count is None:
        return Sizing(measured, tuple(found))
    assumed = not (stored or told)
    return Sizing(measured, tuple(found), room(measured, found, name, count, one, assumed=assumed))


def _model(model: Path | str | None, parameters: int | None) -> tuple[str, int | None, int | None]:
    """What to call it, its parameters, and the bits of each, as far as they are known."""
    if model is not None and parameters is not None:
        raise BadInput("model and parameters are both given; expected one of the two")
    if model is not None:
        found = read_model(Path(model))
        return f"{model} ({found.family}, {found.parameters:,} parameters)", found.parameters, found.bits
    if parameters is not None and (type(parameters) is not int or not 1 <= parameters <= MOST_PARAMETERS):
        raise BadInput(f"parameters is {shortened(parameters)}; expected a whole number from 1 to 10¹⁸")
    return f"a model of {parameters:,} parameters" if parameters else "", parameters, None


def _bits(bits: Sequence[int] | None, stored: int | None) -> tuple[int, ...]:
    chosen = tuple(sorted({*BITS, stored} - {None})) if bits is None else tuple(bits)  # type: ignore[type-var]
    wrong = [b for b in chosen if type(b) is not int or not 1 <= b <= MOST_BITS]
    if wrong or not chosen:
        raise BadInput(f"bits is {list(chosen)}; expected whole numbers from 1 to {MOST_BITS:,}")
    return chosen  # type: ignore[return-value]
