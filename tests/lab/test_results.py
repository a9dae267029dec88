"""The tables that come with Byheart are whole, and their rows are those of the experiments they are named after."""

import pytest

from byheart.errors import BadInput
from byheart.lab.experiments import EXPERIMENTS
from byheart.lab.results import Presence, names, presence, table


@pytest.mark.parametrize("name", names())
def test_every_table_is_of_an_experiment_and_has_no_gaps(name: str) -> None:
    rows = table(name)
    experiment = EXPERIMENTS[name.removesuffix("-short")]("paper")
    settings = set(vars(experiment.configs[0])) & set(rows[0])
    assert {"heads", "seed"} <= settings
    assert len({tuple(row[column] for column in sorted(settings)) for row in rows}) == len(rows), "no model twice"
    regression = "-regression-" in name
    assert all(row["loss"] > 0 and row["accuracy"] is None if regression else 0 <= row["accuracy"] <= 1 for row in rows)
    if name.startswith("dana"):
        known = {(c.model_dim, c.head_dim, c.heads, c.hidden, c.seed) for c in experiment.configs}
        assert {(r["model_dim"], r["head_dim"], r["heads"], r["hidden"], r["seed"]) for r in rows} == known


def test_rows_that_are_planned_are_counted_with_their_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a block with N = 10,000 to 90,000 and six seeds: N = 10,000 with one, and a model that nobody planned."""
    name = "mahdavi-2024-regression-heads-random"
    first = [vars(c) for c in EXPERIMENTS[name]("paper").configs if (c.examples, c.seed) == (10_000, 0)]
    monkeypatch.setattr("byheart.lab.results.names", lambda: [name])
    monkeypatch.setattr("byheart.lab.results.table", lambda _: [*first, first[0] | {"heads": 7}])
    assert presence(name) == Presence(8, 240, 1, 6, ("examples 30,000, 50,000, 70,000, 90,000",))
    assert str(presence(name)) == "8 of 240 models (1 of 6 seeds; without examples 30,000, 50,000, 70,000, 90,000)"
    assert presence("mahdavi-2024-regression-heads-fixed") == Presence(0, 240, 0, 6)


@pytest.mark.parametrize("name", [name for name in names() if name in EXPERIMENTS])
def test_every_row_that_is_shipped_is_planned(name: str) -> None:
    assert presence(name).models == len(table(name))


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(BadInput) as refused:
        table("dana-2025-9")
    assert "no results of 'dana-2025-9' come with Byheart; did you mean 'dana-2025-" in str(refused.value)
    assert "mahdavi" not in str(refused.value), "the nearest ones only"
