"""The picture of what a radius costs."""

from pathlib import Path

from byheart.report.robustness import Robust, draw_robustness


def test_networks_and_bounds_are_named(tmp_path: Path) -> None:
    networks = [Robust(0.9, 9000, "balls"), Robust(1e-5, 700, "cells"), Robust(0.1, 4000, "balls")]
    draw_robustness(networks, 30, 4, tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    for name in ("vardi-2022, read=cells", "Õ(Nd²)", "order only", "one indicator a point", "N = 30 points, d = 4"):
        assert name in text
