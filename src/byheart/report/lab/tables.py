"""What stands beside the figures in numbers: fitted laws with their intervals, and what was read off curves."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from byheart.lab.capacity import held, plateaus
from byheart.lab.crossing import crossing, probes_of
from byheart.lab.fits import Comparison, compare
from byheart.lab.linear import SATURATED
from byheart.lab.runs import is_number
from byheart.report.lab.madden import smallest_within
from byheart.report.lab.series import Rows, values
from byheart.report.lab.slopes import has_slopes, slopes_of
from byheart.report.page import Table


def tables_of(experiment: str, rows: Rows) -> list[Table]:
    """The tables that an experiment's results allow, by its name and by what varies in them."""
    paper = experiment.split("-", maxsplit=1)[0]
    if paper == "dana":
        plain = [row for row in rows if row.get("hidden") is None]
        if len(values(plain, "heads")) > 1 and has_slopes(plain):
            return [Table("Laws fitted to the slopes over d", _laws(slopes_of(plain).comparison))]
    if paper == "mahdavi" and values(rows, "answers") == ["labels"] and all("best_accuracy" in row for row in rows):
        return [*(_crossings(rows)), *(_by_heads(rows) if len(values(rows, "heads")) > 1 else [])]
    if paper == "madden" and rows:
        return _hidden(rows)
    if paper == "capacity":
        return _bits(rows)
    return []


def _laws(found: Comparison, **first: Any) -> list[Mapping[str, Any]]:
    """A row for each family, the preferred one first; Akaike's weights beside AICc."""
    preferred = {id(found.by_aicc): "AICc", id(found.by_leave_one_out): "left out"}
    preferred |= {id(found.by_aicc): "AICc, left out"} if found.agreed else {}
    return [
        {**first, **law.row(), "weight": found.weights.get(law.family), "preferred by": preferred.get(id(law))}
        for law in found.fits
    ]


def _by_heads(rows: Rows) -> list[Table]:
    """Mahdavi's claim, that accuracy grows linearly with H: laws through what is not saturated, for each N."""
    found: list[Mapping[str, Any]] = []
    for examples in values(rows, "examples"):
        some = [row for row in rows if row["examples"] == examples and is_number(row["best_accuracy"])]
        points = [(row["heads"], row["best_accuracy"]) for row in some if row["best_accuracy"] < SATURATED]
        if points:
            laws = compare([x for x, _ in points], [y for _, y in points], ("linear", "quadratic", "power"))
            found += _laws(laws, examples=examples)
    return (
        [Table(f"Laws of accuracy over heads, below {SATURATED}, for each number of examples", found)] if found else []
    )


def _crossings(rows: Rows) -> list[Table]:
    """For each N, from how many heads (or what varies) on all labels are memorized with probability one half."""
    along = next((name for name in ("heads", "length", "head_dim") if len(values(rows, name)) > 1), None)
    if along is None:
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
    """The smallest m within 1 % for each n, and laws of m over n, where m was reached."""
    found = smallest_within(rows)
    listed: list[Mapping[str, Any]] = [{"stories": n, "smallest hidden": m} for n, m in found]
    reached = [(n, m) for n, m in found if m is not None]
    tables = [Table("The smallest number of hidden neurons within 1 % of the entropy", listed)]
    if len(reached) > 2:
        laws = compare([n for n, _ in reached], [m for _, m in reached], ("linear", "quadratic", "power"))
        tables.append(Table("Laws of that number over the stories (a grid of doublings: coarse)", _laws(laws)))
    return tables
