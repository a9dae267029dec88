"""Pages about what comes with Byheart: every experiment has one, and every paper."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.papers import results
from byheart.papers.capacity import Rung
from byheart.papers.capacity.beside import NETWORKS
from byheart.papers.experiments import EXPERIMENTS
from byheart.papers.mahdavi_2024 import EXPERIMENTS as MAHDAVI_2024
from byheart.papers.mahdavi_2024.mahdavi_page import GridPanel, grid_figure
from byheart.papers.pages import absent, findings_of, lead_of, names, results_page, tables_of
from byheart.papers.results import Presence
from byheart.report.drawing import draw
from byheart.report.page import picture_of

from .test_figures import dana, grid_of_madden, madden, mahdavi, rung


@pytest.mark.parametrize("name", names())
def test_every_page_says_what_came_out_and_has_figures_and_numbers(name: str) -> None:
    page = results_page(name)
    assert page.lead.paper
    assert page.lead.question.endswith("?")
    assert page.lead.findings
    assert page.figures
    assert page.tables
    assert page.about["models"] > 0


def test_all_results_are_in_some_page() -> None:
    assert set(results.names()) < set(names())
    with pytest.raises(BadInput, match="no results of 'mahdavi-2025' come with Byheart; did you mean 'mahdavi-2024'"):
        results_page("mahdavi-2025")


@pytest.mark.parametrize("name", ["dana-2025-5-mlp", "dana-2025-5-larger", "dana-2025-5-deeper"])
def test_heads_and_mlp_stand_in_one_figure_as_in_the_paper(name: str, tmp_path: Path) -> None:
    (available,) = results_page(name).figures
    draw(available.make(), tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert "attention: more heads" in text
    assert "one head and an MLP: wider" in text
    assert "published, mean of 5 runs" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_every_figure_is_drawn(name: str) -> None:
    for available in results_page(name).figures:
        picture = picture_of(partial(draw, available.make()), available.caption)
        assert "</svg>" in picture.wide
        assert "</svg>" in picture.narrow


def test_maddens_paper_has_a_page_once_its_results_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = {f"madden-2024-{kind}": grid_of_madden(kind == "frozen") for kind in ("frozen", "trained")}
    monkeypatch.setattr(results, "names", lambda: [*made])
    monkeypatch.setattr(results, "table", lambda name: made[name])
    assert names() == ["madden-2024", *made]
    page = results_page("madden-2024")
    assert [available.name for available in page.figures] == ["settings", "frozen-loss-gap", "trained-loss-gap"]
    *settings, presence = [table.title.split(":")[0] for table in page.tables]
    assert settings == ["frozen", "frozen", "trained", "trained"]
    assert presence == "How much of each experiment comes with Byheart"
    assert page.about["models"] == 24
    monkeypatch.setattr(results, "names", lambda: ["dana-2025-1"])
    with pytest.raises(BadInput, match="no results of 'madden-2024' come with Byheart"):
        results_page("madden-2024")


def test_blocks_stand_in_their_places_and_say_what_is_missing(tmp_path: Path) -> None:
    fixed, dims = [mahdavi(heads=H) for H in (1, 5)], [mahdavi(head_dim=d) for d in (10, 20)]
    random = [mahdavi(heads=H, context="random") for H in (1, 5)]
    panels = [
        GridPanel(fixed, fixed, Presence(2, 2, 1, 1)),
        GridPanel(random, [], Presence(0, 12, 0, 6)),
        GridPanel(dims, dims, Presence(2, 18, 1, 6, ("examples 4,000",))),
    ]
    draw(grid_figure("Classification", panels), tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert text.count('id="axes_') == 3
    assert text.count("no results yet") == 1
    for said in ("all 2 models", "0 of 12 models", "2 of 18 models (1 of 6 seeds; without examples 4,000)"):
        assert said in text
    assert "a context for each example" in text
    assert "d_h, dimension of a head" in text
    assert "d_h = n: beyond it the proved number does not grow" in text


def test_a_block_that_is_dropped_in_appears_on_the_papers_page(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "mahdavi-2024-regression-heads-random"
    found = {name: [vars(c) | {"best_loss": 0.01} for c in MAHDAVI_2024[name]("paper").configs if c.seed < 2]}
    monkeypatch.setattr("byheart.papers.results.names", lambda: [*found])
    monkeypatch.setattr("byheart.papers.results.table", found.__getitem__)
    page = results_page("mahdavi-2024")
    assert page.lead.findings[0].startswith("80 of the 2,052 models of the paper are here; nothing yet of ")
    assert "regression-heads-random" not in page.lead.findings[0]
    (counts,) = [row for row in page.tables[-1].rows if row["experiment"] == name]
    assert (counts["models"], counts["planned"], counts["shipped"]) == (80, 240, "partial")
    assert [available.name for available in page.figures] == ["classification", "regression"]


def measured(config: Any) -> dict[str, Any]:
    """A row of results as its experiment has it, with numbers out of thin air."""
    if isinstance(config, Rung):
        sizes = {"parameters": config.most_parameters, "examples": config.examples}
        return vars(config) | sizes | {"bits_per_parameter": 2.0 + config.seed / 10}
    if hasattr(config, "stories"):
        sizes = {"contexts": 8 * config.stories, "vocab": 3 * config.stories, "parameters": 9}
        return vars(config) | sizes | {"loss": 0.5, "entropy": 0.4, "relative_excess": 1 / config.hidden}
    share = min(1.0, (300 * config.heads + config.seed) / config.examples)
    return vars(config) | {"best_accuracy": share, "best_loss": (1 - share) / 12}


@pytest.mark.parametrize(
    ("name", "some"),
    [
        ("mahdavi-2024-classification-heads-random", "one model"),
        ("mahdavi-2024-classification-heads-random", "one seed"),
        ("mahdavi-2024-classification-head-dim-fixed", "one model"),
        ("capacity", "one seed"),
        ("capacity", "all"),
    ],
)
def test_a_table_that_is_dropped_in_needs_nothing_else(name: str, some: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, in part, with any number of seeds: it has a page, which says how much is there."""
    configs = EXPERIMENTS[name]("paper").configs
    kept = {"one model": configs[:1], "one seed": [c for c in configs if c.seed == 0], "all": configs}[some]
    rows = [measured(config) for config in kept]
    monkeypatch.setattr(results, "names", lambda: [name])
    monkeypatch.setattr(results, "table", {name: rows}.__getitem__)
    for page in map(results_page, names()):
        assert page.lead.findings
        assert page.figures
        assert page.tables
    assert name not in absent()
    assert absent()
    said = results_page(name).lead.findings[-1]
    assert said.startswith("At the paper's scale here are ") == (some != "all")
    if some == "one seed":
        assert said.endswith(f"{len(kept):,} of {len(configs):,} models (1 of {configs[-1].seed + 1} seeds).")


def test_the_ladders_page_has_what_is_built_for_the_same_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [measured(config) for config in EXPERIMENTS["capacity"]("paper").configs]
    monkeypatch.setattr(results, "names", lambda: ["capacity"])
    monkeypatch.setattr(results, "table", lambda _: rows)
    page = results_page("capacity")
    assert any("about 3.6 (Morris et al. 2025)" in said for said in page.lead.findings)
    assert page.lead.findings[-1].startswith("Built for the same labels, every answer checked, bits per parameter: ")
    (built,) = [table for table in page.tables if table.title.startswith("Networks built for the same labels")]
    assert {row["name"] for row in built.rows} == {*NETWORKS}


def test_saturated_heads_have_a_table_and_no_lines() -> None:
    """By hand: 2 and 3 of 4 heads are 2.5 on average, ± 12.706 · (0.5 √2) / √2 by Student's t."""
    rows = [mahdavi(heads=4, examples=550, seed=s, saturated_heads=2.0 + s) for s in (0, 1)]
    (table,) = tables_of("mahdavi-2024-saturation", rows)
    (cells,) = table.rows
    assert (cells["heads"], cells["examples"], cells["seeds"]) == (4, 550, 2)
    assert (cells["saturated_heads"], cells["saturated_share"]) == (2.5, 0.625)
    assert cells["saturated_heads_high"] == pytest.approx(2.5 + 12.7062 * 0.5, rel=1e-5)


def test_findings_in_words() -> None:
    rows = [dana(10, H, seed=s, steps=64) for H in (1, 6, 11) for s in (0, 1)]
    first, second, third = findings_of("dana-2025-1", rows)
    assert first.startswith("At 3 published points ours differ by 0.")
    assert first.endswith("(of 4,096 steps; here 64)")
    assert "0.030 lower" in second
    assert third.endswith("networks are above the proved lower bound.")
    lines = [mahdavi(heads=H, best_accuracy=0.02 * H + 0.001 * s) for H in (1, 5, 10, 20) for s in (0, 1)]
    grows, explain, proved = findings_of("mahdavi-2024-classification-heads-fixed", lines)
    assert grows.startswith("Below 0.9, accuracy grows with every head by 0.02 (")
    assert grows.endswith(") at N = 1,000.")
    assert explain == "Lines have R² = 1.000 (the lowest interval begins at 1.00)."
    assert proved.startswith("That is 20 right answers with every head, 0.6 times the 31 by which")
    many = [
        mahdavi(heads=H, examples=N, seed=s, best_accuracy=min(1.0, 50 * H / N * (1 - 0.01 * s)))
        for N in (500, 700, 900)
        for H in (1, 5, 10, 20)
        for s in (0, 1)
    ]
    last = findings_of("mahdavi-2024-classification-heads-fixed", many)[-1]
    assert last.startswith("The heads at which 0.9 is reached grow with N: one more for every 46 (")
    assert "(a line over 3 numbers of examples, R² = 0." in last
    early = [row | {"best_accuracy": 0.1 if row["heads"] == 1 else 1.0} for row in many]
    assert findings_of("mahdavi-2024-classification-heads-fixed", early) == [
        "Where 0.9 is crossed, it is between 1 and 5 heads: one step, which does not tell how that grows with N."
    ]
    leap = [
        mahdavi(heads=H, best_accuracy=y + 0.001 * s)
        for H, y in ((1, 0), (5, 0.6), (10, 0.7), (20, 0.8))
        for s in (0, 1)
    ]
    assert findings_of("mahdavi-2024-classification-heads-fixed", leap)[2] == (
        "From 1 to 5 heads it gains 75% of what it gains up to 20: growth that ends early, and no line."
    )
    full = [row | {"best_accuracy": row["best_accuracy"] + 0.15} for row in leap]
    said = findings_of("mahdavi-2024-classification-heads-fixed", full)
    assert not any("ends early" in each for each in said), "it ends because there is no more to gain"
    curved = [mahdavi(heads=H, best_accuracy=0.002 * H**2 + 0.001 * s) for H in (1, 5, 10, 20) for s in (0, 1)]
    _, explain, _ = findings_of("mahdavi-2024-classification-heads-fixed", curved)
    assert explain.endswith("at N = 1,000 it is not quite straight (F test, p < 0.05).")
    flat = [mahdavi(head_dim=d, best_accuracy=0.01 * min(d, 32) + 0.001 * (d % 3)) for d in range(10, 61, 5)]
    (said,) = findings_of("mahdavi-2024-classification-head-dim-fixed", flat)
    assert "with a doubling of d_h up to n = 32, and " in said
    assert "(equal slopes: p = " in said
    high = [mahdavi(head_dim=d, best_accuracy=0.95) for d in range(10, 61, 5)]
    assert findings_of("mahdavi-2024-classification-head-dim-fixed", high) == [
        "At N = 1,000, accuracy reaches 0.9: it says nothing about d_h."
    ]
    assert findings_of("mahdavi-2024-saturation", [mahdavi(saturated_share=share) for share in (0.2, 0.3)]) == [
        "On an example, 25% of the heads are saturated on average (2 runs)."
    ]
    fewest, none, shares = findings_of("madden-2024-trained", [madden(8, 0.005), madden(4, 0.5, 200)])
    assert fewest == "The fewest hidden neurons of the grid that come within 1 % of the entropy: 8 for 100 stories."
    assert none == "More than were tried: > 4 for 200 stories (50 % above at best)."
    assert shares.startswith("They have 0.035 times the N(ω − 1) parameters"), "11,224 of 319,200"
    _, law, _ = findings_of("madden-2024-trained", grid_of_madden(frozen=False))
    assert law == "Where the excess crosses 1 %, m = 0.1·n^1 (95 %: 1 to 1)."
    assert findings_of("capacity", [rung(1000, 2, 1.5), rung(1000, 4, 1.4)]) == [
        "1,000 parameters hold 1.50 bits each.",
        "Published, for GPTs of 5·10⁵ to 1.5·10⁹ parameters: about 3.6 (Morris et al. 2025).",
    ]
    _, unsure, _ = findings_of("capacity", [rung(1000, 2, 1.4), rung(1000, 4, 1.5)])
    assert unsure == "Of 1,000 parameters most was held where most was asked for: they may not be full."
    rows = [rung(1000, 2, bits) | {"steps": steps} for steps, bits in ((50, 1.2), (100, 1.5), (200, 1.6))]
    *_, longer = findings_of("capacity", [*rows, rung(1000, 4, 1.1), rung(2000, 2, 1.5)])
    assert longer == (
        "At 1,000 parameters and N = 500, networks hold 1.20 after 50 steps, 1.50 after 100 steps, 1.60 after 200"
        " steps; those of the ladder were trained for 100."
    )


def test_an_experiment_of_ones_own_leads_nowhere() -> None:
    assert lead_of("mine", [{"heads": 1}]).paper == ""
    assert findings_of("dana-2025-1", []) == []
    assert findings_of("mahdavi-2024-classification-heads-fixed", [mahdavi()]) == []
