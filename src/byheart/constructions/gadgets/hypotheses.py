"""Checks of a construction's demands on a task before it starts; refusals name the hypothesis and the example."""

from byheart.constructions.plan import BYTES_PER_PARAMETER
from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.tasks import NextToken, NextTokenDistribution, SeqToSeq, Task, causal_conflict, conflict
from byheart.tasks.arrays import Ids

LARGEST_TABLE = 10**8
"""Largest number of rows of an embedding table."""


def labelled(name: str, task: Task) -> NextToken | SeqToSeq:
    """Raise BadInput unless ``task`` asks for labels of sequences, and return it."""
    if not isinstance(task, NextToken | SeqToSeq):
        raise BadInput(f"{name} memorizes labels of sequences; the task is {task.kind}")
    return task


def over_ids(name: str, task: Task) -> tuple[NextToken | NextTokenDistribution, Ids]:
    """Return a consistent next-token task, of labels or distributions over token ids, and its tokens; else BadInput."""
    if not isinstance(task, NextToken | NextTokenDistribution) or task.tokens is None:
        kinds = "next-token and next-token-distribution tasks over token ids"
        raise BadInput(f"{name} memorizes {kinds}; the task is {task.kind}" + ", of vectors" * (task.tokens is None))
    check_consistent(name, task, positions=True)
    return task, task.tokens


def consistent(name: str, task: Task, *, positions: bool, causal: bool = False) -> NextToken | SeqToSeq:
    """Return ``task``; raise BadInput if it does not ask for labels, or has two answers to one question."""
    task = labelled(name, task)
    check_consistent(name, task, positions=positions, causal=causal)
    return task


def check_consistent(name: str, task: Task, *, positions: bool, causal: bool = False) -> None:
    """Raise BadInput if a task has two answers to one question, and name the two examples.

    With ``causal`` a question is a sequence up to a position, in its order.
    """
    positions = positions or causal
    clash = causal_conflict(task) if causal and isinstance(task, SeqToSeq) else conflict(task, positions=positions)
    if clash is not None:
        hint = "" if positions or conflict(task, positions=True) is not None else "; --positions makes order matter"
        raise BadInput(f"{name} cannot memorize this task: {clash}{hint}")


def check_table(task: Task) -> None:
    """Raise BadInput if the vocabulary is too large for an embedding table."""
    if task.vocab > LARGEST_TABLE:
        raise BadInput(f"vocab is {task.vocab}; an embedding table can have {LARGEST_TABLE} rows at most")
    check_memory(BYTES_PER_PARAMETER * task.vocab, f"an embedding table of {task.vocab:,} rows")
