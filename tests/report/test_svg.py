"""Pictures in pages: names of their own, and colours that can be told from a light page and from a dark one."""

import pytest

from byheart.errors import BadInput
from byheart.exhibits import FAINT, INK, QUIET, RAMP, colours
from byheart.report.svg import in_the_dark, inline, palette

SVG = (
    '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    '<metadata>written by x</metadata><defs><clipPath id="c"><rect/></clipPath></defs>'
    '<path clip-path="url(#c)" style="fill: none; stroke: #ff0000; stroke-width: 2"/><use xlink:href="#c"/></svg>'
)


def test_names_get_a_prefix_and_colours_become_variables() -> None:
    text, used = inline(SVG, "f1-", 'A "picture" & more')
    assert 'id="f1-c"' in text
    assert 'href="#f1-c"' in text
    assert "url(#f1-c)" in text
    assert "stroke: var(--ff0000); stroke-width: 2" in text
    assert "xmlns" not in text
    assert "metadata" not in text
    assert 'aria-label="A &quot;picture&quot; &amp; more"' in text
    assert used == {"#ff0000", "#000000"}


def test_what_is_not_an_svg_is_refused() -> None:
    with pytest.raises(BadInput, match="the picture is not an SVG"):
        inline("nothing", "", "")


def contrast(first: str, second: str) -> float:
    """As the guidelines for accessible pages define it, from 1 to 21."""

    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", [INK, QUIET, *RAMP, *colours(11), "#1f5fa8"])
def test_letters_and_curves_stand_out_in_the_dark(colour: str) -> None:
    assert contrast(in_the_dark(colour), in_the_dark("#ffffff")) > 4.5


@pytest.mark.parametrize("colour", [FAINT, "#e6e6e6"])
def test_what_is_faint_stays_faint(colour: str) -> None:
    dark = contrast(in_the_dark(colour), in_the_dark("#ffffff"))
    assert 1.1 < dark < 4.5


def test_a_palette_has_every_colour_once() -> None:
    assert [name for name, *_ in palette(["#ff0000", "#000000", "#ff0000"])] == ["--000000", "--ff0000"]
