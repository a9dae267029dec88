"""What the page compiles is what `byheart compile` compiles: the same layers, and every weight to the bit."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart.compiler import Recipe, compile
from byheart.explore.reciting import TEXTS, shown

from .javascript import TEMPLATES, evaluated

LICENCE = (Path(__file__).parents[2] / "LICENSE").read_text(encoding="utf-8")
SAMPLES = {
    **TEXTS,
    "Cyrillic": "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 2 + "Конец.",
    "Chinese": "道可道，非常道。名可名，非常名。無名天地之始；有名萬物之母。",
    "Hebrew": "בראשית ברא אלהים את השמים ואת הארץ",
    "emoji": "👩\u200d👩\u200d👧 went to 🇫🇷 and ate 🥐🥐, then 🍦.",
    "one byte": "a",
    "equal bytes": "a" * 50,
    "window of 1": "abc",
    "window of 2": "abacad",
    "three bits": "".join(random.Random(3).choices("abcdefg", k=1500)),
    "two letters": "".join(random.Random(1).choices("ab", k=700)),
    "sixteen letters": "".join(random.Random(2).choices("abcdefghijklmnop", k=900)),
    "all characters": "".join(map(chr, range(1, 400))),
    "3,000 bytes": LICENCE[:3000],
}
COMPILED = f"""given.map((text) => {{
  const {{ Network }} = require({str(TEMPLATES / "network.js")!r});
  const compiled = script.compileText("text", [...Buffer.from(text)]);
  const hex = ([name, {{ buffer }}]) => [name, Buffer.from(buffer).toString("hex")];
  const layers = new Network(compiled).layers.map(({{ at, weights, ...own }}) => own);
  return {{ ...compiled, layers, tensors: Object.fromEntries(Object.entries(compiled.tensors).map(hex)) }};
}})"""
LAYERS = f"""given.map((network) => {{
  const {{ Network }} = require({str(TEMPLATES / "network.js")!r});
  const {{ layers, embeds, unembeds }} = new Network(network);
  return {{ embeds, unembeds, layers: layers.map(({{ at, weights, ...own }}) => own) }};
}})"""


def draws(network: Any) -> int:
    return Recipe.from_json(network.about["recipe"]).draw[1] + 1


@pytest.fixture(scope="module")
def networks() -> dict[str, Any]:
    return {name: compile(text).network for name, text in SAMPLES.items()}


@pytest.fixture(scope="module")
def in_the_page() -> dict[str, Any]:
    return dict(zip(SAMPLES, evaluated("compile.js", COMPILED, list(SAMPLES.values())), strict=True))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_network_to_the_bit(name: str, networks: dict[str, Any], in_the_page: dict[str, Any]) -> None:
    network, found = networks[name], in_the_page[name]
    expected = shown(name, network)
    (parts,) = evaluated("network.js", LAYERS, [expected])
    assert found["layers"] == parts["layers"]
    assert (found["spec"]["embeds"], found["spec"]["unembeds"]) == (parts["embeds"], parts["unembeds"])
    tensors = {name: np.ascontiguousarray(tensor, "<f4").tobytes().hex() for name, tensor in network.tensors()}
    assert found["tensors"] == tensors
    for key in ("parameters", "word", "moduli", "lengths", "longest", "end", "facts"):
        assert found[key] == expected[key], key
    assert found["spec"]["window"] == network.spec.window
    assert found["spec"]["stream"] == network.spec.stream
    (note,) = expected["texts"]
    assert {**found["texts"][0], "name": note["name"]} == note


def test_the_samples_try_every_branch(networks: dict[str, Any]) -> None:
    """Aligned codes and others, stirred hashes, one to three layers of attention, and draws that fail."""
    recipes = [Recipe.from_json(network.about["recipe"]) for network in networks.values()]
    assert {recipe.sizes.aligned is None for recipe in recipes} == {True, False}
    assert {recipe.sizes.stirred for recipe in recipes} == {True, False}
    assert {draws(network) > 1 for network in networks.values()} == {True, False}
    assert len({network.spec.window for network in networks.values()}) > 4


@pytest.mark.parametrize("count", [0, 8001])
def test_a_text_that_is_too_long_is_refused(count: int) -> None:
    refused = "(() => { try { script.compileText('text', given) } catch (error) { return error.message } })()"
    assert evaluated("compile.js", refused, [65] * count) == f"the text has {count} bytes; expected 1 to 8000"
