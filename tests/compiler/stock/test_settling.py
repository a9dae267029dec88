"""Codes are shifted until every bit plane has room; and twins that contradict each other are found, and parted."""

from typing import Any

import numpy as np
import pytest

from byheart.compiler.codes import make_code
from byheart.compiler.layouts import Unsolvable
from byheart.compiler.stock import settling
from byheart.compiler.stock.address import Addresses, addresses
from byheart.compiler.stock.architectures import ExpertSizes
from byheart.compiler.stock.dimensions import BITS, CODES, DOWN, GATE, SPARE, UP, StockSizes
from byheart.compiler.stock.front import CARRIED, distances, draw, hashed
from byheart.compiler.stock.settling import Crowds, Moving, contradicting, settle
from byheart.tasks import random_next_token
from byheart.tasks.contexts import Contexts
from byheart.tasks.texts import Text
from byheart.tasks.windows import task_contexts, text_contexts


@pytest.fixture
def contexts() -> Contexts:
    rng = np.random.default_rng(0)
    return task_contexts(random_next_token(examples=6400, length=8, vocab=32, labels=32, rng=rng), window=8)


def test_a_shift_moves_the_questions_that_end_in_a_token_and_nothing_else() -> None:
    """As if the hash were computed anew: also where tokens are missing."""
    rng = np.random.default_rng(0)
    texts = [Text(str(i), rng.integers(0, 7, size).astype(np.int32)) for i, size in enumerate((40, 5, 90))]
    contexts = text_contexts(texts, vocab=8, end=7, window=12)
    looks = distances(12)
    hashing = draw(8, len(looks), rng)
    before = hashed(contexts, hashing)
    moving = Moving(hashing, before.copy(), contexts.tokens[contexts.places])
    moving.shift(3, slice(CARRIED, CODES), np.arange(CODES - CARRIED) * 1000 + 60000)
    moving.shift(5, 11, -2)
    assert np.array_equal(moving.codes, hashed(contexts, hashing))
    moved = (moving.codes != before).any(axis=1)
    assert set(contexts.tokens[contexts.places[moved]].tolist()) == {3, 5}
    assert (hashing.codes % 2 == 1).all()


def by_hand(found: Addresses, lengths: np.ndarray, blocks: int) -> np.ndarray:
    asked = np.zeros((blocks, len(BITS), max(BITS)))
    for block, kind, offset, length in zip(found.block, found.kind, found.offset, lengths, strict=True):
        for place in range(length):
            asked[block, kind, (offset - 1 - place) % BITS[kind]] += 1
    return asked


def test_no_plane_is_asked_too_much(contexts: Contexts) -> None:
    """In a network that is too small for most hashes."""
    code = make_code(contexts.labels, 32)
    lengths = code.lengths[contexts.labels]
    sizes = ExpertSizes(48, (3, 3), (3, 3), 16, 1, 15, 16)
    crowds = Crowds(sizes, 1, lengths)
    plain = addresses(hashed(contexts, draw(32, 3, np.random.default_rng(4))), sizes, 1)
    assert by_hand(plain, lengths, sizes.blocks).max() > sizes.cells - SPARE
    hashing, found = settle(contexts, code, sizes, np.random.default_rng(4))
    codes = hashed(contexts, hashing)
    again = addresses(codes, sizes, 1)
    assert np.array_equal(again.cells(sizes), found.cells(sizes))
    asked = by_hand(again, lengths, sizes.blocks)
    assert np.array_equal(asked, crowds.asked(codes[:, -3:]))
    assert asked.max() <= sizes.cells - SPARE
    assert crowds.excess(asked) == 0
    some, others = slice(100, 900), codes[-800:, -3:]
    mixed = codes[:, -3:].copy()
    mixed[some] = others
    assert np.array_equal(
        crowds.moved(crowds.asked(codes[:, -3:]), some, codes[some, -3:], others), crowds.asked(mixed)
    )
    assert crowds.excess(asked + sizes.cells) > 0


def test_too_much_for_any_shift(contexts: Contexts, monkeypatch: pytest.MonkeyPatch) -> None:
    code = make_code(contexts.labels, 32)
    small = ExpertSizes(48, (3, 1), (3, 1), 4, 1, 15, 16)
    monkeypatch.setattr(settling, "SHIFTS", 5)
    with pytest.raises(Unsolvable, match="a bit plane is asked for more bits than it has"):
        settle(contexts, code, small, np.random.default_rng(0))


def test_twins_by_hand() -> None:
    """Both read the same words of W_up. 10 below 5 is asked of planes 4 and 3, 01 below 4 of 3 and 2: no clash."""
    sizes = ExpertSizes(48, (3, 1), (3, 1), 4, 1, 15, 16)

    def pair(offsets: list[int], words: list[int], kinds: tuple[int, int] = (UP, UP)) -> list[list[int]]:
        zeros = np.zeros(2, np.int64)
        rows, columns = np.tile([0, 3], (2, 1)), np.tile(np.arange(6), (2, 1))
        found = Addresses(zeros, np.array(kinds), rows, columns, np.array(offsets))
        return contradicting(found, np.array(words), np.array([2, 2]), sizes).tolist()

    assert pair([5, 4], [0b10, 0b01]) == []
    assert pair([5, 4], [0b10, 0b11]) == [[0, 1]]
    assert pair([5, 2], [0b10, 0b11]) == [], "no bit is asked for by both"
    assert pair([0, 22], [0b10, 0b11]) == [[0, 1]], "these are the same planes"
    assert pair([5, 4], [0b10, 0b11], (UP, DOWN)) == [], "not the same words"
    assert pair([0, 8], [0b10, 0b11], (GATE, GATE)) == []


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs were found each time."""
    found: list[int] = []

    def counting(*given: Any) -> Any:
        pairs = contradicting(*given)
        found.append(len(pairs))
        return pairs

    monkeypatch.setattr(settling, "contradicting", counting)
    return found


@pytest.mark.parametrize(("columns", "parted"), [((3, 3, 3, 3, 1, 1), True), ((1, 1, 1, 1, 1, 1), False)])
def test_twins_are_parted_if_there_are_not_too_many(
    columns: tuple[int, ...], parted: bool, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StockSizes, "columns", columns)
    rng = np.random.default_rng(0)
    task = random_next_token(examples=400, length=3, vocab=32, labels=32, rng=rng)
    contexts = task_contexts(task, window=3)
    code = make_code(contexts.labels, 32)
    sizes = ExpertSizes(48, (3, 1), (3, 1), 4, 3, 15, 16)
    if parted:
        hashing, found = settle(contexts, code, sizes, rng)
        assert counted[0] > 0
        assert counted[-1] == 0
        again = addresses(hashed(contexts, hashing), sizes, 1)
        assert np.array_equal(again.cells(sizes), found.cells(sizes))
    else:
        with pytest.raises(Unsolvable, match="contradict each other"):
            settle(contexts, code, sizes, rng)
        assert min(counted) > 0
