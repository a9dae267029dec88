"""``byheart build CONSTRUCTION``: a task in, a network folder out."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

from tyro.conf import OmitArgPrefixes, arg, subcommand

from byheart.cli.output import DONE, Json, console, number, print_json, steps, table, with_example
from byheart.constructions import (
    CONSTRUCTIONS,
    Built,
    dana_2025,
    folding,
    interpolate,
    kajitsuka_sato_2024,
    kajitsuka_sato_2025,
    kim_2023,
    madden_2024,
    mahdavi_2024,
    vardi_2022,
)
from byheart.constructions.gadgets.hypotheses import BeyondCapacity
from byheart.errors import BadInput

if TYPE_CHECKING:
    from byheart.tasks import Task

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Build(Generic[Settings]):
    """Build a construction's network for a task and save it."""

    task: Path
    """Task file (.npz or .jsonl)."""
    out: Annotated[Path, arg(aliases=["-o"])]
    """Network folder to write."""
    settings: OmitArgPrefixes[Settings]
    """The construction's own settings."""
    seed: int = 0
    """Seed of all random choices; the same seed gives the same network."""
    json: Json = False

    def run(self) -> int:
        """Build, save, and print the account."""
        from byheart import networks
        from byheart.constructions import build
        from byheart.tasks import load

        name = next(c.name for c in CONSTRUCTIONS.values() if c.settings is type(self.settings))
        task = load(self.task)
        with steps(f"building {name}", quiet=self.json) as report:
            try:
                built = build(name, task, seed=self.seed, settings=self.settings, report=report)
            except BeyondCapacity as refusal:
                raise BadInput(f"{refusal}{_proved(refusal, task)}") from refusal
            about = {
                "construction": name,
                "settings": asdict(self.settings),  # type: ignore[call-overload]
                "seed": self.seed,
                "task": task.fingerprint,
                "chosen": built.chosen,
            }
            networks.save(built.network, self.out, about)
        if self.json:
            account = built.account.as_json()
            print_json({"construction": name, "account": account, "chosen": built.chosen, "seconds": built.seconds})
        else:
            _print(built, self.out, self.task)
        return DONE


def _print(built: Built, folder: Path, task: Path) -> None:
    """The account, part by part."""
    account = built.account
    parts: dict[str, list[int]] = {}
    for item in account.items:
        row = parts.setdefault(item.name.split(".")[0], [0, 0, 0, 0])
        row[0] += 1
        row[1] += item.dense
        row[2] += item.nonzero
        row[3] = max(row[3], item.max_bits)
    rows = table(
        f"{built.construction}, built in {built.seconds:.1f} s",
        "part",
        ">tensors",
        ">parameters",
        ">non-zero",
        ">most bits",
    )
    for name, row in parts.items():
        rows.add_row(name, *(number(value) for value in row))
    rows.add_section()
    rows.add_row(
        "all", number(len(account.items)), number(account.dense), number(account.nonzero), number(account.max_bits)
    )
    out = console()
    out.print(rows)
    total = f"{number(account.total_bits)} bits in all, {number(account.free)} different free entries"
    if built.chosen:
        words = (f"{key.replace('_', ' ')} {_word(value)}" for key, value in built.chosen.items())
        out.print("chosen: " + ", ".join(words), markup=False)
    out.print(f"depth {number(account.depth)}, width {number(account.width)}, {total}")
    out.print(f"saved in {folder}; check it with:  byheart certify {folder} --task {task}", style="dim", markup=False)


def _word(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _proved(refusal: BeyondCapacity, task: "Task") -> str:
    """For real targets over a shared context: the proof that the attention does not matter, as a sentence."""
    from byheart.certificates.features import prove_out_of_reach
    from byheart.tasks import QueryTargets

    if not isinstance(task, QueryTargets) or not task.shared:
        return ""
    heads, length = len(refusal.network.W_Q), task.size.length
    if task.size.examples <= heads * (length - 1) + 1:
        return ""
    found = prove_out_of_reach(refusal.network, task)
    return "" if found is None else f". Impossible with this attention: {found}"


def _about(name: str, flags: str = "") -> str:
    return with_example(f"{CONSTRUCTIONS[name].summary}.", f"byheart build {name} --task t.npz -o net{flags}")


_KAJITSUKA_SATO = subcommand("kajitsuka-sato-2025", description=_about("kajitsuka-sato-2025"))
_KAJITSUKA_SATO_2024 = subcommand("kajitsuka-sato-2024", description=_about("kajitsuka-sato-2024", " --scale paper"))
_KIM = subcommand("kim-2023", description=_about("kim-2023", " --ids hashed"))
_VARDI = subcommand("vardi-2022", description=_about("vardi-2022", " --bits 53"))
_INTERPOLATE = subcommand("interpolate", description=_about("interpolate"))
_FOLDING = subcommand("folding", description=_about("folding"))
_MAHDAVI = subcommand("mahdavi-2024", description=_about("mahdavi-2024", " --heads 20 --way generic"))
_DANA = subcommand("dana-2025", description=_about("dana-2025", " --model-dim 10 --heads 20"))
_MADDEN = subcommand("madden-2024", description=_about("madden-2024"))


@dataclass(frozen=True)
class BuildCommand:
    """Build a network that has memorized a task."""

    construction: Annotated[
        Annotated[Build[folding.Settings], _FOLDING]
        | Annotated[Build[kajitsuka_sato_2025.Settings], _KAJITSUKA_SATO]
        | Annotated[Build[kim_2023.Settings], _KIM]
        | Annotated[Build[kajitsuka_sato_2024.Settings], _KAJITSUKA_SATO_2024]
        | Annotated[Build[vardi_2022.Settings], _VARDI]
        | Annotated[Build[interpolate.Settings], _INTERPOLATE]
        | Annotated[Build[mahdavi_2024.Settings], _MAHDAVI]
        | Annotated[Build[dana_2025.Settings], _DANA]
        | Annotated[Build[madden_2024.Settings], _MADDEN],
        arg(name=""),
    ]

    def run(self) -> int:
        """Run the chosen construction."""
        return self.construction.run()
