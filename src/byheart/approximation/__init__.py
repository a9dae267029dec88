"""Universal approximation by memorizing a grid: a function in, a Transformer whose outputs are close to it out.

:func:`find` a function, an example by name or the user's own; :func:`approximate` it by quantising and memorizing the
grid, which is certified (Kajitsuka & Sato 2024); :func:`measure` how far the network is from it, on random points.
"""

from byheart.approximation.approximate import Approximation, Design, approximate
from byheart.approximation.functions import FUNCTIONS, Target, find
from byheart.approximation.measure import DistanceEstimate, measure

__all__ = ["FUNCTIONS", "Approximation", "Design", "DistanceEstimate", "Target", "approximate", "find", "measure"]
