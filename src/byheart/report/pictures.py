"""Pictures of a network: its parts with their parameters, and the stream at work on one sequence.

**Parts** are tensors gathered by their purpose.

**The stream** is what a network has at every token, behind every map. A row is a map of the network, a column a token.
Numbers of an exact network come from the plain evaluation (:func:`byheart.networks.exact.reference.trace`). Those of a
compiled network are its own floats: behind every sublayer, what it has written (:func:`trace_floats`). Nothing is
rounded; numbers too long for their box are cut visibly.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from xml.etree import ElementTree

import numpy as np

from byheart.errors import BadInput
from byheart.exhibits import FAINT, INK, QUIET
from byheart.files.writing import write_text
from byheart.networks import Account, Network
from byheart.networks.exact import ExactNetwork
from byheart.networks.exact.reference import trace
from byheart.report.style import canvas, save_picture

if TYPE_CHECKING:  # torch is slow to import
    import torch

    from byheart.networks.transformer.transformer_network import TransformerNetwork

NumberRows: TypeAlias = list[list[int | Fraction]]
"""Numbers of every token: one list per token."""
LONGEST = 32
"""Largest number of characters in a box."""
MOST = 200
"""Largest number of boxes in a picture."""
_NAME, _BOX, _ROW, _GAP, _CHARACTER = 150, 16, 28, 12, 7.3
_STYLE = """text { font: 12px ui-monospace, monospace; fill: #222222 } .name { fill: #555555 }
.page { fill: #ffffff } .box { fill: #eef2fb; stroke: #9aa8c8 } .answer { fill: #dff2e1; stroke: #4c8c55 }
@media (prefers-color-scheme: dark) { text { fill: #ededed } .name { fill: #b5b5b5 }
.page { fill: #1a1a1a } .box { fill: #242c3d; stroke: #5b6b8f } .answer { fill: #1f3a24; stroke: #5fa56a } }"""


def draw_stream(network: Network, sequence: Sequence[int] | np.ndarray, path: Path | str) -> None:
    """Draw a small exact or compiled network at work on one sequence into an SVG; the answers are green."""
    stages, every = _stages(network, np.asarray(sequence))
    if sum(len(rows) for _, rows in stages) > MOST:
        raise BadInput(
            f"{len(stages)} maps of {len(sequence)} tokens; expected at most {MOST} boxes: draw a smaller one"
        )
    write_text(Path(path), picture(stages, every=every))


def _stages(network: Network, sequence: np.ndarray) -> tuple[list[tuple[str, NumberRows]], bool]:
    """Return the named stages to draw, and True if every token has an answer."""
    from byheart.networks.transformer.transformer_network import TransformerNetwork

    if isinstance(network, ExactNetwork):
        return list(trace(network, sequence)), network.outputs == "every"
    if isinstance(network, TransformerNetwork):
        return list(trace_floats(network, sequence.tolist())), True
    raise BadInput(
        f"the network is {network.kind}; expected an exact or a compiled one, whose stream has numbers to be drawn"
    )


def trace_floats(network: "TransformerNetwork", tokens: Sequence[int]) -> Iterator[tuple[str, NumberRows]]:
    """Yield names and numbers: the tokens, the features that each sublayer writes, and the answers.

    An answer is the label with the largest logit; there is one after every token.
    """
    import torch

    spec, ids = network.spec, [int(token) for token in tokens]
    with torch.no_grad():
        logits, (embedded, *streams) = network.module.watched(torch.tensor([ids]))
    yield "input", [[token] for token in ids]
    yield "embedding", _feature_rows(embedded[0], spec.embeds)
    for sublayer, stream in zip(spec.sublayers, streams, strict=True):
        yield sublayer.name, _feature_rows(stream[0], sorted(set(sublayer.writes)))
    yield "answer", [[answer] for answer in logits[0].argmax(-1).tolist()]


def _feature_rows(stream: "torch.Tensor", features: Sequence[int]) -> NumberRows:
    """Return some features of a stream [T, D], token by token."""
    return [[_exact(value) for value in row] for row in stream[:, list(features)].tolist()]


def _exact(value: float) -> int | Fraction:
    """Return the exact value of a float.

    >>> _exact(3.0), _exact(0.75)
    (3, Fraction(3, 4))
    """
    return int(value) if value.is_integer() else Fraction(value)


def picture(stages: Sequence[tuple[str, NumberRows]], *, every: bool) -> str:
    """Return the SVG of named stages, each with the numbers of every token.

    In the last stage the last token is green, or all of them with ``every``.
    """
    texts = [(name, [written(row) for row in rows]) for name, rows in stages]
    columns = max(len(row) for _, row in texts)
    box = _BOX + _CHARACTER * max(len(text) for _, row in texts for text in row)
    width, height = _NAME + columns * (box + _GAP), _ROW * len(texts) + _GAP
    svg = ElementTree.Element("svg", _numbers(width=width, height=height) | {"xmlns": "http://www.w3.org/2000/svg"})
    svg.attrib |= {"viewBox": f"0 0 {width:g} {height:g}", "role": "img"}
    ElementTree.SubElement(svg, "title").text = f"The stream behind {len(texts) - 1} maps"
    ElementTree.SubElement(svg, "style").text = _STYLE
    ElementTree.SubElement(svg, "rect", _numbers(width=width, height=height) | {"class": "page"})
    for y, (name, row) in enumerate(texts):
        _text(svg, _GAP, _ROW * y, name, "name")
        for x, text in enumerate(row):
            answer = y == len(texts) - 1 and (every or x == len(row) - 1)
            left = _NAME + x * (box + _GAP)
            place = _numbers(x=left, y=_ROW * y + 6, width=box, height=_ROW - 6, rx=4)
            ElementTree.SubElement(svg, "rect", place | {"class": "answer" if answer else "box"})
            _text(svg, left + _BOX / 2, _ROW * y, text)
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


def written(numbers: Sequence[int | Fraction]) -> str:
    """Return numbers with commas between them; if not all have room, the rest are cut and the text says how many.

    >>> written([3, -1, Fraction(1, 2)]), written([10**40])
    ('3, -1, 1/2', '100000…000000 (41 digits)')
    >>> written(range(100, 200))
    '100, 101, 102, 103, … (100)'
    """
    texts = [
        str(z) if len(str(z)) <= 20 else f"{str(z)[:6]}…{str(z)[-6:]} ({len(str(abs(z)))} digits)" for z in numbers
    ]
    whole = ", ".join(texts)
    if len(whole) <= LONGEST:
        return whole
    end = f", … ({len(texts)})"
    kept = texts[:1]
    while len(", ".join([*kept, texts[len(kept)]])) + len(end) <= LONGEST - 1:
        kept.append(texts[len(kept)])
    return ", ".join(kept) + end if len(texts) > 1 else whole


def _text(svg: ElementTree.Element, x: float, top: float, text: str, kind: str = "") -> None:
    named = {"class": kind} if kind else {}
    ElementTree.SubElement(svg, "text", _numbers(x=x, y=top + _ROW - 7) | named).text = text


def _numbers(**values: float) -> dict[str, str]:
    return {name: f"{value:g}" for name, value in values.items()}


WORDS = "words of the table"
_PARTS = {
    "embedding": "codes of the tokens",
    "hash": "hash of the window",
    "reduce": "hash of the window",
    "digits": "where to read",
    "shard": "where to read",
    "lots": "where to read",
    "start": "where to read",
    "scales": "where to read",
    "squares": "where to read",
    "table": "rows of the table",
    "select": "columns of the table",
    "unembedding": "codes of the labels",
}


def parts_of(network: Network) -> dict[str, Account]:
    """Return the accounts of the parts in the order of the network; a compiled network's are named by purpose."""
    account = network.account
    if "recipe" in network.about:
        account = replace(account, items=tuple(replace(item, part=_part(item.name)) for item in account.items))
    return account.parts()


def _part(name: str) -> str:
    """Return the purpose of a tensor of a compiled network."""
    if name.startswith("table.W_out"):
        return WORDS
    return _PARTS.get(name.split(".", maxsplit=1)[0].split("_", maxsplit=1)[0], "reading the bits")


def draw_parts(parts: Mapping[str, Account], title: str, path: Path) -> None:
    """Draw a bar for the whole network with its largest part named, and below it all other parts, magnified."""
    sizes = sorted(((part.dense, name) for name, part in parts.items()), reverse=True)
    (largest, largest_name), *rest = sizes
    total = sum(size for size, _ in sizes)
    picture, (axes,) = canvas(path, height=1.9 + 0.32 * len(rest))
    axes.barh([0], [largest], color="#b3123f", height=0.7)
    axes.barh([0], [total - largest], left=[largest], color=FAINT, height=0.7)
    share = f"{largest_name}: {largest:,} of {total:,} parameters"
    axes.text(0, -0.68, share, va="center", color="#b3123f", fontsize=10)
    most = max((size for size, _ in rest), default=1)
    for index, (size, name) in enumerate(rest):
        width = size / most * total * 0.45
        axes.barh([index + 1.4], [width], color="#1f5fa8", height=0.6)
        axes.text(width + total * 0.01, index + 1.4, f"{size:,}  {name}", va="center", color=INK, fontsize=9)
    axes.text(0, 0.72, f"the other {total - largest:,}, magnified:", color=QUIET, fontsize=9, va="center")
    axes.invert_yaxis()
    axes.set_axis_off()
    axes.set_title(title, loc="left", fontsize=11, color=INK, pad=12)
    save_picture(picture, path)
