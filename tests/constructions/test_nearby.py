"""Constructions that read vectors as (r, δ)-separated reals: counts, radii, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import certify
from byheart.constructions import build, find
from byheart.constructions.gadgets.nearby import parameters
from byheart.errors import BadInput
from byheart.sizes import Size
from byheart.tasks import NextToken, SeqToSeq, random_next_token, random_seq_to_seq, separation

RNG = np.random.default_rng(0)
NEXT = random_next_token(examples=40, length=5, vocab=25, labels=3, dim=4, rng=RNG)
SEQ = random_seq_to_seq(examples=15, length=5, vocab=25, labels=3, dim=4, rng=RNG)
ALL = ("kajitsuka-sato-2025", "interpolate", "vardi-2022")


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(ALL),
    st.booleans(),
    st.sampled_from([None, 1e-4, 0.125, 0.45]),
    st.tuples(st.integers(1, 12), st.integers(1, 4), st.integers(1, 5)),
)
def test_every_shape_is_certified_with_its_radius(
    seed: int, name: str, flag: bool, share: float | None, sizes: tuple[int, int, int]
) -> None:
    N, n, d = sizes
    rng = np.random.default_rng(seed)
    several = flag and name != "vardi-2022"
    draw = random_seq_to_seq if several else random_next_token
    task = draw(examples=N, length=n, vocab=None, labels=3, dim=d, rng=rng)
    delta = min(separation(task).delta, 1e9)
    radius = None if share is None else share * delta
    more = {"positions": bool(seed % 2)} if name != "vardi-2022" else {}
    built = build(name, task, read="cells", radius=radius, seed=seed % 1000, **more)
    certificate = certify(built, task)
    assert certificate.certified
    assert certificate.radius is not None
    assert certificate.radius >= (radius or 0)
    assert 0 < certificate.radius < delta / 2 or N == 1


@pytest.mark.parametrize("name", ALL)
def test_no_bit_of_the_floats_has_a_say(name: str) -> None:
    """Rotated, scaled, moved by one bit, with a coordinate of 1e-200: the same r/δ, so the same tensors."""
    assert NEXT.vectors is not None
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    tiny = NEXT.vectors.copy()
    tiny[tiny == tiny[3, 2, 1]] = 1e-200
    one_bit = NEXT.vectors.copy()
    one_bit[one_bit == one_bit[3, 2, 1]] *= 1 + 2.0**-52
    shapes = set()
    for vectors in (NEXT.vectors, NEXT.vectors @ turn, NEXT.vectors * 2.0**-300, tiny, one_bit):
        task = NextToken(vectors=vectors, labels=NEXT.labels, label_count=3)
        built = build(name, task, read="cells")
        assert certify(built, task).certified
        shapes.add(tuple((item.name, item.shape) for item in built.account.items))
    assert len(shapes) == 1
    on_grid = [build(name, NextToken(vectors=v, labels=NEXT.labels)).account.dense for v in (NEXT.vectors, tiny)]
    assert on_grid[1] > 2 * on_grid[0], "what the grid costs"


def test_the_count_grows_with_the_ratio() -> None:
    """Ten bits more of r/δ are ten layers more a direction: 30 and 20 parameters a bit."""
    assert SEQ.vectors is not None
    far = SEQ.vectors.copy()
    far[far == far[0, 0, 0]] *= 2.0**10 * separation(SEQ).r / abs(far[0, 0, 0])
    built = [
        build("kajitsuka-sato-2025", task, read="cells") for task in (SEQ, SeqToSeq(vectors=far, labels=SEQ.labels))
    ]
    fronts = [one.account.parts()["projection"].dense for one in built]
    assert fronts[1] - fronts[0] in (9 * 50, 10 * 50, 11 * 50)


@pytest.mark.parametrize("task", [NEXT, SEQ], ids=["next-token", "seq-to-seq"])
@pytest.mark.parametrize("positions", [False, True])
def test_an_eighth_of_the_separation(task: NextToken | SeqToSeq, positions: bool) -> None:
    radius = separation(task).delta / 8
    built = build("kajitsuka-sato-2025", task, read="cells", radius=radius, positions=positions)
    certificate = certify(built, task)
    assert certificate.certified
    assert certificate.radius == radius


@pytest.mark.parametrize("task", [NEXT, SEQ], ids=["next-token", "seq-to-seq"])
def test_cells_go_with_every_other_setting(task: NextToken | SeqToSeq) -> None:
    """As the theorem has it: constant width, 5. A limit on the depth counts the cells' layers too."""
    for given_settings in ({"width": "constant"}, {"mixing": "sum"}, {"depth": 60}):
        built = build("kajitsuka-sato-2025", task, read="cells", **given_settings)
        certificate = certify(built, task)
        assert certificate.certified
        assert certificate.radius == built.chosen["radius"]
        assert built.account.width <= 5 or "width" not in given_settings
        assert built.account.depth <= given_settings.get("depth", built.account.depth)
    with pytest.raises(BadInput, match="this task needs at least"):
        build("kajitsuka-sato-2025", task, read="cells", depth=25)


def test_a_radius_may_be_a_whole_number() -> None:
    task = NextToken(vectors=[[[0.0, 0.0]], [[0.0, 9.0]], [[9.0, 0.0]]], labels=[0, 1, 2])
    certificate = certify(build("vardi-2022", task, read="cells", radius=4), task)
    assert certificate.certified
    assert certificate.radius == 4


def test_a_larger_radius_costs_more() -> None:
    task = random_next_token(examples=60, length=1, vocab=None, labels=2, dim=8, rng=np.random.default_rng(0))
    delta = separation(task).delta
    sizes = [build("vardi-2022", task, read="cells", radius=s * delta).account.dense for s in (1e-5, 1e-3, 0.1, 0.49)]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 2


def test_small_radii_take_cells_and_large_ones_indicators() -> None:
    delta = separation(SEQ).delta
    small, large = (build("kajitsuka-sato-2025", SEQ, read="cells", radius=s * delta) for s in (1e-6, 0.4))
    assert "cells" in small.chosen
    assert "balls" in large.chosen
    assert small.account.dense <= build("kajitsuka-sato-2025", SEQ, read="cells").account.dense


def test_planned_by_sizes() -> None:
    """Where nothing is known of the vectors they are taken for standard-normal ones."""
    for name in ALL:
        entry = find(name)
        plans = [
            entry.plan(Size(examples=100, length=4, labels=3, vocab=50, dim=8), "next-token", entry.settings(read=read))
            for read in ("grid", "cells")
        ]
        assert plans[0].dense != plans[1].dense
        assert any("cell" in tensor for tensor, _ in plans[1].tensors)
        ids = entry.plan(Size(examples=100, length=4, labels=3, vocab=50), "next-token", entry.settings(read="cells"))
        assert not any("cell" in tensor for tensor, _ in ids.tensors)


def test_fewest_is_fewest() -> None:
    """What is never looked at would not have been smaller."""
    from byheart.constructions.gadgets import indicators, nearby

    points = nearby.points_of("test", SEQ, positions=False)
    for share in (1e-4, 0.1, 0.4):
        for reader in indicators.find_balls(points, share * points.delta, np.random.default_rng(0)):
            assert parameters(reader.front) >= indicators.fewest(points)


@pytest.mark.parametrize("name", ALL)
class TestRefusals:
    def test_half_the_separation(self, name: str) -> None:
        delta = separation(NEXT).delta
        for radius in (delta / 2, delta, 1e6):
            with pytest.raises(BadInput, match=rf"^radius is {radius!r}; the tokens are δ = {delta!r} apart"):
                build(name, NEXT, read="cells", radius=radius)
        assert certify(build(name, NEXT, read="cells", radius=0.4999 * delta), NEXT).certified

    @pytest.mark.parametrize("radius", [0.0, -1.0, float("nan"), float("inf"), 10**400, "far"])
    def test_no_distance(self, name: str, radius: object) -> None:
        with pytest.raises(BadInput, match=r"^radius is .*; expected a positive number$"):
            build(name, NEXT, read="cells", radius=radius)

    def test_a_radius_of_a_network_that_reads_floats(self, name: str) -> None:
        with pytest.raises(BadInput, match="a radius is for read=cells"):
            build(name, NEXT, radius=0.1)

    def test_token_ids(self, name: str) -> None:
        task = random_next_token(examples=5, length=3, vocab=6, labels=2, rng=np.random.default_rng(0))
        with pytest.raises(
            BadInput, match=f"^{name}: read=cells is about vectors that may move; the task has token ids$"
        ):
            build(name, task, read="cells")

    def test_another_word(self, name: str) -> None:
        with pytest.raises(BadInput, match=r"^read is 'balls'; expected one of grid, cells$"):
            build(name, NEXT, read="balls")

    def test_tokens_that_no_float_tells_apart(self, name: str) -> None:
        task = NextToken(vectors=[[[0.0]], [[5e-324]]], labels=[0, 1])
        with pytest.raises(BadInput, match=r"^tokens are δ = 5e-324 apart; no float is so small a radius"):
            build(name, task, read="cells")

    def test_tokens_beyond_the_floats(self, name: str) -> None:
        task = NextToken(vectors=[[[1.7e308, 1.7e308]], [[0.0, 0.0]]], labels=[0, 1])
        with pytest.raises(BadInput, match="farther from 0 than the largest float"):
            build(name, task, read="cells")


def test_a_single_point_of_several_tokens() -> None:
    task = NextToken(vectors=[[[0.0], [1.0], [5.0]]], labels=[2])
    certificate = certify(build("vardi-2022", task, read="cells", radius=0.4), task)
    assert certificate.certified
    assert certificate.radius is not None
    assert certificate.radius >= 0.4


@pytest.mark.parametrize("name", ALL)
def test_a_single_token(name: str) -> None:
    """Nothing is near it, so any radius can be had."""
    for vector in ([0.0, 0.0], [3.0, 4.0]):
        task = NextToken(vectors=[[vector]], labels=[1])
        for radius in (None, 1000.0):
            certificate = certify(build(name, task, read="cells", radius=radius), task)
            assert certificate.certified
            assert certificate.radius is not None
            assert certificate.radius >= (radius or 0)
