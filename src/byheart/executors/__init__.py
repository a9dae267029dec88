"""Work in pieces that know nothing of each other: here, in processes of this machine, or on a Ray cluster.

A :class:`Task` is a key, a function, its arguments, and the memory that it takes. An :class:`Executor` is given tasks
and hands back their outcomes, one by one, to the one process that gave them out: nothing else is written anywhere. What
comes out is the same whatever the executor, for the functions are.
"""

from byheart.executors.local import Local
from byheart.executors.on_ray import Ray
from byheart.executors.processes import Processes
from byheart.executors.task import Executor, Outcome, Task, each
from byheart.executors.workplace import NAMES, Workplace

__all__ = ["NAMES", "Executor", "Local", "Outcome", "Processes", "Ray", "Task", "Workplace", "each"]
