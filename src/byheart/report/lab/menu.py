"""Which figures a table of results allows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from byheart.papers.capacity.ladder import tunings
from byheart.report.lab.beside import Beside
from byheart.report.lab.capacity import draw_capacity, draw_tuning
from byheart.report.lab.dana import draw_against_mlp, draw_dims, draw_head_dims, draw_heads
from byheart.report.lab.findings import QUESTIONS
from byheart.report.lab.madden import draw_madden
from byheart.report.lab.mahdavi import draw_mahdavi, draw_saturation_counts
from byheart.report.lab.series import Rows, check_numbers, values
from byheart.report.lab.slopes import draw_slopes, has_slopes

AGAINST_MLP = "attention-mlp"


@dataclass(frozen=True)
class AvailableFigure:
    """A figure that a table allows: the file's name without its ending, what it shows, and how to draw it."""

    name: str
    caption: str
    draw: Callable[[Path], None]


def figures_of(experiment: str, rows: Rows, beside: Sequence[Beside] = ()) -> list[AvailableFigure]:
    """What can be drawn of an experiment's table, by its name and by what varies in it."""
    if not rows:
        return []
    paper = experiment.split("-", maxsplit=1)[0]
    if paper in QUESTIONS:
        check_numbers(rows)
    if paper == "dana":
        return _dana_figures(rows)
    if paper == "mahdavi":
        return _mahdavi_figures(rows)
    if paper == "madden":
        caption = (
            "Loss and entropy against hidden neurons, the excess, and the fewest neurons within 1 % of the entropy."
        )
        return [AvailableFigure("loss-gap", caption, lambda path: draw_madden(rows, path))]
    if paper == "capacity":
        return _capacity_figures(rows, beside)
    return []


def _capacity_figures(rows: Rows, beside: Sequence[Beside]) -> list[AvailableFigure]:
    caption = (
        "Bits of random labels memorized, per parameter, by size and by how many were asked for: lower bounds of what"
    )
    caption += " such networks can hold, as training may stop short of it."
    found = [AvailableFigure("capacity", caption, lambda path: draw_capacity(rows, path, beside))]
    if tunings(rows):
        caption = "What other learning rates and other numbers of steps bring."
        found.append(AvailableFigure("tuning", caption, lambda path: draw_tuning(rows, path)))
    return found


def _dana_figures(rows: Rows) -> list[AvailableFigure]:
    plain = [row for row in rows if row.get("hidden") is None]
    vary = {name for name in ("model_dim", "head_dim", "heads") if len(values(plain, name)) > 1}
    found = []
    if len(plain) != len(rows):
        caption = "Accuracy against parameters: more heads, or one head and a wider MLP, with published numbers."
        found.append(AvailableFigure(AGAINST_MLP, caption, lambda path: draw_against_mlp(rows, path)))
    if "heads" in vary:
        caption = "Accuracy against heads, for each dimension, with published numbers and bounds."
        found.append(AvailableFigure("heads", caption, lambda path: draw_heads(plain, path)))
    if vary == {"model_dim", "head_dim", "heads"} and has_slopes(plain):
        caption = "Accuracy gained a head, against the dimension (the paper's experiment 4)."
        found.append(AvailableFigure("slopes", caption, lambda path: draw_slopes(plain, path)))
    if vary == {"head_dim"}:
        caption = "Accuracy against the heads' dimension, with published numbers and bounds."
        found.append(AvailableFigure("head-dim", caption, lambda path: draw_head_dims(plain, path)))
    if vary == {"model_dim"}:
        caption = "Accuracy against the embedding's dimension, with published numbers and bounds."
        found.append(AvailableFigure("model-dim", caption, lambda path: draw_dims(plain, path)))
    return found


def _mahdavi_figures(rows: Rows) -> list[AvailableFigure]:
    if any(row.get("examples_by_saturated_heads") for row in rows):
        caption = "How many heads are saturated on an example."
        return [AvailableFigure("saturation", caption, lambda path: draw_saturation_counts(rows, path))]
    along = next((name for name in ("heads", "length", "head_dim") if len(values(rows, name)) > 1), "heads")
    metric = "Error" if rows[0].get("answers") == "targets" else "Accuracy"
    caption = f"{metric} against {along.replace('_', ' ')}, for each number of examples."
    return [AvailableFigure(along.replace("_", "-"), caption, lambda path: draw_mahdavi(rows, path, along))]
