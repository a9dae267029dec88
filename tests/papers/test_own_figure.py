"""The figure of an experiment that nothing is known of."""

from pathlib import Path
from typing import Any

import pytest

from byheart.papers.pages import own_figures
from byheart.report.drawing import draw

Row = dict[str, Any]


def row(width: int, seed: int = 0, **more: Any) -> Row:
    return {"key": "k", "status": "done", "width": width, "seed": seed, "loss": 1 / width, "seconds": 0.1} | more


def captions(rows: list[Row], settings: list[str]) -> list[str]:
    return [available.caption for available in own_figures("own", rows, settings)]


def test_accuracy_is_drawn_or_else_the_first_metric() -> None:
    rows = [row(width, accuracy=0.5, note="fine") for width in (1, 2, 3)]
    assert captions(rows, ["width", "seed"]) == ["accuracy against width."]
    assert captions([row(width) for width in (1, 2, 3)], ["width", "seed"]) == ["loss against width."]


def test_other_settings_that_vary_make_curves() -> None:
    rows = [row(width, kind=kind, layers=layers) for width in (1, 2) for kind in "ab" for layers in (1, None)]
    assert captions(rows, ["kind", "width", "layers", "seed"]) == ["loss against width, for each kind and layers."]


@pytest.mark.parametrize("settings", [["kind", "seed"], ["seed"], []])
def test_where_no_setting_with_numbers_varies_nothing_is_drawn(settings: list[str]) -> None:
    assert captions([row(1, seed=seed, kind=kind) for seed, kind in enumerate("ab")], settings) == []


@pytest.mark.slow
def test_three_rows_make_a_picture(tmp_path: Path) -> None:
    rows = [row(1, kind="a", layers=None), row(2, kind="a", layers=1), row(2, kind="b", layers=[1], loss=None)]
    (available,) = own_figures("own", rows, ["width", "kind", "layers", "seed"])
    draw(available.make(), tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
