"""``byheart build CONSTRUCTION``: the network that a construction makes for a task."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from byheart.cli.menu import About, Entry, Menu, about
from byheart.cli.options import Arg, Json, OwnConstructions
from byheart.cli.output import steps, typed
from byheart.cli.result import Block, Cell, Result, Table, dim, number
from byheart.constructions import Built, Construction, build, known
from byheart.constructions.gadgets.linear_system import BeyondCapacity
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
    """Settings of this construction."""
    seed: int = 0
    """Seed of all random choices; the same seed gives the same network."""
    construction: OwnConstructions = ()
    json: Json = False

    def run(self) -> "BuildResult":
        """Build the network and save it."""
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
        return BuildResult(self, built, lower_bound(built.network, task))


@dataclass(frozen=True)
class BuildResult(Result):
    """A network that was built, and the proved bound for networks of its depth."""

    command: Build
    built: Built
    lower: "LowerBound | None"

    def as_json(self) -> dict[str, Any]:
        """Return the account of the parameters, the choices of the construction, and the bound."""
        built = self.built
        about = {"construction": built.construction, "account": built.account, "chosen": built.chosen}
        return {**about, "seconds": built.seconds, "lower": self.lower}

    def rows(self) -> Iterator[Block]:
        """Yield the account, part by part, what is proved about it, and the command that certifies the network."""
        built, account = self.built, self.built.account
        rows: list[list[Cell]] = [
            [name, len(part.items), part.dense, part.nonzero, part.max_bits] for name, part in account.parts().items()
        ]
        title = f"{built.construction}, built in {built.seconds:.1f} s"
        columns = ("part", ">tensors", ">parameters", ">non-zero", ">most bits")
        total = ("all", len(account.items), account.dense, account.nonzero, account.max_bits)
        yield Table(title, columns, rows, total)
        if built.chosen:
            yield "chosen: " + ", ".join(
                f"{key.replace('_', ' ')} {_word(value)}" for key, value in built.chosen.items()
            )
        bits = f"{number(account.total_bits)} bits in all, {number(account.free)} different free entries"
        yield f"depth {number(account.depth)}, width {number(account.width)}, {bits}"
        if self.lower is not None:
            yield self.lower.in_words(account.dense)
        out = self.command.out
        check = f"byheart certify {typed(out)} --task {typed(self.command.task)}{self._certify_options()}"
        yield dim(f"saved in {out}; check it with:  {check}")

    def _certify_options(self) -> str:
        """Return the options that certify needs for a network that is not right everywhere, or not exactly."""
        if "at_least" in self.built.chosen:
            return f" --at-least {self.built.chosen['at_least']}"
        divergence = self.built.chosen.get("divergence")
        if isinstance(divergence, float) and divergence > 1e-7:
            return f" --tolerance {1.001 * divergence:.4g}"
        return ""


def _word(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


class _Commands(Mapping[str, Entry]):
    """One command per registered construction. A construction is imported when its entry is read."""

    def __getitem__(self, name: str) -> Entry:
        construction = known()[name]
        return Entry(_about(construction), partial(_command, construction))

    def __iter__(self) -> Iterator[str]:
        return iter(known())

    def __len__(self) -> int:
        return len(known())


def menu() -> Menu:
    """Return the menu of constructions."""
    return _Commands()


def _command(entry: Construction) -> type[Build]:
    """Return the command that builds a construction. The construction's settings are its options."""
    settings = ("settings", entry.settings, field(default_factory=entry.settings))
    namespace = {"entry": entry, "__module__": __name__}
    return make_dataclass("BuildOne", [settings], bases=(Build,), namespace=namespace, frozen=True)


def _about(entry: Construction) -> About:
    summary = f"{entry.summary} ({entry.paper})." if entry.paper else f"{entry.summary}."
    task = "t.npz" if entry.covers else "q.npz"  # the theory's settings cover no contexts with queries
    return about(summary, f"byheart build {entry.name} --task {task} -o net {entry.flags}".rstrip())
