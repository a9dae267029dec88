"""Turn SVG files, as matplotlib writes them, into elements of a page with unique names and with the page's colours.

A page has one set of names and styles. So every name in a picture (clip paths, markers) gets the picture's prefix, and
every colour becomes a variable of the page, --rrggbb, with one value for a light page and one for a dark page
(:func:`in_the_dark`).
"""

import colorsys
from collections.abc import Iterable
from xml.etree import ElementTree

from byheart.errors import BadInput

BLACK = "#000000"
DARKEST = 0.102
"""Lightness of a dark page: white becomes this."""


def inline(svg: str, prefix: str, label: str) -> tuple[str, set[str]]:
    """Return an SVG file as an element of a page, without prolog, metadata and name spaces, and the colours in it.

    >>> inline('<svg width="9"><path id="a" style="fill: #ff0000"/><use href="#a"/></svg>', "f0-", "A")[0]
    '<svg width="9" role="img" aria-label="A"><path id="f0-a" style="fill: var(--ff0000)" /><use href="#f0-a" /></svg>'
    """
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise BadInput(f"the picture is not an SVG ({error}); expected one to embed in the page") from error
    colours = {BLACK}  # what has no fill is black
    for parent in root.iter():
        for child in [child for child in parent if _plain(child.tag) == "metadata"]:
            parent.remove(child)
        parent.tag = _plain(parent.tag)
        attributes = {_plain(name): value for name, value in parent.attrib.items()}
        parent.attrib.clear()
        parent.attrib |= {name: _own(name, value, prefix, colours) for name, value in attributes.items()}
    root.attrib |= {"role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode"), colours


def palette(colours: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return for each colour its variable, its value on a light page, and its value on a dark page."""
    return [(_variable(colour), colour, in_the_dark(colour)) for colour in sorted(set(colours))]


def in_the_dark(colour: str) -> str:
    """Return the colour of the same hue that stands out from a dark page as ``colour`` does from a white one."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)))
    mirrored = 1 - (1 - DARKEST) * lightness**1.25  # the middle a little lighter: dark pages swallow contrast
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, mirrored, saturation))


def _plain(name: str) -> str:
    """Return a name without its name space."""
    return name.rsplit("}", maxsplit=1)[-1]


def _own(name: str, value: str, prefix: str, colours: set[str]) -> str:
    """Return an attribute's value with names prefixed and colours as variables, and add these to ``colours``."""
    if name == "id":
        return prefix + value
    if name == "href":
        return value.replace("#", f"#{prefix}", 1)
    if name == "style":
        pairs = (part.partition(":") for part in value.split(";") if part.strip())
        return "; ".join(f"{key.strip()}: {_coloured(text.strip(), colours)}" for key, _, text in pairs)
    return value.replace("url(#", f"url(#{prefix}")


def _coloured(text: str, colours: set[str]) -> str:
    if not text.startswith("#"):
        return text
    colours.add(text)
    return f"var({_variable(text)})"


def _variable(colour: str) -> str:
    return f"--{colour.removeprefix('#')}"
