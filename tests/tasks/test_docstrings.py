"""Documentation strings, in order, of what is not skipped; and the script that writes them down."""

import json
import runpy
from itertools import islice
from pathlib import Path

import pytest

from byheart.tasks.shipped import library_docstrings

SCRIPT = Path(__file__).parents[2] / "examples" / "docstrings.py"


def test_modules_by_path_and_strings_by_line(tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text(
        '"""B,\n   the module."""\nclass C:\n    """C."""\n    def f(self):\n        """f."""\n'
    )
    (tmp_path / "a.py").write_text("def f():\n    return 'no documentation'\n")
    for folder in ("package", "test", "package/tests"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("'''In a folder.'''\nasync def f(): '''Too.'''\n")
    assert list(library_docstrings(tmp_path)) == [["B,\nthe module.", "C.", "f."], ["In a folder.", "Too."]]


@pytest.mark.slow
def test_the_library_says_the_same_each_time() -> None:
    first, again = (list(islice(library_docstrings(), 20)) for _ in range(2))
    assert first == again
    assert all(text for found in first for text in found)


def test_the_script_separates_modules_by_form_feeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one package of the library, which all of it takes six seconds to read."""
    library = Path(json.__file__).parent
    monkeypatch.setattr("sysconfig.get_path", {"stdlib": str(library)}.__getitem__)
    runpy.run_path(str(SCRIPT))["main"](str(tmp_path / "docs.txt"))
    texts = (tmp_path / "docs.txt").read_text(encoding="utf-8").split("\f")
    assert len(texts) > 3
    assert texts == ["\n\n".join(found) for found in library_docstrings(library)]
