"""SVG files as matplotlib writes them, made elements of a page: names of their own, and colours that follow the page.

A page has one set of names and of styles. So every name in a picture (clip paths, markers) gets a prefix of its own,
and every colour becomes a variable of the page, --rrggbb, which has one value in the light and one in the dark:
:func:`in_the_dark`.
"""

import colorsys
from collections.abc import Iterable
from xml.etree import ElementTree

from byheart.errors import BadInput

BLACK = "#000000"
DARKEST = 0.102
"""Lightness of the dark page, which white becomes."""


def inline(svg: str, prefix: str, label: str) -> tuple[str, set[str]]:
    """An SVG file as an element of a page, and the colours in it: no prolog, metadata or name spaces.

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
    """For each colour its variable, its value in the light, and that in the dark.

    >>> palette(["#ffffff"])
    [('--ffffff', '#ffffff', '#1a1a1a')]
    """
    return [(_variable(colour), colour, in_the_dark(colour)) for colour in sorted(set(colours))]


def in_the_dark(colour: str) -> str:
    """The colour of the same hue that stands out from a dark page as this one does from a white one.

    >>> in_the_dark("#222222"), in_the_dark("#1f3f8f")
    ('#ededed', '#9db3ea')
    """
    hue, lightness, saturation = colorsys.rgb_to_hls(*(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)))
    mirrored = 1 - (1 - DARKEST) * lightness**1.25  # the middle a little lighter: dark pages swallow contrast
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, mirrored, saturation))


def _plain(name: str) -> str:
    """A name without its name space."""
    return name.rsplit("}", maxsplit=1)[-1]


def _own(name: str, value: str, prefix: str, colours: set[str]) -> str:
    """An attribute's value with names prefixed and colours as variables, which are noted."""
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
