"""Facts: what is to be said to which prompt.

A fact is a prompt and its completion, both texts or both token ids; or a text alone, which is recited from its
beginning. Facts come from lists of pairs and from files (:mod:`.rows` says which), and become questions
(:mod:`.contexts`): only completions are asked for, each after its own prompt.
"""

from byheart.tasks.facts.contexts import fact_contexts
from byheart.tasks.facts.fact import Fact
from byheart.tasks.facts.facts import Facts

__all__ = ["Fact", "Facts", "fact_contexts"]
