"""The tasks by what they are called."""

from byheart.tasks.query import QueryLabels, QueryTargets
from byheart.tasks.task import NextToken, NextTokenDistribution, SeqToSeq

AnyTask = type[NextToken] | type[SeqToSeq] | type[NextTokenDistribution] | type[QueryLabels] | type[QueryTargets]

KINDS: dict[str, AnyTask] = {
    task.kind: task for task in (NextToken, SeqToSeq, NextTokenDistribution, QueryLabels, QueryTargets)
}
