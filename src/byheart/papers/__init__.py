"""The papers whose experiments the lab repeats, one folder each: experiments, published numbers, analysis and figures.

- *Experiments*: :data:`EXPERIMENTS` holds them by name; each is a function from a scale to an experiment to run.

  >>> len(EXPERIMENTS["dana-2025-1"]("paper").configs)
  385

- *Capacity*: :func:`ladder` is the experiment that measures bits per parameter, and :func:`plateaus` reads the largest
  of them off its rows. As ``byheart lab capacity`` does:

  >>> from tempfile import TemporaryDirectory
  >>> from byheart.lab import Given, Local, Run, execute
  >>> experiment = ladder([800], [1], seeds=2, steps=5)
  >>> with TemporaryDirectory() as folder, Run.create(folder, experiment) as run, Local(Given(experiment)) as executor:
  ...     progress = execute(run, experiment, executor)
  >>> progress.done, [row["parameters"] for row in run.table]
  (2, [793, 793])

- *Results*: :mod:`byheart.papers.results` are those that come with Byheart, one CSV file for each experiment.

Running experiments needs numpy and torch only. Intervals and fitted laws need scipy.
"""

from byheart.papers.capacity import CapacityEstimate, Rung, held, ladder, plateaus
from byheart.papers.experiments import EXPERIMENTS

__all__ = ["EXPERIMENTS", "CapacityEstimate", "Rung", "held", "ladder", "plateaus"]
