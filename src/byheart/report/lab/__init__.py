"""The lab's figures: one function per figure, each from a table of results alone.

Rows are flat, config and metrics side by side, as ``Run.table`` gives them. What is drawn beside them:

- *proved*: lower bounds that hold for the network of the row (Dana: columns lower_bound and previous_bound, over all ω²
  contexts; Mahdavi: H(min(n, d_h) − 1) + 1 examples, for generic inputs and n < d);
- *published*: the papers' own numbers, :mod:`byheart.papers.dana_2025.published`;
- *fitted*: :mod:`byheart.lab.fits`; a fit that failed is named as failed and has no line;
- *measured*: means over repetitions with their standard deviation.

:func:`figures_of` chooses by the experiment's name and by what varies in the table; :func:`own_figures` are those of
experiments that it does not know.
"""

from byheart.report.lab.capacity import draw_capacity, draw_tuning
from byheart.report.lab.dana import draw_against_mlp, draw_dims, draw_head_dims, draw_heads
from byheart.report.lab.findings import PAPERS, QUESTIONS, findings_of
from byheart.report.lab.madden import draw_madden, draw_settings
from byheart.report.lab.mahdavi import draw_blocks, draw_mahdavi, draw_saturation_counts
from byheart.report.lab.menu import AvailableFigure, figures_of
from byheart.report.lab.own import own_figures
from byheart.report.lab.slopes import draw_slopes
from byheart.report.lab.tables import tables_of

__all__ = [
    "PAPERS",
    "QUESTIONS",
    "AvailableFigure",
    "draw_against_mlp",
    "draw_blocks",
    "draw_capacity",
    "draw_dims",
    "draw_head_dims",
    "draw_heads",
    "draw_madden",
    "draw_mahdavi",
    "draw_saturation_counts",
    "draw_settings",
    "draw_slopes",
    "draw_tuning",
    "figures_of",
    "findings_of",
    "own_figures",
    "tables_of",
]
