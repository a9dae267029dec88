"""Prompts found in the texts that a network recites."""

from typing import Any

import pytest

from byheart.compiler import compile
from byheart.networks.about import end_of
from byheart.networks.passages import Passage, find_passage, is_beginning
from byheart.tasks.tokenizers import from_files

TEXTS = {
    "a": "Round the rugged rock, the ragged rascal ran; the rest is silence.",
    "b": "Round and round. Das süße Öl.",
}
OPTIONS: list[dict[str, Any]] = [{}, {"tokenizer": "bpe", "vocab": 270}, {"layout": "uniform"}, {"layout": "experts"}]


def found(network: Any, prompt: str, tokens: int | None = None) -> Passage | None:
    tokenizer, end = from_files(network.files), end_of(network)
    assert tokenizer is not None
    assert end is not None
    return find_passage(network, prompt.encode(), tokenizer.decode, end=end, tokens=tokens)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_prompts_lead_on(options: dict[str, Any]) -> None:
    """From the middle, of whatever length, across tokens, and only in the text that has them."""
    if options:
        pytest.importorskip("transformers")
    network = compile(TEXTS, **options).network
    for name, text in TEXTS.items():
        for start in (0, 7, 20):
            passage = found(network, text[start:][:9])
            assert passage is not None
            assert (passage.name, passage.content.decode()) == (name, text[start:])
            assert passage.start == len(text[:start].encode())
    short = found(network, "the r", 3)
    assert short is not None
    assert (short.start, short.tokens) == (6, 3)
    assert TEXTS["a"][6:].startswith(short.content.decode())
    assert found(network, "the roast") is None
    assert found(network, TEXTS["a"] + "!") is None


def test_beginnings() -> None:
    """What lies before two texts part is not enough to go on with."""
    network = compile(TEXTS).network
    expected = {"Round ": False, "Round t": True, "Round and r": True, "Round x": False, "the": False}
    expected |= {TEXTS["b"]: True, TEXTS["b"] + "?": False}
    assert {prompt: is_beginning(network, [*prompt.encode()]) for prompt in expected} == expected
