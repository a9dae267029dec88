"""Tasks: what is to be memorized.

A task is N sequences of n tokens, each token an id or a vector, and what a network must answer to each sequence: one
label (:class:`NextToken`), one label per token (:class:`SeqToSeq`) or a distribution over the next token
(:class:`NextTokenDistribution`). Or an example has a query beside its context, and a label (:class:`QueryLabels`) or
real numbers (:class:`QueryTargets`) for the two. Tasks check themselves when they are made and never change afterwards.

- Make random ones with :func:`random_next_token`, :func:`random_seq_to_seq`, :func:`random_distribution` and
  :func:`random_queries`, and controls with :func:`shuffled`.
- Store them in ``.npz`` or ``.jsonl`` files with :func:`save` and :func:`load`.
- :class:`Facts` are prompts with their completions, from pairs or files, for networks that :func:`byheart.compile`
  makes.
- Check what theorems assume of them with :func:`separation`, :func:`permuted_twins` and :func:`conflict`.
"""

from byheart.tasks.base import Questions
from byheart.tasks.conditions import Conflict, Twins, causal_conflict, conflict, permuted_twins, prefixes, token_ids
from byheart.tasks.facts import Facts
from byheart.tasks.files import load, save
from byheart.tasks.query import QueryLabels, QueryTargets, QueryTask
from byheart.tasks.random import random_distribution, random_next_token, random_queries, random_seq_to_seq
from byheart.tasks.separated import Separation, separation
from byheart.tasks.task import NextToken, NextTokenDistribution, SeqToSeq, Task, shuffled

__all__ = [
    "Conflict",
    "Facts",
    "NextToken",
    "NextTokenDistribution",
    "QueryLabels",
    "QueryTargets",
    "QueryTask",
    "Questions",
    "Separation",
    "SeqToSeq",
    "Task",
    "Twins",
    "causal_conflict",
    "conflict",
    "load",
    "permuted_twins",
    "prefixes",
    "random_distribution",
    "random_next_token",
    "random_queries",
    "random_seq_to_seq",
    "save",
    "separation",
    "shuffled",
    "token_ids",
]
