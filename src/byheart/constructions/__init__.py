"""One module a construction: a task in, a network that has memorized it out, the proof beside the weight it justifies.

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

Every construction has frozen ``Settings``, a ``demand`` (what a task asks of it, counted), a ``plan`` (every tensor's
shape before anything is built) and a ``build``.
"""

from byheart.constructions.build import CONSTRUCTIONS, Construction, build
from byheart.constructions.built import Built
from byheart.constructions.plan import Plan

__all__ = ["CONSTRUCTIONS", "Built", "Construction", "Plan", "build"]
