"""Pages about what comes with Byheart: every experiment has one, and every paper."""

from pathlib import Path

import pytest

from byheart.errors import BadInput
from byheart.lab import results
from byheart.report.lab import findings_of
from byheart.report.lab.mahdavi import draw_blocks
from byheart.report.lab.shipped import lead_of, names, shown

from .test_lab_figures import dana, madden, mahdavi, rung


@pytest.mark.parametrize("name", names())
def test_every_page_says_what_came_out_and_has_figures_and_numbers(name: str) -> None:
    page = shown(name)
    assert page.lead.paper
    assert page.lead.question.endswith("?")
    assert page.lead.findings
    assert page.drawings
    assert page.tables
    assert page.about["models"] > 0


def test_all_results_are_in_some_page() -> None:
    assert set(results.names()) < set(names())
    with pytest.raises(
        BadInput, match="no results of 'mahdavi-2025' come with Byheart; there are those of mahdavi-2024"
    ):
        shown("mahdavi-2025")


@pytest.mark.parametrize("name", ["dana-2025-5-mlp", "dana-2025-5-larger", "dana-2025-5-deeper"])
def test_heads_and_mlp_stand_in_one_figure_as_in_the_paper(name: str, tmp_path: Path) -> None:
    (drawing,) = shown(name).drawings
    drawing.draw(tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert "attention: more heads" in text
    assert "one head and an MLP: wider" in text
    assert "published, mean of 5 runs" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_every_figure_is_drawn(name: str, tmp_path: Path) -> None:
    for drawing in shown(name).drawings:
        drawing.draw(tmp_path / f"{drawing.name}.svg")
    assert len([*tmp_path.iterdir()]) == len(shown(name).drawings)


def test_blocks_stand_side_by_side_with_what_there_is(tmp_path: Path) -> None:
    blocks = [
        [mahdavi(heads=H) for H in (1, 5)],
        [mahdavi(heads=H, context="random") for H in (1, 5)],
        [mahdavi(head_dim=d) for d in (10, 20)],
    ]
    draw_blocks(blocks, tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert text.count('id="axes_') == 3
    assert "a context for each example" in text
    assert "d_h, dimension of a head" in text
    assert "d_h = n: beyond it the proved number does not grow" in text


def test_findings_in_words() -> None:
    rows = [dana(10, H, seed=s, steps=64) for H in (1, 6, 11) for s in (0, 1)]
    first, second, third = findings_of("dana-2025-1", rows)
    assert first.startswith("At 3 published points ours differ by 0.")
    assert first.endswith("(of 4,096 steps; here 64)")
    assert "0.030 lower" in second
    assert third.endswith("networks are above the proved lower bound.")
    lines = [mahdavi(heads=H, best_accuracy=0.02 * H + 0.001 * s) for H in (1, 5, 10, 20) for s in (0, 1)]
    grows, explain = findings_of("mahdavi-2024-classification-heads-fixed", lines)
    assert grows.startswith("Below 0.9, accuracy grows with every head by 0.02 (")
    assert grows.endswith(") at N = 1,000.")
    assert explain == "Lines have R² = 1.000 to 1.000 (the lowest interval begins at 1.00)."
    curved = [mahdavi(heads=H, best_accuracy=0.002 * H**2 + 0.001 * s) for H in (1, 5, 10, 20) for s in (0, 1)]
    _, explain = findings_of("mahdavi-2024-classification-heads-fixed", curved)
    assert explain.endswith("at N = 1,000 it is not quite straight (F test, p < 0.05).")
    flat = [mahdavi(head_dim=d, best_accuracy=0.01 * min(d, 32) + 0.001 * (d % 3)) for d in range(10, 61, 5)]
    (said,) = findings_of("mahdavi-2024-classification-head-dim-fixed", flat)
    assert "up to d_h = n = 32" in said
    assert "(equal slopes: p = " in said
    assert findings_of("mahdavi-2024-saturation", [mahdavi(saturated_share=share) for share in (0.2, 0.3)]) == [
        "On an example, 25% of the heads are saturated on average (2 runs)."
    ]
    assert findings_of("madden-2024-trained", [madden(8, 0.005), madden(4, 0.5, 200)]) == [
        "Hidden neurons that come within 1 % of the entropy: 8 for 100 stories.",
        "For 200 stories, none that were tried do.",
    ]
    assert findings_of("capacity", [rung(1000, 2, 1.5), rung(1000, 4, 1.4)]) == [
        "1,000 parameters hold 1.50 bits each."
    ]
    _, unsure = findings_of("capacity", [rung(1000, 2, 1.4), rung(1000, 4, 1.5)])
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
