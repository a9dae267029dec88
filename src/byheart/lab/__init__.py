"""The lab: networks that are trained, to be compared with networks that are built.

- *Ensembles*: :func:`train` trains members (an architecture, examples, a seed, and a :class:`Training`), as many at
  once as the device holds. One GPT is an ensemble of one:

  >>> import torch
  >>> examples = {"tokens": torch.arange(8)[:, None], "answers": torch.arange(8).flip(0)}
  >>> network = gpt_with(900, vocab=8, labels=8, length=1)
  >>> training = Training(batch=8, steps=200, learning_rate=1e-2, schedule="warm-up-cosine")
  >>> [outcome] = train([Member(network, training, seed=0, examples=examples)])
  >>> outcome.accuracy
  1.0

- *Experiments*: an :class:`Experiment` is a list of configs and a function that trains them. Those of the papers are in
  :mod:`byheart.papers`.

- *Runs*: :class:`Run` is an experiment's folder, from which no finished result is ever lost, and :func:`execute` trains
  the models still pending in it. Machines that share no files train a :class:`Part` each, and :func:`merge` joins their
  runs.

- *Networks*: :func:`byheart.lab.saving.kept` trains one config of an experiment and gives the network with its task, as
  ``byheart lab save`` does; :func:`byheart.lab.saving.as_network` makes a network of any outcome's weights. Then they
  are saved, shown and certified like networks that are built.

Training and writing runs need numpy and torch only, so that they work where nothing else of Byheart's dependencies is
installed. Intervals and fitted laws need scipy.
"""

from byheart.executors import Local
from byheart.lab.ensemble import train
from byheart.lab.experiment import Experiment
from byheart.lab.jobs import Part, execute
from byheart.lab.member import Member, MemberArchitecture, Training, TrainingOutcome
from byheart.lab.merging import merge
from byheart.lab.models.gpt import SmallGPT, gpt_with
from byheart.lab.runs import Run
from byheart.lab.sources import Given

__all__ = [
    "Experiment",
    "Given",
    "Local",
    "Member",
    "MemberArchitecture",
    "Part",
    "Run",
    "SmallGPT",
    "Training",
    "TrainingOutcome",
    "execute",
    "gpt_with",
    "merge",
    "train",
]
