"""Readers see characters; tokens are bytes, and networks may say any."""

import pytest

from .javascript import evaluated

TEXTS = ["Съешь же ещё", "北京大学", "👩‍👩‍👧 🇷🇺 é", "שלום, עולם", "\ufeffa\r\nb", "plain"]
END = 256


def test_characters_cover_all_tokens_once() -> None:
    asked = [[*text.encode(), END] for text in TEXTS]
    told = evaluated("characters.js", "given.map((ids) => script.characters(ids, 256))", asked)
    for text, found in zip(TEXTS, told, strict=True):
        assert "".join(one["text"] for one in found) == text + "∎"
        assert [one["start"] for one in found] == [0, *(one["stop"] for one in found[:-1])]


def test_what_belongs_together_is_one_character() -> None:
    one_each = ["👩‍👩‍👧", "🇷🇺", "é"]
    script = "given.map((text) => script.characters(script.bytesOf(text)).map(({ text }) => text))"
    assert evaluated("characters.js", script, one_each) == [[text] for text in one_each]


@pytest.mark.parametrize("least", [1, 2, 5, 9])
def test_an_opening_is_made_of_whole_characters(least: int) -> None:
    for text in TEXTS:
        ids = evaluated("characters.js", "script.opening(given[0], given[1])", [list(text.encode()), least])
        assert len(ids) >= min(least, len(text.encode()))
        assert text.startswith(bytes(ids).decode())
        assert not text.encode()[len(ids) :].decode().startswith(("\u0301", "‍"))


def test_bytes_in_no_character() -> None:
    """By hand: 208 begins a letter of two bytes, and 65 does not go on with it."""
    found = evaluated("characters.js", "script.characters(given, 256)", [208, 65, 255, END, 208])
    assert [one["text"] for one in found] == ["�", "A", "�", "∎", "�"]
    assert evaluated("characters.js", "script.opening(given, 2)", [200, 200, 200]) == [200, 200]


def test_names_of_bytes() -> None:
    names = evaluated("characters.js", "script.namesOf(given, 256)", [*"я a\n".encode(), 200, END])
    assert names == ["я 1/2", "я 2/2", "␣", "a", "⏎", "byte 200", "the end"]
