"""``byheart lab capacity`` and ``byheart lab plot``, as their commands."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byheart.cli.lab_figures import LabPlot
from byheart.cli.lab_training import LabCapacity
from byheart.cli.result import show
from byheart.errors import BadInput

Said = Callable[[], str]
TINY: dict[str, Any] = {"parameters": (800,), "demands": (0.2,), "seeds": 2, "steps": 20}


def done(command: LabCapacity | LabPlot) -> bool:
    """Run a command, print its result, and return whether it succeeded."""
    result = command.run()
    show(result, as_json=command.json)
    return result.is_true


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    monkeypatch.chdir(tmp_path)
    return lambda: capsys.readouterr().out


def test_a_ladder_is_trained_printed_and_drawn(said: Said) -> None:
    assert done(LabCapacity(**TINY, out=Path("run"), plot=Path("ladder.svg")))
    text = said()
    assert "2 of 2 networks done" in text
    assert "reciting, float32" in text
    assert "drew ladder.svg" in text
    assert "built, every answer checked" in Path("ladder.svg").read_text()


def test_it_goes_on_where_it_was(said: Said) -> None:
    done(LabCapacity(**TINY, out=Path("run"), alone=True, json=True))
    first = json.loads(said())
    assert (first["done"], first["failed"], first["built"]) == (2, 0, [])
    assert first["plateaus"][0]["seeds"] == 2
    lines = Path("run/results.jsonl").read_text()
    with pytest.raises(BadInput, match="--resume"):
        done(LabCapacity(**TINY, out=Path("run"), alone=True))
    done(LabCapacity(**TINY, out=Path("run"), alone=True, resume=True, json=True))
    assert json.loads(said())["plateaus"] == first["plateaus"]
    assert Path("run/results.jsonl").read_text() == lines


def test_a_run_is_drawn_with_a_page(said: Said) -> None:
    done(LabCapacity(**TINY, alone=True, json=True))
    said()
    assert done(LabPlot((Path("runs/capacity-own"),), out=Path("drawn"), format="svg", json=True))
    told = json.loads(said())
    assert told["files"] == ["drawn/capacity.svg", "drawn/index.html"]
    assert (told["rows"], told["missing"], told["absent"]) == (2, [], [])
    page = Path("drawn/index.html").read_text()
    assert "<svg" in page
    assert "bits_per_parameter" in page
    assert "How many bits does a trained GPT memorize per parameter?" in page
    assert "2 done, 0 failed, 2 in all" in page


def test_a_figure_that_a_table_does_not_allow_is_named_and_the_others_are_drawn(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(LabCapacity(**TINY, alone=True, json=True))
    said()

    def refuse(*_: object) -> None:
        raise BadInput("too little")

    monkeypatch.setattr("byheart.papers.capacity.capacity_page.capacity_figure", refuse)
    assert done(LabPlot((Path("runs/capacity-own"),)))
    assert "capacity is not drawn: too little" in said()
    assert "capacity is not drawn: too little" in Path("runs/capacity-own/figures/index.html").read_text()


def test_refusals(said: Said) -> None:
    with pytest.raises(BadInput, match=r"ladder.txt: expected a picture's name"):
        done(LabCapacity(**TINY, plot=Path("ladder.txt")))
    with pytest.raises(BadInput, match="no run here"):
        done(LabPlot((Path("nowhere"),)))
    with pytest.raises(BadInput, match="no folder given"):
        done(LabPlot(()))
    assert said() == ""


def test_results_that_come_with_byheart_are_drawn(tmp_path: Path) -> None:
    assert done(LabPlot(shipped="dana-2025-2", out=tmp_path / "two", json=True))
    assert (tmp_path / "two" / "head-dim.png").stat().st_size > 10_000
    assert "dana-2025-2" in (tmp_path / "two" / "index.html").read_text(encoding="utf-8")
    with pytest.raises(BadInput, match="--shipped takes no folder"):
        done(LabPlot((tmp_path,), shipped="dana-2025-2"))
    with pytest.raises(BadInput, match="no folder given; expected one or more runs, or --shipped NAME"):
        done(LabPlot())
