"""Measure the trade-off of width, depth, bits and parameters: at constant width, of yang-2026, and on one task.

    python benchmarks/tradeoff.py all_shapes --examples 10000 --plot tradeoff.png

runs one section alone, and draws it. All sections take ten minutes, most of them for N = 100,000.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from checking import certified, judged
from tables import OUT, parser, table

from byheart.bounds import yang_2026
from byheart.certificates import Certificate
from byheart.constructions import build, find
from byheart.constructions.construction import flags
from byheart.errors import BadInput
from byheart.exhibits import FAINT, INK, QUIET
from byheart.networks import Account
from byheart.report.style import canvas, colours, save_picture
from byheart.tasks import NextToken, SeqToSeq, random_next_token, random_seq_to_seq

WIDTHS = (5, 8, 14, 26, 50, 98)
"""Widths of yang-2026, besides its default."""
HALVINGS = 4
"""Number of times that the depth of kajitsuka-sato-2025 is halved."""
BITS = 100
"""Limit on the bits of a weight of kajitsuka-sato-2025."""
MARKERS = {"kajitsuka-sato-2025": "o", "vardi-2022": "s", "yang-2026": "D", "folding": "^"}


@dataclass(frozen=True)
class Shaped:
    """A network of one shape, built and certified: the construction, its flags and its size."""

    construction: str
    flags: str
    account: Account
    certificate: Certificate

    @property
    def width(self) -> int:
        """Width w of the widest layer."""
        return self.account.width

    @property
    def depth(self) -> int:
        """Number L of layers."""
        return self.account.depth

    @property
    def parameters(self) -> int:
        """Number of parameters without the embedding table."""
        return self.account.dense - self.account.embedding

    @property
    def width_depth(self) -> int:
        """Product w²L²."""
        return (self.width * self.depth) ** 2


def trade_off(task: NextToken) -> list[Shaped]:
    """Build and certify networks of many shapes for a task, widest first. Leave out shapes that are refused."""
    rows = []
    for name, settings in shapes_to_build(task):
        try:
            built = build(name, task, **settings)
        except BadInput:  # for example, too few layers
            continue
        certificate, _ = certified(built, task)
        rows.append(Shaped(name, flags(settings), built.account, certificate))
    return sorted(rows, key=lambda shaped: (-shaped.width, shaped.depth))


def shapes_to_build(task: NextToken) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield constructions with their settings. Depths are halved from the depth of the smallest network."""
    transformer, points = "kajitsuka-sato-2025", "vardi-2022"
    free = find(transformer).plan(task.size, "next-token", find(transformer).settings()).depth
    yield from ((transformer, settings) for settings in ({}, {"width": "constant"}, {"bits": BITS}))
    yield from ((transformer, {"depth": free >> half}) for half in range(1, HALVINGS + 1))
    yield from ((points, settings) for settings in ({}, {"width": "constant"}))
    yield from (("yang-2026", settings) for settings in ({}, *({"width": width} for width in WIDTHS)))
    yield "folding", {}


def orders(task: NextToken) -> tuple[float, float]:
    """Return the arguments of Yang & Yang's Ω(·) and O(·) for w²L²: N divided by, and times, log(r/δ).

    The task's ids are taken as points. Ids below ω are at least δ = 1 apart, n of them within r = √n·(ω − 1).

    >>> task = NextToken(tokens=[[0, 3], [3, 1], [2, 2], [1, 1]], labels=[0, 1, 0, 1])
    >>> [round(order, 2) for order in orders(task)]
    [2.77, 5.78]
    """
    size = task.size
    radius = max(2.0, math.sqrt(size.length) * (size.vocab - 1))
    # At depth 1 the bounds on w²L are those on w²L².
    bounds = (yang_2026.needed, yang_2026.sufficient)
    low, high = (bound(size.examples, radius, 1.0, depth=1) for bound in bounds)
    return low, high


def draw_trade_off(rows: list[Shaped], task: NextToken, path: Path) -> None:
    """Draw width against depth, with lines of equal w²L², and parameters against depth, on logarithmic axes."""
    picture, (left, right) = canvas(path, columns=2, width=11.4, height=5.0)
    deepest = 3 * max(shaped.depth for shaped in rows)
    for name, marker in MARKERS.items():
        for axes, key in ((left, "width"), (right, "parameters")):
            _draw(axes, [shaped for shaped in rows if shaped.construction == name], key, marker)
    for axes, title, label in (
        (left, "Width for depth", "w, units of the widest layer"),
        (right, "Parameters for depth", "parameters, without embedding table"),
    ):
        axes.set(xscale="log", yscale="log", xlim=(2, deepest))
        axes.set_xlabel("L, layers", color=INK)
        axes.set_ylabel(label, color=INK)
        axes.set_title(title, fontsize=10, color=INK, loc="left")
    left.set_ylim(bottom=2)
    _equal_products(left, task, deepest)
    right.legend(*left.get_legend_handles_labels(), frameon=False, fontsize=8.5, loc="lower left")
    size = task.size
    title = f"N = {size.examples:,} sequences memorized, n = {size.length}, C = {size.labels}: networks of every shape"
    picture.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK)
    save_picture(picture, path)


def _draw(axes: Any, rows: list[Shaped], key: str, marker: str) -> None:
    """Draw one construction: a line through the shapes that trade width for depth, and flags beside the others."""
    rows = sorted(rows, key=lambda shaped: shaped.depth)
    name, colour = rows[0].construction, colours()[rows[0].construction]
    # Open where another construction may have the same shape.
    style = {"marker": marker, "color": colour, "markersize": 7, "markerfacecolor": "none" if marker == "s" else colour}
    points = [(shaped.depth, getattr(shaped, key)) for shaped in rows]
    axes.plot(*zip(*points, strict=True), linestyle="none", label=name, **style)
    line = [point for point, shaped in zip(points, rows, strict=True) if "constant" not in shaped.flags]
    axes.plot(*zip(*line, strict=True), color=colour, linewidth=1.2)
    if name == "kajitsuka-sato-2025":
        for point, shaped in zip(points, rows, strict=True):
            below = key == "parameters" or "bits" in shaped.flags
            place = {"xytext": (-7, -4) if below else (7, 4), "ha": "right" if below else "left", "va": "center"}
            text = shaped.flags or "default"
            axes.annotate(text, point, textcoords="offset points", color=colour, fontsize=7, **place)


def _equal_products(axes: Any, task: NextToken, deepest: int) -> None:
    """Draw lines of equal w²L² where Yang & Yang's bounds lie. They have no constants, so only the slope counts."""
    for order, name in zip(orders(task), ("Ω(N / log(r/δ)): needed", "O(N log(r/δ)): enough"), strict=True):
        product, depths = math.sqrt(order), (1, deepest)
        axes.plot(depths, [product / L for L in depths], color=FAINT, linestyle=(0, (5, 3)), linewidth=1.2)
        at = 2.2
        turned = {"rotation": math.degrees(math.atan2(-product / at, at)), "transform_rotates_text": True}
        place = {"rotation_mode": "anchor", "va": "bottom", "fontsize": 7.5, "clip_on": True}
        axes.text(at, product / at, f"w²L² = {name}", color=QUIET, **turned, **place)
    axes.plot([], [], color=FAINT, linestyle=(0, (5, 3)), linewidth=1.2, label="Yang & Yang 2026, slope only")


def points(examples: int) -> NextToken:
    """Draw integer keys below N², with one bit each."""
    return random_next_token(examples=examples, length=1, vocab=examples**2, labels=2, rng=np.random.default_rng(0))


def sequences(examples: int, length: int) -> NextToken:
    """Draw random sequences, with one bit each."""
    return random_next_token(examples=examples, length=length, vocab=1000, labels=2, rng=np.random.default_rng(0))


def labelled(tokens: int) -> SeqToSeq:
    """Draw random sequences of ten tokens, with one bit per token."""
    rng = np.random.default_rng(0)
    return random_seq_to_seq(examples=tokens // 10, length=10, vocab=1000, labels=2, rng=rng)


def constant_width(options: argparse.Namespace) -> None:
    """Divide depth and parameters at constant width by √(K log₂K), for K questions."""
    rows = table(
        "Constant width (--width constant), C = 2, token ids",
        *("theorem", "questions", "width", "depth", "÷ √(K log₂K)", "most bits", "parameters", "÷ √(K log₂K)"),
        "certified",
    )
    most = 100 if options.tiny else options.most
    cases: tuple[tuple[str, Callable[[int], Any], int], ...] = (
        ("vardi-2022", points, most),
        ("kajitsuka-sato-2025", lambda N: sequences(N, 32), most),
        ("kajitsuka-sato-2025", labelled, most),
        ("kim-2023", labelled, most // 10),
    )
    for name, make, largest in cases:
        for K in (10**power for power in range(2, len(str(largest)))):
            task = make(K)
            built = build(name, task, width="constant")
            account, unit = built.account, math.sqrt(K * math.log2(K))
            parameters = account.dense - account.embedding
            rows.add_row(
                f"{name}, {task.kind}", f"{K:,}", str(account.width), f"{account.depth:,}",
                f"{account.depth / unit:.2f}", f"{account.max_bits:,}", f"{parameters:,}", f"{parameters / unit:.1f}",
                judged(built, task),
            )  # fmt: skip
    OUT.print(rows, "")


def shapes(options: argparse.Namespace) -> None:
    """Divide yang-2026's w²L² by N log₂N, from narrow and deep to wide and shallow."""
    N = 100 if options.tiny else options.examples
    task = points(N)
    rows = table(
        f"Any width and depth (yang-2026), N = {N:,} points, C = 2",
        *("settings", "width", "depth", "w²L²", "÷ N log₂N", "most bits", "parameters", "certified"),
    )
    widths = ({"width": width} for width in (4, 5, 8, 14, 26, 50, 98, 200))
    depths = ({"depth": depth} for depth in (300, 100, 30, 10, 5))
    for given in ({}, *widths, *depths):
        built = build("yang-2026", task, **given)
        account = built.account
        product = (account.width * account.depth) ** 2
        rows.add_row(
            flags(given) or "balanced", str(account.width),
            f"{account.depth:,}", f"{product:,}", f"{product / (N * math.log2(N)):.1f}", f"{account.max_bits:,}",
            f"{account.dense:,}", judged(built, task),
        )  # fmt: skip
    OUT.print(rows, "")


def all_shapes(options: argparse.Namespace) -> None:
    """Build all constructions of Õ(√N) parameters on one task, from wide to deep."""
    N = 60 if options.tiny else options.examples
    task = sequences(N, 2)
    low, high = orders(task)
    rows = table(
        f"Width × depth × bits × parameters: N = {N:,} sequences of 2 tokens, ω = 1,000, C = 2",
        *("construction", "width", "depth", "w²L²", "÷ N log(r/δ)", "most bits", "parameters", "certified"),
    )
    networks = trade_off(task)
    for shaped in networks:
        certificate = shaped.certificate
        rows.add_row(
            f"{shaped.construction} {shaped.flags}", f"{shaped.width:,}", f"{shaped.depth:,}",
            f"{shaped.width_depth:.2e}", f"{shaped.width_depth / high:,.1f}", f"{shaped.account.max_bits:,}",
            f"{shaped.parameters:,}", f"{certificate.checked:,}" if certificate.certified else "NO",
        )  # fmt: skip
    OUT.print(rows, f"Yang & Yang 2026, order only: w²L² = Ω({low:,.0f}) is needed, O({high:,.0f}) suffices.", "")
    if options.plot is not None:
        draw_trade_off(networks, task, options.plot)
        OUT.print(f"drew {options.plot}")


SECTIONS: tuple[Callable[[argparse.Namespace], None], ...] = (constant_width, shapes, all_shapes)

if __name__ == "__main__":
    arguments = parser(__doc__, SECTIONS)
    arguments.add_argument("--examples", type=int, default=10_000, help="N of all but the first section")
    arguments.add_argument("--most", type=int, default=100_000, help="largest number of questions of the first section")
    arguments.add_argument("--plot", type=Path, help="draw all shapes into this file")
    chosen = arguments.parse_args()
    for section in SECTIONS:
        if not chosen.sections or section.__name__ in chosen.sections:
            section(chosen)
