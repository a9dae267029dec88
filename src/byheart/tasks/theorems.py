"""What theorems assume, checked on a task one by one: holds, fails, or undecided, and what was seen.

"holds" and "fails" are proved, in exact arithmetic or in floats with every rounding bounded. "undecided" is what
remains: that *every* n of N vectors are independent cannot be decided in general (NP-hard), and the verdict then says
what was proved from below, and that a sample is a sample. Each construction says which of them its theorem needs.
"""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from byheart.errors import BadInput
from byheart.tasks.arrays import Floats
from byheart.tasks.conditions import causal_conflict, conflict, permuted_twins, token_ids
from byheart.tasks.distinct import count_tokens
from byheart.tasks.kruskal import kruskal
from byheart.tasks.ranks import context_ranks, numerical_rank
from byheart.tasks.separated import separation
from byheart.tasks.task import NextToken, QueryTask, SeqToSeq, Task

Answer = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of a theorem, and whether a task meets it."""

    name: str
    verdict: Answer
    found: str
    needed: bool = True
    """Whether the theorem needs it; if not, it is listed because other theorems do."""

    @classmethod
    def decided(cls, name: str, true: bool, found: str, needed: bool = True) -> Self:
        """A hypothesis that was decided."""
        return cls(name, "holds" if true else "fails", found, needed)


def full_ranks(task: QueryTask) -> Hypothesis:
    """Exact ranks, and how far the poorest context of full rank is from a smaller one."""
    contexts = task.contexts[None] if task.shared else task.contexts
    n, ranks, name = task.size.length, context_ranks(contexts).ranks, "every context has rank n"
    poor = np.flatnonzero(ranks != n)
    if len(poor):
        some = f"{len(poor):,} of {len(ranks):,} contexts, first example {poor[0]},"
        which = "the shared context" if task.shared else some
        return Hypothesis(name, "fails", f"{which} of rank {ranks[poor[0]]} instead of {n}")
    scale = np.linalg.svd(contexts, compute_uv=False)
    poorest = int((scale[:, -1] / scale[:, 0]).argmin())
    nearly = numerical_rank(contexts[poorest])
    which = "the shared context" if task.shared else f"all {len(ranks):,} contexts"
    return Hypothesis(name, "holds", f"{which}, exactly; of the poorest, the {nearly}")


def independent(name: str, vectors: Floats, k: int, *, needed: bool = True) -> Hypothesis:
    """Every k of the vectors [N, d] (all of them, if there are fewer)."""
    k = min(k, len(vectors))
    known = kruskal(vectors, wanted=k)
    verdict = known.verdict(k)
    proved = f"every {known.lower}: {known.lower_by}; every {k}: " if verdict.answer == "undecided" else ""
    return Hypothesis(name, verdict.answer, f"{proved}{verdict.why}", needed)


def general_position(task: QueryTask) -> Hypothesis:
    """The older, stronger assumption: every d vectors of the task, each taken once, are independent."""
    contexts, d = task.contexts.reshape(-1, task.queries.shape[1]), task.queries.shape[1]
    vectors = np.unique(np.vstack([contexts, task.queries]), axis=0)
    return independent("all tokens and queries in general position", vectors, d, needed=False)


def sequence_hypotheses(theorem: str, task: Task, *, positions: bool = False, causal: bool = False) -> list[Hypothesis]:
    """What the theorems on labels of sequences, or of their tokens, have in common.

    For networks with ``positions``, or for ``causal`` ones, which see no later tokens.
    """
    if not isinstance(task, NextToken | SeqToSeq):
        raise BadInput(f"{theorem} is about next-token and seq-to-seq tasks; the task is {task.kind}")
    twins = permuted_twins(task)
    what = str(twins or "no two sequences are permutations of each other")
    common = [
        Hypothesis("token-wise (r, δ)-separated", "holds", str(separation(task))),
        Hypothesis.decided("distinct up to permutation", twins is None, what, needed=False),
    ]
    if causal and isinstance(task, SeqToSeq):
        clash, fine = causal_conflict(task), "no two equal ones ask for different answers"
        name = "one answer to every beginning of a sequence"
        return [*common, Hypothesis.decided(name, clash is None, str(clash or fine))]
    ordered = positions or causal
    return [*common, one_answer(task, positions=ordered, what="sequence" if ordered else "sequence up to order")]


def no_token_twice(task: Task) -> Hypothesis:
    """Asked for by Kajitsuka & Sato 2024; Byheart's proof does without (see the construction)."""
    counts = count_tokens(token_ids(task))
    many = np.flatnonzero(counts.count > 1)
    what = "no sequence has a token twice"
    if len(many):
        example, times = int(counts.sequence[many[0]]), int(counts.count[many[0]])
        whole = len(np.unique(counts.sequence[many]))
        what = f"{whole:,} of {len(task.inputs):,} sequences have one, first example {example}, {times} times"
    return Hypothesis.decided("no token twice in a sequence", not len(many), what, needed=False)


def one_answer(task: Task, *, positions: bool, what: str) -> Hypothesis:
    """No two equal questions, called ``what``, ask for different answers; with ``positions`` order counts."""
    clash = conflict(task, positions=positions)
    fine = f"no two equal {'contexts' if what == 'context' else 'ones'} ask for different answers"
    return Hypothesis.decided(f"one answer to every {what}", clash is None, str(clash or fine))
