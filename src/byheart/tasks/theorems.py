"""Check the hypotheses of theorems on a task: each holds, fails, or is undecided, with the evidence.

"holds" and "fails" are proved, in exact arithmetic or in floats with every rounding bounded. "undecided" remains
because it is NP-hard to decide whether *every* n of N vectors are independent. The verdict then states the proved
lower bound, and that a sample is only a sample. Each construction states which hypotheses its theorem needs.
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
    """True if the theorem needs the hypothesis. Others are listed because other theorems need them."""

    @classmethod
    def decided(cls, name: str, true: bool, found: str, needed: bool = True) -> Self:
        """Return a hypothesis that was decided."""
        return cls(name, "holds" if true else "fails", found, needed)


def full_ranks(task: QueryTask) -> Hypothesis:
    """Check exactly that every context has rank n; state the numerical rank of the one closest to lower rank."""
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
    """Check that every k of the vectors [N, d] are independent (all of them, if there are fewer)."""
    k = min(k, len(vectors))
    bounds = kruskal(vectors, wanted=k)
    verdict = bounds.verdict(k)
    proved = f"every {bounds.lower}: {bounds.lower_by}; every {k}: " if verdict.answer == "undecided" else ""
    return Hypothesis(name, verdict.answer, f"{proved}{verdict.why}", needed)


def general_position(task: QueryTask) -> Hypothesis:
    """Check an older, stronger assumption: every d different vectors of the task are independent."""
    contexts, d = task.contexts.reshape(-1, task.queries.shape[1]), task.queries.shape[1]
    vectors = np.unique(np.vstack([contexts, task.queries]), axis=0)
    return independent("all tokens and queries in general position", vectors, d, needed=False)


def sequence_hypotheses(theorem: str, task: Task, *, positions: bool = False, causal: bool = False) -> list[Hypothesis]:
    """Check the common hypotheses of theorems on labels of sequences, or of their tokens.

    They depend on whether the network has ``positions``, or is ``causal``: then it sees no later tokens.
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
    """Check an assumption of Kajitsuka & Sato 2024. Byheart's proof does without it (see the construction)."""
    counts = count_tokens(token_ids(task))
    many = np.flatnonzero(counts.count > 1)
    what = "no sequence has a token twice"
    if len(many):
        example, times = int(counts.sequence[many[0]]), int(counts.count[many[0]])
        whole = len(np.unique(counts.sequence[many]))
        what = f"{whole:,} of {len(task.inputs):,} sequences have one, first example {example}, {times} times"
    return Hypothesis.decided("no token twice in a sequence", not len(many), what, needed=False)


def one_answer(task: Task, *, positions: bool, what: str) -> Hypothesis:
    """Check that equal questions, called ``what``, have equal answers. With ``positions``, order counts."""
    clash = conflict(task, positions=positions)
    fine = f"no two equal {'contexts' if what == 'context' else 'ones'} ask for different answers"
    return Hypothesis.decided(f"one answer to every {what}", clash is None, str(clash or fine))
