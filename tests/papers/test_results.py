"""The tables that come with Byheart are whole, and their rows are those of the experiments they are named after."""

from pathlib import Path

import pytest

from byheart.errors import BadInput
from byheart.lab.rows import ResultRow
from byheart.lab.runs import Run
from byheart.papers import results
from byheart.papers.experiments import EXPERIMENTS
from byheart.papers.madden_2024 import data_of
from byheart.papers.results import Presence, names, presence, table

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)


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
        seeds = range(20 if name == "dana-2025-5-deeper" else 1 + max(c.seed for c in experiment.configs))
        known = {(c.model_dim, c.head_dim, c.heads, c.hidden, seed) for c in experiment.configs for seed in seeds}
        assert {(r["model_dim"], r["head_dim"], r["heads"], r["hidden"], r["seed"]) for r in rows} == known


def test_rows_that_are_planned_are_counted_with_their_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a block with N = 10,000 to 90,000 and six seeds: N = 10,000 with one, and a model that nobody planned."""
    name = "mahdavi-2024-regression-heads-random"
    first = [vars(c) for c in EXPERIMENTS[name]("paper").configs if (c.examples, c.seed) == (10_000, 0)]
    monkeypatch.setattr("byheart.papers.results.names", lambda: [name])
    monkeypatch.setattr("byheart.papers.results.table", lambda _: [*first, first[0] | {"heads": 7}])
    assert presence(name) == Presence(8, 240, 1, 6, ("examples 30,000, 50,000, 70,000, 90,000",))
    assert str(presence(name)) == "8 of 240 models (1 of 6 seeds; without examples 30,000, 50,000, 70,000, 90,000)"
    assert presence("mahdavi-2024-regression-heads-fixed") == Presence(0, 240, 0, 6)


@pytest.mark.parametrize("name", [name for name in names() if name in EXPERIMENTS])
def test_every_row_that_is_shipped_is_planned_or_repeats_one_that_is(name: str) -> None:
    seeds = {config.seed for config in EXPERIMENTS[name]("paper").configs}
    assert presence(name).models == sum(row["seed"] in seeds for row in table(name))


@pytest.mark.parametrize("name", [name for name in names() if name.startswith("madden")])
def test_maddens_models_are_those_of_the_paper_on_the_text_that_comes_with_byheart(name: str) -> None:
    """Losses stay above the entropy of the shipped stories, but for what float32 rounds."""
    configs = {(c.stories, c.hidden, c.frozen, c.seed, c.steps) for c in EXPERIMENTS[name]("paper").configs}
    for row in table(name):
        assert (row["stories"], row["hidden"], row["frozen"], row["seed"], row["steps"]) in configs
        data = data_of(row["stories"])
        assert (row["contexts"], row["vocab"]) == data.counts.shape
        assert row["entropy"] == pytest.approx(data.entropy, rel=1e-12)
        assert row["loss"] > row["entropy"] * (1 - 1e-5)
        assert row["parameters"] == row["vocab"] * (17 + row["hidden"]) + 1088 + 17 * row["hidden"]


def test_units_of_maddens_models_are_needed_in_proportion_to_the_stories_only_where_attention_is_frozen() -> None:
    least: dict[str, list[int]] = {"trained": [], "frozen": []}
    for setting, found in least.items():
        rows = table(f"madden-2024-{setting}")
        for n in range(100, 1000, 100):
            near = [row["hidden"] for row in rows if row["stories"] == n and row["relative_excess"] <= 0.01]
            found.append(min(near))
    assert least["trained"] == [64] * 7 + [128] * 2
    assert least["frozen"] == [64, 128, 256, 256, 256, 512, 512, 512, 512]


def test_stories_that_a_table_lacks_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "madden-2024-trained"
    some = [{"stories": n, "hidden": m, "frozen": False, "seed": 0} for n in range(100, 801, 100) for m in WIDTHS]
    monkeypatch.setattr(results, "names", lambda: [name])
    monkeypatch.setattr(results, "table", lambda _: some)
    assert str(presence(name)) == "64 of 80 models (without stories 900, 1,000)"
    some.pop()
    one = "1 of the 8 models with stories 800"
    assert str(presence(name)) == f"63 of 80 models (without stories 900, 1,000; without {one})"
    some += [{"stories": n, "hidden": m, "frozen": False, "seed": 0} for n in (900, 1000) for m in WIDTHS]
    assert presence(name) == Presence(79, 80, 1, 1, (one,))


def test_models_that_a_table_lacks_are_said_by_the_size_that_they_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model of width 4, and seven of ten of width 8."""
    name = "madden-2024-trained"
    some = [{"stories": n, "hidden": m, "frozen": False, "seed": 0} for m in WIDTHS[1:] for n in range(100, 1001, 100)]
    monkeypatch.setattr(results, "names", lambda: [name])
    monkeypatch.setattr(results, "table", lambda _: some[7:])
    assert presence(name).absent == ("hidden 4", "7 of the 10 models with hidden 8")
    monkeypatch.setattr(results, "table", lambda _: some[5:])
    assert presence(name).absent == ("hidden 4", "5 of the 10 models with hidden 8")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("capacity", "train its 84 models with byheart lab run capacity --scale paper, then draw them with"),
        ("madden-2024", "train its 160 models with byheart lab run madden-2024-trained --scale paper and byheart"),
        ("dana-2025-6", "train its 120 models with byheart lab run dana-2025-6 --scale paper"),
        ("dana-2025-4", "dana-2025-4 trains nothing: it is about the results of dana-2025-1; expected that name"),
        ("dana-2025-11", "no results of 'dana-2025-11' come with Byheart; did you mean 'dana-2025-1'?"),
        ("dana", "no results of 'dana' come with Byheart; there are a few"),
    ],
)
def test_what_there_could_be_is_told_from_what_there_is_not(name: str, told: str) -> None:
    results.check_there("dana-2025-1", ["dana-2025-1"], "there are a few")
    with pytest.raises(BadInput) as refused:
        results.check_there(name, ["dana-2025-1"], "there are a few")
    assert told in str(refused.value)


def test_what_the_lab_writes_can_be_put_there_as_it_is(tmp_path: Path) -> None:
    """Two models of a run, one of which failed."""
    experiment = EXPERIMENTS["dana-2025-6"]("smoke")
    with Run.create(tmp_path / "run", experiment) as run:
        done, failed = run.configs
        run.append([ResultRow(experiment.name, done, run.configs[done], "done", {"accuracy": 0.5}, 1.5, None)])
        run.append([ResultRow(experiment.name, failed, run.configs[failed], "failed", {}, 1.5, "too large")])
        run.write_csv(tmp_path / "run.csv")
    (row,) = results.read((tmp_path / "run.csv").read_text())
    assert row == {name: results._read_back(value) for name, value in run.configs[done].items()} | {"accuracy": 0.5}


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(BadInput) as refused:
        table("dana-2025-9")
    assert "no results of 'dana-2025-9' come with Byheart; did you mean 'dana-2025-" in str(refused.value)
    assert "mahdavi" not in str(refused.value), "the nearest ones only"
