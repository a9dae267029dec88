"""Accuracies of networks that were built and certified, to be drawn under those of trained ones: one CSV file.

``dana_2025``: for the sizes of Dana et al.'s experiments 1 to 3 (where d_h ≤ d) a network of ``byheart build dana-2025
--hold``, which holds H·d_h + d of all ω² contexts of two tokens and guesses the others; ``right`` are proved right. One
random task and one seed each; written by ``python benchmarks/dana_theory.py guesses --out``.
"""

import csv
from importlib import resources

from byheart.errors import BadInput


def built(name: str) -> list[dict[str, float]]:
    """The rows of a table.

    >>> [row["right"] for row in built("dana_2025") if row["heads"] == 20 and row["held"] == 210]
    [264.0]
    """
    if name != "dana_2025":
        raise BadInput(f"no table of built networks is called {name!r}; expected dana_2025")
    text = resources.files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return [{column: float(value) for column, value in row.items()} for row in csv.DictReader(text.splitlines())]
