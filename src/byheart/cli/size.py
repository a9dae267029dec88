"""``byheart size DATA…``: how large must a model be to memorize it, and has that model room?"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.cli.options import Columns, FactFiles, Json, Positional
from byheart.cli.output import DONE, facts_in, steps
from byheart.cli.result import console, number, print_json, table
from byheart.errors import BadInput
from byheart.files.writing import check_apart

if TYPE_CHECKING:
    from byheart.sizing import Sizing
    from byheart.sizing.data import Data
    from byheart.sizing.needs import Need
    from byheart.sizing.room import Room
    from byheart.tasks.questions import QuestionsLike

_TITLES = {
    "proved": "Proved: with fewer, no one shape holds all such data (needed); with so many, some network does (enough)",
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
    """A model's folder; of it only config.json is read."""
    parameters: int | None = None
    """A model of so many parameters, instead of a folder."""
    bits: tuple[int, ...] = ()
    """b: bits that store one parameter (default: 16 and 32, and what config.json says)."""
    sample: int = 4
    """MiB of text to look at; of more, so much is sampled, and the numbers are estimates."""
    plot: Path | None = None
    """Also draw parameters by kind of number into this file (.png or .svg)."""
    json: Json = False

    def run(self) -> int:
        """Read, measure, plan, print, draw."""
        from byheart.report.style import check_picture
        from byheart.sizing import size

        given = self._given()
        if self.plot is not None:
            check_picture(self.plot)
            check_apart(self.plot, *self.data, *self.facts, self.model)
        chosen: dict[str, Any] = {"model": self.model, "parameters": self.parameters, "bits": self.bits or None}
        with steps("measuring and planning", quiet=self.json):
            found = size(given, **chosen, sample=self.sample)
        if self.plot is not None:
            from byheart.sizing.picture import draw_sizes

            draw_sizes(found, self.plot)
        if self.json:
            print_json(found.as_json())
        else:
            self._print(found)
        return DONE

    def _given(self) -> "QuestionsLike":
        """Paths, or the facts in files."""
        if self.facts and self.data:
            raise BadInput(f"--facts and {self.data[0]} given; expected one of them")
        if self.facts:
            return facts_in(self.facts, self.columns)
        if self.columns is not None:
            raise BadInput(f"--columns {' '.join(self.columns)} are for facts; expected --facts FILE too")
        if not self.data:
            raise BadInput("no data given; expected texts, a folder of texts, a task, or --facts FILE")
        return self.data

    def _print(self, found: "Sizing") -> None:
        out = console()
        out.print(_about(found.data))
        estimated = "" if found.data.looked_at is None else ", for an estimated number of questions"
        for kind, title in _TITLES.items():
            out.print(_needs(title + estimated, [need for need in found.needs if need.kind == kind]))
        size = found.data.size
        flags = f"--examples {size.examples} --length {size.length} --vocab {size.vocab} --labels {size.labels}"
        out.print(f"Orders without constants are no sizes; they are in:  byheart bounds {flags}", style="dim")
        if found.room is not None:
            out.print(_room(found.room))
            out.print(found.room.verdict, markup=False)
        if self.plot is not None:
            out.print(f"drew {self.plot}", style="dim", markup=False)


def _about(data: "Data") -> Any:
    """Questions, window, entropies."""
    estimate = "" if data.looked_at is None else f"; estimates, from {number(data.looked_at)} bytes of it"
    what = "a next-token task" if data.bytes is None else f"{number(data.bytes)} bytes"
    what = what if data.facts is None else f"{number(data.facts)} of them"
    rows = table(f"{data.name}: {what}{estimate}", "", ">", ">a question")
    size, about = data.size, "" if data.looked_at is None else "about "
    rows.add_row("places that ask a question", number(data.places), "")
    rows.add_row("questions: distinct contexts, each with its answer", about + number(size.examples), "")
    least = "at least " if data.looked_at is not None else ""
    rows.add_row("window: tokens that tell every context apart", least + number(size.length), "")
    rows.add_row("different tokens; answers", f"{number(size.vocab)}; {number(size.labels)}", "")
    of = "the texts" if data.bytes is not None else "the answers" if data.facts is None else "the completions"
    for entropy in data.entropies:
        name = f"bits of {of} after {entropy.name}" if entropy.compressor else f"bits of the answers, {entropy.name}"
        rows.add_row(name, number(round(entropy.bits)), f"{entropy.bits / size.examples:.2f}")
    return rows


def _needs(title: str, needs: "list[Need]") -> Any:
    """Numbers of one kind."""
    ranges = any(need.low is not None for need in needs)
    rows = table(title, "", "", ">parameters", *((">from", ">to") if ranges else ()), ">bytes", "source")
    for need in needs:
        numbers = (need.parameters, *((need.low, need.high) if ranges else ()), need.bytes)
        cells = ["" if value is None else number(value) for value in numbers]
        rows.add_row(need.what, need.says, *cells, need.reason or need.source)
    return rows


def _room(room: "Room") -> Any:
    """The share of the model that the data take: a column for each kind of number."""
    from byheart.sizing.room import percent

    assumed = " (assumed; --bits B says otherwise)" if room.assumed else ""
    title = f"{room.name}, {room.bits} bits each{assumed}: how much of it the data take"
    rows = table(title, "", ">proved", ">fitted", ">measured", ">from", ">to", "source")
    for held in room.held:
        cells = dict.fromkeys(_TITLES, "") | {held.kind: percent(held.share)}
        ends = ("" if share is None else percent(share) for share in (held.low, held.high))
        rows.add_row(held.what, *cells.values(), *ends, held.source)
    return rows
