"""``byheart show DIR``: where the parameters are; with a task, which head holds which example."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from byheart.cli.options import Json, Positional
from byheart.cli.output import DONE
from byheart.cli.result import console, number, print_json, table
from byheart.files.writing import check_apart

if TYPE_CHECKING:
    from byheart.networks import Account, Network


@dataclass(frozen=True)
class ShowCommand:
    """Show where a network's parameters are, part by part."""

    network: Positional[Path]
    """Network folder."""
    task: Path | None = None
    """Softmax networks: the task that was memorized, to show which head holds which example."""
    plot: Path | None = None
    """Draw it into this picture (.png or .svg): the parameters, or with --task the heads."""
    json: Json = False

    def run(self) -> int:
        """Load, count, print, draw."""
        from byheart.certificates.judges.softmax import inputs_of
        from byheart.networks import load
        from byheart.report.parts import draw_parts, parts_of
        from byheart.report.saturation import caption, draw_saturation, saturation_of
        from byheart.report.style import check_picture
        from byheart.tasks import load as load_task

        if self.plot is not None:
            check_picture(self.plot)
            check_apart(self.plot, self.network, self.task)
        network = load(self.network)
        facts, parts = _facts(network), parts_of(network)
        heads = None if self.task is None else saturation_of(network, inputs_of(load_task(self.task)))
        if self.json:
            rows = [{"part": name, "parameters": p.dense, "nonzero": p.nonzero} for name, p in parts.items()]
            held = {} if heads is None else {"held": heads.held.tolist(), "saturated": heads.share}
            print_json({"parameters": network.account.dense, "facts": facts, "parts": rows, **held})
        else:
            _print(f"{self.network}: {', '.join(facts.values())}", network.account, parts)
            if heads is not None:
                console().print(caption(heads), markup=False)
        if self.plot is not None:
            short = [facts[name] for name in ("parameters", "padded", "bits") if name in facts]
            title = f"{self.network.name}: {', '.join(short)}"
            if heads is None:
                draw_parts(parts, title, self.plot)
            else:
                draw_saturation(heads, title, self.plot)
            if not self.json:
                console().print(f"drew {self.plot}", markup=False)
        return DONE


def _facts(network: "Network") -> dict[str, str]:
    """What there is to say about the whole."""

    account, bits = network.account, network.about.get("bits")
    facts = {"kind": network.title, "parameters": f"{account.dense:,} parameters"}
    facts["entries"] = f"at most {account.max_bits} bits per entry"
    if network.padded != account.dense:
        facts["padded"] = f"{network.padded:,} padded to one width"
    if isinstance(bits, float) and account.dense:
        facts["bits"] = f"{bits / account.dense:.1f} bits memorized per parameter"
    return facts


def _print(title: str, account: "Account", parts: "dict[str, Account]") -> None:
    rows = table(title, "part", ">parameters", ">non-zero", "")
    most = max((part.dense for part in parts.values()), default=0) or 1
    for name, part in parts.items():
        bar = "█" * max(1, round(24 * part.dense / most))
        rows.add_row(name, number(part.dense), number(part.nonzero), bar)
    rows.add_section()
    rows.add_row("all", number(account.dense), number(account.nonzero), "")
    console().print(rows)
