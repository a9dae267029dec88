"""Yang & Yang 2026: any width and depth with w²L² large enough; certified, planned, refused with the numbers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import controls, judge
from byheart.constructions import build, yang_2026
from byheart.constructions.gadgets.selecting import Chain, Squares
from byheart.constructions.yang_2026 import YangSettings, plan, worst_demand
from byheart.errors import BadInput
from byheart.networks.exact import FeedForward
from byheart.sizes import Size
from byheart.tasks import NextToken, random_next_token

POINTS = random_next_token(examples=300, length=1, vocab=90_000, labels=3, rng=np.random.default_rng(0))
LARGE = Size(examples=10_000, length=1, labels=2, vocab=10**8)


def test_four_points_by_hand() -> None:
    """Keys 0 to 3, width 8: a single square of two rows and two columns, no slots.

    C = 2, P = 3, top = 2: the words are 8·(8 − κ) with κ = 2z + y = 0, 3, 4, 7. There is nothing to unpack.
    """
    task = NextToken(tokens=[[0], [1], [2], [3]], labels=[0, 1, 0, 1])
    assert yang_2026.demand(task, YangSettings(width=8)).stage.selection == Chain(3)
    stage = yang_2026.shallowest(4, 2, 3, Squares(2))
    front = yang_2026.PointFront(task.size, grid_bits=2, direct=True)
    made = yang_2026.points.build(task, front, stage, np.random.default_rng(0))
    (label,) = made.network.layers
    assert isinstance(label, FeedForward)
    assert [layer.role for layer in label.layers] == ["rows", "columns", "picks", "read", "answer"]
    picks = label.layers[2]
    v = 8 * 9
    assert picks.W.tolist() == [[0, 1, 0, 0, 0, 0], [0, 0, 64, 32, -v, v], [0, 0, 40, 8, v, -v]]
    assert picks.b.tolist() == [0, 0, -v]
    assert judge(made.network, task).certified


@pytest.mark.parametrize("width", [4, 5, 6, 7, 8, 11, 14, 20, 40, 100, 1000])
def test_the_shallowest_of_a_width(width: int) -> None:
    built = build("yang-2026", POINTS, width=width)
    assert built.account.width <= width
    assert judge(built.network, POINTS).certified


@pytest.mark.parametrize("depth", [3, 4, 5, 6, 8, 12, 20, 40, 100, 1000])
def test_the_narrowest_of_a_depth(depth: int) -> None:
    built = build("yang-2026", POINTS, depth=depth)
    assert built.account.depth <= depth
    assert judge(built.network, POINTS).certified
    if built.account.width > 4:
        with pytest.raises(BadInput, match="are too small for 300 points"):
            build("yang-2026", POINTS, depth=depth, width=built.account.width - 1)


def test_depth_falls_as_width_grows_and_the_other_way_round() -> None:
    depths = [plan(worst_demand(LARGE, YangSettings(width=width))).depth for width in range(4, 60, 5)]
    assert depths == sorted(depths, reverse=True)
    widths = [plan(worst_demand(LARGE, YangSettings(depth=depth))).width for depth in (3, 5, 6, 10, 30, 100, 300)]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("width", [5, 8, 14, 26, 50, 98])
def test_width_and_depth_squared_are_of_order_n(width: int) -> None:
    """w²L² between 30 and 80 times N log₂N."""
    shape = plan(worst_demand(LARGE, YangSettings(width=width)))
    assert 30 < (shape.width * shape.depth) ** 2 / (LARGE.examples * math.log2(LARGE.examples)) < 80


def test_balanced_by_default() -> None:
    """Neither can be smaller than the larger of the two is."""
    shape = plan(worst_demand(LARGE, YangSettings()))
    larger = max(shape.width, shape.depth)
    with pytest.raises(BadInput, match="too small"):
        worst_demand(LARGE, YangSettings(width=larger - 1, depth=larger - 1))
    assert abs(shape.width - shape.depth) < 0.2 * larger
    built = build("yang-2026", POINTS)
    assert judge(built.network, POINTS).certified


def test_too_small_is_refused_with_the_numbers() -> None:
    """And with either of the numbers that it names, it is built."""
    with pytest.raises(BadInput) as refusal:
        build("yang-2026", POINTS, width=8, depth=20)
    said = str(refusal.value)
    assert said.startswith("width 8 and depth 20, w²L² = 25,600, are too small for 300 points: width 8 takes depth ")
    depth, width = (
        int(said.split(what)[1].split(",", maxsplit=1)[0]) for what in ("width 8 takes depth ", "depth 20 takes width ")
    )
    assert build("yang-2026", POINTS, width=8, depth=depth).account.depth == depth
    assert build("yang-2026", POINTS, width=width, depth=20).account.width == width
    for less in ({"width": 8, "depth": depth - 1}, {"width": width - 1, "depth": 20}):
        with pytest.raises(BadInput, match="are too small"):
            build("yang-2026", POINTS, **less)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"width": 3}, r"^width is 3; expected at least 4$"),
        ({"width": -1}, r"^width is -1; expected at least 4$"),
        ({"depth": 2}, r"^depth is 2; expected at least 3 for 300 points$"),
        ({"depth": 0, "width": 50}, r"^depth is 0; expected at least 3 for 300 points$"),
    ],
)
def test_what_no_points_can_have(given: dict[str, int], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        build("yang-2026", POINTS, **given)


@given(
    length=st.integers(1, 4),
    dim=st.none() | st.integers(1, 3),
    labels=st.sampled_from([1, 2, 10, 256]),
    examples=st.integers(1, 30),
    width=st.none() | st.integers(4, 60),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=25)
def test_any_points_are_memorized(
    length: int, dim: int | None, labels: int, examples: int, width: int | None, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    task = random_next_token(examples=examples, length=length, vocab=40, labels=labels, dim=dim, rng=rng)
    built = build("yang-2026", task, width=width)  # the plan is compared with the network in there
    assert judge(built.network, task).certified
    hidden = max(outputs for _, outputs, _ in yang_2026.demand(task, YangSettings(width=width)).stage.shape.layers)
    assert width is None or hidden <= width


def test_lies_are_found() -> None:
    for control in controls(build("yang-2026", POINTS, width=11).network, POINTS, np.random.default_rng(0)):
        assert control.found, control.detail
