"""Tasks: the data that a network has to memorize.

A task is N sequences of n tokens, with one answer per sequence. A token is an id or a vector. The answer is a label
(:class:`NextToken`), one label per token (:class:`SeqToSeq`) or a distribution over the next token
(:class:`NextTokenDistribution`). An example may also be a context with a query beside it, and a label
(:class:`QueryLabels`) or real numbers (:class:`QueryTargets`) as its answer. Tasks are checked on construction and are
immutable. :class:`Facts` are prompts with completions, for networks that :func:`byheart.compile` makes.

=========================  ==========================================================================================
module                     holds
=========================  ==========================================================================================
``task``                   the five kinds of task
``arrays``                 types and checks of arrays, and operations on large ones, a chunk at a time
``distinct``               equal rows of an array, and how often each token occurs in a sequence
``task_files``             :func:`load` and :func:`save`: tasks as ``.npz`` and ``.jsonl`` files
``random_tasks``           random tasks of every kind
``conditions``             examples that a network cannot tell apart
``separated``              the (r, δ)-separation of token vectors
``ranks``, ``kruskal``     exact ranks of float64 matrices, and bounds on their Kruskal rank
``theorems``               the hypotheses of theorems, checked on a task
``texts``, ``shipped``     texts in files, and the texts that come with Byheart
``tokenizers``             tokenizers of bytes and byte pairs
``loaded_tokenizer``       tokenizers of Hugging Face
``fact``, ``facts``        one fact, and many of them in arrays
``fact_files``             rows of ``.jsonl``, ``.csv``, ``.tsv``, ``.parquet`` files and of folders
``contexts``               the questions that reciting consists of: the last tokens, and the token that follows
``windows``                the smallest window in which every context has one answer, for texts, facts and tasks
``equal_contexts``         equal contexts of sequences, by doubling (compiled)
``fingerprints``           the fingerprint of contexts, in any order; ``fingerprint_kernels`` has its compiled loops
``edits``                  contexts with changed answers
``questions``              whatever users pass to a function, as questions
``corpus``                 next-token distributions and language modelling, from texts
``embeddings``             token vectors of texts, by a trained sentence model
``entropies``              the information in labels, in bits
=========================  ==========================================================================================
"""

from byheart.tasks.conditions import Conflict, Twins, causal_conflict, conflict, permuted_twins, prefixes, token_ids
from byheart.tasks.facts import Facts
from byheart.tasks.random_tasks import random_distribution, random_next_token, random_queries, random_seq_to_seq
from byheart.tasks.separated import Separation, separation
from byheart.tasks.task import (
    NextToken,
    NextTokenDistribution,
    QueryLabels,
    QueryTargets,
    QueryTask,
    Questions,
    SeqToSeq,
    Task,
    shuffled,
)
from byheart.tasks.task_files import load, save

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
