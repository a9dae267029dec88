"""Constructions: a task goes in, a network that has memorized it comes out, with the proof beside each weight.

Every module defines one ``CONSTRUCTION`` (:mod:`.construction`), listed once (:mod:`.registry`). Its ``build`` counts
the demands of a task, plans every tensor's shape from those counts alone, and returns the network with its plan.
"""

from byheart.constructions.built import Built, build
from byheart.constructions.construction import Construction, Made
from byheart.constructions.plan import Plan
from byheart.constructions.registry import CONSTRUCTIONS, find, known, register

__all__ = ["CONSTRUCTIONS", "Built", "Construction", "Made", "Plan", "build", "find", "known", "register"]
