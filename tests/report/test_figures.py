"""Figures from small tables."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from byheart.errors import BadInput
from byheart.report.figures import Point, draw_parameters, parameter_table
from byheart.report.planner import planned
from byheart.size import Size

SIZE = Size(examples=100, length=4, labels=10, vocab=50)
TABLE = [Point("interpolate", 10, 31), Point("interpolate", 100, 301), Point("vardi-2022", 100, 250)]


@pytest.mark.parametrize("setting", ["next-token", "seq-to-seq"])
@pytest.mark.parametrize("built", [None, [Point("interpolate", 50, 151)]], ids=["planned", "built"])
def test_three_rows_make_a_picture(tmp_path: Path, setting: str, built: list[Point] | None) -> None:
    draw_parameters(TABLE, SIZE, setting, tmp_path / "p.png", built=built)
    draw_parameters(TABLE, SIZE, setting, tmp_path / "p.svg", built=built)
    png = (tmp_path / "p.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert png[-8:-4] == b"IEND"
    assert len(png) > 10_000
    svg = ElementTree.fromstring((tmp_path / "p.svg").read_bytes())
    assert svg.tag.endswith("svg")
    assert (tmp_path / "p.svg").stat().st_size > 5_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.png", "p.svg"]


def test_names_of_all_lines_are_in_the_picture(tmp_path: Path) -> None:
    draw_parameters(TABLE, SIZE, "next-token", tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    for name in ("interpolate", "vardi-2022", "N, sequences memorized"):
        assert name in text  # as a comment beside the outlines


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
            draw_parameters(TABLE, SIZE, "next-token", path)
    assert list(tmp_path.iterdir()) == []
