"""Numbers come out of a column as they went in, and as narrow as they are; so do tasks out of lines of JSON."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.files import memory
from byheart.tasks import load, task_files
from byheart.tasks.task_files import Column

ROWS = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 300), max_size=4), max_size=8)


@given(ROWS)
def test_integers_come_back(rows):
    column = Column(real=False)
    for row in rows:
        column.add(row, depth=1)
    assert column.joined().tolist() == [number for row in rows for number in row]


@pytest.mark.parametrize("portion", [1, 3, 100])
def test_as_wide_as_the_widest(monkeypatch, portion):
    """By hand, in portions of which one needs more room than the others, or a sign."""
    monkeypatch.setattr(task_files, "PORTION", portion)
    for numbers, dtype in (([1, 2, 255], "uint8"), ([1, 256, 2], "uint16"), ([2**40, 1], "uint64"), ([], "int64")):
        column = Column(real=False)
        column.add(numbers, depth=1)
        assert column.joined().dtype == dtype
    signed = Column(real=False)
    for number in (2**63 - 1, -1, 7):
        signed.add(number, depth=0)
    found = signed.joined()
    assert (found.dtype, found.tolist()) == (np.int64, [2**63 - 1, -1, 7])
    real = Column(real=True)
    real.add([[1, 0.5], [-0.0, 2**53]], depth=2)
    assert real.joined().tolist() == [1.0, 0.5, 0.0, 2.0**53]


def test_memory_is_asked_for(monkeypatch):
    column = Column(real=False)
    column.add([1] * 1000, depth=1)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    monkeypatch.setattr(memory, "MIN_MAPPED_BYTES", 0)
    monkeypatch.setattr(memory, "_disk_space", lambda: 0)
    with pytest.raises(BadInput, match="an array would take"):
        column.joined()


def test_lines_leave_numbers_and_nothing_else(tmp_path, monkeypatch):
    """3,000 examples of 9 numbers of 8 bits, and the lines as numbers of 64; twice that while they are joined."""
    monkeypatch.setattr(task_files, "PORTION", 1000)
    path = tmp_path / "t.jsonl"
    path.write_text('{"tokens": [1, 2, 3, 4, 5, 6, 7, 8], "label": 9}\n' * 3000)
    load(path, narrow=True)
    tracemalloc.start()
    try:
        task = load(path, narrow=True)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert task.size.examples == 3000
    assert most < 3000 * 2 * (9 + 8) + (1 << 16)
