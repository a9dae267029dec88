"""Figures from small tables."""

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.bounds import vc
from byheart.constructions.planner import planned
from byheart.errors import BadInput
from byheart.report.figures import PlanPoint, TaskPanel, draw_constants, draw_parameters, parameter_table, spread
from byheart.sizes import Size

SIZE = Size(examples=100, length=4, labels=10, vocab=50)
TABLE = [PlanPoint("interpolate", 10, 31), PlanPoint("interpolate", 100, 301), PlanPoint("vardi-2022", 100, 250)]


@pytest.mark.parametrize("setting", ["next-token", "seq-to-seq"])
@pytest.mark.parametrize("built", [[], [PlanPoint("interpolate", 50, 151)]], ids=["planned", "built"])
def test_three_rows_make_a_picture(tmp_path: Path, setting: str, built: list[PlanPoint]) -> None:
    panel = TaskPanel(TABLE, SIZE, setting, built)
    draw_parameters([panel], tmp_path / "p.png")
    draw_parameters([panel], tmp_path / "p.svg")
    png = (tmp_path / "p.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert png[-8:-4] == b"IEND"
    assert len(png) > 10_000
    svg = ElementTree.fromstring((tmp_path / "p.svg").read_bytes())
    assert svg.tag.endswith("svg")
    assert (tmp_path / "p.svg").stat().st_size > 5_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.png", "p.svg"]


def test_names_of_all_lines_are_in_the_picture(tmp_path: Path) -> None:
    panels = [TaskPanel(TABLE, SIZE, "next-token"), TaskPanel(TABLE, SIZE, "seq-to-seq")]
    draw_parameters(panels, tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    for name in ("interpolate", "vardi-2022", "N, sequences memorized", "smallest: interpolate", "next-token", "naive"):
        assert name in text  # as a comment beside the outlines
    draw_constants(panels, tmp_path / "c.svg")
    assert "parameters ÷ √(nN log₂C)" in (tmp_path / "c.svg").read_text()
    for picture in ("p.svg", "c.svg"):
        assert "needed behind fixed codes (VC, proved)" in (tmp_path / picture).read_text()


@pytest.mark.parametrize("setting", ["next-token", "seq-to-seq"])
def test_what_is_proved_stays_below_what_is_planned(setting: str) -> None:
    panel = TaskPanel(parameter_table(SIZE, setting, largest=10**5), SIZE, setting)  # type: ignore[arg-type]
    proved = dict(zip(panel.examples, panel.proved, strict=True))
    times = 4 if setting == "seq-to-seq" else 1
    assert proved[1000] == vc.fewest(1000 * times, 10, tokens=200)
    softmax_and_hardmax = ("dana-2025", "madden-2024", "kim-2023", "kajitsuka-sato-2024")
    for point in panel.points:
        assert point.construction in softmax_and_hardmax or point.parameters >= proved[point.examples]


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.01, 0.3))
def test_names_keep_their_order_and_their_distance(wanted: list[float], gap: float) -> None:
    wanted.sort()
    placed = spread(wanted, gap)
    assert all(after - before >= gap - 1e-9 for before, after in pairwise(placed))
    if all(after - before >= gap for before, after in pairwise(wanted)):
        assert placed == pytest.approx(wanted)
    assert sum(placed) == pytest.approx(sum(wanted)), "blocks move around their means"


def test_the_table_is_the_plans() -> None:
    points = parameter_table(SIZE, "next-token", largest=1000)
    examples = sorted({point.examples for point in points})
    assert {10, 100, 1000} <= set(examples)
    assert min(examples) == 10
    assert max(examples) == 1000
    rows = {(row.construction, row.parameters - row.embedding) for row in planned(SIZE, "next-token")}
    assert rows == {(point.construction, point.parameters) for point in points if point.examples == 100}


def test_a_name_that_is_no_picture(tmp_path: Path) -> None:
    for path in (tmp_path / "p.nonsense", tmp_path / "missing" / "p.png"):
        with pytest.raises(BadInput, match=path.name):
            draw_parameters([TaskPanel(TABLE, SIZE, "next-token")], path)
    assert list(tmp_path.iterdir()) == []
