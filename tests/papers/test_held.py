"""What attention alone holds: every number by hand, the finding, the picture, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.papers.dana_2025.dana_claims import MemorizedCount, held_of, quoted
from byheart.papers.dana_2025.dana_page import held_figure
from byheart.papers.pages import results_page
from byheart.papers.results import built
from byheart.report.drawing import draw


def row(heads: int = 2, **more: Any) -> dict[str, Any]:
    sizes = {"vocab": 4, "model_dim": 3, "head_dim": 2, "heads": heads, "parameters": 78, "examples": 16}
    return sizes | {"measured": 12, "right": 11, "built": 9, "constant": 6} | more


def test_by_hand() -> None:
    """ω = 4, d = 3, d_h = 2, H = 2: 2·2 + 3 = 7; 16/4 = 4; 78·32 bits at 2 bits an answer are 1,248 answers."""
    (held,) = held_of([row()])
    assert (held.promised, held.guessed, held.most) == (7, 4, 1248)
    assert list(held.cells().values()) == [2, 78, 16, 12, 11, 7, 9, 6, 4.0, 1248]


def test_no_more_is_promised_than_asked_for() -> None:
    """H = 9: 2·9 + 3 = 21, of 16."""
    assert held_of([row(heads=9)])[0].promised == 16


def test_what_is_proved_is_spoken_of_and_not_what_was_measured() -> None:
    said = held_of([row(measured=16)])[0].in_words()
    assert "hold 11 after training, proved one by one; the theorem promises 7, " in said
    assert "builds holds 9, the commonest answer gets 6" in said
    assert "16 after" not in said


def test_twenty_heads_are_spoken_of_or_the_most() -> None:
    assert quoted(held_of([row(31), row(20), row(1)])).heads == 20
    assert quoted(held_of([row(7), row(1)])).heads == 7


def test_the_picture(tmp_path: Path) -> None:
    draw(held_figure([row(9), row(2), row(1)]), tmp_path / "held.svg")
    text = (tmp_path / "held.svg").read_text()
    for said in (
        "ω = 4, d = 3, d_h = 2",
        "associations held, of 16",
        "counting allows 1,248 or more",
        "in the mean: 4",
    ):
        assert said in text


def test_what_counting_does_not_allow_is_not_said(tmp_path: Path) -> None:
    """A parameter has 16 answers of 2 bits each: that is all of them; of 17 it is not."""
    vocab = {"vocab": 4, "parameters": 1}
    for examples, allows in ((16, True), (17, False)):
        draw(held_figure([row(examples=examples, **vocab)]), tmp_path / "held.svg")
        assert ("counting allows 16 or more" in (tmp_path / "held.svg").read_text()) is allows


def test_what_is_refused() -> None:
    with pytest.raises(BadInput, match="no rows"):
        held_of([])
    with pytest.raises(BadInput, match="the table has no right"):
        held_of([{name: value for name, value in row().items() if name != "right"}])
    with pytest.raises(BadInput, match=r"head_dim is \[2, 3\] in this table; expected one value"):
        held_figure([row(), row(heads=3, head_dim=3)])


def test_the_paper_s_page_has_it() -> None:
    page, table = results_page("dana-2025"), held_of(built("held"))
    assert "held" in [available.name for available in page.figures]
    assert MemorizedCount.in_words(quoted(table)) in page.lead.findings
    assert [held.cells() for held in table] in [one.rows for one in page.tables]


def test_the_table_on_the_page_about_trust_is_this_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")
    for held in held_of(built("held")):
        cells = [f"{value:,g}" if isinstance(value, float) else f"{value:,}" for value in held.cells().values()]
        assert f"| {' | '.join([*cells[:2], *cells[3:]])} |\n" in page
