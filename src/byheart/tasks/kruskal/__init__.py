"""The Kruskal rank of vectors: the largest k such that *every* k of them are linearly independent.

To find it is NP-hard, so :func:`kruskal` answers with what it can prove, from both sides, and keeps apart what it only
sampled. Vectors are float64, taken as the dyadic rationals that they are. A *circuit* is a dependent set whose proper
subsets are all independent; the Kruskal rank is one less than the size of the smallest circuit, or N if there is none.

**Lower bounds** are certified, by the best of

- exact comparison: no vector is zero, no two are parallel;
- all N vectors independent (:func:`~byheart.tasks.ranks.independent`);
- all but one independent, so that there is one circuit only;
- going through all k-subsets, where there are few enough;
- functionals, an optimized cumulative coherence (:mod:`.functionals`).

**Upper bounds** are circuits that are exhibited. Candidates come from Gauss elimination modulo a prime
(:mod:`.circuits`), of all vectors in random order, and of those with large entries in null vectors of few entries.
Modulo the prime their proper subsets are independent, so they are; that the candidates are dependent is checked with
:func:`~byheart.tasks.ranks.exact_rank`.

**Sampled**: random subsets of one size, each of them decided exactly. That none is dependent proves nothing.
"""

from byheart.tasks.kruskal.answer import IndependenceVerdict, Kruskal, Sampled
from byheart.tasks.kruskal.decide import kruskal

__all__ = ["IndependenceVerdict", "Kruskal", "Sampled", "kruskal"]
