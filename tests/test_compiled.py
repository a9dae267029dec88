"""Compiled loops are kept where that is possible, and run where it is not."""

import importlib
import sys
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


def test_what_calls_changed_code_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, by the name of a module, and by way of another: or a proof would go on with checks of before."""
    head = "from byheart.compiled import jit\n"
    files = {
        "inner": "@jit\ndef inside(x):\n    return x + {}\n",
        "middle": "import inner\n@jit\ndef between(x):\n    return inner.inside(x)\n",
        "outer": "from middle import between\n@jit\ndef outside(x):\n    return between(x)\n",
    }
    monkeypatch.syspath_prepend(tmp_path)

    def answer(number: int) -> int:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(head + text.format(number), encoding="utf-8")
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        found: int = importlib.import_module("outer").outside(1)
        return found

    assert answer(1) == 2
    assert answer(1) == 2
    assert importlib.import_module("outer").outside.stats.cache_hits, "what has not changed is kept"
    assert answer(1000) == 1001
