"""``byheart build CONSTRUCTION``: a task in, a network folder out."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, make_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from byheart.cli.menu import About, Entry, Menu, about
from byheart.cli.options import Arg, Json, OwnConstructions
from byheart.cli.output import DONE, steps, typed
from byheart.cli.result import console, number, print_json, table
from byheart.constructions import Built, Construction, build, known
from byheart.constructions.gadgets.hypotheses import BeyondCapacity
from byheart.errors import BadInput
from byheart.files.writing import check_apart
from byheart.networks.folders import replacing

if TYPE_CHECKING:
    from byheart.constructions.lower_bound import LowerBound


@dataclass(frozen=True)
class Build:
    """Build a construction's network for a task and save it."""

    entry: ClassVar[Construction]
    task: Path
    """Task file (.npz or .jsonl)."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Network folder to write."""
    settings: Any
    """The construction's own settings."""
    seed: int = 0
    """Seed of all random choices; the same seed gives the same network."""
    construction: OwnConstructions = ()
    json: Json = False

    def run(self) -> int:
        """Build, save, and print the account."""
        from byheart.certificates.features import impossible
        from byheart.constructions.lower_bound import lower_bound
        from byheart.tasks import load

        with replacing(self.out) as new, steps(f"building {self.entry.name}", quiet=self.json) as report:
            check_apart(self.out, self.task)
            task = load(self.task)
            try:
                built = build(self.entry, task, seed=self.seed, settings=self.settings, report=report)
            except BeyondCapacity as refusal:
                raise BadInput(f"{refusal}{impossible(refusal.network, task)}") from refusal
            built.write(new)
        lower = lower_bound(built.network, task)
        if self.json:
            told = {"construction": built.construction, "account": built.account.as_json()}
            proved = {"lower": None if lower is None else asdict(lower)}
            print_json(told | {"chosen": dict(built.chosen), "seconds": built.seconds} | proved)
        else:
            _print(built, lower, self.out, self.task)
        return DONE


class _Commands(Mapping[str, Entry]):
    """A command for every construction that is registered; only those that are looked at are imported."""

    def __getitem__(self, name: str) -> Entry:
        construction = known()[name]
        return Entry(_about(construction), partial(_build_of, construction))

    def __iter__(self) -> Iterator[str]:
        return iter(known())

    def __len__(self) -> int:
        return len(known())


def menu() -> Menu:
    """A command for every construction."""
    return _Commands()


def _build_of(entry: Construction) -> type[Build]:
    """Return the command that builds a construction: the settings of the construction are its options."""
    settings = ("settings", entry.settings, field(default_factory=entry.settings))
    namespace = {"entry": entry, "__module__": __name__}
    return make_dataclass("BuildOne", [settings], bases=(Build,), namespace=namespace, frozen=True)


def _about(entry: Construction) -> About:
    summary = f"{entry.summary} ({entry.paper})." if entry.paper else f"{entry.summary}."
    task = "t.npz" if entry.covers else "q.npz"  # contexts with queries are no task of the theory's settings
    return about(summary, f"byheart build {entry.name} --task {task} -o net {entry.flags}".rstrip())


def _print(built: Built, lower: "LowerBound | None", folder: Path, task: Path) -> None:
    """The account, part by part, and what is proved about it."""
    account = built.account
    title = f"{built.construction}, built in {built.seconds:.1f} s"
    rows = table(title, "part", ">tensors", ">parameters", ">non-zero", ">most bits")
    for name, part in account.parts().items():
        rows.add_row(name, *map(number, (len(part.items), part.dense, part.nonzero, part.max_bits)))
    rows.add_section()
    rows.add_row("all", *map(number, (len(account.items), account.dense, account.nonzero, account.max_bits)))
    out = console()
    out.print(rows)
    total = f"{number(account.total_bits)} bits in all, {number(account.free)} different free entries"
    if built.chosen:
        words = (f"{key.replace('_', ' ')} {_word(value)}" for key, value in built.chosen.items())
        out.print("chosen: " + ", ".join(words), markup=False)
    out.print(f"depth {number(account.depth)}, width {number(account.width)}, {total}")
    if lower is not None:
        out.print(lower.in_words(account.dense))
    check = f"byheart certify {typed(folder)} --task {typed(task)}{_options(built)}"
    out.print(f"saved in {folder}; check it with:  {check}", style="dim", markup=False)


def _options(built: Built) -> str:
    """What certify has to be told of a network that is not to be right everywhere, or not exactly."""
    if "at_least" in built.chosen:
        return f" --at-least {built.chosen['at_least']}"
    diverges = built.chosen.get("divergence")
    return f" --tolerance {1.001 * diverges:.4g}" if isinstance(diverges, float) and diverges > 1e-7 else ""


def _word(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
