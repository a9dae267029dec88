"""The theorems' hypotheses, held against a task one by one: holds, fails, or undecided, and what was found.

"holds" and "fails" are proved, in exact arithmetic or in floats with every rounding bounded. "undecided" is what
remains: that *every* n of N vectors are independent cannot be decided in general (NP-hard), and the verdict then says
what was proved from below, and that a sample is a sample.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from byheart.errors import BadInput
from byheart.tasks.base import Task
from byheart.tasks.checks import Floats
from byheart.tasks.conditions import causal_conflict, conflict, permuted_twins, separation, token_ids
from byheart.tasks.counts import counted
from byheart.tasks.kruskal import kruskal
from byheart.tasks.query import QueryTask
from byheart.tasks.ranks import context_ranks, numerical_rank
from byheart.tasks.task import NextToken, NextTokenDistribution, SeqToSeq

Answer = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of a theorem, and what became of it on a task."""

    name: str
    verdict: Answer
    found: str
    needed: bool = True
    """Whether the theorem asks for it; if not, it is told because others do."""


def check_theorem(theorem: str, task: Task, *, positions: bool = False, causal: bool = False) -> list[Hypothesis]:
    """The hypotheses of ``theorem``, as ``byheart build`` calls it, on ``task``.

    Where a theorem has forms: for networks with ``positions``, or ``causal`` ones, which see no later tokens.

    >>> task = NextToken(tokens=[[0, 1], [1, 0], [2, 2]], labels=[0, 1, 1])
    >>> for hypothesis in check_theorem("dana-2025", task):
    ...     print(f"{hypothesis.verdict}: {hypothesis.name}: {hypothesis.found}")
    holds: one answer to every context: no two equal contexts ask for different answers
    holds: at least two tokens in a context: n = 2
    holds: contexts end in at least d different tokens: in 3; all of H·d_h + d is had up to d = 3
    """
    if theorem not in THEOREMS:
        raise BadInput(f"no hypotheses of {theorem!r} are known; there are {', '.join(THEOREMS)}")
    if theorem in _OF_SEQUENCES:
        return THEOREMS[theorem](task, positions=positions, causal=causal)
    if positions or causal:
        raise BadInput(f"{theorem} has no forms with or without positions; they are for {', '.join(_OF_SEQUENCES)}")
    return THEOREMS[theorem](task)


def _mahdavi(task: Task) -> list[Hypothesis]:
    if not isinstance(task, QueryTask):
        raise BadInput(f"mahdavi-2024 speaks of contexts with queries; the task is {task.kind}")
    n, d = task.size.length, task.size.dim
    assert d is not None
    return [
        _consistent(task, positions=False, what="context with its query"),
        Hypothesis("n < d", "holds" if n < d else "fails", f"n = {n}, d = {d}"),
        _full_ranks(task),
        _independent("every n queries are independent", task.queries, n),
        _general_position(task),
    ]


def _full_ranks(task: QueryTask) -> Hypothesis:
    """Exact ranks, and how far the poorest context of full rank is from a smaller one."""
    contexts = task.contexts[None] if task.shared else task.contexts
    n = task.size.length
    ranks = context_ranks(contexts).ranks
    full = ranks == n
    name = "every context has rank n"
    if not full.all():
        poor = int((~full).argmax())
        which = (
            "the shared context"
            if task.shared
            else f"{(~full).sum():,} of {len(full):,} contexts, first example {poor},"
        )
        return Hypothesis(name, "fails", f"{which} of rank {ranks[poor]} instead of {n}")
    scale = np.linalg.svd(contexts, compute_uv=False)
    poorest = int((scale[:, -1] / scale[:, 0]).argmin())
    nearly = numerical_rank(contexts[poorest])
    which = "the shared context" if task.shared else f"all {len(full):,} contexts"
    return Hypothesis(name, "holds", f"{which}, exactly; of the poorest, the {nearly}")


def _independent(name: str, vectors: Floats, k: int, *, needed: bool = True) -> Hypothesis:
    """Every k of the vectors [N, d] (all of them, if there are fewer)."""
    k = min(k, len(vectors))
    known = kruskal(vectors, wanted=k)
    verdict = known.verdict(k)
    proved = f"every {known.lower}: {known.lower_by}; every {k}: " if verdict.answer == "undecided" else ""
    return Hypothesis(name, verdict.answer, f"{proved}{verdict.why}", needed)


def _general_position(task: QueryTask) -> Hypothesis:
    """The older, stronger assumption: every d vectors of the task, each taken once, are independent."""
    contexts, d = task.contexts.reshape(-1, task.queries.shape[1]), task.queries.shape[1]
    vectors = np.unique(np.vstack([contexts, task.queries]), axis=0)
    return _independent("all tokens and queries in general position", vectors, d, needed=False)


def _dana(task: Task) -> list[Hypothesis]:
    if not isinstance(task, NextToken | NextTokenDistribution) or task.tokens is None:
        raise BadInput(f"dana-2025 speaks of next-token tasks over token ids; the task is {task.kind}")
    n, last = task.size.length, len(np.unique(task.tokens[:, -1]))
    found = f"in {last}; all of H·d_h + d is had up to d = {last}"
    return [
        _consistent(task, positions=True, what="context"),
        Hypothesis("at least two tokens in a context", "holds" if n > 1 else "fails", f"n = {n}"),
        Hypothesis("contexts end in at least d different tokens", "holds" if last > 1 else "fails", found),
    ]


def _madden(task: Task) -> list[Hypothesis]:
    if not isinstance(task, NextTokenDistribution) or task.tokens is None:
        raise BadInput(f"madden-2024 speaks of next-token distributions over token ids; the task is {task.kind}")
    zeros = int((task.probabilities == 0).sum())
    found = f"{zeros:,} of {task.probabilities.size:,} are 0: approached, not reached" if zeros else "all are"
    return [
        _consistent(task, positions=True, what="context"),
        Hypothesis("every probability is positive", "fails" if zeros else "holds", found),
    ]


_OF_SEQUENCES = ("kajitsuka-sato-2025", "kajitsuka-sato-2024", "kim-2023")


def _of_sequences(theorem: str, task: Task, *, positions: bool, causal: bool) -> list[Hypothesis]:
    """What the theorems on labels of sequences, or of their tokens, have in common; and no token twice."""
    if not isinstance(task, NextToken | SeqToSeq):
        raise BadInput(f"{theorem} speaks of next-token and seq-to-seq tasks; the task is {task.kind}")
    if causal and theorem != "kim-2023":
        raise BadInput(f"{theorem} has no causal form; kim-2023 has")
    twins = permuted_twins(task)
    what = str(twins or "no two sequences are permutations of each other")
    found = [
        Hypothesis("token-wise (r, δ)-separated", "holds", str(separation(task))),
        Hypothesis("distinct up to permutation", "holds" if twins is None else "fails", what, needed=False),
    ]
    if causal and isinstance(task, SeqToSeq):
        clash = causal_conflict(task)
        fine = "no two equal ones ask for different answers"
        name = "one answer to every beginning of a sequence"
        found.append(Hypothesis(name, "holds" if clash is None else "fails", str(clash or fine)))
    else:
        ordered = positions or causal
        found.append(_consistent(task, positions=ordered, what="sequence" if ordered else "sequence up to order"))
    return [*found, _no_token_twice(task)] if theorem == "kajitsuka-sato-2024" and not positions else found


def _no_token_twice(task: Task) -> Hypothesis:
    """The paper of 2024 asks for it; Byheart's proof does not (see the construction)."""
    counts = counted(token_ids(task))
    many = np.flatnonzero(counts.count > 1)
    what = "no sequence has a token twice"
    if len(many):
        example, times = int(counts.sequence[many[0]]), int(counts.count[many[0]])
        whole = len(np.unique(counts.sequence[many]))
        what = f"{whole:,} of {len(task.inputs):,} sequences have one, first example {example}, {times} times"
    return Hypothesis("no token twice in a sequence", "fails" if len(many) else "holds", what, needed=False)


def _consistent(task: Task, *, positions: bool, what: str) -> Hypothesis:
    clash = conflict(task, positions=positions)
    fine = f"no two equal {'contexts' if what == 'context' else 'ones'} ask for different answers"
    return Hypothesis(f"one answer to every {what}", "holds" if clash is None else "fails", str(clash or fine))


THEOREMS: dict[str, Callable[..., list[Hypothesis]]] = {
    "mahdavi-2024": _mahdavi,
    "dana-2025": _dana,
    "madden-2024": _madden,
    **{theorem: partial(_of_sequences, theorem) for theorem in _OF_SEQUENCES},
}
