"""How large a network of experts is to be, by counting, before anything is built.

A dense layer of F units has (3F + 18)·D parameters, an expert of F' units 3·D·F', and the table holds 60 bits a unit
and column: 22 + 22 + 16. ``plan`` goes through widths, units and experts, and takes what has the fewest parameters.
"""

import math
from dataclasses import replace

from byheart.constructions.reciting.experts.network import shape
from byheart.constructions.reciting.experts.sizes import (
    BITS,
    LEAST_ROWS,
    MOST_EXPERTS,
    MOST_ROWS,
    SPARE,
    WIDTHS,
    Sizes,
    columns_of,
    grids,
)
from byheart.errors import BadInput


def plan(bits: int, questions: int, vocab: int, steps: int, deviations: float) -> Sizes:
    """The smallest network whose every bit plane takes its questions, up to so many standard deviations."""
    best: Sizes | None = None
    for width in WIDTHS:
        units, layers = shape(width, steps)
        for rows in range(LEAST_ROWS, MOST_ROWS + 1, 4):
            pair = grids(rows)
            if pair is None:
                continue
            room = rows * columns_of(width) - SPARE
            # share + deviations·√share ≤ room, solved for the number of experts
            root = (math.sqrt(deviations**2 + 4 * room) - deviations) / 2 if room > 0 else 0
            experts = math.ceil(bits / (sum(BITS) * root**2)) | 1 if root else MOST_EXPERTS + 1
            sizes = Sizes(width, *pair, rows, experts, units, layers)
            while sizes.experts <= MOST_EXPERTS and questions**2 > 64 * sizes.places * sizes.experts:
                sizes = replace(sizes, experts=sizes.experts + 2)
            if sizes.experts <= MOST_EXPERTS and (best is None or sizes.parameters(vocab) < best.parameters(vocab)):
                best = sizes
    if best is None:
        raise BadInput(f"{questions} questions are too many for a network of experts; expected at most some millions")
    return best
