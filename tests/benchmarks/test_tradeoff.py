"""Networks of every shape on one task: true rows, from wide to deep, and a picture of them."""

from pathlib import Path

import numpy as np
import pytest
from tradeoff import Shaped, draw_trade_off, orders, trade_off

from byheart.constructions import build
from byheart.tasks import NextToken, random_next_token

TASK = random_next_token(examples=300, length=2, vocab=200, labels=2, rng=np.random.default_rng(0))


@pytest.fixture(scope="module", name="rows")
def _rows() -> list[Shaped]:
    return trade_off(TASK)


def test_rows_are_what_is_built(rows: list[Shaped]) -> None:
    for shaped in rows:
        words = shaped.flags.split()
        given = {flag.removeprefix("--"): value for flag, value in zip(words[::2], words[1::2], strict=True)}
        settings = {key: int(value) if value.isdigit() else value for key, value in given.items()}
        account = build(shaped.construction, TASK, **settings).account
        assert (shaped.width, shaped.depth) == (account.width, account.depth)
        assert shaped.parameters == account.dense - account.embedding
        assert shaped.width_depth == account.width**2 * account.depth**2
        assert shaped.certificate.certified


def test_every_end_of_the_trade_off_is_there(rows: list[Shaped]) -> None:
    assert [shaped.width for shaped in rows] == sorted((shaped.width for shaped in rows), reverse=True)
    shapes = {(shaped.construction, shaped.flags): shaped for shaped in rows}
    for name in ("kajitsuka-sato-2025", "vardi-2022"):
        assert shapes[name, "--width constant"].width == 4
        assert shapes[name, "--width constant"].depth > 2 * shapes[name, ""].depth
    assert sum(name == "yang-2026" for name, _ in shapes) >= 5
    assert any("--depth" in flags for _, flags in shapes)
    assert ("folding", "") in shapes


def test_depths_that_are_refused_are_left_out() -> None:
    """Three sequences: half of the layers is too few."""
    rows = trade_off(NextToken(tokens=[[0, 1], [2, 2], [1, 2]], labels=[0, 1, 1]))
    assert rows
    assert not any("--depth" in shaped.flags for shaped in rows)


def test_orders_by_hand() -> None:
    """Two ids up to 50 in a sequence: r = √2·50 = 70.7 and δ = 1, so log(r/δ) = 4.2585."""
    task = NextToken(tokens=[[0, 50], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5]], labels=[0, 1, 0, 1, 0, 1])
    assert orders(task) == pytest.approx((6 / 4.2585, 6 * 4.2585), rel=1e-4)


def test_the_picture_shows_them(rows: list[Shaped], tmp_path: Path) -> None:
    draw_trade_off(rows, TASK, tmp_path / "trade.svg")
    drawn = (tmp_path / "trade.svg").read_text(encoding="utf-8")
    for text in ("yang-2026", "folding", "default", "Width for depth", "Parameters for depth", "slope only"):
        assert text in drawn
