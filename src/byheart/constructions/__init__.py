"""One module per construction: a task in, a network that has memorized it out, the proof beside each weight.

Every module defines one ``CONSTRUCTION`` (:mod:`.construction`), listed once (:mod:`.registry`). Its ``build`` counts
what a task demands, plans every tensor's shape from that alone, and returns the network with the plan that it followed.
"""

from byheart.constructions.build import build
from byheart.constructions.built import Built
from byheart.constructions.construction import Construction, Made
from byheart.constructions.plan import Plan
from byheart.constructions.registry import CONSTRUCTIONS, find, known, register

__all__ = ["CONSTRUCTIONS", "Built", "Construction", "Made", "Plan", "build", "find", "known", "register"]
