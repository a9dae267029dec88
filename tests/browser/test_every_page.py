"""Every page, in the light, in the dark and on a phone: it fits, it can be read by all, it asks nothing of anybody.

With BYHEART_SCREENSHOTS=FOLDER pictures of the pages are written there, for those who want to look.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from .reader import PHONE, WIDE, WINDOWS, Reader

pytestmark = pytest.mark.slow
ONE_FILE = ["explorer_page", "demo_page", "lab_page"]
THEMES_OWN = {"landmark-unique", "region"}
"""Rules of axe, of moderate weight, that furo's menu breaks on every page."""


def photographed(reader: Reader, name: str, window: str) -> None:
    if folder := os.environ.get("BYHEART_SCREENSHOTS"):
        reader.photograph(Path(folder).resolve() / f"{name}-{window.replace(' ', '-')}.png")


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", ONE_FILE)
def test_a_page_of_one_file(name: str, window: str, chromium: Any, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue(name).as_uri()
    reader = Reader(chromium, page)
    width, dark = WINDOWS[window]
    reader.look(width, dark=dark)
    photographed(reader, name.removesuffix("_page"), window)
    paper = reader.run("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(26, 26, 26)" if dark else "rgb(255, 255, 255)")
    assert reader.width() <= width
    assert reader.unreadable() == []
    assert reader.barriers() == set()
    assert reader.complaints() == []
    assert reader.requests() == {page}


@pytest.mark.parametrize("window", WINDOWS)
def test_the_front_of_the_site(window: str, chromium: Any, site: Path) -> None:
    reader = Reader(chromium, (site / "index.html").as_uri())
    width, dark = WINDOWS[window]
    reader.look(width, dark=dark)
    photographed(reader, "site", window)
    check_page_of_site(reader, width, site)
    card = reader.run(
        "const card = document.querySelector('article img').parentElement;"
        "const { backgroundColor, padding, borderRadius } = getComputedStyle(card);"
        "return [backgroundColor, parseInt(padding), parseInt(borderRadius)]"
    )
    assert card[0] == "rgb(255, 255, 255)", "pictures are drawn for white paper"
    assert min(card[1:]) > 0


def test_every_other_page_of_the_site(chromium: Any, site: Path) -> None:
    """On a dark phone, where least fits and most colours differ."""
    pages = [page for page in site.rglob("*.html") if page.parent.name not in ("_static", "_modules")]
    pages = [page for page in pages if page.name not in ("index.html", "explorer.html", "genindex.html", "search.html")]
    assert len(pages) > 15
    for page in pages:
        reader = Reader(chromium, page.as_uri())
        reader.look(PHONE, dark=True)
        photographed(reader, f"site-{page.stem}", "dark phone")
        check_page_of_site(reader, PHONE, site)


def check_page_of_site(reader: Reader, width: int, site: Path) -> None:
    assert reader.width() <= width
    assert reader.barriers() <= THEMES_OWN
    assert reader.complaints() == []
    assert [url for url in reader.requests() if not url.startswith(site.as_uri())] == []


def test_a_page_that_is_wrong_is_found(chromium: Any, tmp_path: Path) -> None:
    """By hand: #777 on white has a contrast of 4.5 and #bbb one of 1.9; white is read on black, and not on white."""
    page = tmp_path / "wrong.html"
    page.write_text(
        "<!DOCTYPE html><html><body style='background: #fff'><main style='width: 5000px'>wide <button></button>"
        "<svg width='300' height='90'><rect width='60' height='30'/>"
        "<text x='5' y='20' fill='#fff'>white on black</text>"
        "<text x='150' y='20' fill='#fff'>white on white</text><text x='9' y='60' fill='#777'>grey</text>"
        "<text x='9' y='80' fill='#bbb'>pale</text></svg></main>"
        "<script>console.error('no'); new Image().src = 'http://127.0.0.1:9/a.png'</script></body></html>"
    )
    reader = Reader(chromium, page.as_uri())
    assert reader.width() > WIDE
    assert reader.unreadable() == ["white on white", "pale"]
    assert {"button-name", "html-has-lang"} <= reader.barriers()
    assert any("no" in complaint for complaint in reader.complaints())
    assert reader.requests() == {page.as_uri(), "http://127.0.0.1:9/a.png"}
