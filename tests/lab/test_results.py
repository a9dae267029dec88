"""The tables that come with Byheart are whole, and their rows are those of the experiments they are named after."""

import pytest

from byheart.errors import BadInput
from byheart.lab.experiments import EXPERIMENTS
from byheart.lab.results import names, table


@pytest.mark.parametrize("name", names())
def test_every_table_is_of_an_experiment_and_has_no_gaps(name: str) -> None:
    rows = table(name)
    experiment = EXPERIMENTS[name.removesuffix("-short")]("paper")
    settings = set(vars(experiment.configs[0])) & set(rows[0])
    assert "seed" in settings
    assert len({tuple(row[column] for column in sorted(settings)) for row in rows}) == len(rows), "no model twice"
    regression = "-regression-" in name
    assert all(row["loss"] > 0 and row["accuracy"] is None if regression else 0 <= row["accuracy"] <= 1 for row in rows)
    if name.startswith("dana"):
        known = {(c.model_dim, c.head_dim, c.heads, c.hidden, c.seed) for c in experiment.configs}
        assert {(r["model_dim"], r["head_dim"], r["heads"], r["hidden"], r["seed"]) for r in rows} == known


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(BadInput) as refused:
        table("dana-2025-9")
    assert "no results of 'dana-2025-9' come with Byheart; there are those of dana-2025-" in str(refused.value)
    assert "mahdavi" not in str(refused.value), "the nearest ones only"
