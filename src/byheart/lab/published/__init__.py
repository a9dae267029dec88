"""Numbers that papers published, to be drawn beside ours: one small CSV file per table, in our names of columns.

- ``dana_2025_1``: Dana, Pydi & Chevaleyre 2025, experiment 1 (ω = 50): model_dim = head_dim, heads, last_accuracy.
- ``dana_2025_2``: experiment 2 (ω = 50, d = 10, H = 20): head_dim, last_accuracy.

``last_accuracy`` is the mean training accuracy of 100 of the last batches, averaged over 5 runs.
"""

import csv
from importlib import resources

from byheart.errors import BadInput

REPETITIONS = {"dana_2025_1": 5, "dana_2025_2": 5}
"""How many runs a published number is the mean of."""


def published(name: str) -> list[dict[str, float]]:
    """The rows of a table.

    >>> published("dana_2025_2")[0]
    {'head_dim': 1.0, 'last_accuracy': 0.08145}
    """
    if name not in REPETITIONS:
        raise BadInput(f"no published table is called {name!r}; expected one of {', '.join(REPETITIONS)}")
    text = resources.files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return [{column: float(value) for column, value in row.items()} for row in csv.DictReader(text.splitlines())]
