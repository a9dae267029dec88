"""Networks that were certified, to be drawn beside what was measured: a CSV file each.

``dana_2025``: for the sizes of Dana et al.'s experiments 1 to 3 (where d_h ≤ d) a network of ``byheart build dana-2025
--hold``, which holds H·d_h + d of all ω² contexts of two tokens and guesses the others; ``right`` are proved right. One
random task and one seed each; written by ``python benchmarks/dana_theory.py guesses --out``.

``capacity``: for the tasks of the ladder of scale "paper", first seed, networks that hold every label, certified;
``weight_bits`` are those of the largest weight. Written by ``python benchmarks/capacity.py build --scale paper``.

``held``: networks of experiments 1 and 2 with d = d_h = 10 that were trained, on a CPU, one seed each. Of the
``examples`` of its task ``measured`` were right in float32 and ``right`` are proved right; ``built`` are those that a
network of ``byheart build dana-2025 --hold`` with the same sizes is proved right on, and ``constant`` those that have
the commonest label. Every network has a random task of its own; written by ``python benchmarks/held.py --out``.
"""

import csv
from importlib import resources
from typing import Any

from byheart.errors import BadInput

TABLES = ("dana_2025", "capacity", "held")


def built(name: str) -> list[dict[str, Any]]:
    """The rows of a table; all cells but names are floats.

    >>> [row["right"] for row in built("dana_2025") if row["heads"] == 20 and row["held"] == 210]
    [264.0]
    """
    if name not in TABLES:
        raise BadInput(f"no table of built networks is called {name!r}; expected {' or '.join(TABLES)}")
    text = resources.files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return [{column: _value(cell) for column, cell in row.items()} for row in csv.DictReader(text.splitlines())]


def _value(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell
