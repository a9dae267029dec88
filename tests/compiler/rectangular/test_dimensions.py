"""Sizes of the table: enough words, digits that fit together, offsets that are reached, numbers that stay exact."""

from dataclasses import replace

import numpy as np
import pytest

from byheart.compiler.codes import Code, make_code
from byheart.compiler.rectangular.dimensions import (
    AHEAD,
    KINDS,
    LANES,
    MOST_ROWS,
    SHARD_COLUMNS,
    SPREAD,
    WORDS,
    TableSizes,
    grown,
    load_for,
    plan,
)
from byheart.compiler.rectangular.front import LIMIT
from byheart.constructions.gadgets import parities
from byheart.errors import BadInput

FORMATS = [(precision, word) for precision, words in WORDS.items() for word in words]


def code_for(questions: int, labels: int, skewed: bool) -> Code:
    rng = np.random.default_rng(questions + labels)
    drawn = np.minimum(rng.geometric(0.3, questions) - 1, labels - 1) if skewed else rng.integers(0, labels, questions)
    return make_code(drawn, labels)


PLANS = [
    (code_for(questions, labels, skewed), precision, word)
    for questions in (1, 2, 10, 1000, 50_000)
    for labels, skewed in ((1, False), (2, False), (8, True), (256, False))
    for precision, word in FORMATS
]


def offsets(sizes: TableSizes) -> list[int]:
    """The offset of every value of its hash sum, digit by digit."""
    high, low = sizes.exponents
    base = sizes.bases[-1]
    return [high[value // base] + low[value % base // sizes.grain] for value in range(sizes.moduli[5])]


@pytest.mark.parametrize(("code", "precision", "word"), PLANS)
def test_a_plan_fits_together(code: Code, precision: str, word: int) -> None:
    sizes = plan(code, precision=precision, word=word)
    assert sizes.word + (word - WORDS[precision][0]) == word
    assert sizes.words == sizes.rows * LANES * sizes.columns
    assert sizes.rows == sizes.starts + SPREAD - 1
    assert sizes.rows <= MOST_ROWS
    assert 0 <= 2 * sizes.margin <= max(1, sizes.starts)
    # Enough bits, though not more than needed where the table is large.
    load = code.total / (sizes.words * (sizes.word + sizes.exponent))
    assert 0 < load <= 1
    if code.total / sizes.word > 2000:
        # Short code words leave the exponents' lower planes to nobody.
        assert load > (0.95 if code.fixed or not sizes.exponent else 0.8)
    # Every pair of digits can say what its hash sum says, and no more than one value too many.
    assert len(sizes.moduli) == 6 + bool(sizes.exponent)
    pairs = 4 if sizes.stretches else 5
    for modulus, base, count in [*zip(sizes.moduli[1:6], sizes.bases, sizes.counts, strict=True)][:pairs]:
        assert base * (count - 1) < modulus <= base * count
    assert sizes.moduli[1] == SPREAD**2
    assert set(sizes.moduli[2:5]) == {(sizes.columns + 1) ** 2}
    assert max(sizes.moduli) < LIMIT
    assert (0 < sizes.exponent_share <= KINDS) == bool(sizes.exponent)


@pytest.mark.parametrize(("code", "precision", "word"), PLANS)
def test_offsets(code: Code, precision: str, word: int) -> None:
    """Each equally often; aligned codes begin at multiples of their length, others at any bit."""
    sizes = plan(code, precision=precision, word=word, lots=False)
    found, times = np.unique(offsets(sizes), return_counts=True)
    if sizes.aligned:
        assert sizes.aligned == code.longest
        assert sizes.word % sizes.aligned == 0
        assert found.tolist() == list(range(sizes.aligned, sizes.word + 1, sizes.aligned))
    else:
        assert found.tolist() == list(range(sizes.word))
    assert set(times.tolist()) == {sizes.grain}
    assert sizes.moduli[5] == len(found) * sizes.grain
    # The two factors of 2^−offset are powers of two whose steps add up exactly in the format.
    digits = np.finfo("float64" if precision == "float64" else "float32").nmant
    for exponents in sizes.exponents:
        assert max(exponents) - min(exponents) <= digits


@pytest.mark.parametrize(("precision", "words"), WORDS.items())
def test_other_words_are_refused(precision: str, words: tuple[int, int]) -> None:
    code = make_code(np.arange(9) % 4, 4)
    for word in {0, 1, 7, 16, 24, 31, 32, 53, 60, 64} - set(words):
        with pytest.raises(BadInput, match=f"words of {word} bits do not fit {precision}; expected {words[0]}"):
            plan(code, precision=precision, word=word)


def test_a_hundred_million_questions() -> None:
    """Rows stop growing where their squares would no longer be exact; then shards go on, or columns, if asked to."""
    small = make_code(np.arange(256), 256)
    for shards in (None, 1):
        sizes = plan(replace(small, histogram=(0,) * 8 + (10**8,)), precision="float32", word=24, shards=shards)
        assert sizes.rows <= MOST_ROWS
        assert sizes.shards * sizes.words * 24 >= 8 * 10**8
        assert max(sizes.moduli) < LIMIT
        assert (sizes.columns <= SHARD_COLUMNS) == (shards is None)


def test_growing() -> None:
    sizes = plan(make_code(np.arange(30_000) % 256, 256), precision="float32", word=24, lots=False)
    more = grown(sizes)
    assert more.rows == sizes.rows + 1
    assert replace(more, starts=sizes.starts) == sizes
    large = replace(sizes, starts=1000)
    assert grown(large).rows == large.rows + large.rows // 200


def test_loads() -> None:
    loads = [load_for(equations, aligned) for aligned in (False, True) for equations in (0, 1, 50, 500, 10**4, 10**7)]
    assert loads[:6] == sorted(loads[:6])
    assert all(0.25 <= load < 1 for load in loads)
    assert load_for(10**6, True) > load_for(10**6, False) > 0.98
    assert load_for(30_000, True, 26, lots=True) > 0.99


@pytest.mark.parametrize("questions", [100_000, 1_000_000, 2_200_000, 10**7, 10**8])
def test_lots_fill_a_table_to_99_percent(questions: int) -> None:
    """From 10⁵ labels of 8 bits on; and stretches are equally long, also after the table has grown."""
    code = replace(make_code(np.arange(256), 256), histogram=(0,) * 8 + (questions,))
    sizes = plan(code, precision="float32", word=24)
    assert questions / (3 * sizes.shards * sizes.words) >= 0.99
    assert sizes.lots_fit
    assert grown(sizes).lots_fit
    assert grown(sizes).rows >= sizes.rows + sizes.rows // 200
    assert sizes.rows <= MOST_ROWS - SPREAD
    assert max(sizes.moduli) <= LIMIT // 8
    assert plan(code, precision="float32", word=24, lots=False).stretches == 0
    assert not replace(sizes, starts=sizes.starts + 1).lots_fit or sizes.stretches == 1
    assert not replace(sizes, aligned=None).lots_fit


def test_few_questions_are_left_to_the_hash() -> None:
    """A lot costs parameters: less than 10⁴ labels of 8 bits have none, and codes of different lengths."""
    for questions in (1, 100, 1000, 5000):
        assert plan(code_for(questions, 256, False), precision="float32", word=24).stretches == 0
    assert plan(code_for(50_000, 256, False), precision="float32", word=24).stretches
    assert not plan(code_for(50_000, 8, True), precision="float32", word=24).stretches


def test_by_hand() -> None:
    """One question of one bit: the least table, 7 rows of 6 × 4 words, 24 offsets of 10 values each."""
    sizes = plan(make_code(np.array([0]), 1), precision="float32", word=24)
    assert sizes == TableSizes(24, 0, columns=4, starts=1, margin=0, aligned=1, exponent_share=0)
    assert (sizes.rows, sizes.words, sizes.offsets, sizes.grain) == (7, 168, 24, 10)
    assert sizes.moduli == (1, 49, 25, 25, 25, 240)
    assert sizes.bases == (7, 5, 5, 5, 10)
    assert sizes.counts == (7, 5, 5, 5, 24)


def test_what_solving_takes() -> None:
    """By hand: 4 columns, 7 rows: 168 unknowns, rows of 168 // 64 + 2 = 4 words of 8 bytes, two for an equation."""
    sizes = TableSizes(24, 0, columns=4, starts=1, margin=0, aligned=8, exponent_share=0)
    assert (sizes.words, sizes.band) == (168, 4)
    assert sizes.solving_memory(100) == 2 * (2 * 168 * 4 * 8) + 400 * 100
    assert replace(sizes, aligned=None).solving_memory(0) == 2 * sizes.solving_memory(0)


def test_a_system_takes_what_is_planned() -> None:
    sizes = plan(make_code(np.arange(2000) % 256, 256), precision="float32", word=24)
    system = parities.reduce_band(
        np.zeros((sizes.words, 1), np.int64), np.zeros(sizes.words, np.int64), sizes.words, sizes.band
    )
    assert AHEAD * (system.used.nbytes + system.rows.nbytes) == sizes.solving_memory(0)


def test_memory_grows_with_the_square_of_the_questions_in_the_end() -> None:
    """16 MB of text, 4.6 bits each: rows cannot be more, so that they get wider; of shards there are just more."""
    few, many = (replace(code_for(10, 256, False), histogram=(0, 0, 0, 0, 0, n)) for n in (4_000_000, 16_000_000))
    few_shards, many_shards = (plan(code, precision="float32", word=24) for code in (few, many))
    assert many_shards.solving_memory(0) < 1.1 * few_shards.solving_memory(0)
    assert 3.5 < many_shards.shards / few_shards.shards < 4.5
    small, large = (plan(code, precision="float32", word=24, shards=1) for code in (few, many))
    assert large.columns > 3.9 * small.columns
    assert 12 < large.solving_memory(0) / small.solving_memory(0) < 17
