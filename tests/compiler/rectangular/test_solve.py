"""The words answer every question, by integer arithmetic that knows nothing of planes and equations."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.compiler.codes import Code, make_code
from byheart.compiler.layouts import Unsolvable
from byheart.compiler.planes import Equations
from byheart.compiler.rectangular.address import TableAddresses
from byheart.compiler.rectangular.dimensions import KINDS, LANES, SPREAD, WORDS, TableSizes, grown, plan
from byheart.compiler.rectangular.solve import solve, sort_questions

FORMATS = [("float32", 24), ("float32", 31), ("float64", 53), ("float64", 60), ("bfloat16", 8), ("bfloat16", 15)]


class Asked:
    """Questions at random places, as the front would send them."""

    def __init__(self, sizes: TableSizes, code: Code, labels: np.ndarray, rng: np.random.Generator) -> None:
        N = len(labels)
        self.sizes, self.code, self.labels = sizes, code, labels
        self.rows = rng.integers(0, sizes.starts, N)[:, None] + rng.integers(0, SPREAD, (N, 2))
        self.columns = rng.integers(0, sizes.columns + 1, (N, LANES))
        step = sizes.aligned or 1
        self.offset = step * (rng.integers(0, sizes.offsets, N) + bool(sizes.aligned))
        self.kind = rng.integers(0, KINDS, N) if sizes.exponent else None

    @property
    def questions(self) -> Equations:
        address = TableAddresses(self.rows, self.columns, self.offset, self.kind)
        return sort_questions(self.sizes, self.code, address, self.labels)

    def wrong(self, words: np.ndarray) -> list[int]:
        """The questions whose bits, read in the table of these words, do not begin with their label's code word."""
        return [
            e for e, label in enumerate(self.labels.tolist()) if not self.read(words, e).startswith(self.text(label))
        ]

    def text(self, label: int) -> str:
        return format(int(self.code.words[label]), f"0{int(self.code.lengths[label])}b")

    def read(self, words: np.ndarray, e: int) -> str:
        """All bits that a question reads, the first one first."""
        sizes, T = self.sizes, self.sizes.word
        found = [
            int(words[self.rows[e, lane // 3], lane, self.columns[e, lane]])
            for lane in range(LANES)
            if self.columns[e, lane] < sizes.columns
        ]
        total = sum(word % (1 << T) for word in found) % (1 << T)
        bits = format(total, f"0{T}b")[::-1]
        below = [bits[place] for place in reversed(range(self.offset[e]))]
        if not sizes.aligned:
            around = [bits[place] for place in reversed(range(self.offset[e], T))]
            around[0] = "10"[int(around[0])]
            below += around
        if self.kind is not None and self.kind[e] < sizes.exponent_share:
            exponents = sum(word >> T for word in found) % (1 << sizes.exponent)
            below = [*format(exponents, f"0{sizes.exponent}b"), *below]
        return "".join(below)


def solved(labels: np.ndarray, count: int, precision: str, word: int, seed: int) -> tuple[Asked, np.ndarray]:
    code = make_code(labels, count, WORDS[precision][0])
    sizes = plan(code, precision=precision, word=word)
    for attempt in range(20):
        rng = np.random.default_rng([seed, attempt])
        asked = Asked(sizes, code, labels, rng)
        try:
            return asked, solve(asked.questions, sizes, rng)
        except Unsolvable:
            sizes = grown(sizes)
    pytest.fail("no table in 20 attempts")


@pytest.mark.parametrize(("precision", "word"), FORMATS)
@pytest.mark.parametrize("shape", ["256", "3", "skewed"])
def test_every_question_finds_its_code_word(precision: str, word: int, shape: str) -> None:
    rng = np.random.default_rng(word)
    labels = np.minimum(rng.geometric(0.4, 700) - 1, 5) if shape == "skewed" else rng.integers(0, int(shape), 700)
    asked, words = solved(labels, int(labels.max()) + 1, precision, word, seed=word)
    sizes = asked.sizes
    assert words.shape == (sizes.rows, LANES, sizes.columns)
    assert words.min() >= 0
    assert words.max() < 1 << (sizes.word + sizes.exponent)
    assert asked.wrong(words) == []
    # Not because everything is right: other words are wrong for about as many as chance says.
    other = np.random.default_rng(0).permutation(words.ravel()).reshape(words.shape)
    chance = sum(0.5 ** len(asked.text(label)) for label in labels.tolist())
    assert len(labels) - len(asked.wrong(other)) < 2 * chance + 20


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 40), st.sampled_from(FORMATS))
@settings(max_examples=25)
def test_small_tables(seed: int, questions: int, labels: int, form: tuple[str, int]) -> None:
    drawn = np.random.default_rng(seed).integers(0, labels, questions)
    asked, words = solved(drawn, labels, *form, seed=seed)
    assert asked.wrong(words) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing(threads: int) -> None:
    labels = np.random.default_rng(0).integers(0, 32, 300)
    code = make_code(labels, 32)
    sizes = replace(plan(code, precision="float32", word=24), starts=12)
    asked = Asked(sizes, code, labels, np.random.default_rng(7))
    one, other = (solve(asked.questions, sizes, np.random.default_rng(5), threads=t) for t in (2, threads))
    assert np.array_equal(one, other)
    assert not asked.wrong(one)


def test_progress_is_reported() -> None:
    labels = np.arange(20) % 3
    code = make_code(labels, 3)
    sizes = plan(code, precision="bfloat16", word=8)
    steps: list[tuple[int, int]] = []
    asked = Asked(sizes, code, labels, np.random.default_rng(0))
    solve(asked.questions, sizes, np.random.default_rng(0), report=lambda done, total: steps.append((done, total)))
    assert steps == [(plane, 8) for plane in range(1, 9)]


def test_more_bits_than_the_table_has() -> None:
    """Load 1.1: 4 words of 24 bits more would be needed than there are; no draw can help."""
    labels = np.random.default_rng(0).integers(0, 256, 3 * 7 * LANES * 4 + 60)
    code = make_code(labels, 256)
    sizes = TableSizes(24, 0, columns=4, starts=1, margin=0, aligned=8, exponent_share=0)
    assert code.total > 24 * sizes.words
    for seed in range(3):
        rng = np.random.default_rng(seed)
        with pytest.raises(Unsolvable):
            solve(Asked(sizes, code, labels, rng).questions, sizes, rng)


@pytest.mark.parametrize("same", [True, False])
def test_two_questions_at_one_place(same: bool) -> None:
    """They can be answered exactly if they want the same."""
    labels = np.array([0, 0 if same else 1, 1])
    code = make_code(labels, 2)
    sizes = plan(code, precision="float32", word=24)
    rng = np.random.default_rng(3)
    asked = Asked(sizes, code, labels, rng)
    for place in (asked.rows, asked.columns, asked.offset):
        place[1] = place[0]
    if same:
        assert asked.wrong(solve(asked.questions, sizes, rng)) == []
    else:
        with pytest.raises(Unsolvable):
            solve(asked.questions, sizes, rng)


def test_a_question_that_reads_nothing() -> None:
    """Six null columns: the sum is 0, so that it can only be answered 0 (and 1 where the highest bit is read)."""
    labels = np.array([0, 1])
    code = make_code(labels, 2)
    sizes = plan(code, precision="float32", word=24)
    rng = np.random.default_rng(3)
    asked = Asked(sizes, code, labels, rng)
    asked.columns[0] = sizes.columns
    assert asked.wrong(solve(asked.questions, sizes, rng)) == []
    asked.columns[:] = sizes.columns
    with pytest.raises(Unsolvable):
        solve(asked.questions, sizes, rng)


def test_sorted_by_the_first_row() -> None:
    labels = np.random.default_rng(0).integers(0, 256, 900)
    code = make_code(labels, 256)
    asked = Asked(sizes := plan(code, precision="float32", word=24), code, labels, np.random.default_rng(1))
    questions = asked.questions
    assert questions.base is not None
    assert (np.diff(questions.base) >= 0).all()
    kept = questions.cells >= 0
    assert kept.sum() == (asked.columns < sizes.columns).sum()
    assert questions.cells[kept].max() < sizes.words
    inside = (questions.cells >> 6) - questions.base[:, None]
    assert inside[kept].min() >= 0
    assert inside[kept].max() < SPREAD * LANES * sizes.columns // 64 + 2
