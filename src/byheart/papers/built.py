"""Networks that were certified, to be drawn beside what was measured: one CSV file per table.

``dana_2025``: for the sizes of Dana et al.'s experiments 1 to 3 (where d_h ≤ d), a network of ``byheart build dana-2025
--hold``, which holds H·d_h + d of all ω² contexts of two tokens and guesses the others; ``right`` counts the answers
proved right. One random task and one seed each; written by ``python benchmarks/dana_theory.py guesses --out``.

``capacity``: for the tasks of the ladder of scale "paper", first seed, networks that hold every label, certified;
``weight_bits`` are those of the largest weight. Written by ``python benchmarks/capacity.py build --scale paper``.

``held``: networks of experiments 1 and 2 with d = d_h = 10 that were trained, on a CPU, one seed each. Of the
``examples`` of its task, ``measured`` were right in float32 and ``right`` are proved right; ``built`` counts those that
a network of ``byheart build dana-2025 --hold`` with the same sizes is proved right on, and ``constant`` those with the
commonest label. Every network has a random task of its own; written by ``python benchmarks/held.py --out``.
"""

from importlib import resources
from typing import Any

from byheart.errors import BadInput
from byheart.papers.results import read

TABLES = {
    "dana_2025": ("dana_2025", "certified.csv"),
    "capacity": ("capacity", "built.csv"),
    "held": ("dana_2025", "held.csv"),
}


def built(name: str) -> list[dict[str, Any]]:
    """Return the rows of a table.

    >>> [row["right"] for row in built("dana_2025") if row["heads"] == 20 and row["held"] == 210]
    [264]
    """
    if name not in TABLES:
        raise BadInput(f"no table of built networks is called {name!r}; expected {' or '.join(TABLES)}")
    return read(resources.files(__package__).joinpath(*TABLES[name]).read_text(encoding="utf-8"))
