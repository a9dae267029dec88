"""The outputs of a trained network, enclosed in balls (:mod:`byheart.networks.balls`), from the weights as they are.

Every weight and every coordinate of a vector is an exact dyadic number. The steps are those of
:mod:`byheart.networks.trained.steps`, over balls that contain the true values. With more bits the radii shrink.

**What examples have in common is computed once**, which changes no value:

- before the first attention a vector depends only on its token and its place;
- after it, attention being causal, on the tokens up to its own: every distinct *beginning* of a sequence is a *node*;
- after the last attention only the nodes remain at which an answer is read.

So the stream is a matrix of distinct rows, with the index of its row for every node. All products with weights are
products of matrices, and attention is computed for groups of nodes that see the same nodes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from byheart.networks.balls import Ball, Balls, Matrix, averages, entries, exact, matrix, precision
from byheart.networks.trained.steps import Ids, Numbers, StepSequence, TrainedAttention
from byheart.networks.trained.trained_network import Inputs, TrainedNetwork, lengths
from byheart.progress import Report

MAX_BALLS = 1 << 20
"""Approximate number of balls of one step in memory at a time."""


def enclose(
    network: TrainedNetwork, inputs: Inputs, *, bits: int, report: Report | None = None
) -> Iterator[tuple[int, list[Ball]]]:
    """Yield the index and the outputs of every example, C balls, in an order in which neighbours have much in common.

    >>> from byheart.networks.trained import Activation, AffineMap, StepSequence, TokenTable
    >>> table = {"embedding.W_E": np.array([[1.0], [2.0]]), "unembedding.W_U": np.array([[1.0], [0.5]])}
    >>> block = StepSequence((TokenTable("embedding.W_E"), Activation("tanh"), AffineMap("unembedding.W_U")))
    >>> [(example, row)] = enclose(TrainedNetwork((block,), table), (np.array([[0, 1]]), None), bits=64)
    >>> example, [ball.str(10) for ball in row]
    (0, ['[0.9640275801 +/- 2.42e-11]', '[0.4820137900 +/- 3.80e-11]'])
    """
    network.check_inputs(inputs)
    sequences, queries = inputs
    N, n = sequences.shape[:2]
    order = np.arange(N) if queries is not None else np.lexsort(sequences.T[::-1])
    is_shared = queries is not None and N > 1 and sequences.strides[0] == 0
    balls_each = max((1 if is_shared else n + (queries is not None)) * network.width, network.heads * n)
    each = max(1, MAX_BALLS // balls_each)
    over = BallNumbers(network.weights)
    for start in range(0, N, each):
        chosen = order[start : start + each]
        if queries is None:
            nodes = _beginnings(sequences[chosen], lengths(network, sequences[chosen]))
        elif is_shared:
            nodes = _beside_one(sequences[0], queries[chosen])
        else:
            nodes = _beside_own(sequences[chosen], queries[chosen])
        with precision(bits):
            rows = _outputs(network, nodes, over)
        yield from zip(chosen.tolist(), rows, strict=True)
        if report is not None:
            report(start + len(chosen), N)


Group: TypeAlias = tuple[Sequence[int], Ids]
"""Nodes that ask, and the nodes that all of them see."""


@dataclass(frozen=True)
class _Nodes:
    """The vectors of some examples that may differ from each other."""

    content: npt.NDArray[Any]
    """Token id or vector of each node: [V] or [V, d]."""
    places: Ids
    """Place of each node, [V]."""
    groups: list[Group]
    """All nodes, in groups that see the same nodes."""
    answers: Ids
    """Node at which each example is answered, [N]."""

    @cached_property
    def answered(self) -> list[Group]:
        """The groups, reduced to nodes at which an answer is read."""
        read = set(self.answers.tolist())
        reduced: list[Group] = [([node for node in asking if node in read], seen) for asking, seen in self.groups]
        return [group for group in reduced if group[0]]


def _beginnings(tokens: Ids, lengths: Ids) -> _Nodes:
    """Return a node for every distinct beginning of a sequence, which sees its own beginnings.

    Sequences are in lexicographic order: a beginning that is not the row's above is a new one.
    """
    longest = int(lengths.max())
    tokens, places = tokens[:, :longest], np.arange(longest)
    new = np.ones(tokens.shape, np.bool_)
    new[1:] = np.logical_or.accumulate(tokens[1:] != tokens[:-1], axis=1)
    new &= places < lengths[:, None]
    ids = np.maximum.accumulate(np.where(new, np.cumsum(new).reshape(new.shape) - 1, -1), axis=0)
    rows, columns = np.nonzero(new)
    groups: list[Group] = [([node], ids[i, : k + 1]) for node, (i, k) in enumerate(zip(rows, columns, strict=True))]
    return _Nodes(tokens[rows, columns], columns, groups, ids[np.arange(len(tokens)), lengths - 1])


def _beside_one(context: npt.NDArray[Any], queries: npt.NDArray[Any]) -> _Nodes:
    """Return the queries, then the context that all of them see."""
    N, n = len(queries), len(context)
    places = np.concatenate([np.zeros(N, np.int64), np.arange(1, n + 1)])
    group = range(N), np.arange(N, N + n)
    return _Nodes(np.concatenate([queries, context]), places, [group], np.arange(N))


def _beside_own(contexts: npt.NDArray[Any], queries: npt.NDArray[Any]) -> _Nodes:
    """Return the queries, then the context of each."""
    N, n, d = contexts.shape
    places = np.concatenate([np.zeros(N, np.int64), np.tile(np.arange(1, n + 1), N)])
    groups: list[Group] = [([i], np.arange(N + i * n, N + (i + 1) * n)) for i in range(N)]
    return _Nodes(np.concatenate([queries, contexts.reshape(N * n, d)]), places, groups, np.arange(N))


@dataclass(frozen=True)
class _Stream:
    """Distinct rows; a node's row is ``rows[of[node]]``, and −1 marks nodes that no later step reads."""

    rows: Balls
    places: Ids
    """Place of each row."""
    of: Ids

    def at(self, nodes: Sequence[int] | Ids) -> tuple[Balls, Ids]:
        """Return the distinct rows of some nodes, and the index of each node's row among them."""
        chosen, which = np.unique(self.of[np.asarray(nodes)], return_inverse=True)
        assert chosen[0] >= 0, "a node is read that was given up"
        return self.rows[chosen], which.reshape(-1)


def _outputs(network: TrainedNetwork, nodes: _Nodes, over: "BallNumbers") -> list[list[Ball]]:
    """Return the outputs of every example."""
    stream, remaining = _start(network, nodes), network.attentions
    for block in network.blocks:
        stream, remaining = _through(block, stream, nodes, over, remaining)
    return [stream.rows[row].tolist() for row in stream.of[nodes.answers].tolist()]


def _start(network: TrainedNetwork, nodes: _Nodes) -> _Stream:
    """Return the vectors as they are read; of token ids, one row for each token at each place."""
    if network.embedding is None:
        return _Stream(exact(nodes.content), nodes.places, np.arange(len(nodes.content)))
    pairs, of = np.unique(np.stack([nodes.content, nodes.places], axis=1), axis=0, return_inverse=True)
    return _Stream(pairs[:, 0], pairs[:, 1], of.reshape(-1))


def _through(
    block: StepSequence, before: _Stream, nodes: _Nodes, over: "BallNumbers", remaining: int
) -> tuple[_Stream, int]:
    """Return the stream after a block, and the number of attention steps that remain of ``remaining``."""
    after = before
    for step in block.steps:
        if isinstance(step, TrainedAttention):
            remaining -= 1
            after = _attended(step, after, nodes.groups if remaining else nodes.answered, over)
        else:
            after = replace(after, rows=step.apply(after.rows, after.places, over))
    if not block.skip:
        return after, remaining
    origin = np.arange(len(after.rows))
    if after.of is not before.of:
        read = np.flatnonzero(after.of >= 0)
        origin[after.of[read]] = before.of[read]
    return replace(after, rows=after.rows + before.rows[origin]), remaining


def _attended(step: TrainedAttention, stream: _Stream, groups: list[Group], over: "BallNumbers") -> _Stream:
    """Return the stream after attention, which has the nodes that ask in ``groups``, each with a row of its own."""
    asking = [node for askers, _ in groups for node in askers]
    is_seen = np.zeros(len(stream.of), np.bool_)
    for _, sight in groups:
        is_seen[sight] = True
    seen = np.flatnonzero(is_seen)
    (asking_rows, which_asks), (seen_rows, which_seen) = stream.at(asking), stream.at(seen)
    index = np.full(len(stream.of), -1)
    index[seen] = which_seen

    def mix(q: Balls, k: Balls, v: Balls) -> Balls:
        """Return the heads' averages for the nodes that ask, group by group."""
        results, start = [], 0
        for askers, sight in groups:
            own, chosen = which_asks[start : start + len(askers)], index[sight]
            keys = k[chosen]
            results.append(_averages(q[own], keys, keys if v is k else v[chosen]))
            start += len(askers)
        return np.concatenate(results)

    few = len(asking_rows) < len(seen_rows)
    rows = step.attend(asking_rows, seen_rows, over, mix, keys=not few, values=not few)
    of = np.full(len(stream.of), -1)
    of[asking] = np.arange(len(asking))
    return _Stream(rows, stream.places[stream.of[asking]], of)


def _averages(q: Balls, k: Balls, v: Balls) -> Balls:
    """Return the averages [A, H, d_v] of rows q [A, H, c] that all see the same; k and v have H heads, or one."""
    A, H, c = q.shape
    if k is v:  # one product for all heads
        vectors = matrix(k[:, 0])
        return entries(averages(matrix(q.reshape(A * H, c)), vectors, vectors)).reshape(A, H, -1)
    k, v = (np.broadcast_to(x, (len(x), H, x.shape[2])) for x in (k, v))
    heads = (averages(matrix(q[:, h]), matrix(k[:, h]), matrix(v[:, h])) for h in range(H))
    return np.stack([entries(head) for head in heads], axis=1)


def _each(name: str) -> Any:
    """Return the function that calls a method of every ball of an array."""
    return np.frompyfunc(lambda ball: getattr(ball, name)(), 1, 1)


class BallNumbers(Numbers):
    """Numbers of ball arithmetic, with the precision that is set."""

    rsqrt: Any = _each("rsqrt")
    exp: Any = _each("exp")
    erfc: Any = _each("erfc")
    tanh: Any = _each("tanh")
    relu: Any = _each("nonnegative_part")

    def exact(self, array: npt.NDArray[Any]) -> Balls:
        """Return floats as balls of radius zero."""
        return exact(array)

    def matrix(self, array: npt.NDArray[Any]) -> Matrix:
        """Return floats as a matrix of balls."""
        return matrix(array)

    def product(self, x: Balls, matrix_: Matrix) -> Balls:
        """Return the matrix product."""
        return entries(matrix(x) * matrix_)

    def sinusoids(self, places: Ids, dim: int) -> Balls:
        """Return sines and cosines of s·10000^(−2i/dim), alternating."""
        distinct, which = np.unique(places, return_inverse=True)
        table = [self._cached(("sinusoid", s, dim), partial(_sinusoid, s, dim)) for s in distinct.tolist()]
        return np.array(table, object)[which.reshape(places.shape)]

    def scalar(self, numerator: int, denominator: int = 1) -> Ball:
        """Return a ball around a rational number, or an integer itself."""
        from flint import arb, fmpq

        return arb(numerator) if denominator == 1 else arb(fmpq(numerator, denominator))

    @property
    def pi(self) -> Ball:
        """Ball around π."""
        from flint import arb

        return arb.pi()

    def sqrt(self, x: Ball) -> Ball:
        """Return √x."""
        return x.sqrt()


def _sinusoid(place: int, dim: int) -> list[Ball]:
    from flint import arb

    angles = [place * (arb(10000).log() * -2 * i / dim).exp() for i in range((dim + 1) // 2)]
    return [x for angle in angles for x in (angle.sin(), angle.cos())][:dim]
