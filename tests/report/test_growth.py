"""Time and memory against the number of questions."""

from pathlib import Path

import pytest

from byheart.errors import BadInput
from byheart.report.growth import Growth, draw_growth

LINE = Growth("a line", (10, 1000), (2.0, 200.0), (0.1, 0.1))


def test_exponents_by_hand() -> None:
    """From 10 to 1,000 questions, 100 times as many: 100 times the seconds are N^1, 10 times are N^½."""
    assert LINE.exponent == pytest.approx(1)
    assert Growth("a root", (10, 1000), (2.0, 20.0), (1, 1)).exponent == pytest.approx(0.5)
    with pytest.raises(BadInput, match="a single point has no slope"):
        _ = Growth("a point", (10,), (1.0,), (1.0,)).exponent


def test_a_picture_says_how_time_grows(tmp_path: Path) -> None:
    draw_growth([LINE], tmp_path / "growth.svg")
    assert "N^1.00" in (tmp_path / "growth.svg").read_text()
    for ways in ([], [LINE] * 4):
        with pytest.raises(BadInput, match="expected 1 to 3"):
            draw_growth(ways, tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()
