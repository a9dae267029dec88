"""``byheart lab compare --shipped``: all that comes with Byheart against all numbers that the papers published."""

from typing import TYPE_CHECKING, Any

from byheart.cli.output import DONE, console, print_json, table

if TYPE_CHECKING:
    from byheart.lab.fits import Estimate
    from byheart.lab.gaps import Gaps
    from byheart.report.lab.record import Claim, Slope

NOISE = """gap: the mean of our runs minus the published mean; noise alone: the mean |gap| that there would be if the
published runs scattered as ours do (run s.d.) around the same values; within noise: how many gaps that explains (95 %
are expected to be); uniform gap: accuracy over all contexts, each counted once, minus that over the sample, here"""


def compare_shipped(*, as_json: bool) -> int:
    """Gaps of each experiment, slopes of each curve, and what the paper reports of them."""
    from byheart.report.lab.record import gap_cells, point_cells, record, shipped

    found, slopes, claims = record(shipped())
    if as_json:
        points = [{"experiment": each.name} | point_cells(point) for each in found[:-1] for point in each.points]
        lines = {"slopes": [each.cells() for each in slopes], "claims": [each.cells() for each in claims]}
        print_json({"gaps": [gap_cells(each) for each in found], "points": points, **lines})
        return DONE
    out = console()
    for title, listed in (
        ("Dana, Pydi & Chevaleyre 2025: training accuracy, here minus published", [_gaps(each) for each in found]),
        ("slopes of accuracy below 0.9 (95 % intervals)", [_slope(each) for each in slopes]),
        ("what the paper reports (95 % intervals)", [_claim(each) for each in claims]),
    ):
        rows = table(title, *(_column(name, value) for name, value in listed[0].items()))
        for cells in listed:
            rows.add_row(*(_said(name, value) for name, value in cells.items()))
        out.print(rows)
    out.print(NOISE, style="dim", markup=False)
    return DONE


def _column(name: str, value: Any) -> str:
    title = {"mean_absolute_gap": "mean |gap|", "run_deviation": "run s.d."}.get(name, name.replace("_", " "))
    return title if isinstance(value, str) else f">{title}"


def _gaps(found: "Gaps") -> dict[str, Any]:
    from byheart.report.lab.record import gap_cells

    return gap_cells(found) | {"experiment": _short(found.name)}


def _short(name: str) -> str:
    return name.removeprefix("dana-2025-")


def _slope(slope: "Slope") -> dict[str, str]:
    lines = {"here": slope.here, "published": slope.published}
    shown = {side: "–" if line is None else _interval(line.slope) for side, line in lines.items()}
    squares = {f"R² {side}": "–" if line is None else f"{line.r_squared.value:.3f}" for side, line in lines.items()}
    return {
        "experiment": _short(slope.experiment),
        "curve": slope.of or "all",
        "along": slope.letter,
        **shown,
        **squares,
    }


def _claim(claim: "Claim") -> dict[str, str]:
    sides = {"its points give": _interval(claim.published), "ours give": _interval(claim.here)}
    return {"what": claim.what, "the paper says": claim.reported, **sides}


def _interval(found: "Estimate") -> str:
    return f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})"


def _said(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:+.4f}" if name.endswith("gap") and "absolute" not in name else f"{value:.4f}"
    return str(value)
