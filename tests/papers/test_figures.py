"""Every figure of the lab from a table of three rows, and what must be said in it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from byheart.errors import BadInput
from byheart.exhibits import RAMP, Axis, EndLabel, Figure, Panel, colours
from byheart.papers.capacity.beside import Beside
from byheart.papers.capacity.capacity_page import capacity_figure, tuning_figure
from byheart.papers.curves import Series, runs_in_words, series
from byheart.papers.dana_2025 import dana_page
from byheart.papers.dana_2025.dana_claims import slopes_of
from byheart.papers.dana_2025.dana_page import mlp_figure, slopes_figure
from byheart.papers.madden_2024.madden_page import loss_figure, settings_figure, widths
from byheart.papers.mahdavi_2024.mahdavi_page import saturation_figure, sweep_figure
from byheart.papers.pages import figures_of, tables_of
from byheart.report.drawing import draw


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The pictures that are drawn, instead of their files."""
    pictures: list[Any] = []
    monkeypatch.setattr("byheart.report.drawing.save_picture", lambda picture, _: pictures.append(picture))
    return pictures


Row = dict[str, Any]
TIMES = ((50, 1.2), (100, 1.5), (200, 1.6))
"""Steps, and bits held after them."""


def dana(model_dim: int = 10, heads: int = 20, head_dim: int | None = None, seed: int = 0, **more: Any) -> Row:
    accuracy = min(0.95, 0.002 * model_dim * heads + 0.001 * seed)
    row = {"vocab": 50, "model_dim": model_dim, "head_dim": head_dim or model_dim, "heads": heads}
    row |= {"experiment": "1", "layers": 1, "seed": seed}
    row |= {"hidden": None, "parameters": model_dim * (102 + 4 * model_dim * heads)}
    row |= {"accuracy": accuracy, "last_accuracy": accuracy + 0.03, "lower_bound": 0.1, "previous_bound": 0.09}
    return row | more


def heads_figure(rows: list[Row]) -> Figure:
    return dana_page.sweep_figure(rows, "heads")


def head_dims_figure(rows: list[Row]) -> Figure:
    return dana_page.sweep_figure(rows, "head_dim")


def mahdavi(answers: str = "labels", **more: Any) -> Row:
    row = {"answers": answers, "context": "fixed", "examples": 1000, "length": 32, "heads": 20, "head_dim": 64}
    return row | {"seed": 0, "best_accuracy": 0.5, "best_loss": 0.01} | more


def madden(hidden: int, excess: float | None, stories: int = 100, frozen: bool = False) -> Row:
    sizes = {"contexts": 8 * stories, "vocab": 400, "frozen": frozen, "seed": 0}
    losses = {"loss": None if excess is None else 0.2 * (1 + excess), "entropy": 0.2, "relative_excess": excess}
    return {"stories": stories, "hidden": hidden, **losses, **sizes}


def grid_of_madden(frozen: bool) -> list[Row]:
    """The excess is 1 % at m = n/10."""
    return [madden(m, 0.01 * (n / 10 / m) ** 2, n, frozen) for n in (100, 200, 400) for m in (8, 16, 32, 64)]


def rung(parameters: int, demand: float, bits: float, seed: int = 0) -> Row:
    sizes = {"examples": round(parameters * demand / 4), "learning_rate": 0.02, "steps": 100, "seed": seed}
    return {"parameters": parameters, "demand": demand, "bits_per_parameter": bits, **sizes}


MADE: dict[str, Callable[[], Figure]] = {
    "heads": lambda: heads_figure([dana(heads=H) for H in (1, 6, 11)]),
    "head dims": lambda: head_dims_figure([dana(head_dim=d) for d in (1, 2, 3)]),
    "dims": lambda: dana_page.sweep_figure([dana(d, head_dim=10) for d in (5, 6, 7)], "model_dim"),
    "slopes": lambda: slopes_figure([dana(heads=H) for H in (1, 6, 11)]),
    "against MLP": lambda: mlp_figure([dana(), dana(heads=1), dana(heads=1, hidden=20)]),
    "accuracy": lambda: sweep_figure([mahdavi(heads=H) for H in (1, 5, 10)], "heads"),
    "error": lambda: sweep_figure([mahdavi("targets", length=n) for n in (1, 5, 10)], "length"),
    "saturation": lambda: saturation_figure(
        [mahdavi(heads=2, examples=9, seed=s, examples_by_saturated_heads=f"{s} {4 - s} 5") for s in range(3)]
    ),
    "loss gap": lambda: loss_figure([madden(4, 0.5), madden(8, 0.05), madden(16, 0.005)]),
    "settings": lambda: settings_figure(
        [grid_of_madden(frozen=False), [madden(m, 0.5, n, frozen=True) for n in (100, 200) for m in (4, 8)]]
    ),
    "capacity": lambda: capacity_figure([rung(1000, 2, b, s) for s, b in enumerate((1, 1.1, 1.3))]),
}


def text_of(figure: Figure, folder: Path) -> str:
    draw(figure, folder / "p.svg")
    return (folder / "p.svg").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_three_rows_make_a_picture(tmp_path: Path, name: str) -> None:
    draw(MADE[name](), tmp_path / "p.png")
    draw(MADE[name](), tmp_path / "p.svg")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert (tmp_path / "p.png").stat().st_size > 10_000
    assert ElementTree.parse(tmp_path / "p.svg").getroot().tag.endswith("svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.png", "p.svg"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("heads", ("measured, single runs", "published, mean of 5 runs", "proved", "proved before")),
        ("slopes", ("Too few points to compare laws", "proved", "of the published accuracies", "failed")),
        ("accuracy", ("proved", "measured", "one context for all", "N = 1,000")),
        ("error", ("1/12", "mean squared error")),
        ("saturation", ("mean ± s.d. of 3 runs", "share of the examples")),
        ("loss gap", ("1 %", "least m", "suffices", "no model gets below", "nats a token")),
        ("settings", ("everything trained", "attention frozen", "ω(17 + m)", "more than 8", "fitted: m = ")),
        ("capacity", ("95 % interval over 3 seeds", "published", "so perhaps not full")),
    ],
)
def test_kinds_of_numbers_and_their_spread_are_said(tmp_path: Path, name: str, said: tuple[str, ...]) -> None:
    text = text_of(MADE[name](), tmp_path)
    for words in said:
        assert words in text


def test_published_numbers_are_drawn_only_beside_what_they_are_about(tmp_path: Path) -> None:
    for change in ({"vocab": 70}, {"layers": 3}, {"head_dim": 5}):
        assert "published" not in text_of(heads_figure([dana(heads=H, **change) for H in (1, 6)]), tmp_path)
    for dim, said in ((12, False), (10, True)):
        figure = head_dims_figure([dana(dim, head_dim=d, experiment="2") for d in (1, 2)])
        assert ("published" in text_of(figure, tmp_path)) == said


def test_bounds_that_there_are_none_of_are_not_promised(tmp_path: Path) -> None:
    rows = [dana(heads=H, layers=3, lower_bound=None, previous_bound=None) for H in (1, 6)]
    assert "proved" not in text_of(heads_figure(rows), tmp_path)


def test_built_networks_are_drawn_only_beside_those_of_their_sizes(tmp_path: Path) -> None:
    assert "built by dana-2025, and certified" in text_of(heads_figure([dana(heads=H) for H in (1, 6)]), tmp_path)
    for change in ({"vocab": 70}, {"layers": 3}, {"hidden": 20}, {"head_dim": 5}):
        assert "and certified" not in text_of(heads_figure([dana(heads=H, **change) for H in (1, 6)]), tmp_path)


def test_of_many_dimensions_three_have_their_bounds_drawn_and_it_is_said(tmp_path: Path) -> None:
    figure = heads_figure([dana(d, H) for d in range(3, 14) for H in (1, 6)])
    assert "(for d = 3, 8, 13)" in text_of(figure, tmp_path)


def test_the_title_says_what_the_heads_dimension_is(tmp_path: Path) -> None:
    assert "d_h = d, ω = 50" in text_of(heads_figure([dana(heads=H) for H in (1, 6)]), tmp_path)
    assert "d_h = 5" in text_of(heads_figure([dana(2, H, head_dim=5) for H in (1, 6)]), tmp_path)


def test_repetitions_are_means_with_deviations() -> None:
    rows = [{"model_dim": d, "heads": 1, "accuracy": a} for d, a in ((3, 0.2), (3, 0.4), (5, 0.5), (5, None))]
    first, second = series(rows, "model_dim", "heads", "accuracy")
    assert first.means == [pytest.approx(0.3)]
    assert first.deviations == [pytest.approx(0.02**0.5)]
    assert (second.means, second.deviations, second.runs) == ([0.5], [0.0], [1])
    assert runs_in_words([first, second]) == "mean ± s.d. of 1 to 2 runs"
    assert runs_in_words([Series(None, [1], [0], [0], [1])]) == "single runs"


@pytest.mark.parametrize(("scale", "ends"), [("log", [1.0, 3.0]), ("linear", [-1.0, 3.0])])
def test_bars_on_logarithmic_axes_do_not_reach_zero(
    scale: str, ends: list[float], tmp_path: Path, drawn: list[Any]
) -> None:
    curve = Series(None, [1.0], [1.0], [2.0], [2]).drawn("#000000")
    draw(Figure([Panel(Axis(), Axis(scale=scale), [curve])]), tmp_path / "p.svg")
    [picture] = drawn
    [axes] = picture.axes
    (bar,) = axes.collections[0].get_segments()
    assert bar[:, 1].tolist() == ends


def test_where_curves_end_together_the_higher_one_is_named_above(tmp_path: Path, drawn: list[Any]) -> None:
    names = [EndLabel("1", [0.5, 1, 1], "k"), EndLabel("2", [0.2, 0.5, 1], "k")]
    for ordered in (names, names[::-1]):
        draw(Figure([Panel(Axis(), Axis(limits=(0, 1)), names=ordered)]), tmp_path / "p.svg")
        heights = {text.get_text(): text.xy[1] for text in drawn[-1].axes[0].texts}
        assert heights["1"] > heights["2"]


def test_colours_are_different_and_in_order() -> None:
    assert len(set(colours(11))) == 11
    assert (colours(3)[0], colours(3)[-1]) == (RAMP[0], RAMP[-1])


def test_slopes_are_taken_below_saturation() -> None:
    rows = [dana(d, H, seed=s) for d in (3, 4, 5, 6, 7) for H in (1, 6, 11) for s in (0, 1)]
    rows += [dana(d, 500, accuracy=1.0, last_accuracy=1.0) for d in (3, 4, 5, 6, 7)]
    found = slopes_of(rows)
    assert found.slopes == pytest.approx([0.002 * d for d in found.dims])
    assert len(found.slopes) == 10
    assert found.comparison.by_aicc is not None
    assert found.comparison.by_aicc.family in ("linear", "power")
    with pytest.raises(BadInput, match="three points"):
        slopes_of([dana(heads=1), dana(heads=6)])


def test_the_least_m_is_that_of_every_run_and_may_be_missing(tmp_path: Path) -> None:
    rows = [madden(4, 0.5), madden(8, 0.005), madden(8, 0.02), madden(16, 0.009), madden(4, 0.2, 200)]
    rows += [madden(16, None, 200)]
    assert [(one.stories, one.least, one.least_in_words) for one in widths(rows)] == [
        (100, 16, "16"),
        (200, None, "> 16"),
    ]
    assert "more than 16" in text_of(loss_figure(rows), tmp_path)


def test_what_is_built_stands_beside_the_ladder(tmp_path: Path) -> None:
    rows = [rung(P, d, 0.8 * d) for P in (1000, 2000) for d in (1, 2)]
    built = [Beside("reciting", 500, 2000, 5.0, 32), Beside("reciting", 900, 3000, 7.0, 32)]
    text = text_of(capacity_figure(rows, [*built, Beside("folding", 900, 300, 70.0, 512)]), tmp_path)
    assert "built, every answer checked: reciting" in text
    assert "reciting, weights" not in text, "floats have 32 bits"
    assert "built, every answer checked: folding, weights up to 512" in text
    draw(capacity_figure([rung(1000, 1, -0.2)]), tmp_path / "p.svg")  # nothing held: no logarithms of it


def test_an_interval_does_not_stretch_the_axis_below_nothing(tmp_path: Path, drawn: list[Any]) -> None:
    """Of three seeds one fails: the interval over seeds reaches below 0, bits do not."""
    held = [rung(1000, 8, bits, seed) for seed, bits in enumerate((1.2, 0.1, 0.1))]
    draw(capacity_figure(held), tmp_path / "p.svg")
    draw(capacity_figure([rung(1000, 8, -0.2)]), tmp_path / "p.svg")
    grid = [rung(1000, 2, bits, seed) | {"steps": n} for n in (1, 2, 4) for seed, bits in enumerate((0.1, 0.1, 1.2))]
    draw(tuning_figure([*grid, rung(2000, 2, 0.5) | {"steps": 2}]), tmp_path / "p.svg")
    lowest = [picture.axes[0].get_ylim()[0] for picture in drawn]
    assert lowest[0] == lowest[2] == 0
    assert lowest[1] < -0.2


def test_heads_and_dimensions_have_whole_ticks(tmp_path: Path, drawn: list[Any]) -> None:
    draw(sweep_figure([mahdavi(heads=H) for H in (1, 5, 9, 13, 17, 21)], "heads"), tmp_path / "p.svg")
    ticks: Sequence[float] = drawn[0].axes[0].get_xticks()
    assert len(ticks) > 1
    assert all(tick == int(tick) for tick in ticks)


def test_points_at_the_edge_are_hollow_and_named(tmp_path: Path) -> None:
    """Most is held at demand 4 of 2, 4 and 8: full. With 8 left out it may be more."""
    rows = [rung(1000, demand, bits, seed) for demand, bits in ((2, 1.4), (4, 1.6), (8, 1.5)) for seed in (0, 1)]
    for some, said in ((rows, False), (rows[:4], True)):
        text = text_of(capacity_figure(some), tmp_path)
        assert ("hollow: most was held where most was asked for" in text) == said


def test_tuning_is_drawn_where_three_were_tried(tmp_path: Path) -> None:
    longer = [rung(1000, 2, bits, seed) | {"steps": steps} for steps, bits in TIMES for seed in (0, 1)]
    text = text_of(tuning_figure([*longer, rung(2000, 2, 1.4)]), tmp_path)
    for words in ("The last steps bring +0.10", "how all sizes of the ladder were", "over 2 seeds"):
        assert words in text
    assert "learning rate" not in text, "one was tried"
    with pytest.raises(BadInput, match="no size was trained with three learning rates"):
        tuning_figure(longer[:4])


@pytest.mark.parametrize(
    ("experiment", "rows", "names"),
    [
        ("dana-2025-1", [dana(d, H) for d in (3, 4, 5) for H in (1, 6, 11)], ["heads", "slopes"]),
        ("dana-2025-1", [dana(d, H) for d in (3, 4, 5) for H in (1, 6)], ["heads"]),
        ("dana-2025-6", [dana(2, H, vocab=10) for H in (1, 5)], ["heads"]),
        ("dana-2025-2", [dana(head_dim=d) for d in (1, 2)], ["head-dim"]),
        ("dana-2025-3", [dana(d, head_dim=10) for d in (5, 6)], ["model-dim"]),
        ("dana-2025-5-mlp", [dana(heads=1, hidden=w) for w in (0, 20)], ["attention-mlp"]),
        ("mahdavi-2024-classification-heads-fixed", [mahdavi(heads=H) for H in (1, 5)], ["heads"]),
        ("mahdavi-2024-classification-head-dim-fixed", [mahdavi(head_dim=d) for d in (10, 15)], ["head-dim"]),
        ("mahdavi-2024-saturation", [mahdavi(examples_by_saturated_heads="1 2")], ["saturation"]),
        ("madden-2024-frozen", [madden(4, 0.5)], ["loss-gap"]),
        ("capacity", [rung(1000, 2, 1.0)], ["capacity"]),
        ("capacity", [rung(1000, 2, bits) | {"steps": steps} for steps, bits in TIMES], ["capacity", "tuning"]),
        ("mine", [{"heads": 1, "accuracy": 0.5}], []),
        ("dana-2025-1", [], []),
    ],
)
def test_a_table_says_which_figures_it_allows(experiment: str, rows: list[Row], names: list[str]) -> None:
    found = figures_of(experiment, rows)
    assert [drawing.name for drawing in found] == names
    assert all(drawing.caption.endswith(".") for drawing in found)


def test_published_points_are_a_table_with_both_accuracies_and_what_noise_explains() -> None:
    rows = [dana(10, H, seed=s) for H in (1, 6, 11) for s in (0, 1)]
    points, slopes = tables_of("dana-2025-1", rows)
    assert [row["published"] for row in points.rows] == [0.12981, 0.32427, 0.50625]
    first = points.rows[0]
    assert first["gap"] == pytest.approx(first["here"] - first["published"])
    assert first["uniform"] == pytest.approx(first["here"] - 0.03)
    assert {type(row["within_noise"]) for row in points.rows} == {bool}
    assert slopes.rows[0]["slope_here"] == pytest.approx(0.02), "0.002 d a head"
    assert tables_of("dana-2025-1", [dana(10, 2), dana(10, 3)]) == [], "none of these was published"


def test_laws_are_tables_with_intervals_and_what_prefers_them() -> None:
    rows = [dana(d, H, seed=s) for d in (3, 4, 5, 6, 7) for H in (1, 6, 11) for s in (0, 1)]
    *_, table = tables_of("dana-2025-1", rows)
    assert {row["family"] for row in table.rows} == {"linear", "quadratic", "cubic", "power"}
    assert sum(row["preferred by"] is not None for row in table.rows) in (1, 2)
    assert all(row["b_low"] <= row["b"] <= row["b_high"] for row in table.rows)


def test_accuracy_over_heads_is_held_against_a_line_for_each_number_of_examples() -> None:
    rows = [
        mahdavi(heads=H, examples=N, best_accuracy=min(1.0, 50 * H / N)) for H in (1, 5, 10, 20) for N in (1000, 2000)
    ]
    lines, needed, where, table = tables_of("mahdavi-2024-classification-heads-fixed", rows)
    assert [(row["examples"], row["seeds"], row["of"]) for row in needed.rows] == [(1000, 1, 1), (2000, 0, 1)]
    assert [row["slope"] for row in lines.rows] == [pytest.approx(0.05), pytest.approx(0.025)]
    assert [(row["status"], row["heads"]) for row in where.rows] == [("separated", 15.0), ("all fail", None)]
    assert {row["examples"] for row in table.rows} == {1000, 2000}
    assert next(row for row in table.rows if row["family"] == "linear" and row["examples"] == 2000)[
        "b"
    ] == pytest.approx(0.025)


def test_smallest_widths_and_ladders_are_tables_too() -> None:
    least, laws = tables_of("madden-2024-trained", [*grid_of_madden(frozen=False), madden(8, 0.5, 800)])
    assert [row["least hidden"] for row in least.rows] == [16, 32, 64, "> 8"]
    assert [row["crossing"] for row in least.rows] == [pytest.approx(10), pytest.approx(20), pytest.approx(40), None]
    assert [row["parameters"] for row in least.rows] == [400 * (17 + m) + 1088 + 17 * m for m in (16, 32, 64)] + [None]
    assert [row["needed by any N"] for row in least.rows] == [399 * 8 * n for n in (100, 200, 400, 800)]
    power = next(row for row in laws.rows if row["family"] == "power")
    assert power["b"] == pytest.approx(1), "m = n/10"
    (ladder,) = tables_of("capacity", [rung(1000, 2, 1.0, seed) for seed in (0, 1)])
    assert ladder.rows[0]["seeds"] == 2
    assert len(tables_of("capacity", [rung(P, 2, 1.0) for P in (1000, 2000, 4000)])) == 2
    assert tables_of("mine", [{"heads": 1}]) == tables_of("dana-2025-2", [dana()]) == []


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no rows"):
        heads_figure([])
    with pytest.raises(BadInput, match="no head_dim, last_accuracy"):
        heads_figure([{"model_dim": 1, "heads": 1, "accuracy": 1.0, "vocab": 5}])
    with pytest.raises(BadInput, match="vocab is"):
        heads_figure([dana(), dana(vocab=70)])
    with pytest.raises(BadInput, match=r"p\.txt"):
        draw(heads_figure([dana()]), tmp_path / "p.txt")
    with pytest.raises(BadInput, match="folder does not exist"):
        draw(heads_figure([dana()]), tmp_path / "missing" / "p.png")
    assert list(tmp_path.iterdir()) == []


ODD_ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "a list": ({"heads": [1, 2]}, r"heads is \[1, 2\] in a row of the table; expected a positive number"),
    "a text": ({"model_dim": "wide"}, "model_dim is 'wide' in a row"),
    "no size": ({"vocab": 0}, "vocab is 0 in a row"),
    "accuracy in words": ({"accuracy": "good"}, "accuracy is 'good' in a row"),
}


@pytest.mark.parametrize("name", ODD_ROWS)
def test_rows_of_other_kinds_are_not_drawn(name: str) -> None:
    changes, message = ODD_ROWS[name]
    rows = [{"model_dim": d, "head_dim": d, "heads": d, "vocab": 50, "accuracy": 0.5} | changes for d in (2, 3)]
    with pytest.raises(BadInput, match=message):
        figures_of("dana-2025-1", rows)


@pytest.mark.parametrize("measured", [{}, {"accuracy": None, "last_accuracy": None}])
def test_rows_without_a_measurement_are_not_drawn(measured: dict[str, None]) -> None:
    sizes = [{"model_dim": d, "head_dim": d, "heads": H, "vocab": 50} for d in (2, 3, 4) for H in (1, 2, 3)]
    rows = [row | measured | {"lower_bound": 0.1, "previous_bound": 0.1} for row in sizes]
    for drawing in figures_of("dana-2025-1", rows):
        with pytest.raises(BadInput, match="no last_accuracy, accuracy" if not measured else "no row has a number"):
            drawing.make()
