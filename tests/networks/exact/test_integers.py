import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.networks.account import item
from byheart.networks.exact import integers


def test_integers_of_any_size_and_origin_become_python_ints():
    mixed = integers([[np.int8(-3), 2**200], [np.uint64(2**64 - 1), 0]])
    assert mixed.tolist() == [[-3, 2**200], [2**64 - 1, 0]]
    assert {type(value) for value in mixed.ravel()} == {int}
    machine = integers(np.array([[1, -(2**63)]]))
    assert machine.tolist() == [[1, -(2**63)]]
    assert {type(value) for value in machine.ravel()} == {int}


def test_shape_is_row_by_row_whatever_the_memory_order():
    square = np.asfortranarray([[1, 2, 3], [4, 5, 6]])
    assert integers(square).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert integers(range(6), (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_result_is_a_read_only_copy():
    source = np.array([1, 2], dtype=object)
    result = integers(source)
    source[0] = 99
    assert result.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 3


@pytest.mark.parametrize("bad", [0.5, 1.0, True, np.True_, "1", None, np.float64(2)])
def test_what_is_no_integer_is_refused_with_its_place(bad):
    values = np.array([7, 0, 0], dtype=object)
    values[2] = bad
    with pytest.raises(BadInput) as caught:
        integers(values)
    found = f"entry 2 of an exact matrix is {bad!r} ({type(bad).__name__})"
    assert str(caught.value) == f"{found}; expected an integer"


def test_ragged_rows_are_refused():
    with pytest.raises(BadInput, match=r"entry 0 of an exact matrix is \[1, 2\] \(list\)"):
        integers([[1, 2], [3]])


@given(st.integers(-(2**80), 2**80))
def test_bits_hold_the_magnitude_and_a_sign(value):
    """k bits in sign and magnitude hold -(2^(k-1) - 1) to 2^(k-1) - 1, and no fewer bits do."""
    k = item("W", integers([value]), None, "part").max_bits
    assert abs(value) <= 2 ** (k - 1) - 1
    assert k == 1 or abs(value) > 2 ** (k - 2) - 1
