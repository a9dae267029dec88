"""Constant width as the theorems have it, and depth for width: certified, planned, and refused where it cannot be."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import controls, judge
from byheart.constructions import CONSTRUCTIONS, build
from byheart.errors import BadInput
from byheart.sizes import Size
from byheart.tasks import NextToken, SeqToSeq, random_next_token, random_seq_to_seq

NARROW = ("vardi-2022", "kajitsuka-sato-2025", "kim-2023")


def task_of(kind: str, **sizes: Any) -> NextToken | SeqToSeq:
    make = {"next-token": random_next_token, "seq-to-seq": random_seq_to_seq}[kind]
    return make(**{"length": 3, "vocab": 30, "labels": 5, "rng": np.random.default_rng(0)} | sizes)


@pytest.mark.parametrize("dim", [None, 2], ids=["ids", "vectors"])
@pytest.mark.parametrize("kind", ["next-token", "seq-to-seq"])
@pytest.mark.parametrize("name", NARROW)
def test_four_units_are_enough(name: str, kind: str, dim: int | None) -> None:
    """Whatever is asked, with positions or without; the default is wider, and smaller."""
    construction = CONSTRUCTIONS[name]
    if kind not in construction.covers:
        return
    task = task_of(kind, examples=25, dim=dim)
    for flags in ({}, {"positions": True}) if "positions" in construction.settings.__dataclass_fields__ else ({},):
        narrow, wide = (build(name, task, width=width, **flags) for width in ("constant", "free"))
        assert narrow.account.width == max(4, task.size.length * (dim or 1) if name == "vardi-2022" else 0)
        assert wide.account.width > 2 * narrow.account.width
        assert wide.account.dense < narrow.account.dense
        assert wide.account.depth < narrow.account.depth
        assert judge(narrow.network, task).certified
        planned = construction.plan(task.size, kind, construction.settings(width="constant", **flags))
        assert planned.width == narrow.account.width


@st.composite
def tasks(draw: st.DrawFn) -> NextToken | SeqToSeq:
    vocab = draw(st.integers(2, 30))
    return task_of(
        draw(st.sampled_from(["next-token", "seq-to-seq"])),
        examples=draw(st.integers(1, min(30, vocab))),
        length=draw(st.integers(1, 5)),
        vocab=vocab,
        labels=draw(st.sampled_from([1, 2, 10, 256])),
        dim=draw(st.none() | st.integers(2, 3)),
        rng=np.random.default_rng(draw(st.integers(0, 2**32))),
    )


@pytest.mark.slow
@given(tasks(), st.booleans())
@settings(deadline=None, max_examples=60)
def test_any_task_at_constant_width(task: NextToken | SeqToSeq, positions: bool) -> None:
    for name in NARROW:
        construction = CONSTRUCTIONS[name]
        if task.kind in construction.covers:
            flags = {} if name == "vardi-2022" else {"positions": positions}
            built = build(name, task, width="constant", **flags)  # the plan is compared with the network in there
            assert built.account.width <= max(4, task.size.length * (task.size.dim or 1))
            assert judge(built.network, task).certified


@pytest.mark.parametrize("name", NARROW)
def test_lies_about_narrow_networks_are_found(name: str) -> None:
    task = task_of("next-token", examples=30)
    for control in controls(build(name, task, width="constant").network, task, np.random.default_rng(1)):
        assert control.found, control.detail


def test_causal_networks_have_constant_width() -> None:
    task = SeqToSeq(tokens=[[0, 1, 2], [3, 1, 1], [4, 4, 0]], labels=[[1, 0, 2], [0, 0, 1], [2, 1, 0]])
    built = build("kim-2023", task, causal=True, width="constant")
    assert built.account.width == 4
    assert judge(built.network, task).certified


@pytest.mark.parametrize("examples", [10**2, 10**3, 10**4, 10**5, 10**6])
@pytest.mark.parametrize("kind", ["next-token", "seq-to-seq"])
def test_planned_width_does_not_grow(kind: str, examples: int) -> None:
    """Nor does depth, nor do parameters, beyond the square root of the questions, up to a logarithm."""
    size = Size(examples=examples, length=8, labels=2, vocab=1000)
    questions = examples * (8 if kind == "seq-to-seq" else 1)
    for name in NARROW:
        if kind in CONSTRUCTIONS[name].covers:
            plan = CONSTRUCTIONS[name].plan(size, kind, CONSTRUCTIONS[name].settings(width="constant"))
            assert plan.width == (8 if name == "vardi-2022" else 4)
            assert plan.depth < 7 * (questions * np.log2(questions)) ** 0.5
            assert plan.dense - plan.embedding < 60 * (questions * np.log2(questions)) ** 0.5


def test_a_word_that_is_no_width() -> None:
    with pytest.raises(BadInput, match=r"^width is 'narrow'; expected one of free, constant$"):
        build("vardi-2022", task_of("next-token", examples=3), width="narrow")


@pytest.mark.parametrize("name", ["vardi-2022", "kajitsuka-sato-2025"])
def test_constant_width_and_depth_exclude_each_other(name: str) -> None:
    with pytest.raises(BadInput, match=r"^depth is 500 and width is constant; expected one of the two"):
        build(name, task_of("next-token", examples=3), width="constant", depth=500)


# Depth for width.


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("kind", ["next-token", "seq-to-seq"])
def test_kajitsuka_sato_respects_depth(kind: str, positions: bool) -> None:
    """From what there must be at least to what is free: fewer and fewer parameters, all certified."""
    task = task_of(kind, examples=80, vocab=200, labels=3)
    free = build("kajitsuka-sato-2025", task, positions=positions).account
    with pytest.raises(BadInput, match=r"^this task needs at least \d+ layers; got depth=1$") as refusal:
        build("kajitsuka-sato-2025", task, positions=positions, depth=1)
    least = int(str(refusal.value).split("at least ")[1].split()[0])
    with pytest.raises(BadInput, match=rf"^this task needs at least {least} layers; got depth={least - 1}$"):
        build("kajitsuka-sato-2025", task, positions=positions, depth=least - 1)
    dense = []
    for depth in np.linspace(least, free.depth, 7).astype(int).tolist():
        built = build("kajitsuka-sato-2025", task, positions=positions, depth=depth)
        assert built.account.depth <= depth
        assert judge(built.network, task).certified
        dense.append(built.account.dense)
    assert dense[-1] == free.dense == min(dense)
    assert dense[0] == max(dense) > free.dense


def test_depth_with_vectors() -> None:
    task = task_of("seq-to-seq", examples=40, vocab=200, dim=2)
    free = build("kajitsuka-sato-2025", task).account
    with pytest.raises(BadInput, match=r"^this task needs at least \d+ layers; got depth=1$") as refusal:
        build("kajitsuka-sato-2025", task, depth=1)
    least = int(str(refusal.value).split("at least ")[1].split()[0])
    for depth in (least, (least + free.depth) // 2):
        built = build("kajitsuka-sato-2025", task, depth=depth)
        assert built.account.depth <= depth
        assert built.account.dense > free.dense
        assert judge(built.network, task).certified


def test_depth_takes_parameters_like_its_inverse() -> None:
    """Õ(N/L): at N = 10⁵, L times the parameters over N stays within a factor of four while L goes up by eight."""
    construction = CONSTRUCTIONS["kajitsuka-sato-2025"]
    size = Size(examples=10**5, length=32, labels=2, vocab=1000)
    products = []
    for depth in (60, 120, 240, 480):
        plan = construction.plan(size, "next-token", construction.settings(depth=depth))
        assert plan.depth <= depth
        products.append((plan.dense - plan.embedding) * depth)
    assert max(products) < 4 * min(products)
