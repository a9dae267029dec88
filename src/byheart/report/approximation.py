"""A function and the Transformers that approximate it, as one picture.

Above is one slice per ε (at most four): the first token's output while its first coordinate runs through [0, 1] and
everything else stands still, f in grey and the network in colour. Below are the measured distance against ε, with its
95 % interval and the line that it must stay below, and the parameters beside the number of questions on the grid.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from byheart.approximation import Approximation, DistanceEstimate
from byheart.approximation.measure import outputs
from byheart.exhibits import FAINT, INK, QUIET
from byheart.report.style import canvas, colours, plain, save_picture
from byheart.tasks.arrays import Floats

Results: TypeAlias = Sequence[tuple[Approximation, DistanceEstimate]]
COLOUR = "#1f5fa8"
_SLICES = 4
_FINE = 1 << 9


def slice_points(length: int, dim: int) -> Floats:
    """Return sequences whose first coordinate runs through [0, 1] in steps of 2^−9; the other tokens are spread out.

    The other tokens stand at odd multiples of 2^−9, which are edges of cells only where there are 512 cells or more.
    """
    points = np.empty((_FINE + 1, length, dim))
    points[:] = ((2 * np.rint(_FINE * (np.arange(length) - 0.14) / length / 2) + 1) / _FINE)[:, None]
    points[:, 0] = 221 / _FINE
    points[:, 0, 0] = np.arange(_FINE + 1) / _FINE
    return points


def draw_approximations(results: Results, path: Path) -> None:
    """Draw slices, errors and parameters of networks that approximate one function."""
    picture, (axes,) = canvas(path, width=9.2, height=6.0)
    axes.remove()
    picture.get_layout_engine().set(hspace=0.02, wspace=0.06, h_pad=0.05, w_pad=0.06)
    above, below = picture.subfigures(2, 1, height_ratios=[1, 1.05])
    _draw_slices(above, [results[i] for i in _spread(len(results))])
    left, right = below.subplots(1, 2)
    for axes in (left, right):
        plain(axes)
    _draw_errors(left, results)
    _draw_parameters(right, results)
    first = results[0][0]
    name = Path(first.target.name).name.replace("$", r"\$")
    domain = rf"$[0, 1]^{{{first.network.length}\times{first.network.dim}}}$"
    title = f"{name} on {domain}, approximated in $d_{{{first.p:g}}}$; the grid memorized by {first.built.construction}"
    picture.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK)
    save_picture(picture, path)


def _colour(results: Results) -> str:
    """Return the colour of the construction that memorized the grid."""
    return colours().get(results[0][0].built.construction, COLOUR)


def _spread(count: int) -> list[int]:
    """Return at most ``_SLICES`` of ``count`` indices, from the first to the last."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, _SLICES))})


def _draw_slices(part: Any, results: Results) -> None:
    """Draw the function and the outputs of the network of each ε, side by side."""
    first, colour = results[0][0], _colour(results)
    points = slice_points(first.network.length, first.network.dim)
    xs, expected = points[:, 0, 0], first.target(points)[:, 0]
    for index, axes in enumerate(part.subplots(1, len(results), sharey=True, squeeze=False)[0]):
        result, _ = results[index]
        got = outputs(result.network, points)[0][:, 0]
        plain(axes)
        axes.fill_between(xs, expected, got, color=colour, alpha=0.13, linewidth=0)
        axes.plot(xs, expected, color=QUIET, linewidth=1.6)
        axes.plot(xs, got, color=colour, linewidth=1.6)
        cells = result.design.cells
        size = f"{cells} cell{'s' * (cells != 1)}, {result.account.dense:,} parameters"
        axes.set_title(f"ε = {result.epsilon:g}", loc="left", fontsize=9.5, color=INK, pad=17)
        axes.annotate(size, (0, 1), xycoords="axes fraction", xytext=(0, 5), **_beside())
        axes.set(xlim=(0, 1), xticks=[0, 0.5, 1], xticklabels=["0", "½", "1"])
        axes.set_xlabel(_moving(points), fontsize=8.5, color=INK)
        if index == 0:
            axes.set_ylabel("output for the first token", fontsize=9, color=INK)
            for name, shade, place in (("network", colour, 0), ("function", QUIET, -47)):
                style = _beside() | {"fontsize": 9, "color": shade, "ha": "right"}
                axes.annotate(name, (1, 1), xycoords="axes fraction", xytext=(place, 18), **style)


def _moving(points: Floats) -> str:
    others = ", ".join(f"{value:.2g}" for value in points[0, 1:, 0])
    if points.shape[1] == 1:
        return "x₁"
    return f"x₁, the others {others}" if points.shape[1] * points.shape[2] <= 4 else "x₁, the others fixed"


def _draw_errors(axes: Any, results: Results) -> None:
    """Draw the measured distance against ε, below the line where they are equal."""
    epsilons = [result.epsilon for result, _ in results]
    ends = np.array([min(epsilons) / 1.35, max(epsilons) * 1.35])
    axes.plot(ends, ends, color=FAINT, linewidth=1.4, linestyle=(0, (5, 3)))
    named = _apart(epsilons)
    for result, measured in results:
        shade = _colour(results) if result.close(measured) else "#b3123f"
        bars = [[measured.error - measured.low], [measured.high - measured.error]]
        place = (result.epsilon, measured.error)
        axes.errorbar([result.epsilon], [measured.error], yerr=bars, fmt="o", color=shade, markersize=5, capsize=4)
        if result.epsilon in named:
            axes.annotate(f"{measured.error:.3g}", place, xytext=(8, -3), va="top", **(_beside() | {"color": shade}))
    lowest = max(ends[0] / 30, min(ends[0], *(measured.error for _, measured in results)))  # a distance may be 0
    axes.set(xscale="log", yscale="log", xlim=(ends[0], ends[1] * 1.15), ylim=(lowest / 1.2, ends[1] * 1.25))
    _ticks(axes, epsilons)
    axes.set_yticks(axes.get_xticks())
    axes.yaxis.set_minor_locator(axes.xaxis.get_minor_locator())
    axes.annotate("distance = ε", (ends[1], ends[1]), ha="right", va="bottom", xytext=(-12, -2), **_beside())
    axes.set_ylabel("measured distance, 95 % interval", fontsize=9, color=INK)


def _apart(epsilons: list[float]) -> list[float]:
    """Return the values, of those in falling order, that have room for a number on a logarithmic axis."""
    room = (max(epsilons) / min(epsilons)) ** 0.14
    chosen = epsilons[:1]
    for epsilon in epsilons[1:]:
        if epsilon * room <= chosen[-1]:
            chosen.append(epsilon)
    return chosen


def _beside() -> dict[str, Any]:
    return {"textcoords": "offset points", "fontsize": 8.5, "color": QUIET}


def _draw_parameters(axes: Any, results: Results) -> None:
    """Draw parameters against ε, and the number of questions of the grid, which the networks memorize."""
    epsilons = [result.epsilon for result, _ in results]
    colour = _colour(results)
    parameters = [result.account.dense for result, _ in results]
    questions = [result.certificate.checked for result, _ in results]
    axes.plot(epsilons, questions, "o-", color=FAINT, markersize=4, linewidth=1.4)
    axes.plot(epsilons, parameters, "o-", color=colour, markersize=5, linewidth=1.8)
    above = {"xytext": (3, 5), "ha": "left", "va": "bottom"} | _beside() | {"color": colour}
    below = above | {"xytext": (-4, -4), "ha": "right", "va": "top"}
    for epsilon, size, count in zip(epsilons, parameters, questions, strict=True):
        if epsilon in _apart(epsilons)[1:]:
            axes.annotate(f"{size:,}", (epsilon, size), **(above if size >= count else below))
    axes.set(xscale="log", yscale="log", xlim=(min(epsilons) / 1.9, max(epsilons) * 2.4))
    low, high = min(parameters + questions), max(parameters + questions)
    margin = max(2, high / low) ** 0.15
    axes.set_ylim(low / margin, high * margin)
    _ticks(axes, epsilons)
    place = {"xytext": (9, 0), "ha": "left", "va": "center"} | _beside()
    axes.annotate(f"{parameters[0]:,} parameters", (epsilons[0], parameters[0]), **(place | {"color": colour}))
    axes.annotate("questions\non the grid", (epsilons[0], questions[0]), **place)
    axes.set_ylabel("number", fontsize=9, color=INK)


def _ticks(axes: Any, epsilons: list[float]) -> None:
    """Put the values of ε below the axis, where there is room for them, and write plain numbers."""
    from matplotlib.ticker import NullFormatter, NullLocator, StrMethodFormatter

    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(_apart(epsilons))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("ε, distance allowed", fontsize=9, color=INK)
