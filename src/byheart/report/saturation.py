"""Which head holds which example: the largest attention weight of every head on every example, and its picture.

Mahdavi, Liao & Thrampoulidis 2024 call a head *saturated* on an example if one token gets nearly all of its weight. Then
it says the same of all examples that choose this token; it can *hold* only those on which it is not saturated. Their
proof gives each head r − 1 examples of its own and saturates it on all others: blocks on a diagonal.

Weights are float64, up to the rounding of :func:`byheart.networks.softmax.network.attention`. Counts are exact for
those weights; a weight within rounding of the threshold may fall on either side of it. Not checked: whether the answers
are right, or whether an example that no head holds is any worse off (a generic head's features need not saturate).
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.networks.softmax.network import CHUNK, Floats, Inputs, SoftmaxNetwork, attention, check_inputs, embedded
from byheart.report.parts import check_picture
from byheart.report.style import FAINT, INK, QUIET

THRESHOLD = 0.99
"""A head is saturated on an example if one token's weight is at least this, as in the paper's experiments."""
