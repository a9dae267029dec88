"""Compiled loops are kept where that is possible, and run where it is not."""

from pathlib import Path

import pytest
from numba.core import caching

import byheart
from byheart.compiled import jit


def test_where_nothing_can_be_kept_it_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(x: int) -> int:
        return 2 * x

    def refused(*_: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    assert jit(twice).stats.cache_path is not None
    monkeypatch.setattr(caching.FunctionCache, "__init__", refused)
    assert jit(twice)(21) == 42


def test_nobody_else_compiles() -> None:
    """Whoever called numba's decorator itself would fail where nothing can be kept."""
    source = Path(byheart.__file__).parent
    found = [path.name for path in source.rglob("*.py") if "njit" in path.read_text(encoding="utf-8")]
    assert found == ["compiled.py"]
