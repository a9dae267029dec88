"""What takes too long is given up, and what raises raises."""

import time

import pytest

from byheart.errors import BadInput
from byheart.files import patience
from byheart.files.patience import Patience


def test_all_that_was_asked_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a second for any text and as much for each letter: 0.3 s for two texts of one letter, by hand."""
    monkeypatch.setattr(patience, "SECONDS", 0.1)
    monkeypatch.setattr(patience, "PER_LETTER", 0.1)
    one = Patience()
    assert one.wait(lambda: time.sleep(0.15), 1) is None
    with pytest.raises(BadInput, match="for 2 letters and was not ready; expected one without slow"):
        one.wait(lambda: time.sleep(0.5), 1)
    assert Patience().wait(lambda: 7, 0) == 7


def test_errors_are_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        Patience().wait(lambda: 1 // 0, 0)
