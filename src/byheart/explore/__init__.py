"""The explorer: one page, without a server, on which networks run and bounds move.

1. ``reciting``: compiled networks of short texts, or of one's own, evaluated in the browser in float32: the hash of a
   prompt, the rows and columns, the words that are read, the bits that come out; words and bits can be clicked.
2. ``bounds``, ``counts``: every bound and every true count as sliders move N, n, ω, C and the precision.
3. ``exact``: exact networks on five sequences, layer by layer, in integers.

The scripts in ``templates/`` are plain JavaScript. ``network.js``, ``bounds.js`` and ``exact.js`` compute and touch no
page, so that tests run them without a browser and hold them against PyTorch, :mod:`byheart.bounds` and
:mod:`byheart.networks.exact`.
"""

from byheart.explore.page import explorer

__all__ = ["explorer"]
