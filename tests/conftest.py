"""Hypothesis without deadlines (numba compiles, machines are busy), and repeatable where CI decides what lands."""

import os

from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
