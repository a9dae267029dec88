"""What stands beside the figures in numbers: fitted laws with their intervals, and what was read off curves."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from byheart.lab.crossing import crossing, probes_of
from byheart.lab.fits import Comparison, compare
from byheart.lab.linear import SATURATED, unsaturated
from byheart.lab.quantiles import mean_interval
from byheart.lab.rows import is_number
from byheart.papers.capacity.ladder import held, plateaus
from byheart.papers.dana_2025.gaps import gaps
from byheart.papers.dana_2025.published import beside, names
from byheart.papers.madden_2024.widths import Width, widths
from byheart.papers.mahdavi_2024.blocks import Beyond, SaturationLine, axis_of, beyond_length, growth, memorized
from byheart.papers.mahdavi_2024.needed import NeededSize, needed
from byheart.report.lab.record import claims, interval_cells, point_cells, slopes
from byheart.report.lab.series import Rows, values
from byheart.report.lab.slopes import has_slopes, slopes_of
from byheart.report.page import Table


def tables_of(experiment: str, rows: Rows) -> list[Table]:
    """The tables that an experiment's results allow, by its name and by what varies in them."""
    paper = experiment.split("-", maxsplit=1)[0]
    if paper == "dana":
        return [*_published(experiment, rows), *_slope_laws(rows)]
    if paper == "mahdavi" and len(values(rows, "answers")) == 1:
        return claimed(rows) if _is_saturation(rows) else [*claimed(rows), *_crossings(rows), *_by_heads(rows)]
    if paper == "madden" and rows:
        return _hidden(rows)
    if paper == "capacity":
        return _bits(rows)
    return []


def _published(experiment: str, rows: Rows) -> list[Table]:
    """Every published point, the slopes of the curves, and what the paper says of them."""
    if not (beside(rows) and any(is_number(row.get("last_accuracy")) for row in rows)):
        return []
    points = [point_cells(point) for point in gaps(experiment, rows).points]
    tables = [Table("Published points: training accuracy, as it was reported, and over all contexts (uniform)", points)]
    if experiment in names():
        tables.append(
            Table(f"Slopes of accuracy below {SATURATED} (95 %)", [each.cells() for each in slopes(experiment, rows)])
        )
    said = [claim.cells() for claim in claims({experiment: rows})]
    return [*tables, Table("What the paper reports of them (95 %)", said)] if said else tables


def _slope_laws(rows: Rows) -> list[Table]:
    plain = [row for row in rows if row.get("hidden") is None]
    if len(values(plain, "heads")) > 1 and has_slopes(plain):
        return [Table("Laws fitted to the slopes over d", _laws(slopes_of(plain).comparison))]
    return []


def _laws(found: Comparison, **first: Any) -> list[Mapping[str, Any]]:
    """A row for each family, the preferred one first; Akaike's weights beside AICc."""
    preferred = {id(found.by_aicc): "AICc", id(found.by_leave_one_out): "left out"}
    preferred |= {id(found.by_aicc): "AICc, left out"} if found.agreed else {}
    return [
        {**first, **law.row(), "weight": found.weights.get(law.family), "preferred by": preferred.get(id(law))}
        for law in found.fits
    ]


def claimed(rows: Rows) -> list[Table]:
    """Mahdavi's claims for each N: straight along heads and n, flat along d_h beyond n; and what N examples need.

    Of the experiment on saturation, how many heads are saturated.
    """
    if _is_saturation(rows):
        return [Table("Heads that are saturated on an example: mean over seeds (95 %)", _saturated_cells(rows))]
    along = axis_of(rows)
    if along is None or not all("examples" in row for row in rows):
        return []
    if along == "head_dim":
        cells = [_beyond_cells(each) for each in beyond_length(rows)]
        return [Table("Slopes of accuracy over d_h, up to n and beyond, for each number of examples (95 %)", cells)]
    what = "the targets' variance explained" if values(rows, "answers") == ["targets"] else "accuracy"
    cells = [_growth_cells(each) for each in growth(rows, along)]
    reached = [_needed_cells(each, along) for each in needed(rows, along)]
    return [
        Table(f"Lines of {what} over {along}, below {SATURATED}, for each number of examples (95 %)", cells),
        Table(f"Where {what} reaches {SATURATED}, by {along}: mean over seeds (95 %)", reached),
    ]


def _is_saturation(rows: Rows) -> bool:
    return any(is_number(row.get("saturated_heads")) for row in rows)


def _saturated_cells(rows: Rows) -> list[dict[str, Any]]:
    """For each size: heads that are saturated on an example, on average over all examples."""
    found: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        if is_number(row.get("saturated_heads")):
            found.setdefault((row["heads"], row["examples"]), []).append(row["saturated_heads"])
    cells = []
    for (heads, examples), counts in sorted(found.items()):
        mean, low, high = mean_interval(counts)
        ends = {"saturated_heads": mean, "saturated_heads_low": low, "saturated_heads_high": high}
        share = {"saturated_share": mean / heads, "seeds": len(counts)}
        cells.append({"heads": heads, "examples": examples, **ends, **share})
    return cells


def _needed_cells(found: NeededSize, along: str) -> dict[str, Any]:
    """Where 0.9 is reached, and how many seeds say so."""
    cells = interval_cells(along, found.mean)
    return {"examples": found.examples, **cells, "seeds": len(found.found), "of": found.seeds}


def _growth_cells(found: SaturationLine) -> dict[str, Any]:
    """A line's slope and R² with their intervals, the F test of its straightness, and right answers beside proved."""
    line = found.line
    cells = interval_cells("slope", None if line is None else line.slope)
    seeds = None if line is None else line.over_seeds
    cells |= {"over_seeds_low": None if seeds is None else seeds.low}
    cells |= {"over_seeds_high": None if seeds is None else seeds.high}
    cells |= interval_cells("r_squared", None if line is None else line.r_squared)
    cells |= {"lack_of_fit": None if line is None else line.lack_of_fit}
    right = interval_cells("right", found.right) | {"proved": found.proved} if found.right is not None else {}
    return {"examples": found.examples, "points": None if line is None else line.points, **cells, **right}


def _beyond_cells(found: Beyond) -> dict[str, Any]:
    """Slopes a dimension and a doubling on both sides of n, and the probabilities of such if they were the same."""
    cells: dict[str, Any] = {"examples": found.examples}
    for each, bend in (("dimension", found.dimensions), ("doubling", found.doublings)):
        sides = (None, None) if bend is None else (bend.before.slope, bend.beyond.slope)
        cells |= interval_cells(f"a_{each}_to_n", sides[0]) | interval_cells(f"a_{each}_beyond_n", sides[1])
        cells[f"a_{each}_equal"] = None if bend is None else bend.equal
    return {**cells, "saturated": found.saturated}


def _by_heads(rows: Rows) -> list[Table]:
    """Whether another law would do better than a line through what is not saturated, for each N."""
    found: list[Mapping[str, Any]] = []
    for examples in values(rows, "examples") if axis_of(rows) == "heads" else []:
        known = [(row["heads"], memorized(row)) for row in rows if row.get("examples") == examples and "heads" in row]
        points = unsaturated([(x, y) for x, y in known if y is not None])
        if points:
            laws = compare([x for x, _ in points], [y for _, y in points], ("linear", "quadratic", "power"))
            found += _laws(laws, examples=examples)
    return [Table(f"Laws over heads, below {SATURATED}, for each number of examples", found)] if found else []


def _crossings(rows: Rows) -> list[Table]:
    """For each N, from how many heads (or what varies) on all labels are memorized with probability one half."""
    along = axis_of(rows)
    if along is None or values(rows, "answers") != ["labels"] or not all("best_accuracy" in row for row in rows):
        return []
    found = []
    for examples in values(rows, "examples"):
        some = [row for row in rows if row["examples"] == examples]
        where = crossing(probes_of(some, along, "best_accuracy"), rising=True)
        interval = {"low": where.low, "high": where.high, "status": where.status}
        found.append({"examples": examples, along: where.x, **interval, "runs": len(some)})
    return [Table(f"Where the probability of memorizing every label crosses ½, by {along} (95 % intervals)", found)]


def _bits(rows: Rows) -> list[Table]:
    """Bits per parameter at all points, and laws of the most that is held over the parameters."""
    tables = [Table("Bits per parameter, mean and 95 % interval over seeds", [asdict(point) for point in held(rows)])]
    best = plateaus(rows)
    if len(best) > 2:
        sizes, bits = [p.parameters for p in best], [p.bits_per_parameter * p.parameters for p in best]
        laws = _laws(compare(sizes, bits, ("linear", "quadratic", "power")))
        tables.append(Table("Laws of the most bits held over parameters", laws))
    return tables


def _hidden(rows: Rows) -> list[Table]:
    """The least m within 1 % for each n, and laws of where it is crossed over n."""
    found = widths(rows)
    tables = [Table(WIDTHS, [width_cells(one) for one in found])]
    known = [(one.stories, one.crossing) for one in found if one.crossing is not None]
    if len(known) > 2:
        laws = compare([n for n, _ in known], [m for _, m in known], ("linear", "quadratic", "power"))
        tables.append(Table("Laws of the m at which the excess crosses 1 %, over the stories (95 %)", _laws(laws)))
    return tables


WIDTHS = "The least m within 1 % of the entropy, its parameters ω(17 + m) + 1088 + 17m, and N(ω − 1)"


def width_cells(found: Width) -> dict[str, Any]:
    """A row: what is enough for n stories."""
    return {
        "stories": found.stories,
        "contexts": found.contexts,
        "vocab": found.vocab,
        "least hidden": found.told if found.least is None else found.least,
        "crossing": found.crossing,
        "least excess": found.nearest,
        "parameters": found.parameters,
        "needed by any N": found.needed,
    }
