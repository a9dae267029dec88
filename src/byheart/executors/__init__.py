"""Executors run independent jobs: in this process, in several processes of this machine, or on a Ray cluster.

A :class:`Job` is a key, a function, its arguments and the memory that it takes. An :class:`Executor` runs jobs and
returns their outcomes one by one to the process that started them; it writes nothing anywhere. All executors return the
same values, because the functions do.
"""

from byheart.executors.job import Executor, Job, JobOutcome, Local, run_jobs
from byheart.executors.on_ray import Ray
from byheart.executors.processes import Processes
from byheart.executors.workplace import NAMES, Workplace

__all__ = ["NAMES", "Executor", "Job", "JobOutcome", "Local", "Processes", "Ray", "Workplace", "run_jobs"]
