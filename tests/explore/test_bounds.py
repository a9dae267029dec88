"""The formulas in JavaScript are those of byheart.bounds; the table of counts is the planner's."""

import math
from dataclasses import replace

import numpy as np
import pytest

from byheart.bounds import Letters, bounds_for
from byheart.bounds.bound import may_differ
from byheart.explore.bounds import BITS, GRID, LIMITED, SETTINGS, Setting, counts, counts_at, shown, sizes
from byheart.sizes import Size

from .javascript import evaluated

ANSWERS = """given.points.map((point) => given.names.map((name) => script.FORMULAS[name](point)))"""


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_formula_gives_what_python_gives(setting: Setting) -> None:
    rng = np.random.default_rng(1)
    known = [bound for bound in bounds_for(setting) if not set(bound.needs) - {*GRID, "bits"}]
    points = [
        {"N": int(10 ** rng.uniform(0, 7)), "n": int(rng.integers(2, 300)), "vocab": int(10 ** rng.uniform(0.5, 5)),
         "C": int(rng.integers(2, 5000)), "b": int(rng.integers(1, 65))}
        for _ in range(200)
    ]  # fmt: skip
    found = evaluated("bounds.js", ANSWERS, {"points": points, "names": [bound.name for bound in known]})
    for point, row in zip(points, found, strict=True):
        size = Size(examples=point["N"], length=point["n"], labels=point["C"], vocab=point["vocab"])
        for bound, value in zip(known, row, strict=True):
            expected = bound.answer(size, Letters(bits=point["b"])).parameters
            assert expected is not None
            assert math.isclose(value, expected, rel_tol=0 if isinstance(expected, int) else 1e-12), (bound.name, point)


def test_no_formula_is_missing_and_none_is_left_over() -> None:
    told = shown()["bounds"]
    wanted = {bound["name"] for rows in told.values() for bound in rows if not bound["missing"]}
    assert set(evaluated("bounds.js", "Object.keys(script.FORMULAS)")) == wanted
    assert {"name": "mahdavi-2024-next-token", "missing": ["dim", "head_dim"]}.items() <= told["next-token"][0].items()


def test_sequences_may_differ_by_hand() -> None:
    """There are 16 sequences of 2 tokens out of 4; elsewhere Python says the same."""
    grid = [(N, n, vocab) for N in GRID["examples"] for n in GRID["length"] for vocab in GRID["vocab"]]
    asked = "given.map(([N, n, vocab]) => script.mayDiffer({ N, n, vocab }))"
    found = evaluated("bounds.js", asked, [(1, 2, 4), (16, 2, 4), (17, 2, 4), *grid])
    assert found == [True, True, False, *(may_differ(*point) is not False for point in grid)]
    assert not all(found[3:])


@pytest.mark.parametrize("setting", SETTINGS)
def test_counts_are_those_of_the_planner(setting: Setting) -> None:
    table = counts()[setting]
    every = list(sizes())
    assert all(len(column) == len(every) for column in table.values())
    small = [k for k, size in enumerate(every) if size.examples <= 3000 and size.vocab <= 4096]
    for k in np.random.default_rng(2).choice(small, size=4, replace=False):
        assert {name: column[k] for name, column in table.items() if column[k] is not None} == counts_at(
            every[k], setting
        )
    other = replace(every[small[0]], examples=every[small[0]].examples + 1000)
    assert counts_at(other, setting)["folding"] != table["folding"][small[0]], "the planner tells sizes apart"


def test_a_count_by_hand() -> None:
    """Interpolation of N keys has three parameters a key, and three more: the index into the table is right."""
    place = 0
    for name, value in (("length", 16), ("vocab", 256), ("labels", 16), ("examples", 1000)):
        place = place * len(GRID[name]) + GRID[name].index(value)
    assert counts()["next-token"]["interpolate"][place] == 3 * 1000 + 3
    assert list(sizes())[place] == Size(examples=1000, length=16, vocab=256, labels=16)
    limited = counts()["next-token"][f"{LIMITED}, {BITS[-1]} bits"][place]
    free = counts()["next-token"]["kajitsuka-sato-2025"][place]
    assert limited is not None
    assert free is not None
    assert limited >= free, "a limit takes no parameters away"
