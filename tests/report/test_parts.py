"""Where the parameters are: parts add up, and a picture is drawn."""

from pathlib import Path

import numpy as np
import pytest

from byheart.constructions import build
from byheart.constructions.reciting import compile_text
from byheart.errors import BadInput
from byheart.networks.account import Account, Item
from byheart.report.parts import WORDS, Part, draw_parts, parts_of
from byheart.tasks import random_next_token

THREE = [Part("words of the table", 1000, 990), Part("hash of the window", 40, 30), Part("where to read", 3, 3)]


@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize("parts", [THREE, THREE[:1], THREE[::-1]], ids=["three", "one", "reversed"])
def test_a_picture(tmp_path: Path, suffix: str, parts: list[Part]) -> None:
    path = tmp_path / f"parts{suffix}"
    draw_parts(parts, "a title", path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == ".png" else b"<?xml")
    assert len(content) > 2000


def test_what_the_picture_says(tmp_path: Path) -> None:
    """SVG keeps texts as comments: the largest part with its share, the others with their sizes."""
    draw_parts(THREE, "a title", tmp_path / "parts.svg")
    content = (tmp_path / "parts.svg").read_text(encoding="utf-8")
    for text in (
        "words of the table: 1,000 of 1,043 parameters",
        "the other 43, magnified:",
        "40  hash of the window",
        "3  where to read",
        "a title",
    ):
        assert text in content


@pytest.mark.parametrize("name", ["parts.gif", "parts", "parts.txt"])
def test_other_pictures_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=r"expected a picture's name, \.png, \.svg or \.pdf"):
        draw_parts(THREE, "", tmp_path / name)
    assert not (tmp_path / name).exists()


def test_parts_of_a_reciting_network() -> None:
    compiled = compile_text("To be, or not to be, that is the question.").compiled
    parts = {part.name: part for part in parts_of(compiled.account, reciting=True)}
    assert list(parts) == [
        "codes of the tokens",
        "hash of the window",
        "where to read",
        "rows of the table",
        "words of the table",
        "columns of the table",
        "reading the bits",
        "codes of the labels",
    ]
    assert sum(part.parameters for part in parts.values()) == compiled.account.dense
    assert sum(part.nonzero for part in parts.values()) == compiled.account.nonzero
    assert parts[WORDS].parameters == compiled.recipe.sizes.words
    assert parts["codes of the tokens"].parameters == 257
    assert parts["codes of the labels"].parameters == 257 + 257
    assert all(part.nonzero <= part.parameters for part in parts.values())


def test_parts_of_an_exact_network() -> None:
    """By the first part of the tensors' names, in their order."""
    task = random_next_token(examples=9, length=3, vocab=20, labels=4, rng=np.random.default_rng(0))
    account = build("interpolate", task).account
    parts = parts_of(account, reciting=False)
    assert sum(part.parameters for part in parts) == account.dense
    assert len({part.name for part in parts}) == len(parts)
    assert {part.name for part in parts} == {item.name.split(".")[0] for item in account.items}


def test_by_hand() -> None:
    items = [
        Item("embedding.W_E", (4, 1), 4, 4, 1, 32, 128),
        Item("reduce_0_1.W_in", (6, 1, 1), 6, 6, 1, 32, 192),
        Item("hash_0.bias", (2, 2), 4, 2, 1, 32, 128),
        Item("table.W_in", (2, 3, 2), 12, 11, 1, 32, 384),
        Item("table.W_out", (2, 3, 3), 18, 17, 9, 32, 576),
        Item("shift.W_out", (1, 1, 1), 1, 1, 0, 32, 32),
    ]
    assert parts_of(Account(tuple(items), 3, 3), reciting=True) == [
        Part("codes of the tokens", 4, 4),
        Part("hash of the window", 10, 8),
        Part("rows of the table", 12, 11),
        Part("words of the table", 18, 17),
        Part("reading the bits", 1, 1),
    ]
