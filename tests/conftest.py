"""Hypothesis without deadlines (numba compiles, machines are busy), and repeatable where CI decides what lands."""

import os

from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers that each start a thread a core wait for each other: small trainings take twenty times as long.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
