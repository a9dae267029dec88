"""The words of one table answer its questions, by integer arithmetic; and no sum passes 2²⁴ in any order."""

from itertools import permutations

import numpy as np
import pytest

from byheart.compiler.layouts import Unsolvable
from byheart.compiler.planes import Equations
from byheart.compiler.stock import solve as solving
from byheart.compiler.stock.dimensions import BITS, DOWN, GATE, UP

ROWS, COLUMNS = 12, 20


def drawn(kind: int, count: int, seed: int) -> tuple[Equations, np.ndarray]:
    """Six of twenty columns in two of twelve rows, and which words are negative."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, 6, count), rng.integers(6, 12, count)], axis=1)
    columns = np.array([rng.choice(COLUMNS, 6, replace=False) for _ in range(count)])
    cells = (rows[:, :, None] * COLUMNS + columns[:, None, :]).reshape(count, 12)
    cells[rng.random(cells.shape) < 0.15] = -1
    length = rng.integers(1, 13, count)
    questions = Equations(
        cells=cells,
        before=rng.integers(-3, 4, count) * (kind == UP),
        offset=rng.integers(0, BITS[kind], count),
        word=rng.integers(0, 1 << 12, count) >> (12 - length),
        length=length,
        bits=BITS[kind],
        wraps=True,
    )
    return questions, (np.arange(ROWS * COLUMNS) // COLUMNS >= 6) ^ (np.arange(ROWS * COLUMNS) % 2 > 0)


def read(questions: Equations, words: np.ndarray, number: int) -> str:
    """A question's bits: those below its offset, then from the highest one down, which centring complements."""
    bits = questions.bits
    assert questions.before is not None
    total = int(questions.before[number]) + sum(int(words[cell]) for cell in questions.cells[number] if cell >= 0)
    shown = format((total % (1 << bits)) ^ (1 << (bits - 1)), f"0{bits}b")[::-1]
    places = [(int(questions.offset[number]) - 1 - k) % bits for k in range(int(questions.length[number]))]
    return "".join(shown[place] for place in places)


@pytest.mark.parametrize("kind", [UP, DOWN, GATE])
def test_every_question_finds_its_code_word(kind: int) -> None:
    questions, negative = drawn(kind, 250, kind)
    words = solving.solve(questions, kind, negative, np.random.default_rng(0))
    low = -(negative.astype(np.int64) << BITS[kind]) * (kind != GATE)
    assert (words >= low).all()
    assert (words < low + (1 << BITS[kind])).all()
    for number in range(250):
        wanted = format(int(questions.word[number]), f"0{int(questions.length[number])}b")
        assert read(questions, words, number) == wanted


def one_question(kind: int, before: int = 0) -> Equations:
    """A question that reads twelve words."""
    one = np.ones(1, np.int64)
    cells, begins = np.arange(12)[None], np.array([before])
    return Equations(cells=cells, before=begins, offset=one, word=one, length=one, bits=BITS[kind], wraps=True)


def prefixes_stay(terms: list[int]) -> bool:
    return all(abs(sum(order[:k])) <= 1 << 24 for order in permutations(terms) for k in range(len(order) + 1))


def test_exact_in_every_order() -> None:
    """By hand: four columns of 2²² − 1 reach 2²⁴, nearly; five pass it, though the sixth brings the sum back."""
    word = (1 << 22) - 1
    for columns, fine in (([word] * 4 + [0, 0], True), ([word] * 5 + [-word], False)):
        words = np.array(columns + [0] * 6)
        questions = one_question(DOWN)
        assert prefixes_stay(columns) == fine
        assert solving.exact(words, np.array([sum(columns)]), questions, DOWN) == fine
    for total, fine in (((1 << 24) - 3, True), ((1 << 24) - 2, False)):
        words = np.zeros(12, np.int64)
        words[[0, 6]] = total // 2, total - total // 2
        questions = one_question(UP, before=3)
        assert solving.exact(words, np.array([total + 3]), questions, UP) == fine


def test_a_sum_that_is_its_own_negative_is_refused() -> None:
    questions = one_question(UP)
    words = np.zeros(12, np.int64)
    words[0] = 1 << 21
    assert not solving.exact(words, words[:1], questions, UP)


def test_sums_are_drawn_again_until_they_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The highest bits that nobody asks for; and not for ever."""
    asked: list[bool] = []

    def third(*_: object) -> bool:
        asked.append(len(asked) == 2)
        return asked[-1]

    questions, negative = drawn(UP, 100, 3)
    monkeypatch.setattr(solving, "exact", third)
    words = solving.solve(questions, UP, negative, np.random.default_rng(0))
    assert len(asked) == 3
    assert all(
        read(questions, words, number) == format(int(questions.word[number]), f"0{int(questions.length[number])}b")
        for number in range(100)
    )
    monkeypatch.setattr(solving, "exact", lambda *_: False)
    with pytest.raises(Unsolvable, match="exact in every order"):
        solving.solve(questions, UP, negative, np.random.default_rng(0))


def test_a_table_without_a_solution_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found anew with other free bits, as often as it may be; what is found at first stays as it is."""
    questions, negative = drawn(UP, 250, UP)
    first = solving.solve(questions, UP, negative, np.random.default_rng(0))
    assert np.array_equal(first, solving.solve(questions, UP, negative, np.random.default_rng(0), times=3))
    refusing = iter([False] * solving.TRIES + [True] * 2)
    monkeypatch.setattr(solving, "exact", lambda *_: next(refusing))
    mended = solving.solve(questions, UP, negative, np.random.default_rng(0), times=2)
    assert not np.array_equal(mended, first)
    monkeypatch.setattr(solving, "exact", lambda *_: False)
    with pytest.raises(Unsolvable, match="exact in every order"):
        solving.solve(questions, UP, negative, np.random.default_rng(0), times=2)
