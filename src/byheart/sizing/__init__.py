"""How large a model must be to memorize data, and whether a model at hand has room.

:mod:`.data` reads and measures the data, :mod:`.needs` lists the parameters and bytes that hold them and compares these
with a model. Every number has one of the four kinds of :mod:`byheart.bounds.bound`, and a
source.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from byheart.errors import BadInput
from byheart.exhibits import FAINT, INK, QUIET
from byheart.networks.causal import read_model
from byheart.report.style import canvas, save_picture
from byheart.sizing.data import SAMPLE_MIB, Data, read
from byheart.sizing.needs import STORED, Need, Room, needs, room
from byheart.tasks.questions import QuestionsLike

__all__ = ["Sizing", "size"]

BITS = (16, 32)
"""Bits per parameter for which counting is done by default."""
MAX_BITS = 1 << 10
MAX_PARAMETERS = 10**18
MARKS: dict[str, tuple[str, str, str]] = {
    "proved": ("D", "#1f3f8f", "proved"),
    "fitted": ("o", "#b3123f", "fitted: planned as it is built"),
    "measured": ("s", "#757575", "measured: trained"),
}
"""Marker, colour and name of each kind."""


@dataclass(frozen=True, eq=False, repr=False)
class Sizing:
    """How large a model must be for the data, and whether a model at hand has room."""

    data: Data
    needs: tuple[Need, ...]
    room: Room | None = None

    @property
    def summary(self) -> str:
        """The answer in a sentence or two, in round numbers."""
        ways = dict[str, tuple[int, int]]()
        if compiled := [
            need.parameters for need in self.needs if need.kind == "fitted" and need.bits and need.parameters
        ]:
            ways["compiled"] = (min(compiled), min(compiled))
        trained = [need for need in self.needs if need.kind == "measured"]
        ways["trained"] = (min(need.low or 1 for need in trained), max(need.high or 1 for need in trained))
        about = _in_words(ways, "parameters")
        if self.room is None:
            return f"About {about}."
        P, data = self.room.parameters, self.data
        such = "such sets of facts" if data.facts is not None else "such tasks" if data.bytes is None else "such texts"
        times = {way: (P // high, P // low) for way, (low, high) in ways.items()}
        fits = f"has room for {_in_words(times, such)}" if any(most for _, most in times.values()) else "is too small"
        return f"About {about}. A model of {P:,} {fits}."

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
        return values | {"room": room, "summary": self.summary}

    def __repr__(self) -> str:
        size = self.data.size
        return f"<Sizing: {self.data.name}, {size.examples:,} questions of {size.length:,} tokens>"


def _in_words(ranges: Mapping[str, tuple[int, int]], noun: str) -> str:
    """Return ranges in numbers of two digits.

    >>> _in_words({"compiled": (6031, 6031), "trained": (7852, 25144)}, "parameters")
    '6,000 parameters compiled, 7,900 to 25,000 trained'
    """
    ends = {way: sorted({round(number, 2 - len(str(number))) for number in ends}) for way, ends in ranges.items()}
    texts = [" to ".join(f"{end:,}" for end in both) for both in ends.values()]
    return ", ".join(
        f"{text} {noun} {way}" if not i else f"{text} {way}"
        for i, (text, way) in enumerate(zip(texts, ends, strict=True))
    )


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


def draw_sizes(sizing: Sizing, path: Path) -> None:
    """Draw every number with its mark and its interval. A number that is needed has the sign ≥."""
    rows = [need for need in sizing.needs if need.parameters]
    picture, (axes,) = canvas(path, width=8.8, height=1.5 + 0.34 * len(rows))
    for place, need in enumerate(reversed(rows)):
        _draw(axes, place, need)
    axes.set_yticks(range(len(rows)), [need.what for need in reversed(rows)])
    axes.set(xscale="log", ylim=(-0.7, len(rows) - 0.3))
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.3, high * 4)  # for the numbers at the right of marks
    if sizing.room is not None:
        _draw_model(axes, sizing.room, len(rows))
    data, size = sizing.data, sizing.data.size
    about = "about " if data.looked_at is not None else ""
    extent = f"{about}{size.examples:,} questions, window {size.length:,}"
    axes.set_title(f"{_label(data.name)}: {extent}", loc="left", fontsize=10, color=INK)
    axes.set_xlabel("parameters", color=INK)
    axes.grid(visible=False, axis="y")
    kinds = [kind for kind in MARKS if any(need.kind == kind for need in rows)]
    for marker, colour, name in (MARKS[kind] for kind in kinds):
        axes.plot([], [], marker, color=colour, markersize=6, label=name)
    legend = {"frameon": False, "fontsize": 8.5, "ncols": len(kinds), "loc": "upper left", "bbox_to_anchor": (0, -0.16)}
    axes.legend(**legend)
    save_picture(picture, path)


def _draw(axes: Any, place: int, need: Need) -> None:
    marker, colour, _ = MARKS[need.kind]
    right = float(need.high or need.parameters or 1)
    if need.low is not None and need.high is not None:
        axes.plot([need.low, need.high], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
    axes.plot([need.parameters], [place], marker, color=colour, markersize=6)
    sign = "≥ " if need.says == "needed" else ""
    after = {"xytext": (8, 0), "textcoords": "offset points", "va": "center", "fontsize": 8.5}
    axes.annotate(f"{sign}{need.parameters:,}", (right, place), color=colour, **after)


def _draw_model(axes: Any, room: Room, rows: int) -> None:
    """Draw the model at hand as a line, with its name above all rows, on the side that has room for it."""
    low, high = axes.get_xlim()
    low, high = min(low, room.parameters / 3), max(high, 3 * room.parameters)
    axes.set(xlim=(low, high), ylim=(-0.7, rows + 0.6))
    axes.axvline(room.parameters, color=FAINT, linestyle="--", linewidth=1.3, zorder=0)
    is_left = room.parameters > math.sqrt(low * high)
    style = {"va": "center", "ha": "right" if is_left else "left", "fontsize": 8.5, "color": QUIET}
    label = _label(room.name)
    axes.text(room.parameters, rows, f"{label}  " if is_left else f"  {label}", **style)


def _label(name: str) -> str:
    """Return the name of a file or folder. Dollars are escaped: matplotlib reads text between them as a formula."""
    return Path(name).name.replace("$", r"\$")
