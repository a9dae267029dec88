"""The menu is complete and says where everything comes from; what a bound cannot answer, it explains."""

import inspect
from dataclasses import fields
from typing import get_args

import pytest

from byheart.bounds import BOUNDS, STATEMENTS, Bound, Kind, Letters, Setting, Side, Statement, bounds_for
from byheart.errors import BadInput
from byheart.sizes import Size

SIZE = Size(examples=50, length=4, labels=3, vocab=20, dim=6)
ALL_LETTERS = Letters(
    model_dim=4,
    head_dim=3,
    value_dim=2,
    bits=16,
    radius=2.0,
    separation=0.1,
    depth=3,
    robustness=0.5,
    relations=5,
)
LETTER_NAMES = {field.name for field in fields(Letters)}
each_bound = pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.name)


each_statement = pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)


def test_names_are_unique() -> None:
    named = [*BOUNDS, *STATEMENTS]
    assert len({entry.name for entry in named}) == len(named)


@each_statement
def test_a_statement_says_what_it_is(statement: Statement) -> None:
    assert statement.kind in get_args(Kind)
    assert statement.setting in get_args(Setting)
    assert all([statement.name, statement.paper, statement.source, statement.model, statement.says])
    assert statement.hypotheses
    assert statement.counts != "parameters", "those are bounds"
    assert (statement.formula is None) == (statement.counts == "")
    answer = statement.answer(SIZE, ALL_LETTERS)
    assert (answer.parameters is None, answer.reason) == (
        (True, "no number") if statement.formula is None else (False, "")
    )


def test_every_paper_of_the_years_is_there() -> None:
    papers = {entry.paper.split()[0].strip(",") for entry in [*BOUNDS, *STATEMENTS]}
    assert papers >= {"Yu", "Egosi", "Ravfogel", "Giorlandino", "Nichani", "Dugan", "Meyer", "Park", "Morris", "Xu"}
    assert {entry.kind for entry in [*BOUNDS, *STATEMENTS]} == set(get_args(Kind))


@each_bound
def test_a_bound_says_what_it_is(bound: Bound) -> None:
    assert bound.kind in get_args(Kind)
    assert bound.side in get_args(Side)
    assert bound.setting in get_args(Setting)
    assert all([bound.name, bound.paper, bound.source, bound.model, bound.expression])
    assert bound.hypotheses
    assert all(bound.hypotheses)


@each_bound
def test_the_expression_shows_the_kind(bound: Bound) -> None:
    assert bound.kind in ("proved", "order", "measured")
    assert (bound.kind == "order") == any(symbol in bound.expression for symbol in ("O(", "Õ(", "Ō(", "Ω(", "Ω̄("))


@each_bound
def test_a_proved_bound_is_a_whole_number(bound: Bound) -> None:
    number = bound.answer(SIZE, ALL_LETTERS).parameters
    assert number is not None
    assert number > 0
    assert bound.kind != "proved" or isinstance(number, int)


@each_bound
def test_the_formula_reads_sizes_and_letters_only(bound: Bound) -> None:
    read = set(inspect.signature(bound.formula).parameters)
    assert read <= LETTER_NAMES | {field.name for field in fields(Size)}


def test_every_letter_is_read_by_some_bound() -> None:
    assert set().union(*(inspect.signature(bound.formula).parameters for bound in BOUNDS)) >= LETTER_NAMES


@each_bound
def test_every_missing_letter_is_named(bound: Bound) -> None:
    ids_only = Size(examples=50, length=4, labels=3, vocab=20)
    answer = bound.answer(ids_only)
    missing = [name for name in bound.needs if name == "dim" or name in LETTER_NAMES]
    assert answer.reason == (f"needs: {', '.join(missing)}" if missing else "")
    assert (answer.parameters is None) == bool(missing)


@pytest.mark.parametrize("setting", [setting for setting in get_args(Setting) if setting != "any"])
def test_bounds_for_a_setting(setting: Setting) -> None:
    chosen = bounds_for(setting)
    assert {bound.setting for bound in chosen} == {setting, "any"}
    assert {bound.side for bound in chosen} == {"upper", "lower"}
    assert [bound for bound in BOUNDS if bound in chosen] == list(chosen)


@pytest.mark.parametrize(
    ("name", "size", "letters", "reason"),
    [
        ("mahdavi-2024-next-token", Size(50, 6, 3, 20, dim=6), Letters(head_dim=3), "expected n < d"),
        ("mahdavi-2024-next-token", SIZE, Letters(head_dim=1), "min(n, d_h) is 1; expected at least 2"),
        ("dana-2025-next-token", SIZE, Letters(model_dim=3, head_dim=4), "expected 1 ≤ d_h ≤ d"),
        ("dana-2025-next-token", SIZE, Letters(model_dim=1), "model_dim is 1; expected at least 2"),
        ("dana-2025-next-token", Size(50, 1, 3, 20), Letters(), "length is 1; expected at least 2"),
        ("yang-2026-points-upper", SIZE, Letters(radius=1, separation=1, depth=3), "expected δ < r"),
        ("ravfogel-2026-facts", SIZE, Letters(relations=51), "relations is 51 and examples 50; expected R ≤ N"),
    ],
)
def test_outside_the_hypotheses(name: str, size: Size, letters: Letters, reason: str) -> None:
    (bound,) = [bound for bound in BOUNDS if bound.name == name]
    answer = bound.answer(size, letters)
    assert answer.parameters is None
    assert answer.reason.startswith("outside: ")
    assert reason in answer.reason


@each_bound
def test_what_sizes_tell_is_told_of_a_hypothesis(bound: Bound) -> None:
    """By functions of sizes and letters; every hypothesis has a verdict, and open is the one of those not told of."""
    assert set(bound.conditions) <= set(bound.hypotheses)
    verdicts = bound.verdicts(SIZE, ALL_LETTERS)
    assert tuple(verdicts) == bound.hypotheses
    for name, verdict in verdicts.items():
        condition = bound.conditions.get(name)
        assert condition is not None or verdict == "open"
        if condition is not None:
            read = set(inspect.signature(condition).parameters)
            assert read <= LETTER_NAMES | {field.name for field in fields(Size)}


DIFFER = "the N contexts differ"


@pytest.mark.parametrize(
    ("name", "hypothesis", "size", "letters", "verdict"),
    [
        ("mahdavi-2024-next-token", "n < d", Size(50, 5, 3, 20, dim=6), Letters(), "holds"),
        ("mahdavi-2024-next-token", "n < d", Size(50, 6, 3, 20, dim=6), Letters(), "fails"),
        ("mahdavi-2024-next-token", "n < d", Size(50, 6, 3, 20), Letters(), "open"),
        ("mahdavi-2024-next-token", "every context has rank n", SIZE, ALL_LETTERS, "open"),
        ("dana-2025-next-token", "1 ≤ d_h ≤ d and d ≥ 2", SIZE, Letters(model_dim=3, head_dim=4), "fails"),
        ("dana-2025-next-token", "1 ≤ d_h ≤ d and d ≥ 2", SIZE, Letters(model_dim=1, head_dim=1), "fails"),
        ("dana-2025-next-token", "1 ≤ d_h ≤ d and d ≥ 2", SIZE, Letters(model_dim=3, head_dim=3), "holds"),
        ("dana-2025-next-token", "n ≥ 2", Size(50, 1, 3, 20), Letters(), "fails"),
        # 2³ = 8 contexts of three tokens out of two.
        ("dana-2025-next-token", DIFFER, Size(8, 3, 2, 2), Letters(), "open"),
        ("dana-2025-next-token", DIFFER, Size(9, 3, 2, 2), Letters(), "fails"),
        ("madden-2024-distribution-upper", DIFFER, Size(1, 1, 1, 1), Letters(), "holds"),
        ("madden-2024-distribution-upper", DIFFER, Size(10**9, 10**9, 2, 10**9), Letters(), "open"),
        ("yang-2026-points-upper", "δ < r", SIZE, Letters(radius=1, separation=1), "fails"),
        ("yang-2026-points-lower", "δ < r", SIZE, Letters(radius=1, separation=0.5), "holds"),
        ("counting-seq-to-seq", "the nN pairs of token and sequence differ", Size(3, 3, 2, 2), Letters(), "fails"),
        ("counting-seq-to-seq", "the nN pairs of token and sequence differ", Size(3, 2, 2, 2), Letters(), "open"),
    ],
)
def test_what_sizes_tell(name: str, hypothesis: str, size: Size, letters: Letters, verdict: str) -> None:
    (bound,) = [bound for bound in BOUNDS if bound.name == name]
    assert bound.verdicts(size, letters)[hypothesis] == verdict


@each_bound
def test_a_number_is_missing_only_where_something_is_or_fails(bound: Bound) -> None:
    """Whoever says "outside" has a hypothesis that fails, or one of its formula's own."""
    assert "fails" not in bound.verdicts(SIZE, ALL_LETTERS).values()
    assert bound.answer(SIZE, ALL_LETTERS).reason == ""


@pytest.mark.parametrize("size", [Size(0, 4, 3, 20), Size(50, -1, 3, 20), Size(50, 4, 3, 20, dim=0)])
def test_an_impossible_size_is_refused(size: Size) -> None:
    with pytest.raises(BadInput, match=r"(examples|length|dim) is (0|-1); expected a positive number"):
        BOUNDS[0].answer(size)


@pytest.mark.parametrize(
    "letters", [{"bits": 0}, {"separation": -0.5}, {"robustness": 1.0}, {"separation": float("nan")}]
)
def test_an_impossible_letter_is_refused(letters: dict[str, float]) -> None:
    (name,) = letters
    with pytest.raises(BadInput, match=f"^{name} is "):
        Letters(**letters)  # type: ignore[arg-type]
