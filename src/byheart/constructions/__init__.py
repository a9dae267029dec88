"""One module per construction: a task in, a network that has memorized it out, the proof beside each weight.

=======================  ==================================================================================
name                     result
=======================  ==================================================================================
``interpolate``          the plain one-hidden-layer interpolator, 3N parameters: the baseline
``vardi-2022``           points → labels by grouped bit extraction, Õ(√N); depth- and bit-limited variants
``kajitsuka-sato-2025``  FFN · uniform attention · FFN, Õ(√N) next-token and Õ(√(nN)) seq-to-seq
``kim-2023``             n rounds of hardmax attention read a sequence into its id, Õ(n + √(nN)); causal, too
``kajitsuka-sato-2024``  one softmax head of rank one and 2nN units; why hardmax does not do
``folding``              ours: no keys stored, about 3.5·√(N log₂C), the smallest that we know of
``mahdavi-2024``         one softmax attention layer on contexts with queries, H(min(n, d_h) − 1) + 1 examples
``dana-2025``            attention alone, H·d_h + d associations; distributions up to the rank-d bottleneck
``madden-2024``          one decoder layer with N units, any N next-token distributions, or labels, ωN parameters
=======================  ==================================================================================

Every module defines one ``CONSTRUCTION`` (:mod:`.construction`), listed once (:mod:`.registry`). Its ``build`` counts
what a task demands, plans every tensor's shape from that alone, and returns the network with the plan that it followed.
"""

from byheart.constructions.build import build
from byheart.constructions.built import Built
from byheart.constructions.construction import Construction, Made
from byheart.constructions.plan import Plan
from byheart.constructions.registry import CONSTRUCTIONS, find, known, register

__all__ = ["CONSTRUCTIONS", "Built", "Construction", "Made", "Plan", "build", "find", "known", "register"]
