"""The lab: networks that are trained, to be compared with networks that are built.

:func:`train` gives a GPT of at most so many parameters a task and a budget, and says how much of it was memorized. This
room needs numpy and torch only, so that it runs where nothing else of Byheart is installed.
"""

from byheart.lab.baseline import Trained, train
from byheart.lab.entropy import label_entropy, memorized_bits, surprises
from byheart.lab.gpt import GPT, Shape, gpt_with

__all__ = ["GPT", "Shape", "Trained", "gpt_with", "label_entropy", "memorized_bits", "surprises", "train"]
