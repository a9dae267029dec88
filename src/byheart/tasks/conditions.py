"""Find examples that some network cannot tell apart but that have different answers.

A network with positions distinguishes any two sequences that differ. A permutation-equivariant one sees a sequence as a
multiset of tokens, and each token as that token in that multiset. A query is distinguished from the tokens of its
context, whose order never matters.
"""

from dataclasses import dataclass

import numpy as np

from byheart.tasks.arrays import Ids
from byheart.tasks.distinct import distinct, first_positions
from byheart.tasks.task import NextTokenDistribution, QueryTargets, QueryTask, SeqToSeq, Task

Place = tuple[int] | tuple[int, int]
"""An example, or an example and a position in it."""


@dataclass(frozen=True)
class Twins:
    """Two examples that hold the same tokens, up to order.

    >>> print(Twins(3, 7))
    example 3 and example 7 hold the same tokens up to order
    """

    first: int
    second: int

    def __str__(self) -> str:
        return f"example {self.first} and example {self.second} hold the same tokens up to order"


@dataclass(frozen=True)
class Conflict:
    """Two places that look the same to the network but have different answers.

    >>> print(Conflict((0, 1), (3, 1), ("label 4", "label 5"), positions=True))
    example 0, position 1 and example 3, position 1 are equal tokens in equal sequences: asked for label 4 and label 5
    """

    first: Place
    second: Place
    answers: tuple[str, str]
    """Descriptions of the two answers."""
    positions: bool
    """True if the network knows positions, so that another order of the tokens would distinguish the two places."""
    queries: bool = False
    """True if the sequences have queries; these are equal too."""
    causal: bool = False
    """True if only the tokens up to each place were compared."""

    def __str__(self) -> str:
        first, second = (
            f"example {place[0]}" + (f", position {place[1]}" if len(place) == 2 else "")
            for place in (self.first, self.second)
        )
        if self.causal:
            return (
                f"{first} and {second} have equal tokens up to there: asked for {self.answers[0]} and {self.answers[1]}"
            )
        what = "equal tokens in equal sequences" if len(self.first) == 2 else "equal sequences"
        order = " with equal queries" if self.queries else "" if self.positions else " up to order"
        return f"{first} and {second} are {what}{order}: asked for {self.answers[0]} and {self.answers[1]}"


def token_ids(task: Task) -> Ids:
    """Assign numbers to the distinct tokens, in the order in which they first appear: int64 [N, n].

    >>> from byheart.tasks import NextToken
    >>> token_ids(NextToken(vectors=[[[0.5], [0.0]], [[-0.0], [2.0]]], labels=[0, 1]))
    array([[0, 1],
           [1, 2]])
    """
    examples, length = task.inputs.shape[:2]
    return distinct(task.inputs.reshape(examples * length, -1)).ids.reshape(examples, length)


def permuted_twins(task: Task) -> Twins | None:
    """Return the first example that is a permutation of an earlier one, and that one; None if there is none.

    >>> from byheart.tasks import NextToken
    >>> permuted_twins(NextToken(tokens=[[0, 1], [2, 2], [1, 0]], labels=[0, 0, 0]))
    Twins(first=0, second=2)
    """
    first = first_equal(task, positions=False)
    repeated = first != np.arange(len(first))
    if not repeated.any():
        return None
    second = int(repeated.argmax())
    return Twins(int(first[second]), second)


def prefixes(task: Task) -> Ids:
    """Assign numbers to the prefixes of all sequences: int64 [N, n], equal ones for equal tokens up to that place.

    >>> from byheart.tasks import NextToken
    >>> prefixes(NextToken(tokens=[[0, 1], [0, 2], [0, 1]], labels=[0, 0, 0]))
    array([[0, 1],
           [0, 2],
           [0, 1]])
    """
    tokens = token_ids(task)
    kinds, numbers = int(tokens.max()) + 1, np.zeros_like(tokens)
    before, used = np.zeros(len(tokens), np.int64), 0
    for k in range(tokens.shape[1]):
        before = np.unique(before * kinds + tokens[:, k], return_inverse=True)[1].reshape(-1).astype(np.int64)
        numbers[:, k] = before + used
        used += int(before.max()) + 1
    return numbers


def causal_conflict(task: SeqToSeq) -> Conflict | None:
    """Return the first place whose label differs from that of an earlier place with the same tokens up to it.

    >>> from byheart.tasks import SeqToSeq
    >>> print(causal_conflict(SeqToSeq(tokens=[[0, 1], [0, 2]], labels=[[1, 0], [2, 0]])))
    example 0, position 0 and example 1, position 0 have equal tokens up to there: asked for label 1 and label 2
    """
    numbers, labels = prefixes(task).ravel(), task.labels.ravel()
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    earlier = first[inverse.reshape(-1)]
    wrong = labels != labels[earlier]
    if not wrong.any():
        return None
    second, length = int(wrong.argmax()), task.labels.shape[1]
    places = divmod(int(earlier[second]), length), divmod(second, length)
    answers = (f"label {labels[earlier[second]]}", f"label {labels[second]}")
    return Conflict(*places, answers, positions=True, causal=True)


def conflict(task: Task, *, positions: bool) -> Conflict | None:
    """Return the first place whose answer differs from that of an earlier place that looks the same, or None.

    With ``positions``, examples look the same if they are equal; without, if they are permutations of each other. In a
    sequence-to-sequence task, tokens are compared: with ``positions``, at the same position of equal sequences;
    without, equal tokens of sequences that are permutations of each other, or of one sequence.

    >>> from byheart.tasks import NextToken
    >>> task = NextToken(tokens=[[0, 1], [1, 0]], labels=[4, 5])
    >>> conflict(task, positions=True) is None
    True
    >>> print(conflict(task, positions=False))
    example 0 and example 1 are equal sequences up to order: asked for label 4 and label 5
    """
    firsts = first_equal(task, positions=positions)
    if isinstance(task, SeqToSeq):
        return _conflict_of_tokens(task, firsts, positions)
    answers = task.answers.reshape(len(firsts), -1)
    wrong = answers != answers[firsts]
    if not wrong.any():
        return None
    second, column = divmod(int(wrong.argmax()), answers.shape[1])
    first = int(firsts[second])
    words = "target {}" if isinstance(task, QueryTargets) else "label {}"
    if isinstance(task, QueryTargets) and task.label_count > 1:
        words += f" in coordinate {column}"
    if isinstance(task, NextTokenDistribution):
        words = "probability {} of token " + str(column)
    answers_in_words = (words.format(answers[first, column]), words.format(answers[second, column]))
    return Conflict((first,), (second,), answers_in_words, positions, queries=isinstance(task, QueryTask))


def _conflict_of_tokens(task: SeqToSeq, firsts: Ids, positions: bool) -> Conflict | None:
    length = task.labels.shape[1]
    # The first place that looks like a token's is in the first sequence that looks like its own.
    first = np.arange(length)[None] if positions else first_positions(_comparable(task), firsts)
    wrong = task.labels != task.labels[firsts[:, None], first]
    if not wrong.any():
        return None
    i, k = divmod(int(wrong.argmax()), length)
    j, m = int(firsts[i]), int(np.broadcast_to(first, wrong.shape)[i, k])
    return Conflict((j, m), (i, k), (f"label {task.labels[j, m]}", f"label {task.labels[i, k]}"), positions)


def first_equal(task: Task, *, positions: bool) -> Ids:
    """Return for each example the first equal one, or without ``positions`` the first permutation of it: int64 [N].

    >>> from byheart.tasks import NextToken
    >>> first_equal(NextToken(tokens=[[0, 1], [2, 2], [1, 0]], labels=[0, 0, 0]), positions=False)
    array([0, 1, 0])
    """
    sequences = _comparable(task)
    if isinstance(task, QueryTask):
        queries = distinct(task.queries).ids[:, None]
        return distinct(np.hstack([np.sort(sequences, axis=1), queries])).representatives
    return distinct(sequences if positions else np.sort(sequences, axis=1)).representatives


def _comparable(task: Task) -> Ids:
    """Return ids of the tokens, or the numbers of distinct vectors: int64 [N, n]."""
    return token_ids(task) if task.tokens is None else task.tokens
