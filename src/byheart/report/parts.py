"""The parts of a network, with their parameters: tensors gathered by their purpose, as a table and as a picture."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from byheart.exhibits import FAINT, INK, QUIET
from byheart.networks import Account, Network
from byheart.report.style import canvas, save_picture

WORDS = "words of the table"
_PARTS = {
    "embedding": "codes of the tokens",
    "hash": "hash of the window",
    "reduce": "hash of the window",
    "digits": "where to read",
    "shard": "where to read",
    "lots": "where to read",
    "start": "where to read",
    "scales": "where to read",
    "squares": "where to read",
    "table": "rows of the table",
    "select": "columns of the table",
    "unembedding": "codes of the labels",
}


def parts_of(network: Network) -> dict[str, Account]:
    """Return the accounts of the parts in the order of the network; a compiled network's are named by purpose."""
    account = network.account
    if "recipe" in network.about:
        account = replace(account, items=tuple(replace(item, part=_part(item.name)) for item in account.items))
    return account.parts()


def _part(name: str) -> str:
    """Return the purpose of a tensor of a compiled network."""
    if name.startswith("table.W_out"):
        return WORDS
    return _PARTS.get(name.split(".", maxsplit=1)[0].split("_", maxsplit=1)[0], "reading the bits")


def draw_parts(parts: Mapping[str, Account], title: str, path: Path) -> None:
    """Draw a bar for the whole network with its largest part named, and below it all other parts, magnified."""
    sizes = sorted(((part.dense, name) for name, part in parts.items()), reverse=True)
    (largest, largest_name), *rest = sizes
    total = sum(size for size, _ in sizes)
    picture, (axes,) = canvas(path, height=1.9 + 0.32 * len(rest))
    axes.barh([0], [largest], color="#b3123f", height=0.7)
    axes.barh([0], [total - largest], left=[largest], color=FAINT, height=0.7)
    share = f"{largest_name}: {largest:,} of {total:,} parameters"
    axes.text(0, -0.68, share, va="center", color="#b3123f", fontsize=10)
    most = max((size for size, _ in rest), default=1)
    for index, (size, name) in enumerate(rest):
        width = size / most * total * 0.45
        axes.barh([index + 1.4], [width], color="#1f5fa8", height=0.6)
        axes.text(width + total * 0.01, index + 1.4, f"{size:,}  {name}", va="center", color=INK, fontsize=9)
    axes.text(0, 0.72, f"the other {total - largest:,}, magnified:", color=QUIET, fontsize=9, va="center")
    axes.invert_yaxis()
    axes.set_axis_off()
    axes.set_title(title, loc="left", fontsize=11, color=INK, pad=12)
    save_picture(picture, path)
