"""The fingerprint of contexts: the same in any order, another for anything else that is asked."""

import functools
import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from byheart.tasks import Facts, NextToken, fingerprints
from byheart.tasks.contexts import Contexts
from byheart.tasks.texts import Text
from byheart.tasks.windows import fact_contexts, task_contexts, text_contexts


def key(row: list[int]) -> int:
    return functools.reduce(lambda key, word: (key + word) * 0x9E3779B97F4A7C15 % 2**64, row, 0)


def by_the_book(rows: list[list[int]], width: int, *sizes: int | None) -> str:
    """As the module says, with nothing but Python."""
    parts = [hashlib.sha256() for _ in range(256)]
    for row in sorted(rows, key=lambda row: (key(row), row)):
        parts[key(row) >> 56].update(b"".join(word.to_bytes(width, "little") for word in row))
    told = json.dumps(["contexts in any order", len(rows), *sizes])
    return hashlib.sha256(told.encode() + b"".join(part.digest() for part in parts)).hexdigest()


def texts(*tokens: list[int], vocab: int = 6, end: int = 5) -> Contexts:
    return text_contexts([Text("", np.array(one, np.int32)) for one in tokens], vocab=vocab, end=end)


def task(rows: list[list[int]], labels: list[int], label_count: int = 9, vocab: int = 6) -> Contexts:
    return task_contexts(NextToken(rows, labels, label_count=label_count, vocab=vocab), len(rows[0]))


@pytest.fixture(params=["few", "many"], autouse=True)
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain Python, or compiled."""
    monkeypatch.setattr(fingerprints, "FEW", 1 << 18 if request.param == "few" else 0)


def test_by_hand() -> None:
    """Texts 0 1 2 and 0 3, which part after 0; behind 1, 2 comes, behind 2 and 3 the end, 5. A change breaks files."""
    rows = [[3, 2, 2, 0, 1, 2, 1, 2, 2, 5], [2, 1, 2, 0, 3, 1, 5]]
    found = texts([0, 1, 2], [0, 3])
    assert found.window == 1
    assert found.fingerprint == by_the_book(rows, 4, 1, 6, 6, 5)
    assert found.fingerprint == texts([0, 3], [0, 1, 2]).fingerprint
    assert found.fingerprint == "817e7b68004a008da7e7933503a40b35282091b6834e852c1639377c93b97abb"
    rows = [[2, 1, 2, 0, 1, 1, 7], [2, 1, 2, 3, 3, 1, 8], [2, 1, 2, 0, 1, 1, 7]]
    asked = task([[0, 1], [3, 3], [0, 1]], [7, 8, 7])
    assert asked.fingerprint == by_the_book(rows, 4, 2, 6, 9, None)


def test_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the examples are there again; some texts and facts are there twice."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 6, (90, 9))
    rows[60:] = rows[:30]
    labels, order = rows.sum(axis=1) % 9, rng.permutation(90)
    found = task(rows.tolist(), labels.tolist())
    assert len(found) == 60
    assert found.fingerprint == task(rows[order].tolist(), labels[order].tolist()).fingerprint
    assert found.fingerprint == by_the_book(
        [[9, 1, 9, *row, 8, label] for row, label in zip(rows.tolist(), labels.tolist(), strict=True)], 4, 9, 6, 9, None
    )
    words = [rng.integers(0, 4, 30).tolist() for _ in range(5)]
    recited = texts(*words, words[0]).fingerprint
    assert recited == texts(words[4], words[0], *words[:4]).fingerprint
    pairs = [([number], word) for number, word in enumerate(words[:4])]
    known = [fact_contexts(Facts(some), window=8).fingerprint for some in (pairs, pairs[::-1])]
    assert known[0] == known[1]
    monkeypatch.setattr(fingerprints, "WORDS", 13)  # not even one row, or just one
    assert texts(*words, words[0]).fingerprint == recited
    assert task(rows.tolist(), labels.tolist()).fingerprint == found.fingerprint


def test_anything_else_is_another() -> None:
    rows, labels = [[0, 1], [3, 3], [0, 1]], [7, 8, 7]
    found, text = task(rows, labels), texts([0, 1, 2], [0, 3])
    prints = [
        found.fingerprint,
        found.with_answers([7, 7]).fingerprint,
        replace(found, window=3).fingerprint,
        task(rows, labels, vocab=7).fingerprint,
        task(rows, labels, label_count=10).fingerprint,
        task(rows[:2], labels[:2]).fingerprint,
        task([*rows, rows[0]], [*labels, 7]).fingerprint,
        task([*rows[:2], rows[1]], [7, 8, 8]).fingerprint,
        text.fingerprint,
        texts([0, 1, 2], [0, 3], [0, 3]).fingerprint,
        texts([0, 1, 2], [0, 1, 2], [0, 3]).fingerprint,
        texts([0, 2, 1], [0, 3]).fingerprint,
        texts([0, 1, 2], [0, 3], end=4).fingerprint,
        replace(text, prompts=(1, 2)).fingerprint,
        fact_contexts(Facts([([0, 1], [2, 3])])).fingerprint,
        fact_contexts(Facts([([0], [1, 2, 3])])).fingerprint,
    ]
    assert len({*prints}) == len(prints)


@pytest.mark.parametrize("code", ["few", pytest.param("many", marks=pytest.mark.slow)], indirect=True)
def test_labels_of_more_than_four_bytes() -> None:
    rows = [[0], [1]]
    near, far = (task(rows, [5, 5 + more], label_count=2**40) for more in (2**32, 2**33))
    assert near.fingerprint != far.fingerprint
    assert near.fingerprint == by_the_book([[1, 1, 1, 0, 0, 5], [1, 1, 1, 1, 0, 5 + 2**32]], 8, 1, 6, 2**40, None)


def test_keys_that_are_made_to_agree() -> None:
    """Modulo 2⁶⁴, the word of Thue and Morse and its complement have the same key in every odd base."""
    word = [number.bit_count() % 2 for number in range(2048)]
    other = [1 - token for token in word]
    rows = [[2048, 1, 2048, *tokens, 2047, 3] for tokens in (word, other)]
    assert key(rows[0]) == key(rows[1])
    both = [task(some, [3, 3, 3]).fingerprint for some in ([word, other, word], [word, word, other])]
    assert both[0] == both[1] == by_the_book([*rows, rows[0]], 4, 2048, 6, 9, None)
    assert both[0] != task([word, other, other], [3, 3, 3]).fingerprint


def test_the_order_that_certificates_of_before_name() -> None:
    found = texts([0, 1, 2, 0], [4, 3, 4])
    told = json.dumps(["contexts", {"tokens": [7], "starts": [3], "places": [7], "labels": [7]}, [2, 6, 6, [1, 1], 5]])
    digest = hashlib.sha256(told.encode() + found.tokens.astype("<i4").tobytes())
    for array in (found.starts, found.places, found.labels):
        digest.update(array.astype("<i8").tobytes())
    assert found.is_named(digest.hexdigest())
    assert found.is_named(found.fingerprint)
    turned = texts([4, 3, 4], [0, 1, 2, 0])
    assert turned.is_named(found.fingerprint)
    assert not turned.is_named(digest.hexdigest())
