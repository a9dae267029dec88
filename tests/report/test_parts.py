"""Where the parameters are: parts add up, and a picture is drawn."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from byheart.compiler import CompilerSettings, compile
from byheart.constructions import build
from byheart.errors import BadInput
from byheart.networks.account import Account, Item
from byheart.report.pictures import WORDS, draw_parts, parts_of
from byheart.tasks import random_next_token


def part(name: str, dense: int, nonzero: int) -> Account:
    return Account((Item(name, (dense,), dense, nonzero, 1, 32, 32 * dense, name),), depth=3, width=3)


SIZES = {"words of the table": (1000, 990), "hash of the window": (40, 30), "where to read": (3, 3)}
THREE = {name: part(name, *sizes) for name, sizes in SIZES.items()}
ONE = {WORDS: THREE[WORDS]}


@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize("parts", [THREE, ONE, dict(reversed(THREE.items()))], ids=["three", "one", "reversed"])
def test_a_picture(tmp_path: Path, suffix: str, parts: dict[str, Account]) -> None:
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
    built = compile("To be, or not to be, that is the question.")
    parts = parts_of(built.network)
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
    assert sum(part.dense for part in parts.values()) == built.account.dense
    assert sum(part.nonzero for part in parts.values()) == built.account.nonzero
    assert parts[WORDS].dense == built.chosen["words"]
    assert parts["codes of the tokens"].dense == 257
    assert parts["codes of the labels"].dense == 257 + 257
    assert all(part.nonzero <= part.dense for part in parts.values())


def test_parts_of_other_networks() -> None:
    """By what the tensors are called, in their order."""
    task = random_next_token(examples=9, length=3, vocab=20, labels=4, rng=np.random.default_rng(0))
    exact, llama = (
        build("interpolate", task).network,
        compile(task, settings=CompilerSettings(layout="uniform")).network,
    )
    names = {
        exact: [item.name.split(".")[0] for item in exact.account.items],
        llama: [item.name.removesuffix(".weight").split(".")[-1] for item in llama.account.items],
    }
    for network, wanted in names.items():
        parts = parts_of(network)
        assert list(parts) == list(dict.fromkeys(wanted))
        assert sum(part.dense for part in parts.values()) == network.account.dense


def test_by_hand() -> None:
    """Tensors of a compiled network by what they are for; every name in one part only."""
    names = {
        "embedding.W_E": "codes of the tokens",
        "reduce_0_1.W_in": "hash of the window",
        "hash_0.bias": "hash of the window",
        "digits_2.W_in": "where to read",
        "table.W_in": "rows of the table",
        "table.W_out": "words of the table",
        "select.W_up": "columns of the table",
        "shift.W_out": "reading the bits",
        "unembedding.b_U": "codes of the labels",
    }
    items = tuple(Item(name, (size,), size, 1, 1, 32, 32, "x") for size, name in enumerate(names, start=1))
    parts = parts_of(SimpleNamespace(account=Account(items, 3, 3), about={"recipe": {}}))
    sizes = {"hash of the window": 2 + 3}
    for size, name in enumerate(names.values(), start=1):
        sizes.setdefault(name, size)
    assert {name: part.dense for name, part in parts.items()} == sizes
    assert list(parts) == list(dict.fromkeys(names.values()))
