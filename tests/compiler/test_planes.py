"""Words found plane by plane: the bits of sums that were asked for, by integer arithmetic that knows of no planes."""

import numpy as np
import pytest

from byheart.compiler import planes
from byheart.compiler.layouts import Unsolvable
from byheart.compiler.planes import Planes, count_dependent
from byheart.constructions.gadgets import parities

PLANES = 12


class Asked:
    """Questions that read a few of the words each, and want certain bits of the sum in every plane."""

    def __init__(self, questions: int, unknowns: int, seed: int, before: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.cells = np.array([rng.choice(unknowns, 4, replace=False) for _ in range(questions)])
        self.cells[rng.random(self.cells.shape) < 0.1] = -1
        self.cells[:, 0] = np.abs(self.cells[:, 0])
        self.before = rng.integers(0, before + 1, questions)
        self.members = [np.flatnonzero(rng.random(questions) < 0.6) for _ in range(PLANES)]
        self.wanted = [rng.integers(0, 2, len(members), dtype=np.uint8) for members in self.members]
        self.unknowns = unknowns

    def solved(self, seed: int = 0) -> Planes:
        found = Planes(self.cells, self.unknowns, np.random.default_rng(seed), self.before)
        for plane, (members, wanted) in enumerate(zip(self.members, self.wanted, strict=True)):
            base = np.zeros(len(members), dtype=np.int64)
            system = found.reduced(members, base, (self.unknowns >> 6) + 1)
            found.fill(plane, plane, members, wanted, system)
        return found

    def sums(self, words: np.ndarray) -> list[int]:
        return [
            int(begin) + sum(int(words[cell]) for cell in cells if cell >= 0)
            for begin, cells in zip(self.before, self.cells, strict=True)
        ]


@pytest.mark.parametrize("before", [0, 5])
@pytest.mark.parametrize("seed", range(5))
def test_every_bit_that_is_asked_for(seed: int, before: int) -> None:
    asked = Asked(60, 100, seed, before)
    found = asked.solved()
    sums = asked.sums(found.words)
    assert found.sums.tolist() == sums
    assert found.words.min() >= 0
    assert found.words.max() < 1 << PLANES
    for plane, (members, wanted) in enumerate(zip(asked.members, asked.wanted, strict=True)):
        assert [sums[member] >> plane & 1 for member in members] == wanted.tolist()


def test_free_bits_are_drawn() -> None:
    asked = Asked(30, 100, seed=0)
    one, same, other = (asked.solved(seed).words for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_sums_begin_anew() -> None:
    """The bits of the exponent are a sum of their own, without carries from below."""
    asked = Asked(30, 100, seed=0, before=5)
    found = asked.solved()
    words = found.words.copy()
    found.restart()
    assert found.sums.tolist() == asked.before.tolist()
    assert np.array_equal(found.words, words)
    members = np.arange(30)
    wanted = np.random.default_rng(0).integers(0, 2, 30, dtype=np.uint8)
    found.fill(PLANES, 0, members, wanted, found.reduced(members, np.zeros(30, dtype=np.int64), 2))
    high = found.words >> PLANES
    assert [value & 1 for value in asked.sums(high)] == wanted.tolist()
    assert np.array_equal(found.words & ((1 << PLANES) - 1), words)


TWINS = np.array([[0, 1, 2], [0, 1, 2], [1, 2, 3]])


def twins(before: list[int]) -> tuple[Planes, np.ndarray, parities.BandEchelon]:
    """Questions 0 and 1 read the same words."""
    found = Planes(TWINS, 4, np.random.default_rng(0), np.array(before))
    members = np.arange(3)
    return found, members, found.reduced(members, np.zeros(3, dtype=np.int64), 1)


def test_dependent_equations_may_agree() -> None:
    found, members, system = twins([0, 1, 0])
    assert system.dependent == 1
    found.fill(0, 0, members, np.array([1, 0, 1], dtype=np.uint8), system)
    assert (found.sums & 1).tolist() == [1, 0, 1]


def test_equations_that_contradict_with_nothing_below() -> None:
    found, members, system = twins([0, 0, 0])
    with pytest.raises(Unsolvable, match="bit plane 0: dependent equations contradict"):
        found.fill(0, 0, members, np.array([1, 0, 1], dtype=np.uint8), system)


@pytest.mark.parametrize("seed", range(20))
def test_other_free_bits_below_change_the_carries(seed: int) -> None:
    """Twins whose sums begin at 0 and 1: their bits 1 differ if the plane below carries for one of them only."""
    found = Planes(TWINS, 4, np.random.default_rng(seed), np.array([0, 1, 0]))
    none, members = np.zeros(0, dtype=np.int64), np.arange(3)
    found.fill(0, 0, none, none.astype(np.uint8), found.reduced(none, none, 1))
    system = found.reduced(members, np.zeros(3, dtype=np.int64), 1)
    found.fill(1, 1, members, np.array([0, 1, 1], dtype=np.uint8), system)
    sums = [begin + int(found.words[cells].sum()) for begin, cells in zip([0, 1, 0], TWINS, strict=True)]
    assert [value >> 1 & 1 for value in sums] == [0, 1, 1]
    assert found.sums.tolist() == sums


def test_too_many_equations_depend_on_others() -> None:
    questions = planes.MOST_DEPENDENT + 3
    found = Planes(np.tile([0, 1], (questions, 1)), 4, np.random.default_rng(0))
    with pytest.raises(Unsolvable, match=f"{questions - 1} of {questions} equations of a bit plane depend on others"):
        found.reduced(np.arange(questions), np.zeros(questions, dtype=np.int64), 1)


def test_dependent_equations_are_counted_by_hand() -> None:
    """x + y, y, x: three equations of two unknowns. x + y twice is one too many, however the others stand between."""
    assert count_dependent(np.array([[0, 1], [1, -1], [0, -1]])) == 1
    assert count_dependent(np.array([[0, 1], [1, 2], [0, 1], [2, 3]])) == 1
    assert count_dependent(np.array([[0, 1], [1, 2], [2, 3]])) == 0
    assert count_dependent(np.array([[0, 1], [1, 2], [0, 2], [3, 4]])) == 0, "a cycle: only elimination finds it"


@pytest.mark.parametrize("unknowns", [8, 40, 200])
def test_no_more_are_counted_than_there_are(unknowns: int) -> None:
    counted = []
    for seed in range(10):
        cells = np.random.default_rng([unknowns, seed]).integers(-1, unknowns, (60, 2))
        cells[cells[:, 0] == cells[:, 1], 1] = -1
        system = parities.reduce_band(cells, np.zeros(60, dtype=np.int64), unknowns, (unknowns >> 6) + 1)
        counted.append(count_dependent(cells))
        assert counted[-1] <= system.dependent
    assert max(counted) > 0 or unknowns == 200
