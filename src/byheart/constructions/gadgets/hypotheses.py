"""What a construction demands of a task, checked before it starts: it refuses with the hypothesis and the example."""

from byheart.errors import BadInput
from byheart.networks.softmax import SoftmaxNetwork
from byheart.tasks import NextToken, SeqToSeq, Task, causal_conflict, conflict


def labelled(name: str, task: Task) -> NextToken | SeqToSeq:
    """Refuse tasks that do not ask for labels."""
    if not isinstance(task, NextToken | SeqToSeq):
        raise BadInput(f"{name} memorizes labels of sequences; the task is {task.kind}")
    return task


def consistent(name: str, task: Task, *, positions: bool, causal: bool = False) -> NextToken | SeqToSeq:
    """Refuse tasks that ask for two answers to one question, naming the two examples.

    ``causal``: a question is a sequence up to a position, in its order.
    """
    task = labelled(name, task)
    positions = positions or causal
    found = causal_conflict(task) if causal and isinstance(task, SeqToSeq) else conflict(task, positions=positions)
    if found is not None:
        hint = "" if positions or conflict(task, positions=True) is not None else "; --positions makes order matter"
        raise BadInput(f"{name} cannot memorize this task: {found}{hint}")
    return task


class BeyondCapacity(BadInput):
    """More examples than the features of a network tell apart; ``network`` has the attention, and values of zero."""

    def __init__(self, message: str, network: SoftmaxNetwork, rank: int) -> None:
        super().__init__(message)
        self.network, self.rank = network, rank
