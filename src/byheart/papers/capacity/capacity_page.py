"""Pages about the ladder: which figures and tables a table of results allows, and what it says."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from byheart.bounds.trained_capacity import MORRIS_BITS
from byheart.exhibits import AvailableFigure, DataTable
from byheart.lab.fits import compare
from byheart.papers.capacity.beside import Beside
from byheart.papers.capacity.capacity_figures import capacity_figure, tuning_figure
from byheart.papers.capacity.ladder import CapacityEstimate, Tuning, held, plateaus, tunings
from byheart.papers.curves import Rows
from byheart.papers.paper import Paper
from byheart.papers.wording import law_rows

LEAST_POINTS = 3
"""Number of sizes that laws take."""


def _figures(_: str, rows: Rows, beside: Sequence[Beside] = ()) -> list[AvailableFigure]:
    caption = (
        "Bits of random labels memorized, per parameter, by size and by how many were asked for: lower bounds of what"
        " such networks can hold, as training may stop short of it."
    )
    figures = [AvailableFigure("capacity", caption, partial(capacity_figure, rows, beside))]
    if tunings(rows):
        caption = "What other learning rates and other numbers of steps bring."
        figures.append(AvailableFigure("tuning", caption, partial(tuning_figure, rows)))
    return figures


def _tables(_: str, rows: Rows) -> list[DataTable]:
    """Return bits per parameter at all points, and laws of the most that is held over the parameters."""
    tables = [
        DataTable("Bits per parameter, mean and 95 % interval over seeds", [asdict(point) for point in held(rows)])
    ]
    best = plateaus(rows)
    if len(best) >= LEAST_POINTS:
        sizes, bits = [p.parameters for p in best], [p.bits_per_parameter * p.parameters for p in best]
        laws = law_rows(compare(sizes, bits, ("linear", "quadratic", "power")))
        tables.append(DataTable("Laws of the most bits held over parameters", laws))
    return tables


def _findings(_: str, rows: Rows) -> list[str]:
    best = plateaus(rows)
    findings = [f"{point.parameters:,} parameters hold {_bits_in_words(point)} bits each." for point in best]
    if any(point.edge for point in best):
        full = ", ".join(f"{point.parameters:,}" for point in best if point.edge)
        findings.append(f"Of {full} parameters most was held where most was asked for: they may not be full.")
    published = f"Published, for GPTs of 5·10⁵ to 1.5·10⁹ parameters: about {MORRIS_BITS} (Morris et al. 2025)."
    return [*findings, published, *(_tuning_in_words(tuning) for tuning in tunings(rows))]


def _tuning_in_words(tuning: Tuning) -> str:
    """Say whether another learning rate, or more steps, would have brought more."""
    rate, steps = tuning.chosen
    first = tuning.points[0]
    where = f"At {first.parameters:,} parameters and N = {first.examples:,}"
    if tuning.along == "steps":
        bits = ", ".join(f"{_bits_in_words(point)} after {point.steps:,} steps" for point in tuning.points)
        return f"{where}, networks hold {bits}; those of the ladder were trained for {steps:,}."
    bits = ", ".join(f"{_bits_in_words(point)} at {point.learning_rate:g}" for point in tuning.points)
    return f"{where}, by learning rate they hold {bits}; those of the ladder were trained at {rate:g}."


def _bits_in_words(point: CapacityEstimate) -> str:
    interval = "" if point.low is None else f" ({point.low:.2f} to {point.high:.2f})"
    return f"{point.bits_per_parameter:.2f}{interval}"


CAPACITY = Paper(
    "after Morris et al. 2025, on how much language models memorize",
    "How many bits does a trained GPT memorize per parameter?",
    _figures,
    _tables,
    _findings,
)
