"""The words of one table answer its questions, by integer arithmetic that knows nothing of planes and equations."""

import numpy as np
import pytest

from byheart.constructions.reciting.sizes import Unsolvable
from byheart.constructions.reciting.uniform.sizes import WORD
from byheart.constructions.reciting.stock.questions import Questions, solve

HALF = 1 << (WORD - 1)


def drawn(count: int, unknowns: int, seed: int) -> Questions:
    rng = np.random.default_rng(seed)
    cells = np.array([rng.choice(unknowns, 16, replace=False) for _ in range(count)])
    cells[:, 1:][rng.random((count, 15)) < 0.2] = -1
    length = rng.integers(1, 13, count)
    return Questions(
        cells=cells,
        before=rng.integers(0, 6, count),
        offset=rng.integers(0, WORD, count),
        word=rng.integers(0, 1 << 12, count) >> (12 - length),
        length=length,
    )


def read(questions: Questions, words: np.ndarray, number: int) -> str:
    """A question's bits: those below its offset, then from the highest one down, which centring complements."""
    total = int(questions.before[number]) + sum(int(words[cell]) for cell in questions.cells[number] if cell >= 0)
    bits = format((total % (1 << WORD)) ^ HALF, f"0{WORD}b")[::-1]
    places = [(int(questions.offset[number]) - 1 - k) % WORD for k in range(int(questions.length[number]))]
    return "".join(bits[place] for place in places)


@pytest.mark.parametrize("seed", range(3))
def test_every_question_finds_its_code_word(seed: int) -> None:
    questions = drawn(300, 250, seed)
    words = solve(questions, 250, np.random.default_rng(seed))
    assert words.min() >= 0
    assert words.max() < 1 << WORD
    for number in range(300):
        wanted = format(int(questions.word[number]), f"0{int(questions.length[number])}b")
        assert read(questions, words, number) == wanted


@pytest.mark.parametrize("seed", range(3))
def test_no_sum_is_its_own_negative(seed: int) -> None:
    questions = drawn(200, 250, seed)
    words = np.append(solve(questions, 250, np.random.default_rng(seed)), 0)
    assert not ((questions.before + words[questions.cells].sum(axis=1)) % (1 << WORD) == HALF).any()


def test_more_questions_than_words() -> None:
    """All of them read the lowest plane."""
    questions = drawn(60, 20, 0)
    questions.offset[:], questions.length[:], questions.word[:] = 1, 1, np.arange(60) % 2
    with pytest.raises(Unsolvable):
        solve(questions, 20, np.random.default_rng(0))
