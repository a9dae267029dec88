"""``byheart size DATA…``: how large must a model be to memorize it, and has that model room?"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.cli.options import Columns, FactFiles, Json, Positional
from byheart.cli.output import facts_in, hint_at_facts, steps
from byheart.cli.result import Block, Cell, Result, Table, amount, dim, number
from byheart.errors import BadInput
from byheart.files.writing import check_apart

if TYPE_CHECKING:
    from byheart.sizing import Sizing
    from byheart.sizing.data import Data
    from byheart.sizing.needs import Need, Room
    from byheart.tasks.questions import QuestionsLike

_TITLES = {
    "proved": "Proved: with fewer, no one shape holds all such data (needed); with as many, some network does (enough)",
    "fitted": "Fitted: planned as it will be built, at what could be solved so far; enough unless solving needs more",
    "measured": "Measured: what trained networks held; from the best compressor's bits up to those of order 0",
}


@dataclass(frozen=True)
class SizeCommand:
    """How large a model must be to memorize data, and whether a model at hand has room."""

    data: Positional[tuple[Path, ...]] = ()
    """Texts: files, or folders of them; or one next-token task (.npz or .jsonl)."""
    facts: FactFiles = ()
    columns: Columns = None
    model: Path | None = None
    """Folder of the model; only its config.json is read."""
    parameters: int | None = None
    """Number of parameters of the model, instead of its folder."""
    bits: tuple[int, ...] = ()
    """b: bits per parameter (default: 16 and 32, and those that config.json states)."""
    sample: int = 4
    """MiB of text to look at. Larger data are sampled, and the numbers are estimates."""
    plot: Path | None = None
    """Also draw parameters by kind of number into this file (.png or .svg)."""
    all: bool = False
    """Print every number, with its source, and not only the chosen ones."""
    json: Json = False

    def run(self) -> "SizeResult":
        """Read, measure, plan, draw."""
        from byheart.report.style import check_picture
        from byheart.sizing import size

        data = self._data()
        if self.plot is not None:
            check_picture(self.plot)
            check_apart(self.plot, *self.data, *self.facts, self.model)
        options: dict[str, Any] = {"model": self.model, "parameters": self.parameters, "bits": self.bits or None}
        with steps("measuring and planning", quiet=self.json):
            sizing = size(data, **options, sample=self.sample)
        if self.plot is not None:
            from byheart.sizing import draw_sizes

            draw_sizes(sizing, self.plot)
        return SizeResult(sizing, self.plot, self.all)

    def _data(self) -> "QuestionsLike":
        """Return the paths, or the facts in files."""
        if self.facts and self.data:
            raise BadInput(f"--facts and {self.data[0]} given; expected one of them")
        if self.facts:
            return facts_in(self.facts, self.columns)
        if self.columns is not None:
            raise BadInput(f"--columns {' '.join(self.columns)} are for facts; expected --facts FILE too")
        if not self.data:
            raise BadInput("no data given; expected texts, a folder of texts, a task, or --facts FILE")
        from byheart.tasks.task_files import TASK_READERS

        texts = [path for path in self.data if path.suffix not in TASK_READERS]
        hint_at_facts(texts, "measured", "size")
        return self.data


@dataclass(frozen=True)
class SizeResult(Result):
    """How large a model must be, and whether a model at hand has room."""

    sizing: "Sizing"
    plot: Path | None
    """The picture that was drawn."""
    all: bool
    """True if every number is printed."""

    def as_json(self) -> dict[str, Any]:
        """Return what was measured and planned."""
        return self.sizing.as_json()

    def rows(self) -> Iterator[Block]:
        """Yield the chosen numbers, or all, and a sentence."""
        yield from self._every_table() if self.all else (_short_table(self.sizing),)
        yield self.sizing.summary
        if not self.all:
            yield dim("every number, with its source: --all")
        if self.plot is not None:
            yield dim(f"drew {self.plot}")

    def _every_table(self) -> Iterator[Block]:
        """Yield the data, the sizes by kind of number, and the model's room."""
        sizing = self.sizing
        yield _data_table(sizing.data)
        estimated = "" if sizing.data.looked_at is None else ", for an estimated number of questions"
        for kind, title in _TITLES.items():
            yield _needs_table(title + estimated, [need for need in sizing.needs if need.kind == kind])
        size = sizing.data.size
        flags = f"--examples {size.examples} --length {size.length} --vocab {size.vocab} --labels {size.labels}"
        yield dim(f"Orders without constants are no sizes; they are in:  byheart bounds {flags}")
        if sizing.room is not None:
            yield _room_table(sizing.room)
            yield sizing.room.verdict


def _short_table(sizing: "Sizing") -> Table:
    """Show what any network needs at the highest number of bits, and what compiled and trained ones take."""
    counted = [need for need in sizing.needs if need.says == "needed"]
    first = next(need for need in reversed(counted) if need.what.startswith("every"))
    rest = [need for need in sizing.needs if need.kind != "proved" and need.bits is not None and need.parameters]
    rows = [(need.what, need.says, need.kind, number(need.parameters), number(need.bytes)) for need in (first, *rest)]
    data = sizing.data
    extent = "a task" if data.bytes is None else amount(data.bytes, "byte")
    extent = extent if data.facts is None else amount(data.facts, "fact")
    about = "" if data.looked_at is None else f" (estimates, from {number(data.looked_at)} bytes of it)"
    fewest = f"; {number(round(data.fewest.bits))} after {data.fewest.name}" if data.fewest.compressor else ""
    questions, bits = amount(data.size.examples, "question"), amount(round(data.bits), "bit")
    title = f"{data.name}: {extent}{about}, {questions}, {bits}{fewest}"
    return Table(title, ("", "", "", ">parameters", ">bytes"), rows)


def _data_table(data: "Data") -> Table:
    """Show questions, window and entropies."""
    is_sample = data.looked_at is not None
    estimate = f"; estimates, from {number(data.looked_at)} bytes of it" if is_sample else ""
    extent = "a next-token task" if data.bytes is None else f"{number(data.bytes)} bytes"
    extent = extent if data.facts is None else f"{number(data.facts)} of them"
    size = data.size
    rows: list[tuple[Cell, Cell, Cell]] = [
        ("places that ask a question", data.places, ""),
        ("questions: distinct contexts, each with its answer", "about " * is_sample + number(size.examples), ""),
        ("window: tokens that tell every context apart", "at least " * is_sample + number(size.length), ""),
        ("different tokens; answers", f"{number(size.vocab)}; {number(size.labels)}", ""),
    ]
    text = "the texts" if data.bytes is not None else "the answers" if data.facts is None else "the completions"
    for entropy in data.entropies:
        name = f"bits of {text} after {entropy.name}" if entropy.compressor else f"bits of the answers, {entropy.name}"
        rows.append((name, round(entropy.bits), f"{entropy.bits / size.examples:.2f}"))
    return Table(f"{data.name}: {extent}{estimate}", ("", ">", ">per question"), rows)


def _needs_table(title: str, needs: "list[Need]") -> Table:
    """Show the numbers of one kind."""
    has_ranges = any(need.low is not None for need in needs)
    rows = []
    for need in needs:
        numbers = (need.parameters, *((need.low, need.high) if has_ranges else ()), need.bytes)
        cells = ["" if value is None else value for value in numbers]
        rows.append((need.what, need.says, *cells, need.reason or need.source))
    return Table(title, ("", "", ">parameters", *((">from", ">to") if has_ranges else ()), ">bytes", "source"), rows)


def _room_table(room: "Room") -> Table:
    """Show the share of the model that the data take, with a column for each kind of number."""
    from byheart.sizing.needs import percent

    assumed = " (assumed; --bits B says otherwise)" if room.assumed else ""
    rows = []
    for share in room.held:
        cells = dict.fromkeys(_TITLES, "") | {share.kind: percent(share.share)}
        ends = ("" if end is None else percent(end) for end in (share.low, share.high))
        rows.append((share.what, *cells.values(), *ends, share.source))
    title = f"{room.name}, {room.bits} bits each{assumed}: how much of it the data take"
    return Table(title, ("", ">proved", ">fitted", ">measured", ">from", ">to", "source"), rows)
