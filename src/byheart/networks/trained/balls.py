"""What a trained network outputs, enclosed: ball arithmetic (python-flint's ``arb``) on the weights as they are.

Every weight and every coordinate of a vector is an exact dyadic number. The evaluation follows the definition in
:mod:`byheart.networks.trained.steps`, each operation on balls [m ± r] that contain the true value: norms by balls of
means, variances and 1/√, GELU by the error function, softmax by exponentials of scores less a number near their
maximum. With more bits the radii shrink; nothing is ever sampled or assumed.

**What examples have in common is computed once**, which changes no value:

- in front of the first attention a vector depends on its token and its place only;
- behind it, attention being causal, on the tokens up to its own: every distinct *beginning* of a sequence is a *node*;
- behind the last attention only the nodes are left at which an answer is read.

So the stream is a matrix of distinct rows, and for every node the row that it has. All products with weights are
products of matrices; attention goes by groups of nodes that see the same ones, and where few nodes ask, keys and values
are not computed: products of weights come first, which are exact identities.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from byheart.files.memory import check_memory
from byheart.networks.reading import Inputs
from byheart.networks.softmax.balls import Ball, Matrix, matrix, precision, softmax, stacked
from byheart.networks.trained.steps import (
    Activation,
    AffineMap,
    Norm,
    PositionTable,
    Step,
    StepSequence,
    TokenTable,
    TrainedAttention,
)
from byheart.networks.trained.trained_network import Ids, TrainedNetwork, check_inputs, lengths
from byheart.progress import Report

BALLS = 1 << 20
"""So many balls of one step, nearly, are in memory at a time."""
SIGHT = 8
"""Bytes for each pair of a sequence's tokens: those that see each other are half of them, and stand in two lists."""
Row: TypeAlias = list[Ball]


def enclose(
    network: TrainedNetwork, inputs: Inputs, *, bits: int, report: Report | None = None
) -> Iterator[tuple[int, Row]]:
    """Every example and its outputs, C balls, in an order in which neighbours have much in common.

    >>> table = {"embedding.W_E": np.array([[1.0], [2.0]]), "unembedding.W_U": np.array([[1.0], [0.5]])}
    >>> block = StepSequence((TokenTable("embedding.W_E"), Activation("tanh"), AffineMap("unembedding.W_U")))
    >>> [(example, row)] = enclose(TrainedNetwork((block,), table), (np.array([[0, 1]]), None), bits=64)
    >>> example, [ball.str(10) for ball in row]
    (0, ['[0.9640275801 +/- 2.42e-11]', '[0.4820137900 +/- 3.80e-11]'])
    """
    check_inputs(network, inputs)
    sequences, queries = inputs
    order = np.arange(len(sequences)) if queries is not None else np.lexsort(sequences.T[::-1])
    shared = queries is not None and len(sequences) > 1 and sequences.strides[0] == 0
    nodes_each = 1 if shared else sequences.shape[1] + (queries is not None)
    each = max(1, BALLS // (nodes_each * network.width))
    with precision(bits):
        layers = _Layers(network)
    for start in range(0, len(order), each):
        chosen = order[start : start + each]
        with precision(bits):
            if queries is None:
                rows = layers(_beginnings(sequences[chosen], lengths(network, sequences[chosen])))
            elif shared:
                rows = layers(_beside_one(sequences[0], queries[chosen]))
            else:
                rows = layers(_beside_own(sequences[chosen], queries[chosen]))
        yield from zip(chosen.tolist(), rows, strict=True)
        if report is not None:
            report(start + len(chosen), len(order))


Group: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Nodes that ask, and the nodes that all of them see."""


@dataclass(frozen=True)
class _Nodes:
    """The vectors of some examples, as far as they may differ."""

    content: npt.NDArray[Any]
    """The token id of each, or its vector: [V] or [V, d]."""
    places: Ids
    """[V]"""
    groups: list[Group]
    """Who sees what."""
    answers: Ids
    """[N], the node at which each example is answered."""

    @cached_property
    def asked(self) -> list[Group]:
        """The groups, with those nodes only at which an answer is read."""
        read = set(self.answers.tolist())
        left: list[Group] = [([node for node in asking if node in read], seen) for asking, seen in self.groups]
        return [group for group in left if group[0]]


def _beginnings(tokens: Ids, lengths: Ids) -> _Nodes:
    """A node for every distinct beginning of a sequence, which sees its own beginnings."""
    check_memory(SIGHT * int((lengths**2).sum()), f"what is seen in sequences of {lengths.max():,} tokens")
    content, places, answers = [], [], np.empty(len(tokens), np.int64)
    sees: list[list[int]] = []
    parents = np.full(len(tokens), -1)
    for place in range(int(lengths.max())):
        there = np.flatnonzero(lengths > place)
        pairs, which = np.unique(np.stack([parents[there], tokens[there, place]], axis=1), axis=0, return_inverse=True)
        first = len(sees)
        for parent, token in pairs.tolist():
            sees.append([*(sees[parent] if parent >= 0 else []), len(sees)])
            content.append(token)
            places.append(place)
        parents[there] = first + which.reshape(-1)
        answers[there] = parents[there]
    return _Nodes(np.array(content), np.array(places), [([node], seen) for node, seen in enumerate(sees)], answers)


def _beside_one(context: npt.NDArray[Any], queries: npt.NDArray[Any]) -> _Nodes:
    """Queries first, then the context that all of them see."""
    N, n = len(queries), len(context)
    places = np.concatenate([np.zeros(N, np.int64), np.arange(1, n + 1)])
    group = range(N), range(N, N + n)
    return _Nodes(np.concatenate([queries, context]), places, [group], np.arange(N))


def _beside_own(contexts: npt.NDArray[Any], queries: npt.NDArray[Any]) -> _Nodes:
    """Queries first, then the context of each."""
    N, n, d = contexts.shape
    places = np.concatenate([np.zeros(N, np.int64), np.tile(np.arange(1, n + 1), N)])
    groups: list[Group] = [([i], range(N + i * n, N + (i + 1) * n)) for i in range(N)]
    return _Nodes(np.concatenate([queries, contexts.reshape(N * n, d)]), places, groups, np.arange(N))


@dataclass(frozen=True)
class _Stream:
    """Distinct rows; row ``of[node]`` is the node's, and −1 is that of nodes which nobody reads any more."""

    rows: Matrix
    places: list[int]
    """The place of each row."""
    of: Ids

    def at(self, nodes: Sequence[int]) -> tuple[Matrix, list[int]]:
        """The rows of some nodes, each once; and which of these is whose."""
        chosen, which = np.unique(self.of[np.array(nodes)], return_inverse=True)
        assert chosen[0] >= 0, "a node is read that was given up"
        table = self.rows.table()
        return stacked([table[row] for row in chosen.tolist()]), which.reshape(-1).tolist()


class _Layers:
    """The network's tensors as balls, and its steps as functions of streams."""

    def __init__(self, network: TrainedNetwork) -> None:
        self.network = network
        self.known: dict[tuple[object, ...], Any] = {}
        """What was made of tensors, by what it is and the tensor's name, which may be any text."""
        self.attentions = sum(isinstance(step, TrainedAttention) for step in network.steps)
        self.done = 0
        """Attentions that the stream has been through."""

    def __call__(self, nodes: _Nodes) -> Iterator[Row]:
        """The outputs of every example."""
        stream, self.done = self._read(nodes), 0
        for block in self.network.blocks:
            stream = self._block(block, stream, nodes)
        table = stream.rows.table()
        return iter([table[row] for row in stream.of[nodes.answers].tolist()])

    def _read(self, nodes: _Nodes) -> _Stream:
        """The vectors; or those of token ids, looked up: one row for each token at each place."""
        if nodes.content.ndim == 2:
            return _Stream(matrix(nodes.content), nodes.places.tolist(), np.arange(len(nodes.content)))
        pairs, of = np.unique(np.stack([nodes.content, nodes.places], axis=1), axis=0, return_inverse=True)
        assert self.network.embedding is not None
        vectors = self.network.weights[self.network.embedding.W_E][pairs[:, 0]]
        return _Stream(matrix(vectors), pairs[:, 1].tolist(), of.reshape(-1))

    def _block(self, block: StepSequence, stream: _Stream, nodes: _Nodes) -> _Stream:
        after = stream
        for step in block.steps:
            after = (
                self._attention(step, after, nodes) if isinstance(step, TrainedAttention) else self._each(step, after)
            )
        if not block.skip:
            return after
        if after.of is stream.of:
            return replace(after, rows=after.rows + stream.rows)
        kept = np.flatnonzero(after.of >= 0)
        before = dict(zip(after.of[kept].tolist(), stream.of[kept].tolist(), strict=True))
        table = stream.rows.table()
        return replace(after, rows=after.rows + stacked([table[before[row]] for row in range(after.rows.nrows())]))

    def _each(self, step: Step, stream: _Stream) -> _Stream:
        """A step that takes every row by itself."""
        rows = stream.rows
        match step:
            case PositionTable():
                rows = rows + stacked([self._position(step, place, rows.ncols()) for place in stream.places])
            case Norm():
                rows = stacked([self._norm(step, row) for row in rows.table()])
            case AffineMap():
                rows = self._affine(rows, step.W, step.b, step.rows)
            case Activation():
                function = FUNCTIONS[step.function]()
                rows = stacked([[function(x) for x in row] for row in rows.table()])
            case _:
                assert isinstance(step, TokenTable), step  # which has been looked up
        return replace(stream, rows=rows)

    def _affine(self, rows: Matrix, W: str, b: str | None, count: int | None = None) -> Matrix:
        result = rows * self._matrix(W, count)
        return result if b is None else _plus(result, self._vector(b))

    def _norm(self, step: Norm, row: Row) -> Row:
        mean = _sum(row) / len(row)
        away = [x - mean for x in row]
        scale = (_sum([x * x for x in away]) / len(row) + step.epsilon).rsqrt()
        result = [x * scale for x in away]
        if step.gain is not None:
            result = [x * g for x, g in zip(result, self._vector(step.gain), strict=True)]
        if step.bias is not None:
            result = [x + b for x, b in zip(result, self._vector(step.bias), strict=True)]
        return result

    def _attention(self, step: TrainedAttention, stream: _Stream, nodes: _Nodes) -> _Stream:
        """Only nodes that are read later go on: all of them, or behind the last attention those with an answer."""
        self.done += 1
        groups = nodes.asked if self.done == self.attentions else nodes.groups
        asking = [node for asking, _ in groups for node in asking]
        seen = sorted({node for _, seen in groups for node in seen})
        (asked, ask), (read, place) = stream.at(asking), stream.at(seen)
        asks, at = iter(ask), dict(zip(seen, place, strict=True))
        rows: list[Group] = [([next(asks) for _ in askers], [at[node] for node in sight]) for askers, sight in groups]
        q = self._affine(asked, step.W_Q, step.b_Q) * _root(step.over)
        mixed = (self._by_directions if asked.nrows() < read.nrows() else self._by_keys)(step, q, read, rows)
        of = np.full(len(nodes.places), -1)
        of[asking] = np.arange(len(asking))
        return _Stream(self._affine(mixed, step.W_O, step.b_O), nodes.places[asking].tolist(), of)

    def _by_keys(self, step: TrainedAttention, q: Matrix, read: Matrix, groups: list[Group]) -> Matrix:
        """The heads' averages as they are defined, from keys and values of all that is seen."""
        k, v = self._affine(read, step.W_K, step.b_K), self._affine(read, step.W_V, step.b_V)
        Q, K, V = (_heads(table, step.heads) for table in (q, k, v))
        rows: list[Row] = []
        for asking, seen in groups:
            averages = [
                _averages([Q_h[i] for i in asking], [K_h[i] for i in seen], [V_h[i] for i in seen])
                for Q_h, K_h, V_h in zip(Q, K, V, strict=True)
            ]
            rows += [[x for table in averages for x in table[i]] for i in range(len(asking))]
        return stacked(rows)

    def _by_directions(self, step: TrainedAttention, q: Matrix, read: Matrix, groups: list[Group]) -> Matrix:
        """The same where few ask and much is seen: q·(W_K x + b_K) = (W_Kᵀ q)·x + a number that cancels in the softmax,
        and as weights sum to 1, an average of W_V x + b_V is W_V · (that of x) + b_V.
        """
        heads = range(step.heads)
        parts = [stacked(rows) * self._piece(step.W_K, h, step.heads) for h, rows in enumerate(_heads(q, step.heads))]
        directions, table = [part.table() for part in parts], read.table()
        averages: list[list[Row]] = [[] for _ in heads]
        for asking, seen in groups:
            vectors = [table[i] for i in seen]
            found = iter(_averages([directions[h][i] for h in heads for i in asking], vectors, vectors))
            for h in heads:
                averages[h] += [next(found) for _ in asking]
        values = [(stacked(averages[h]) * self._piece(step.W_V, h, step.heads).transpose()).table() for h in heads]
        mixed = stacked([[x for part in parts for x in part] for parts in zip(*values, strict=True)])
        return mixed if step.b_V is None else _plus(mixed, self._vector(step.b_V))

    def _piece(self, name: str, h: int, heads: int) -> Matrix:
        """The rows of a tensor [H·d_h, d] that are a head's."""
        key = "piece", name, h, heads
        if key not in self.known:
            tensor = self.network.weights[name]
            each = len(tensor) // heads
            self.known[key] = matrix(tensor[h * each : (h + 1) * each])
        return self.known[key]

    def _matrix(self, name: str, rows: int | None = None) -> Matrix:
        """The first rows of a tensor [out, in], transposed."""
        key = "matrix", name, rows
        if key not in self.known:
            self.known[key] = matrix(self.network.weights[name][:rows].T)
        return self.known[key]

    def _vector(self, name: str) -> Row:
        key = "vector", name
        if key not in self.known:
            self.known[key] = matrix(self.network.weights[name][None]).entries()
        vector: Row = self.known[key]
        return vector

    def _position(self, step: PositionTable, place: int, dim: int) -> Row:
        key = "position", step.W_pos, place, dim
        if key not in self.known:
            found = _sinusoid(place, dim) if step.W_pos is None else self.network.weights[step.W_pos][place].tolist()
            self.known[key] = found
        position: Row = self.known[key]
        return position


def _averages(q: list[Row], k: list[Row], v: list[Row]) -> list[Row]:
    """A head's averages: softmax of the scores of all queries with all keys, times the values."""
    weights = [softmax(row) for row in (stacked(q) * stacked(k).transpose()).table()]
    averages: list[Row] = (stacked(weights) * stacked(v)).table()
    return averages


def _heads(rows: Matrix, heads: int) -> list[list[Row]]:
    """The rows' pieces, head by head."""
    table, each = rows.table(), rows.ncols() // heads
    return [[row[h * each : (h + 1) * each] for row in table] for h in range(heads)]


def _plus(rows: Matrix, vector: Row) -> Matrix:
    return rows + stacked([vector] * rows.nrows())


def _sum(row: Row) -> Ball:
    return sum(row[1:], row[0])


def _root(over: int) -> Ball:
    """1/√over."""
    from flint import arb

    return arb(over).rsqrt()


def _sinusoid(place: int, dim: int) -> Row:
    """sin and cos of s·10000^(−2i/d), in turn, as balls."""
    from flint import arb

    angles = [place * (arb(10000).log() * -2 * i / dim).exp() for i in range((dim + 1) // 2)]
    return [x for angle in angles for x in (angle.sin(), angle.cos())][:dim]


def _gelu() -> Any:
    """x Φ(x) = x erfc(−x/√2)/2, which cancels nowhere."""
    from flint import arb

    root = -arb(2).rsqrt()
    return lambda x: x * (x * root).erfc() / 2


def _gelu_tanh() -> Any:
    """x (1 + tanh(√(2/π)(x + 0.044715 x³)))/2; with 1 + tanh y = 2/(1 + e^(−2y)), which cancels nowhere."""
    from flint import arb, fmpq

    twice, cubic = -2 * (2 / arb.pi()).sqrt(), arb(fmpq(44715, 10**6))
    return lambda x: x / (1 + (twice * (x + cubic * x * x * x)).exp())


def _relu() -> Any:
    return lambda x: x.nonnegative_part()


def _tanh() -> Any:
    return lambda x: x.tanh()


FUNCTIONS = {"gelu": _gelu, "gelu_tanh": _gelu_tanh, "relu": _relu, "tanh": _tanh}
"""Functions of balls; what they are made of is calculated with the bits that count when they are asked for."""
