"""Map of heads and examples: the largest attention weight of every head on every example, and its picture.

Mahdavi, Liao & Thrampoulidis 2024 call a head *saturated* on an example if one token gets nearly all of its weight:
more than 0.99. Such a head tells examples apart only by which token that is; one that is not *holds* the example.
Their proof gives each of the H heads r − 1 examples to hold and saturates it on all others: blocks on the diagonal.

Weights are float64, up to the rounding of :func:`byheart.networks.softmax.attention`, and may fall on either side of
the threshold within it. Not checked: whether the answers are right. A head that is not saturated need not be necessary.
"""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.exhibits import FAINT, INK, QUIET
from byheart.networks import Network
from byheart.networks.softmax import Inputs, SoftmaxNetwork, attention, embedded
from byheart.report.style import canvas, save_picture
from byheart.tasks.arrays import Floats, Ids

MAX_ENTRIES = 1 << 24
"""Entries of the largest array in memory at a time."""
THRESHOLD = 0.99
"""Largest weight above which a head counts as saturated: the paper's, and that of :mod:`byheart.lab`."""

PALE = "#eceef0"
MARGIN = "#6f8fb5"
RAMP = ("#4a0519", "#b3123f", "#f0884a", "#fbd28f")
"""Colours from weights that are spread out to a head that is nearly saturated."""
SATURATED_END: dict[str, Any] = {"extend": "max", "extendrect": True, "extendfrac": 0.2}
NAMED = 40
"""Largest number of heads at which each has its number written beside it."""
FINE = 1000
"""Largest number of examples at which each has its own column."""
WRITTEN = 8
"""Largest number of heads, and of examples, at which the weights themselves are written into the map."""


@dataclass(frozen=True, eq=False)
class Saturation:
    """The largest weights of H heads on N examples of n tokens."""

    largest: Floats
    """Largest of the n weights, at least 1/n: [H, N]."""
    token: Ids
    """Position of the token with the largest weight, the first of equals: [H, N]."""
    length: int
    """Number of tokens of a context, n."""
    threshold: float = THRESHOLD

    @property
    def saturated(self) -> npt.NDArray[np.bool_]:
        """True where the head is saturated on the example: [H, N]."""
        return self.largest > self.threshold

    @property
    def share(self) -> float:
        """Share of (head, example) pairs that are saturated."""
        return float(self.saturated.mean())

    @property
    def held(self) -> Ids:
        """Number of examples that each head holds, that is, is not saturated on: [H]."""
        return np.asarray((~self.saturated).sum(axis=1), np.int64)

    @property
    def holders(self) -> Ids:
        """Number of heads that hold each example: [N]."""
        return np.asarray((~self.saturated).sum(axis=0), np.int64)

    @property
    def saturated_heads(self) -> Ids:
        """Number of examples on which 0, 1, …, H heads are saturated: [H + 1]."""
        return np.bincount(self.saturated.sum(axis=0), minlength=len(self.largest) + 1)


def saturation_of(network: Network, inputs: Inputs, *, threshold: float = THRESHOLD) -> Saturation:
    """Return the largest weight of every head on every example, and the token that has it.

    Inputs are token ids int64 [N, n] and None, or contexts float64 [N, n, d] and queries float64 [N, d].
    """
    if not isinstance(network, SoftmaxNetwork):
        raise BadInput(f"only softmax networks have heads to show, and this is {network.title}; omit --task")
    if not 0 < threshold < 1:
        raise BadInput(f"threshold is {threshold}; expected 0 < threshold < 1, a weight (the paper's: {THRESHOLD})")
    sequences, queries = inputs
    if not len(sequences):
        raise BadInput("there are no examples; expected at least one")
    network.check_inputs(inputs)
    H, d, _ = network.W_Q.shape
    largest, token = np.empty((H, len(sequences))), np.empty((H, len(sequences)), np.int64)
    each = max(1, MAX_ENTRIES // (sequences.shape[1] * max(H, d) + H * d))
    for start in range(0, len(sequences), each):
        chosen = slice(start, start + each)
        vectors, queried = embedded(network, (sequences[chosen], None if queries is None else queries[chosen]))
        weights = attention(network, vectors, queried)
        largest[:, chosen], token[:, chosen] = weights.max(axis=2).T, weights.argmax(axis=2).T
    return Saturation(largest, token, sequences.shape[1], threshold)


def caption(saturation: Saturation) -> str:
    r"""Return what the picture shows, in two sentences.

    >>> largest = np.array([[1.0, 0.5, 1.0], [0.6, 0.7, 1.0]])
    >>> print(caption(Saturation(largest, np.zeros((2, 3), np.int64), 2)).replace(". ", ".\n"))
    2 heads, 3 examples of 2 tokens: 3 of the 6 pairs (50 %) are saturated.
    A head holds 1 to 2 examples (median 1.5); an example is held by 0 to 2 heads (median 1), 1 by none.
    """
    H, N = saturation.largest.shape
    sizes = f"{_many(H, 'head')}, {_many(N, 'example')} of {_many(saturation.length, 'token')}"
    share = f"{int(saturation.saturated.sum()):,} of the {H * N:,} pairs ({100 * saturation.share:.3g} %) are saturated"
    if saturation.saturated.all():
        return f"{sizes}: {share}. No head holds an example."
    held, holders = _range(saturation.held, "example"), _range(saturation.holders, "head")
    none = int((saturation.holders == 0).sum())
    by_none = f", {none:,} by none" if none else ""
    return f"{sizes}: {share}. A head holds {held}; an example is held by {holders}{by_none}."


def _many(count: int, name: str) -> str:
    return f"{count:,} {name}" + "s" * (count != 1)


def _range(counts: Ids, name: str) -> str:
    low, high = int(counts.min()), int(counts.max())
    return _many(low, name) if low == high else f"{low:,} to {high:,} {name}s (median {np.median(counts):,.4g})"


def draw_saturation(saturation: Saturation, title: str, path: Path) -> None:
    """Draw a map of heads × examples, strong colour where a head holds an example, and how many each head holds."""
    H, N = saturation.largest.shape
    width, rows = (8.4 if N > 24 else 6.6), min(max(0.17 * H, 0.3 * min(H, 3) + 0.1), 4.4)
    picture, (axes,) = canvas(path, width=width, height=rows + 2.2)
    axes.remove()
    picture.get_layout_engine().set(hspace=0.0, wspace=0.0, h_pad=0.035, w_pad=0.035)
    grid = picture.add_gridspec(2, 2, width_ratios=[6, 1], height_ratios=[0.4, rows])
    middle = picture.add_subplot(grid[1, 0])
    _draw_map(picture, middle, saturation)
    _draw_holders(picture.add_subplot(grid[0, 0], sharex=middle), saturation.holders)
    _draw_held(picture.add_subplot(grid[1, 1], sharey=middle), saturation.held)
    picture.suptitle(_wrapped(title, width, 11), x=0.008, ha="left", fontsize=11, color=INK)
    picture.supxlabel(_wrapped(caption(saturation), width, 8.5), x=0.008, ha="left", fontsize=8.5, color=QUIET)
    save_picture(picture, path)


def _draw_map(picture: Any, axes: Any, saturation: Saturation) -> None:
    """Draw the map itself, with the scale of its colours below."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.ticker import MaxNLocator

    H, N = saturation.largest.shape
    low, high = 1 / saturation.length, saturation.threshold
    low = low if low < high else high / 2
    palette = LinearSegmentedColormap.from_list("held", RAMP).with_extremes(over=PALE)
    scale = ScalarMappable(Normalize(low, high), palette)
    whole = (-0.5, N - 0.5, H - 0.5, -0.5)
    axes.imshow(_coloured(saturation, scale), extent=whole, aspect="auto", interpolation="nearest")
    _plain(axes)
    if H <= NAMED:
        axes.hlines(np.arange(1, H) - 0.5, -0.5, N - 0.5, color="white", linewidth=1)
    if N <= NAMED:
        axes.vlines(np.arange(1, N) - 0.5, -0.5, H - 0.5, color="white", linewidth=1)
    if max(H, N) <= WRITTEN:
        for (head, example), weight in np.ndenumerate(saturation.largest):
            look = {"fontsize": 8, "color": INK if weight > low + 0.6 * (high - low) else "white"}
            axes.text(example, head, f"{weight:.3f}", ha="center", va="center", **look)
    for axis, many in ((axes.xaxis, N), (axes.yaxis, H)):
        axis.set_major_locator(MaxNLocator(nbins=24 if many <= 24 else 10, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("example" if N <= FINE else "example (many per column, colours averaged)", color=INK, fontsize=9)
    axes.set_ylabel("head", color=INK, fontsize=9)
    _draw_scale(picture.colorbar(scale, ax=axes, location="bottom", aspect=45, shrink=0.8, pad=0.03, **SATURATED_END))


def _coloured(saturation: Saturation, scale: Any) -> Floats:
    """Return RGBA colours [H, columns, 4]: one column per example or, beyond FINE examples, averages of neighbours."""
    H, N = saturation.largest.shape
    starts = np.arange(N) if N <= FINE else np.linspace(0, N, FINE, endpoint=False).astype(np.int64)
    each = np.diff(starts, append=N)[:, None]
    colours, saturated = np.empty((H, len(starts), 4)), saturation.saturated
    for head in range(H):
        shown = np.where(saturated[head], 2.0, saturation.largest[head])
        colours[head] = np.add.reduceat(scale.to_rgba(shown), starts) / each
    return colours


def _draw_scale(bar: Any) -> None:
    """Draw ticks and names of the scale, from 1/n to the threshold, and beyond it the colour of saturated heads."""
    low, high = bar.norm.vmin, bar.norm.vmax
    ticks = [low, *(tick for tick in (0.2, 0.4, 0.6, 0.8) if low + 0.05 < tick < high - 0.05), high]
    bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, labelsize=8, length=2)
    middle = 1 + SATURATED_END["extendfrac"] / 2
    place = {"transform": bar.ax.transAxes, "ha": "center", "va": "center"}
    bar.ax.text(middle, 0.45, "saturated", fontsize=7.5, color=INK, **place)
    bar.set_label("largest weight that the head gives to a token", color=INK, fontsize=8.5)


def _draw_holders(axes: Any, holders: Ids) -> None:
    """Draw above the map how many heads hold each example."""
    axes.stairs(holders, np.arange(len(holders) + 1) - 0.5, fill=True, color=MARGIN)
    most = max(1, int(holders.max()))
    axes.set(ylim=(0, 1.1 * most), yticks=[0, most])
    beside = axes.text(1.015, 0.5, "heads that\nhold it", transform=axes.transAxes, fontsize=8.5, va="center")
    beside.set(color=INK, in_layout=False)
    _plain(axes, "bottom")
    axes.tick_params(labelbottom=False, bottom=False)


def _draw_held(axes: Any, held: Ids) -> None:
    """Draw right of the map how many examples each head holds."""
    most = max(1, int(held.max()))
    if len(held) <= NAMED:
        axes.barh(np.arange(len(held)), held, height=0.66, color=MARGIN)
        for head, count in enumerate(held):
            axes.text(count + 0.05 * most, head, f"{count:,}", va="center", fontsize=7.5, color=INK)
    else:
        axes.stairs(held, np.arange(len(held) + 1) - 0.5, fill=True, orientation="horizontal", color=MARGIN)
    axes.set(xlim=(0, 1.5 * most), xticks=[] if len(held) <= NAMED else [0, most])
    axes.set_xlabel("examples held", color=INK, fontsize=8.5, loc="left")
    _plain(axes, "left")
    axes.tick_params(labelleft=False, left=False)


def _plain(axes: Any, line: str = "") -> None:
    """Remove the panel's box, except for one side if ``line`` names it."""
    for name, side in axes.spines.items():
        side.set_visible(name == line)
        side.set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8, length=2)


def _wrapped(text: str, inches: float, size: float) -> str:
    """Return the text in lines that fit a picture of this width at this size of the letters."""
    return textwrap.fill(text, int(inches * 72 / (0.56 * size)))
