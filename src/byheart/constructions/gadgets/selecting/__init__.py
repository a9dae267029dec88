"""Which group does a key belong to? Three ways to look up one word a group: wide, narrow, and anything between.

**Task.** g groups, of which group i > 0 begins at the key t_i, t_1 < t_2 < …. Group i has the number κ_i of its first
entry, κ_i < C(P + 1), and an integer 0 ≤ q_i ≤ 2^top. For a key z ∈ [0, P] let i be the last group with t_i ≤ z (0 if
there is none). Wanted are e = max(C·z + C − κ_i, 0) and q_i (+ z where the key is passed on), in the four units e,
relu(e − 1), relu(e − C), q from which :mod:`.gadgets.lookup` goes on.

**A step** [z ≥ t] is relu(z − t + 1) − relu(z − t), exactly, because z is an integer.

==============  =====================  ===================  ==================================================
selection       width                  layers               parameters a group
==============  =====================  ===================  ==================================================
:mod:`.wide`    2g − 1                 2                    8
:mod:`.chain`   2k + 1 (4 behind it)   g/k                  12 for k = 1, the default
:mod:`.squares` 3k + 2                 2g/k²                18, up to O(1/k)
==============  =====================  ===================  ==================================================
"""

from typing import TypeAlias

from byheart.constructions.gadgets.selecting.chain import Chain
from byheart.constructions.gadgets.selecting.groups import Groups
from byheart.constructions.gadgets.selecting.squares import Squares
from byheart.constructions.gadgets.selecting.wide import Wide

Selection: TypeAlias = Wide | Chain | Squares
"""Any way to find a key's group."""
WIDE, NARROW = Wide(), Chain()

__all__ = ["NARROW", "WIDE", "Chain", "Groups", "Selection", "Squares", "Wide"]
