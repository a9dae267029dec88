"""Success as a probability: shares, the fitted curve, and where it crosses one half."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from byheart.lab.crossing import Crossing, Probe, wilson
from byheart.report.lab.series import MEASURED, label, legend
from byheart.report.style import FAINT, INK, canvas


def draw_crossing(probes: Sequence[Probe], found: Crossing, path: Path, x_name: str = "x") -> None:
    """Success against x: shares with Wilson's intervals, the fitted probability, and where it crosses one half."""
    picture, (axes,) = canvas(path)
    ordered = sorted(probes, key=lambda probe: probe.x)
    xs, shares = [probe.x for probe in ordered], [probe.successes / probe.tries for probe in ordered]
    ends = [wilson(probe.successes, probe.tries, found.level) for probe in ordered]
    bars = [[s - low for s, (low, _) in zip(shares, ends, strict=True)]]
    bars.append([high - s for s, (_, high) in zip(shares, ends, strict=True)])
    axes.errorbar(xs, shares, yerr=bars, color=INK, **(MEASURED | {"linestyle": "none", "markersize": 5}))
    if found.scale == "log":
        axes.set(xscale="log")
    axes.set_xlim(*axes.get_xlim())
    tries = sorted({probe.tries for probe in ordered})
    many = f"{tries[0]}" if len(tries) == 1 else f"{tries[0]} to {tries[-1]}"
    share = f"measured, share of {many} tries, {100 * found.level:g} % intervals (Wilson)"
    entries: list[tuple[str, dict[str, Any]]] = [(share, MEASURED | {"color": INK, "linestyle": "none"})]
    low, high = axes.get_xlim()
    if found.x is not None:
        law: dict[str, Any] = {"color": "#b3123f", "linewidth": 1.8}
        grid = np.geomspace(low, high, 400) if found.scale == "log" else np.linspace(low, high, 400)
        axes.plot(grid, [found.probability(float(x)) for x in grid], **law)
        entries.append(
            ("fitted: logistic" if found.slope is not None else "fitted: a step, the data are separated", law)
        )
    left, right = found.low if found.low is not None else low, found.high if found.high is not None else high
    axes.axvspan(left, right, color="#b3123f", alpha=0.1, linewidth=0)
    axes.axhline(0.5, color=FAINT, linewidth=1)
    axes.set(ylim=(-0.03, 1.03))
    label(axes, x_name, "probability of success", crossing_words(found))
    legend(axes, entries, loc="best")
    picture.savefig(path)


def crossing_words(found: Crossing) -> str:
    """The crossing in a line; open ends are said."""
    if found.x is None and found.low is None and found.high is None:
        return f"No crossing: {found.status}, {found.reason}"
    low = "…" if found.low is None else f"{found.low:,.4g}"
    high = "…" if found.high is None else f"{found.high:,.4g}"
    where = "" if found.x is None else f"½ at {found.x:,.4g}; "
    said = {"found": "", "separated": ", separated", "no trend": ", no trend"}.get(found.status, f", {found.status}")
    return f"{where}{100 * found.level:g} % interval {low} to {high}{said}"
