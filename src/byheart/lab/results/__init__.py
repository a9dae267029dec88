"""Results that come with Byheart: one CSV file per experiment, one row per model, settings and metrics side by side.

All were trained on an H200 by this room's code, at the papers' scale: Dana's whole paper; of Mahdavi's study all that
has a fixed context, with two seeds (of d_h N = 15,000 and 20,000 only, and all N with a sixth of the steps, "short"),
and the saturated heads with six. ``2-text`` is Dana's experiment 2 as the text has it.
"""

import csv
from dataclasses import fields
from difflib import get_close_matches
from importlib import resources
from typing import Any

from byheart.errors import BadInput


def names() -> list[str]:
    """What there is, by the experiments' names.

    >>> [name for name in names() if name.startswith("dana-2025-1")]
    ['dana-2025-1', 'dana-2025-1-deeper', 'dana-2025-1-larger']
    """
    files = (path.name for path in resources.files(__name__).iterdir())
    return sorted(name.removesuffix(".csv").replace("_", "-") for name in files if name.endswith(".csv"))


def table(name: str) -> list[dict[str, Any]]:
    """The rows of an experiment; numbers as numbers, empty cells as None.

    >>> rows = table("dana-2025-2")
    >>> len(rows), rows[0]["head_dim"], rows[0]["hidden"], rows[0]["text"]
    (50, 1, None, False)
    """
    if name not in names():
        near = get_close_matches(name, names(), cutoff=0.5) or names()[:1]
        raise BadInput(f"no results of {name!r} come with Byheart; there are those of {' or '.join(near)}, say")
    text = resources.files(__name__).joinpath(f"{name.replace('-', '_', 2)}.csv").read_text(encoding="utf-8")
    return [{column: _value(cell) for column, cell in row.items()} for row in csv.DictReader(text.splitlines())]


def settings(name: str) -> list[str]:
    """Which columns of a table are settings: the fields of its experiment's configs.

    >>> settings("mahdavi-2024-classification-head-dim-fixed-short")
    ['answers', 'context', 'examples', 'length', 'heads', 'head_dim', 'seed', 'steps']
    """
    from byheart.lab.experiments import EXPERIMENTS

    columns = table(name)[0]
    experiment = max((known for known in EXPERIMENTS if name.startswith(known)), key=len)
    config = EXPERIMENTS[experiment]("smoke").configs[0]
    return [field.name for field in fields(config) if field.name in columns]


def _value(cell: str) -> int | float | str | bool | None:
    named: dict[str, bool | None] = {"": None, "True": True, "False": False}
    if cell in named:
        return named[cell]
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
