import pytest

from byheart.errors import BadInput
from byheart.lab.published import REPETITIONS, published


@pytest.mark.parametrize(("name", "rows"), [("dana_2025_1", 35), ("dana_2025_2", 10)])
def test_tables_are_whole(name: str, rows: int) -> None:
    found = published(name)
    assert len(found) == rows
    assert all(0 < row["last_accuracy"] <= 1 for row in found)
    assert REPETITIONS[name] == 5


def test_where_both_tables_meet_they_agree_up_to_noise() -> None:
    """d = d_h = 10: H = 20 in the second table lies between H = 16 and 21 of the first."""
    first = {row["heads"]: row["last_accuracy"] for row in published("dana_2025_1") if row["model_dim"] == 10}
    second = {row["head_dim"]: row["last_accuracy"] for row in published("dana_2025_2")}
    assert first[16] < second[10] < first[21]


def test_an_unknown_table() -> None:
    with pytest.raises(BadInput, match="'mahdavi'; expected one of dana_2025_1"):
        published("mahdavi")
