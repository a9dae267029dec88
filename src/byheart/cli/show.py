"""``byheart show DIR``: the parts of a network with their parameters; with a task, which head holds which example."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.cli.options import Json, Positional
from byheart.cli.result import Block, Result, Table
from byheart.files.writing import check_apart
from byheart.networks.about import needed_prompt

if TYPE_CHECKING:
    from byheart.networks import Account, Network
    from byheart.report.saturation import Saturation


@dataclass(frozen=True)
class ShowCommand:
    """Show where a network's parameters are, part by part."""

    network: Positional[Path]
    """Network folder."""
    task: Path | None = None
    """Memorized task of a softmax network, to show which head holds which example."""
    plot: Path | None = None
    """Picture to draw (.png or .svg): the parameters, or the heads if --task is given."""
    json: Json = False

    def run(self) -> "ShowResult":
        """Load the network, count its parameters, and draw the picture."""
        from byheart.certificates.judges.layered import inputs_of
        from byheart.networks import load
        from byheart.report.pictures import parts_of
        from byheart.report.saturation import saturation_of
        from byheart.report.style import check_picture
        from byheart.tasks import load as load_task

        if self.plot is not None:
            check_picture(self.plot)
            check_apart(self.plot, self.network, self.task)
        network = load(self.network)
        heads = None if self.task is None else saturation_of(network, inputs_of(load_task(self.task)))
        result = ShowResult(self, network.account, _facts(network), parts_of(network), heads)
        if self.plot is not None:
            result.draw(self.plot)
        return result


def _facts(network: "Network") -> dict[str, str]:
    """Describe the network as a whole, by topic."""
    account, bits = network.account, network.about.get("bits")
    facts = {"kind": network.title, "parameters": f"{account.dense:,} parameters"}
    facts["entries"] = f"at most {account.max_bits} bits per entry"
    if network.padded != account.dense:
        facts["padded"] = f"{network.padded:,} padded to one width"
    if isinstance(bits, float) and account.dense:
        facts["bits"] = f"{bits / account.dense:.1f} bits memorized per parameter"
    if needed := needed_prompt(network):
        facts["prompt"] = f"a prompt needs {needed}"
    return facts


@dataclass(frozen=True)
class ShowResult(Result):
    """The parts of a network."""

    command: ShowCommand
    account: "Account"
    facts: dict[str, str]
    parts: "dict[str, Account]"
    heads: "Saturation | None"
    """The heads of a softmax network on a task, if one is given."""

    def as_json(self) -> dict[str, Any]:
        """Return the number of parameters, the facts, the parts, and what the heads hold."""
        parts = [{"part": name, "parameters": p.dense, "nonzero": p.nonzero} for name, p in self.parts.items()]
        heads = {"held": self.heads.held.tolist(), "saturated": self.heads.share} if self.heads is not None else {}
        return {"parameters": self.account.dense, "facts": self.facts, "parts": parts, **heads}

    def rows(self) -> Iterator[Block]:
        """Yield the table of parts, a sentence about the heads, and the name of the picture."""
        from byheart.report.saturation import caption

        most = max((part.dense for part in self.parts.values()), default=0) or 1
        yield Table(
            f"{self.command.network}: {', '.join(self.facts.values())}",
            ("part", ">parameters", ">non-zero", ""),
            [
                (name, part.dense, part.nonzero, "█" * max(1, round(24 * part.dense / most)))
                for name, part in self.parts.items()
            ],
            total=("all", self.account.dense, self.account.nonzero, ""),
        )
        if self.heads is not None:
            yield caption(self.heads)
        if self.command.plot is not None:
            yield f"drew {self.command.plot}"

    def draw(self, picture: Path) -> None:
        """Draw the parameters, or the heads if there is a task."""
        from byheart.report.pictures import draw_parts
        from byheart.report.saturation import draw_saturation

        facts = [self.facts[name] for name in ("parameters", "padded", "bits") if name in self.facts]
        title = f"{self.command.network.name}: {', '.join(facts)}"
        if self.heads is None:
            draw_parts(self.parts, title, picture)
        else:
            draw_saturation(self.heads, title, picture)
