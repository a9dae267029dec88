"""What is planned is what is built, and the worst case is the worst."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions import CONSTRUCTIONS, build, kajitsuka_sato_2025, vardi_2022
from byheart.constructions.gadgets.demand import demand_of, worst_demand
from byheart.constructions.plan import TokenwiseShape, plan_of
from byheart.errors import BadInput
from byheart.networks import count
from byheart.sizes import Size
from byheart.tasks import NextToken, SeqToSeq, random_next_token, random_seq_to_seq

from ..exact import EXACT


@st.composite
def random_tasks(draw: st.DrawFn) -> NextToken | SeqToSeq:
    """Random tasks; vectors lie on a coarse grid, within the bits that plans assume."""
    length, vocab = draw(st.integers(1, 6)), draw(st.integers(2, 30))
    sizes = {
        "examples": draw(st.integers(1, min(40, vocab))),
        "length": length,
        "vocab": vocab,
        "labels": draw(st.sampled_from([1, 2, 10, 256])),
        "dim": draw(st.none() | st.integers(2, 3)),
        "shape": draw(st.sampled_from(["uniform", "skewed", "neighbours"])),
        "rng": np.random.default_rng(draw(st.integers(0, 2**32))),
    }
    return draw(st.sampled_from([random_next_token, random_seq_to_seq]))(**sizes)


@pytest.mark.slow
@given(random_tasks(), st.booleans())
@settings(deadline=None, max_examples=100)
def test_planned_is_built_and_the_worst_case_is_worse(task: NextToken | SeqToSeq, positions: bool) -> None:
    for name in EXACT:
        construction = CONSTRUCTIONS[name]
        if task.kind not in construction.covers:
            continue
        chosen = construction.settings_with(positions=positions)
        made = construction.build(task, chosen, np.random.default_rng(0), None)
        plan, account = made.plan, count(made.network)
        assert plan.agrees_with(account)
        assert plan.dense == account.dense == sum(item.dense for item in account.items)
        assert plan.embedding == account.embedding
        assert (plan.depth, plan.width) == (account.depth, account.width)
        # yang-2026 saves width and depth, not parameters.
        if made.chosen.get("growth", 0) == 0 and name != "yang-2026":
            assert construction.plan(task.size, task.kind, chosen).dense >= plan.dense


@given(random_tasks(), st.booleans())
def test_demand_counts(task: NextToken | SeqToSeq, positions: bool) -> None:
    """Against sets of Python tuples, and never above the worst case."""
    demand = demand_of(task, positions=positions)
    rows = [[tuple(np.atleast_1d(token).tolist()) for token in row] for row in task.inputs]
    pairs = [[(token, k) if positions else token for k, token in enumerate(row)] for row in rows]
    assert demand.tokens == len({token for row in pairs for token in row})
    assert demand.questions == (sum(len(set(row)) for row in pairs) if isinstance(task, SeqToSeq) else len(rows))
    coded = positions or task.vectors is not None
    assert demand.coded == coded
    assert 1 <= demand.marked <= max(1, len(rows) - 1) if coded else demand.marked == 0
    worst = worst_demand(task.size, task.kind, positions=positions, grid_bits=demand.grid_bits)
    for field in ("questions", "tokens", "marked", "grid_bits"):
        assert getattr(worst, field) >= getattr(demand, field)


@pytest.mark.parametrize("name", [*EXACT, "dana-2025"])
def test_planned_parameters_grow_with_the_examples(name: str) -> None:
    construction = CONSTRUCTIONS[name]
    size = Size(examples=1, length=5, labels=3, vocab=100)
    plans = [
        construction.plan(replace(size, examples=N), "next-token", construction.settings()).dense
        for N in (1, 2, 3, 10, 100, 1000, 10**4, 10**6, 10**8)
    ]
    assert plans == sorted(plans)
    assert plans[0] > 0


def test_what_has_a_plan_for_any_size_says_so() -> None:
    """The others need more of a task than its size, and cover no setting of the theory."""
    covered = {name: construction.covers for name, construction in CONSTRUCTIONS.items()}
    assert covered == {
        "interpolate": ("next-token", "seq-to-seq"),
        "vardi-2022": ("next-token",),
        "yang-2026": ("next-token",),
        "kajitsuka-sato-2025": ("next-token", "seq-to-seq"),
        "kim-2023": ("next-token", "seq-to-seq"),
        "kajitsuka-sato-2024": ("next-token", "seq-to-seq"),
        "folding": ("next-token", "seq-to-seq"),
        "mahdavi-2024": (),
        "dana-2025": ("next-token",),
        "madden-2024": ("next-token",),
    }
    construction = CONSTRUCTIONS["mahdavi-2024"]
    with pytest.raises(BadInput, match=r"^no plan for next-token tasks of 7 examples$"):
        construction.plan(Size(7, 5, 3, 100), "next-token", construction.settings())


def test_plan_of_by_hand() -> None:
    """A table of 5, then 2·(1 + 1) + 1·(2 + 1) = 7 entries; depth 2 and one for the table; the widest layer has 2."""
    plan = plan_of(
        [("embedding", (("W_E", (5, 1)),)), ("label", TokenwiseShape((("turns", 2, 1), ("answer", 1, 2))))],
        input_width=1,
        extra_depth=1,
    )
    assert dict(plan.tensors) == {
        "embedding.W_E": (5, 1),
        "label.0.turns.W": (2, 1),
        "label.0.turns.b": (2,),
        "label.1.answer.W": (1, 2),
        "label.1.answer.b": (1,),
    }
    assert (plan.dense, plan.embedding, plan.depth, plan.width) == (12, 5, 3, 2)
    assert plan.dense == sum(prod(shape) for _, shape in plan.tensors)


TASK = random_next_token(examples=200, length=3, vocab=60, labels=4, rng=np.random.default_rng(0))
POINTS = random_next_token(examples=200, length=1, vocab=5000, labels=4, rng=np.random.default_rng(0))


def vardi(task: NextToken, **limits: int) -> int | None:
    """Parameters within the limits, which are checked; None where they are refused."""
    chosen = vardi_2022.VardiSettings(**limits)
    try:
        built = build("vardi-2022", task, settings=chosen)
    except BadInput as refusal:
        assert "needs" in str(refusal)  # noqa: PT017
        return None
    assert built.account.depth <= limits.get("depth", 10**9)
    assert built.account.max_bits <= limits.get("bits", 10**9)
    return built.account.dense


@pytest.mark.parametrize("task", [TASK, POINTS], ids=["sequences", "points"])
@pytest.mark.parametrize("limit", ["depth", "bits"])
def test_vardi_respects_limits(task: NextToken, limit: str) -> None:
    """Refused up to some bound, then fewer and fewer parameters down to those without a bound."""
    found = [vardi(task, **{limit: bound}) for bound in [*range(0, 60), 80, 120, 500, 1000]]
    smallest = next(i for i, dense in enumerate(found) if dense is not None)
    assert 0 < smallest < 40
    assert all(dense is None for dense in found[:smallest])
    assert all(dense is not None for dense in found[smallest:])
    assert found[-1] == vardi(task)
    assert found[smallest] > found[-1]


@pytest.mark.slow
@given(st.integers(4, 60), st.integers(10, 60))
@settings(deadline=None, max_examples=40)
def test_vardi_respects_both_limits(depth: int, bound: int) -> None:
    for task in (TASK, POINTS):
        vardi(task, depth=depth, bits=bound)


@pytest.mark.slow
@pytest.mark.parametrize("positions", [False, True])
def test_kajitsuka_sato_respects_bits(positions: bool) -> None:
    """Refused, with the bound in the message, up to some number of bits; from there on kept by every weight."""
    built = []
    for bound in [*range(0, 50), 80, 200]:
        chosen = kajitsuka_sato_2025.KajitsukaSatoSettings(positions=positions, bits=bound)
        try:
            built.append(build("kajitsuka-sato-2025", TASK, settings=chosen).account)
        except BadInput as refusal:
            assert not built
            assert f"bits={bound}" in str(refusal)  # noqa: PT017
        else:
            assert built[-1].max_bits <= bound
    assert 10 < len(built) < 50
    sizes = [account.dense for account in built]
    assert sizes == sorted(sizes, reverse=True)
    free = build(
        "kajitsuka-sato-2025", TASK, settings=kajitsuka_sato_2025.KajitsukaSatoSettings(positions=positions)
    ).account
    assert sizes[0] > sizes[-1] == free.dense
