"""Where a network's parameters are: tensors gathered into parts, as a table and as a picture."""

from dataclasses import dataclass
from pathlib import Path

from byheart.networks.account import Account
from byheart.report.style import FAINT, INK, QUIET, canvas

WORDS = "words of the table"
_PARTS = {
    "embedding": "codes of the tokens",
    "hash": "hash of the window",
    "reduce": "hash of the window",
    "digits": "where to read",
    "start": "where to read",
    "scales": "where to read",
    "squares": "where to read",
    "table": "rows of the table",
    "select": "columns of the table",
    "unembedding": "codes of the labels",
}


@dataclass(frozen=True)
class Part:
    """Some tensors that do one thing."""

    name: str
    parameters: int
    nonzero: int


def parts_of(account: Account, *, reciting: bool) -> list[Part]:
    """The parts in the order of the network; a reciting network's tensors are gathered by what they are for.

    >>> from byheart.networks.account import Item
    >>> items = (Item("table.W_in", (2,), 2, 2, 1, 32, 64), Item("table.W_out", (9,), 9, 8, 8, 32, 288))
    >>> [(part.name, part.parameters) for part in parts_of(Account(items, 1, 1), reciting=True)]
    [('rows of the table', 2), ('words of the table', 9)]
    """
    totals: dict[str, list[int]] = {}
    for item in account.items:
        first = item.name.split(".")[0]
        name = _part(item.name, first) if reciting else first
        row = totals.setdefault(name, [0, 0])
        row[0] += item.dense
        row[1] += item.nonzero
    return [Part(name, *row) for name, row in totals.items()]


def _part(full: str, first: str) -> str:
    if full == "table.W_out":
        return WORDS
    return _PARTS.get(first.split("_", maxsplit=1)[0], "reading the bits")


def draw_parts(parts: list[Part], title: str, path: Path) -> None:
    """One bar for the whole network, in proportion, and below it everything but the largest part, magnified."""
    largest = max(parts, key=lambda part: part.parameters)
    total = sum(part.parameters for part in parts)
    rest = [part for part in parts if part is not largest]
    picture, (axes,) = canvas(path, height=1.9 + 0.32 * len(rest))
    axes.barh([0], [largest.parameters], color="#b3123f", height=0.7)
    axes.barh([0], [total - largest.parameters], left=[largest.parameters], color=FAINT, height=0.7)
    share = f"{largest.name}: {largest.parameters:,} of {total:,} parameters"
    axes.text(largest.parameters / 2, 0, share, ha="center", va="center", color="white", fontsize=10)
    most = max((part.parameters for part in rest), default=1)
    for index, part in enumerate(sorted(rest, key=lambda part: -part.parameters)):
        width = part.parameters / most * total * 0.45
        axes.barh([index + 1.4], [width], color="#1f5fa8", height=0.6)
        label = f"{part.parameters:,}  {part.name}"
        axes.text(width + total * 0.01, index + 1.4, label, va="center", color=INK, fontsize=9)
    axes.text(0, 0.72, f"the other {total - largest.parameters:,}, magnified:", color=QUIET, fontsize=9, va="center")
    axes.invert_yaxis()
    axes.set_axis_off()
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    picture.savefig(path)
