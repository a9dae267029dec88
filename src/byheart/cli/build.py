"""``byheart build CONSTRUCTION``: a task in, a network folder out."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from tyro.conf import OmitArgPrefixes, arg, subcommand

from byheart.cli.output import DONE, Json, console, number, print_json, steps, table, with_example
from byheart.constructions import CONSTRUCTIONS, Built, folding, interpolate, kajitsuka_sato_2025, vardi_2022

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
        from byheart.constructions import build
        from byheart.networks import store
        from byheart.tasks import load

        name = next(c.name for c in CONSTRUCTIONS.values() if c.settings is type(self.settings))
        task = load(self.task)
        with steps(f"building {name}", quiet=self.json) as report:
            built = build(name, task, seed=self.seed, settings=self.settings, report=report)
            about = {
                "construction": name,
                "settings": asdict(self.settings),  # type: ignore[call-overload]
                "seed": self.seed,
                "task": task.fingerprint,
                "chosen": built.chosen,
            }
            store.save(built.network, self.out, about)
        if self.json:
            print_json({"construction": name, "account": built.account.as_json(), "seconds": built.seconds})
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
        out.print("chosen: " + ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in built.chosen.items()))
    out.print(f"depth {number(account.depth)}, width {number(account.width)}, {total}")
    out.print(f"saved in {folder}; check it with:  byheart certify {folder} --task {task}", style="dim", markup=False)


def _about(name: str, flags: str = "") -> str:
    return with_example(f"{CONSTRUCTIONS[name].summary}.", f"byheart build {name} --task t.npz -o net{flags}")


_KAJITSUKA_SATO = subcommand("kajitsuka-sato-2025", description=_about("kajitsuka-sato-2025"))
_VARDI = subcommand("vardi-2022", description=_about("vardi-2022", " --bits 53"))
_INTERPOLATE = subcommand("interpolate", description=_about("interpolate"))
_FOLDING = subcommand("folding", description=_about("folding"))


@dataclass(frozen=True)
class BuildCommand:
    """Build a network that has memorized a task."""

    construction: Annotated[
        Annotated[Build[folding.Settings], _FOLDING]
        | Annotated[Build[kajitsuka_sato_2025.Settings], _KAJITSUKA_SATO]
        | Annotated[Build[vardi_2022.Settings], _VARDI]
        | Annotated[Build[interpolate.Settings], _INTERPOLATE],
        arg(name=""),
    ]

    def run(self) -> int:
        """Run the chosen construction."""
        return self.construction.run()
