"""The planner: what is smallest, and from which N on."""

from dataclasses import replace

import pytest

from byheart.constructions import CONSTRUCTIONS
from byheart.constructions.planner import (
    Crossover,
    Fewest,
    Planner,
    Range,
    check_size,
    crossovers_in_words,
    planned,
    plans,
    smaller_in_words,
)
from byheart.errors import BadInput
from byheart.sizes import Size

from ..exact import EXACT

SIZES = {
    "plain": Size(examples=1, length=32, labels=10, vocab=200),
    "two labels": Size(examples=1, length=1, labels=2, vocab=1000),
    "vectors": Size(examples=1, length=4, labels=10, vocab=50, dim=3),
}


def parameters(size: Size, examples: int, setting: str, positions: bool = False) -> dict[str, int]:
    """Without the embedding table, which is what is compared."""
    rows = planned(replace(size, examples=examples), setting, positions=positions)
    return {row.construction: row.parameters - row.embedding for row in rows}


def test_interpolation_by_hand() -> None:
    """N = 100, vocabulary 200: a table of 200, attention of 2, and 3·100 + 1 for the zigzag: 503."""
    (row,) = [r for r in planned(Size(100, 32, 10, 200), "next-token") if r.construction == "interpolate"]
    assert (row.parameters, row.embedding) == (503, 200)
    assert (row.depth, row.width) == (4, 100)


@pytest.mark.parametrize("setting", ["next-token", "seq-to-seq"])
def test_smallest_first_and_only_what_covers_the_setting(setting: str) -> None:
    rows = planned(Size(1000, 8, 10, 200), setting)
    compared = [row.parameters - row.embedding for row in rows]
    assert compared == sorted(compared)
    assert {row.construction for row in rows} == {c.name for c in CONSTRUCTIONS.values() if setting in c.covers}


LARGE_VOCABULARY = Size(examples=10**5, length=512, labels=32_000, vocab=32_000)


def test_a_large_vocabulary_is_ranked_in_all_too() -> None:
    """Without embedding folding wins; in all it would lose to vardi-2022, had it not a table of one column to offer."""
    rows = {(row.construction, row.fewest): row for row in plans(LARGE_VOCABULARY, "next-token")}
    large, small = rows["folding", "without-embedding"], rows["folding", "in-all"]
    assert large.parameters > 5 * rows["vardi-2022", None].parameters == 5 * 40_772
    assert small.parameters < 40_772 < large.parameters
    assert large.without_embedding < small.without_embedding
    assert small.embedding == 32_000, "one number a token"
    assert planned(LARGE_VOCABULARY, "next-token")[0] == large
    assert planned(LARGE_VOCABULARY, "next-token", fewest="in-all")[:2] == [small, rows["vardi-2022", None]]


@pytest.mark.parametrize("fewest", ["without-embedding", "in-all"])
def test_each_construction_stands_once_in_a_ranking(fewest: Fewest) -> None:
    rows = planned(SIZES["plain"], "next-token", fewest=fewest)
    assert len({row.construction for row in rows}) == len(rows)
    assert [row.counted(fewest) for row in rows] == sorted(row.counted(fewest) for row in rows)


def test_who_is_smallest_in_all() -> None:
    planner = Planner(Size(examples=1, length=8, labels=2, vocab=500), "next-token", largest=300)
    found = planner.crossovers(fewest="in-all")
    assert found != planner.crossovers()
    assert [planner.at(c.examples, "in-all")[0].construction for c in found] == [c.construction for c in found]
    assert crossovers_in_words(found, "in-all").startswith("Smallest in all, other sizes fixed: from N = 1 on ")


def test_what_does_not_read_vectors_is_left_out() -> None:
    """dana-2025 and madden-2024 cover next-token tasks, but of token ids; mahdavi-2024 has no plan for a size."""
    names = {row.construction for row in planned(SIZES["vectors"], "next-token")}
    assert names == {*EXACT}
    assert {row.construction for row in planned(SIZES["plain"], "next-token")} == {*EXACT, "dana-2025", "madden-2024"}


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("setting", ["next-token", "seq-to-seq"])
@pytest.mark.parametrize("positions", [False, True])
def test_crossovers_are_where_they_are_said_to_be(size: Size, setting: str, positions: bool) -> None:
    """At the crossover the winner is smallest, one example before it the winner before."""
    found = Planner(size, setting, positions).crossovers()
    assert found[0].examples == 1
    assert [c.examples for c in found] == sorted({c.examples for c in found})
    before: Crossover | None = None
    for crossover in found:
        here = parameters(size, crossover.examples, setting, positions)
        assert min(here.values()) > 0
        assert here[crossover.construction] == min(here.values())
        if before is not None:
            assert before.construction != crossover.construction
            left = parameters(size, crossover.examples - 1, setting, positions)
            assert left[before.construction] == min(left.values())
            assert left[crossover.construction] >= left[before.construction]
        before = crossover


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_interpolation_loses_in_the_end(size: Size) -> None:
    """3N against Õ(√N): someone else is smallest at a billion examples, and by far; with C = 2 not below 2√(2N)."""
    assert Planner(size, "next-token").crossovers()[-1].construction != "interpolate"
    at_the_end = parameters(size, 10**9, "next-token")
    smallest = min(at_the_end.values())
    assert 2 * (2 * 10**9) ** 0.5 < smallest < at_the_end["interpolate"] / 100


def test_progress_is_told() -> None:
    heard: list[tuple[int, int]] = []
    planner = Planner(SIZES["plain"], "next-token", largest=50)
    planner.crossovers(lambda done, total, note="", /: heard.append((done, total)))
    assert heard == [(i, len(planner.grid)) for i in range(1, len(planner.grid))]


def test_crossovers_stop_where_they_are_told_to() -> None:
    assert all(c.examples <= 50 for c in Planner(SIZES["plain"], "next-token", largest=50).crossovers())


@pytest.mark.parametrize("name", ["examples", "length", "labels", "vocab", "dim"])
def test_sizes_that_no_task_has(name: str) -> None:
    assert check_size(SIZES["vectors"]) == SIZES["vectors"]
    with pytest.raises(BadInput, match=f"^{name} is 0; expected at least 1"):
        check_size(replace(SIZES["vectors"], **{name: 0}))


@pytest.mark.parametrize("setting", ["next-token", "seq-to-seq"])
@pytest.mark.parametrize("dim", [None, 3])
def test_where_a_construction_beats_the_baseline(setting: str, dim: int | None) -> None:
    """At both ends of the range that is told it is smaller, one beyond it is not."""
    size, largest = Size(examples=1, length=8, labels=10, vocab=64, dim=dim), 10**5

    def wins(name: str, examples: int) -> bool:
        rows = {row.construction: row for row in planned(replace(size, examples=examples), setting)}
        return rows[name].without_embedding < rows["interpolate"].without_embedding

    found = Planner(size, setting, largest=largest).smaller()
    assert set(found) == {row.construction for row in planned(size, setting)} - {"interpolate"}
    told = {name: where for name, where in found.items() if where is not None}
    assert set(told) >= {"folding", "kim-2023", "kajitsuka-sato-2025"}
    assert ("kajitsuka-sato-2024" in told) is (dim is not None), "few vectors need no token stage"
    for name, where in told.items():
        last = largest if where.last is None else where.last
        assert wins(name, where.first)
        assert wins(name, last)
        assert where.first == 1 or not wins(name, where.first - 1)
        assert where.last is None or not wins(name, last + 1)
    for name in found.keys() - told.keys():
        assert not wins(name, largest)


def test_in_words() -> None:
    assert smaller_in_words({"a": None, "b": None}) == "Smaller than interpolate: never a, b."
    assert smaller_in_words({"a": Range(3, None)}) == "Smaller than interpolate: a from N = 3 on."
    assert smaller_in_words({"a": Range(3, 1000)}) == "Smaller than interpolate: a from N = 3 to 1,000."
