"""The page: well formed, self-contained, and as honest with odd values as with plain ones."""

import re
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.exhibits import DataTable, Lead
from byheart.papers.dana_2025.dana_page import sweep_figure
from byheart.report.drawing import draw
from byheart.report.page import (
    MOST_ROWS,
    Checked,
    HtmlPage,
    Picture,
    Section,
    html_of,
    picture_of,
    write_page,
)
from byheart.report.svg import inline

EMPTY = {"meta", "br", "path", "use", "rect", "line", "circle"}


def dana(heads: int, seed: int = 0) -> dict[str, Any]:
    """A row of results, as Dana's experiments have it."""
    sizes = {"experiment": "1", "vocab": 50, "model_dim": 10, "head_dim": 10, "heads": heads, "hidden": None}
    measured = {"accuracy": 0.02 * heads, "last_accuracy": 0.02 * heads + 0.03}
    return {**sizes, **measured, "layers": 1, "seed": seed, "lower_bound": 0.1, "previous_bound": 0.09}


class Reader(HTMLParser):
    """Which elements are there, whether they are closed, and what they are called."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href") and value]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())


@pytest.fixture(scope="module")
def text() -> str:
    rows = [dana(heads=H, seed=s) for H in (1, 6) for s in (0, 1)]
    drawn = picture_of(partial(draw, sweep_figure(rows, "heads")), "Accuracy & heads <with bounds>")
    lead = Lead("A paper & its authors", "How many?", ["Seven.", "Not <eight>."])
    about = {"scale": "smoke", "models": 4}
    return html_of(HtmlPage("A run", lead, [drawn, drawn], [DataTable("Results", rows)], about, "A note."))


def test_every_element_is_closed_and_every_name_is_given_once(text: str) -> None:
    found = Reader(text)
    assert found.open == []
    assert len(set(found.ids)) == len(found.ids)
    assert {"svg", "table", "style", "figcaption"} <= set(found.tags)
    assert found.tags.count("svg") == 4, "each wide and narrow"


def test_nothing_comes_from_elsewhere(text: str) -> None:
    found = Reader(text)
    assert "script" not in found.tags
    assert "link" not in found.tags
    assert "http" not in text
    assert "@import" not in text
    targets = {link.removeprefix("#") for link in found.links}
    assert all(link.startswith("#") for link in found.links)
    assert targets <= set(found.ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(found.ids)


def test_a_page_says_first_which_paper_which_question_and_what_came_out(text: str) -> None:
    words = [word for word in Reader(text.partition("<body>")[2].partition("</body>")[0]).words if word]
    said = [
        "A run",
        "Paper",
        "A paper & its authors",
        "Question",
        "How many?",
        "What came out",
        "Seven.",
        "Not <eight>.",
    ]
    assert words[: len(said)] == said
    assert "Paper" not in html_of(HtmlPage("Mine"))


def test_figures_follow_the_page_into_the_dark(text: str) -> None:
    light, _, dark = text.partition("</style>")[0].rpartition("@media (prefers-color-scheme: dark)")
    used = set(re.findall(r"var\((--[0-9a-f]{6})\)", text.partition("<body>")[2]))
    assert "--222222" in used
    assert used <= set(re.findall(r"(--[0-9a-f]{6}): #", light)) & set(re.findall(r"(--[0-9a-f]{6}): #", dark))
    assert not re.search(r"#[0-9a-f]{6}\b", text.partition("<body>")[2]), "no colour is fixed"


def test_narrow_windows_get_a_figure_that_fits_them(text: str) -> None:
    """390 pixels, less the margins: letters of 8.5 points are not made smaller than 8.5 pixels."""
    wide, narrow = (float(number) for number in re.findall(r'<svg width="([0-9.]+)pt"', text)[:2])
    assert narrow < 365 < wide
    assert "max-width: 800px" in text


def test_words_are_words_and_markup_is_not_taken_from_them(text: str) -> None:
    assert "Accuracy &amp; heads &lt;with bounds&gt;" in text
    assert "H, heads" in Reader(text).words, "the text of a figure is text"
    lead = Lead("<b>", "<b>", ["<b>"])
    odd = HtmlPage(
        "<b>", lead, [], [DataTable("<b>", [{"<b>": "<b>"}])], {"<b>": "<b>"}, "<b>", [("<b>", "<b>", ["<b>"])]
    )
    assert "<b>" not in html_of(odd)


def test_values_of_all_kinds() -> None:
    row = {
        "none": None,
        "flag": True,
        "many": 12345,
        "share": 0.123456,
        "mean": 22816.5,
        "tiny": 1.5e-7,
        "name": "a",
        "list": [1, 2],
    }
    said = html_of(HtmlPage("t", tables=[DataTable("Results", [row, {"other": 1}])]))
    for cell in (
        "<td>–</td>",
        "<td>true</td>",
        '"n">12,345<',
        '"n">0.1235<',
        '"n">22,816<',
        '"n">1.5e-07<',
        "<td>a</td>",
        "<td>[1, 2]</td>",
    ):
        assert cell in said
    assert said.count("<th") - said.count("<thead") == 9


def test_long_tables_are_cut_and_say_so() -> None:
    said = html_of(HtmlPage("t", tables=[DataTable("Results", [{"x": k} for k in range(MOST_ROWS + 5)])]))
    assert "and 5 more rows" in said
    assert said.count("<tr>") == MOST_ROWS + 1


def test_the_same_rows_make_the_same_page() -> None:
    rows = [dana(heads=H) for H in (1, 6)]
    first, second = (picture_of(partial(draw, sweep_figure(rows, "heads")), "A") for _ in range(2))
    assert inline(first.wide, "", "") == inline(second.wide, "", "")
    assert inline(first.narrow, "", "") == inline(second.narrow, "", "") != inline(first.wide, "", "")


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"p\.txt: expected the name of a page"):
        write_page(tmp_path / "p.txt", "")
    with pytest.raises(BadInput, match="folder does not exist"):
        write_page(tmp_path / "missing" / "p.html", "")
    with pytest.raises(BadInput, match="is not an SVG"):
        html_of(HtmlPage("t", pictures=[Picture("nothing", "nothing", "")]))


def test_a_page_leads_to_others() -> None:
    found = Reader(html_of(HtmlPage("All", pages=[("one", "one/index.html", ["It works."])])))
    assert found.links == ["one/index.html"]
    assert {"one", "It works."} <= set(found.words)


def test_sections_have_everything_and_are_listed_first() -> None:
    drawn = Picture(*2 * ['<svg><path id="a" style="fill: #ff0000"/></svg>'], "A caption")
    checked = Checked(
        "certified: 2 of 2", "byheart certify net --task 'a b' --recheck", "net/certificate.json", ["A lie."]
    )
    one = Section(
        "One <1>", "Two & two.", 1.25, ["byheart x --a b"], ["Words."], " as\n  it is", certificates=[checked]
    )
    two = Section(
        "Two", "Four.", pictures=[drawn], tables=[DataTable("T", [{"a": 1}])], links=[("there", "there.html")]
    )
    text = html_of(HtmlPage("P", pictures=[drawn], sections=[one, two]))
    found = Reader(text)
    assert found.open == []
    assert len(set(found.ids)) == len(found.ids)
    assert {"s1", "s2", "w0-a", "n0-a", "w1-a", "n1-a"} <= set(found.ids), "no two pictures share their names"
    assert found.links[:2] == ["#s1", "#s2"]
    assert {"net/certificate.json", "there.html"} <= set(found.links)
    assert text.index("Two &amp; two.") < text.index('<h2 id="s1">1. One &lt;1&gt; <span class="seconds">1.2 s</span>')
    assert "<pre>\n as\n  it is</pre>" in text
    assert "<pre><span>byheart</span> <span>x</span> <span>--a</span> <span>b</span>\n</pre>" in text


def test_what_has_no_fill_is_seen_in_the_dark(text: str) -> None:
    assert "height: auto; fill: var(--000000); }" in text
    assert "--000000: #ffffff" in text


def test_columns_of_numbers_are_aligned_from_their_names_to_what_is_missing() -> None:
    """By hand: ``a`` has a number and a gap, ``b`` a word among its values, ``c`` nothing at all."""
    text = html_of(
        HtmlPage("", tables=[DataTable("T", [{"a": 1, "b": "x", "c": None}, {"a": None, "b": 2, "c": None}])])
    )
    assert '<tr><th class="n">a</th><th>b</th><th>c</th></tr>' in text
    assert '<tr><td class="n">1</td><td>x</td><td>–</td></tr>' in text
    assert '<tr><td class="n">–</td><td class="n">2</td><td>–</td></tr>' in text
    assert "<tr></tr>" in html_of(HtmlPage("", tables=[DataTable("Empty", [])]))
