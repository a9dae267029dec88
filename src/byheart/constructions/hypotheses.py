"""What a construction demands of a task, checked before it starts: it refuses with the hypothesis and the example."""

from byheart.errors import BadInput
from byheart.tasks import NextToken, SeqToSeq, Task, conflict


def labelled(name: str, task: Task) -> NextToken | SeqToSeq:
    """Refuse tasks that do not ask for labels."""
    if not isinstance(task, NextToken | SeqToSeq):
        raise BadInput(f"{name} memorizes labels of sequences; the task is {task.kind}")
    return task


def consistent(name: str, task: Task, *, positions: bool) -> NextToken | SeqToSeq:
    """Refuse tasks that ask for two answers to one question, naming the two examples."""
    task = labelled(name, task)
    found = conflict(task, positions=positions)
    if found is not None:
        hint = "" if positions or conflict(task, positions=True) is not None else "; --positions makes order matter"
        raise BadInput(f"{name} cannot memorize this task: {found}{hint}")
    return task
