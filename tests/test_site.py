"""The site is built without warnings, and asks nothing of any other host."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="the extra docs is not installed")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(ROOT / "docs"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    pages = [page for page in tmp_path.rglob("*.html") if page.parent.name != "_static"]
    assert {"index.html", "theory.html", "theorems.html", "cli.html"} <= {page.name for page in pages}
    assert "usage: byheart lab save" in (tmp_path / "cli.html").read_text(encoding="utf-8")
    assert "A network that recites" in (tmp_path / "explorer.html").read_text(encoding="utf-8")
    for page in pages:
        html = page.read_text(encoding="utf-8")
        assert loaded_from_elsewhere(html) == []
        assert 'role="heading">' not in html, "a heading without a level"


def loaded_from_elsewhere(html: str) -> list[str]:
    """Scripts, styles and pictures of other hosts; links that a reader may follow are none of them."""
    return re.findall(r'<(?:script|img|iframe|link)[^>]*(?:src|href)="((?:https?:)?//[^"]+)"', html)


def test_what_is_loaded_from_elsewhere_is_found() -> None:
    assert loaded_from_elsewhere('<script src="https://x.org/a.js"></script><a href="https://x.org">x</a>') == [
        "https://x.org/a.js"
    ]
