"""All points of the paper, each of a network that the lab's experiments train."""

import pytest

from byheart.errors import BadInput
from byheart.papers.dana_2025 import NAMES, configs_of
from byheart.papers.dana_2025.dana_claims import published, published_beside, published_names, settings_of


def test_all_points_of_the_paper_are_there() -> None:
    assert published_names() == [f"dana-2025-{name}" for name in NAMES]
    assert sum(len(published(name)) for name in published_names()) == 239


@pytest.mark.parametrize("name", NAMES)
def test_points_are_of_the_experiments_networks_trained_as_long_and_as_often(name: str) -> None:
    points, configs = published(f"dana-2025-{name}"), configs_of(name)
    assert all(0 < point["last_accuracy"] <= 1 for point in points)
    assert {settings_of(point) for point in points} == {settings_of(vars(config)) for config in configs}
    assert {point["steps"] for point in points} == {config.steps for config in configs}
    assert {point["runs"] for point in points} == {len({config.seed for config in configs})}


def test_where_two_experiments_meet_they_agree_up_to_noise() -> None:
    """d = d_h = 10: H = 20 in experiments 2 and 3 lies between H = 16 and 21 of the first."""
    first = {point["heads"]: point["last_accuracy"] for point in published("dana-2025-1") if point["model_dim"] == 10}
    for name in ("dana-2025-2", "dana-2025-3"):
        (same,) = (p["last_accuracy"] for p in published(name) if p["model_dim"] == p["head_dim"] == 10)
        assert first[16] < same < first[21]


def test_points_stand_beside_rows_of_the_same_network_only() -> None:
    row = {"experiment": "1", "vocab": 50, "model_dim": 10, "head_dim": 10, "heads": 21, "hidden": None, "layers": 1}
    (point,) = published_beside([row, row])
    assert point["last_accuracy"] == pytest.approx(0.8, abs=0.1)
    assert published_beside([row | {"experiment": 1}]) == [point], "a table's cell may have been read as a number"
    for change in ({"experiment": "3"}, {"vocab": 70}, {"heads": 20}, {"layers": 3}, {"hidden": 0}, {"head_dim": 9}):
        assert published_beside([row | change]) == []


def test_what_is_given_out_is_not_the_table_itself() -> None:
    published("dana-2025-2")[0]["last_accuracy"] = 2.0
    assert published("dana-2025-2")[0]["last_accuracy"] < 1


def test_an_unknown_experiment() -> None:
    with pytest.raises(BadInput, match="no numbers of 'mahdavi' were published; expected one of dana-2025-1, "):
        published("mahdavi")
