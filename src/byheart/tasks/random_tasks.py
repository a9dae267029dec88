"""Draw random tasks, on which worst-case capacity is measured.

Every generated task can be memorized by a permutation-equivariant network: no two sequences are permutations of each
other, and equal tokens of one sequence have equal labels. The shape "every" is the exception: all ω^n sequences, for
networks that know positions.

:class:`RandomTask` has the numbers of a random task: the options of ``byheart task random``.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import chain, combinations_with_replacement, product
from math import comb
from typing import Any, Literal, get_args

import numpy as np

from byheart.errors import BadInput, check_seed
from byheart.files.memory import check_memory
from byheart.tasks.arrays import Ids, check_count
from byheart.tasks.distinct import distinct, first_positions
from byheart.tasks.task import NextToken, NextTokenDistribution, QueryLabels, QueryTargets, SeqToSeq, Task

Shape = Literal["uniform", "skewed", "neighbours", "constant", "every"]
"""Distribution of tokens: uniform, by Zipf's law, small changes of a base sequence (the hard case), one token per
sequence, or all sequences in every order.
"""

ROUNDS_IN_SHAPE = 6


def distinct_sequences(*, examples: int, length: int, vocab: int, shape: Shape, rng: np.random.Generator) -> Ids:
    """Draw token ids int64 [``examples``, ``length``] below ``vocab``, distinct as multisets.

    Twins are drawn again in the same shape a few times. If that shape has run out of sequences, or more than half of
    all multisets are wanted, the rest is drawn uniformly from all multisets.

    >>> rng = np.random.default_rng(0)
    >>> sorted(np.sort(distinct_sequences(examples=3, length=2, vocab=2, shape="uniform", rng=rng)).tolist())
    [[0, 0], [0, 1], [1, 1]]
    """
    if shape not in get_args(Shape):
        raise BadInput(f"shape is {shape!r}; expected one of {', '.join(get_args(Shape))}")
    if shape == "every":
        return _every_sequence(examples, length, vocab)
    if shape == "constant":
        return _constant_sequences(examples, length, vocab, rng)
    available = comb(vocab + length - 1, length)
    if available < examples:
        what = f"sequences of length {length} over a vocab of {vocab} up to permutation"
        raise BadInput(f"examples is {examples}; expected at most {available}, the number of {what}")
    if available <= 2 * examples:
        return _chosen_from_all(available, examples, length, vocab, rng)
    draw = _drawer(examples, length, vocab, shape, rng)
    sequences, rounds = draw(np.arange(examples)), 1
    while len(twins := later_twins(sequences)):
        in_shape = rounds < ROUNDS_IN_SHAPE
        sequences[twins] = draw(twins) if in_shape else _uniform_multisets(len(twins), length, vocab, rng)
        rounds += 1
    return sequences


def _every_sequence(examples: int, length: int, vocab: int) -> Ids:
    """Return all ω^n sequences, in lexical order. They differ as sequences, not as multisets."""
    if examples != vocab**length:
        raise BadInput(f"examples is {examples}; expected {vocab}^{length} = {vocab**length}, every sequence there is")
    return np.array(list(product(range(vocab), repeat=length)), dtype=np.int64)


def _constant_sequences(examples: int, length: int, vocab: int, rng: np.random.Generator) -> Ids:
    """Draw a different token for every sequence, and repeat it n times. Any attention sees one token."""
    if examples > vocab:
        raise BadInput(f"examples is {examples}; expected at most {vocab}, one constant sequence for every token")
    return np.repeat(rng.choice(vocab, size=(examples, 1), replace=False), length, axis=1)


def later_twins(sequences: Ids) -> Ids:
    """Return the rows of ``sequences`` [N, n] that are permutations of an earlier row.

    >>> later_twins(np.array([[0, 1], [1, 1], [1, 0]]))
    array([2])
    """
    rows = np.arange(len(sequences))
    return np.flatnonzero(distinct(np.sort(sequences, axis=1)).representatives != rows)


def _drawer(examples: int, length: int, vocab: int, shape: Shape, rng: np.random.Generator) -> Callable[[Ids], Ids]:
    """Return a function that draws sequences for given rows."""
    if shape == "neighbours":
        # A base has at least length · (vocab - 1) neighbours unless its tokens repeat; asking each for half of that
        # leaves few twins.
        per_base = max(1, length * (vocab - 1) // 2)
        bases = rng.integers(vocab, size=(-(-examples // per_base), length))
        return lambda rows: _neighbours(bases[rows // per_base], vocab, rng)
    if shape == "skewed":
        return lambda rows: _zipf((len(rows), length), vocab, rng)
    return lambda rows: rng.integers(vocab, size=(len(rows), length))


def _zipf(size: tuple[int, int], vocab: int, rng: np.random.Generator) -> Ids:
    """Draw ids with P(id < k) = log(1 + k) / log(1 + ω), which is Zipf's law in closed form for every ω."""
    ids: Ids = np.expm1(rng.random(size) * np.log1p(vocab)).astype(np.int64)
    ids[ids >= vocab] = vocab - 1  # where the logarithm was rounded up
    return ids


def _neighbours(bases: Ids, vocab: int, rng: np.random.Generator) -> Ids:
    """Draw one or two tokens of each row of ``bases`` anew."""
    sequences = bases.copy()
    rows = np.arange(len(bases))
    for _ in range(2):
        sequences[rows, rng.integers(bases.shape[1], size=len(rows))] = rng.integers(vocab, size=len(rows))
    return sequences


def _chosen_from_all(available: int, examples: int, length: int, vocab: int, rng: np.random.Generator) -> Ids:
    """Draw among all multisets by listing them."""
    listed = chain.from_iterable(combinations_with_replacement(range(vocab), length))
    everything = np.fromiter(listed, np.int64, available * length).reshape(available, length)
    return rng.permuted(rng.permutation(everything)[:examples], axis=1)


def _uniform_multisets(count: int, length: int, vocab: int, rng: np.random.Generator) -> Ids:
    """Draw multisets uniformly: subsets of ω + n - 1 numbers by Floyd's algorithm, then stars and bars."""
    subsets = np.empty((count, length), np.int64)
    for column in range(length):
        newest = vocab - 1 + column
        drawn = rng.integers(newest + 1, size=count)
        is_taken = (subsets[:, :column] == drawn[:, None]).any(axis=1)
        subsets[:, column] = np.where(is_taken, newest, drawn)
    return rng.permuted(np.sort(subsets, axis=1) - np.arange(length), axis=1)


def random_next_token(
    *,
    examples: int,
    length: int,
    vocab: int | None,
    labels: int,
    dim: int | None = None,
    shape: Shape = "uniform",
    rng: np.random.Generator,
) -> NextToken:
    """Draw a task of ``examples`` sequences of ``length`` tokens, each with one of ``labels`` labels.

    Tokens are ids below ``vocab``. With ``dim`` they are standard normal vectors from a vocabulary of ``vocab``, or, if
    ``vocab`` is ``None``, all different.

    >>> rng = np.random.default_rng(0)
    >>> random_next_token(examples=100, length=4, vocab=50, labels=10, rng=rng)
    NextToken(Size(examples=100, length=4, labels=10, vocab=50, dim=None))
    >>> random_next_token(examples=100, length=4, vocab=None, labels=10, dim=3, rng=rng)
    NextToken(Size(examples=100, length=4, labels=10, vocab=400, dim=3))
    """
    ids = _sequences(examples=examples, length=length, vocab=vocab, dim=dim, shape=shape, rng=rng)
    answers = rng.integers(check_count("labels", labels), size=examples)
    return NextToken(labels=answers, label_count=labels, **_inputs(ids, vocab, dim, rng))


def random_seq_to_seq(
    *,
    examples: int,
    length: int,
    vocab: int | None,
    labels: int,
    dim: int | None = None,
    shape: Shape = "uniform",
    rng: np.random.Generator,
) -> SeqToSeq:
    """Draw a task with one label per token; equal tokens of one sequence get equal labels.

    >>> rng = np.random.default_rng(0)
    >>> random_seq_to_seq(examples=100, length=4, vocab=50, labels=10, shape="neighbours", rng=rng)
    SeqToSeq(Size(examples=100, length=4, labels=10, vocab=50, dim=None))
    """
    ids = _sequences(examples=examples, length=length, vocab=vocab, dim=dim, shape=shape, rng=rng)
    drawn = rng.integers(check_count("labels", labels), size=ids.shape)
    answers = np.take_along_axis(drawn, first_positions(ids, np.arange(len(ids))), axis=1)
    return SeqToSeq(labels=answers, label_count=labels, **_inputs(ids, vocab, dim, rng))


def random_distribution(
    *,
    examples: int,
    length: int,
    vocab: int,
    dim: int | None = None,
    shape: Shape = "uniform",
    rng: np.random.Generator,
) -> NextTokenDistribution:
    """Draw a task with a distribution over ``vocab`` tokens per sequence, uniform on the simplex.

    >>> rng = np.random.default_rng(0)
    >>> random_distribution(examples=100, length=4, vocab=50, rng=rng)
    NextTokenDistribution(Size(examples=100, length=4, labels=50, vocab=50, dim=None))
    """
    ids = _sequences(examples=examples, length=length, vocab=vocab, dim=dim, shape=shape, rng=rng)
    check_memory(16 * examples * vocab, f"{examples:,} random distributions")
    weights = rng.standard_exponential((examples, vocab))
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    return NextTokenDistribution(probabilities=probabilities, **_inputs(ids, vocab, dim, rng))


def random_queries(
    *,
    examples: int,
    length: int,
    dim: int,
    labels: int | None,
    shared: bool = False,
    target_dim: int = 1,
    rng: np.random.Generator,
) -> QueryLabels | QueryTargets:
    """Draw contexts and queries as in Mahdavi et al. 2024: all entries uniform on [0, 1].

    If ``labels`` is None, the answers are real numbers, ``target_dim`` (d_v) per example, uniform on [0, 1].
    With ``shared``, all examples have one context.

    >>> rng = np.random.default_rng(0)
    >>> random_queries(examples=10, length=4, dim=8, labels=100, rng=rng)
    QueryLabels(Size(examples=10, length=4, labels=100, vocab=40, dim=8))
    >>> random_queries(examples=10, length=4, dim=8, labels=None, shared=True, rng=rng)
    QueryTargets(Size(examples=10, length=4, labels=1, vocab=4, dim=8))
    """
    for name, size in (("examples", examples), ("length", length), ("dim", dim), ("target_dim", target_dim)):
        check_count(name, size)
    vectors = examples + length * (1 if shared else examples)
    check_memory(16 * (vectors * dim + examples * target_dim), f"{examples:,} random examples")
    contexts = rng.random((length, dim) if shared else (examples, length, dim))
    queries = rng.random((examples, dim))
    if labels is None:
        return QueryTargets(contexts=contexts, queries=queries, targets=rng.random((examples, target_dim)))
    answers = rng.integers(check_count("labels", labels), size=examples)
    return QueryLabels(contexts=contexts, queries=queries, labels=answers, label_count=labels)


def _sequences(
    *, examples: int, length: int, vocab: int | None, dim: int | None, shape: Shape, rng: np.random.Generator
) -> Ids:
    entries = check_count("examples", examples) * check_count("length", length)
    if dim is not None:
        entries *= check_count("dim", dim)
    check_memory(16 * entries, f"{examples:,} random examples")
    if vocab is not None:
        check_count("vocab", vocab)
        return distinct_sequences(examples=examples, length=length, vocab=vocab, shape=shape, rng=rng)
    if dim is None:
        raise BadInput("vocab is None; expected a number, or a dim to draw every token afresh as a vector")
    return _fresh_sequences(examples, length, shape, rng)


def _fresh_sequences(examples: int, length: int, shape: Shape, rng: np.random.Generator) -> Ids:
    """Return ids that occur once each, except the tokens that neighbours share with their base, the first sequence."""
    fresh = np.arange(examples * length).reshape(examples, length)
    if shape == "uniform":
        return fresh
    if shape == "constant":
        return np.repeat(fresh[:, :1], length, axis=1)
    if shape == "neighbours":
        changed = rng.integers(length, size=(examples, 2))
        mine = (np.arange(length) == changed[:, :, None]).any(axis=1)
        return np.where(mine, fresh, fresh[0])
    expected = "expected uniform, neighbours or constant where every token is fresh"
    raise BadInput(f"shape is {shape!r} and vocab is None; {expected}")


def _inputs(ids: Ids, vocab: int | None, dim: int | None, rng: np.random.Generator) -> dict[str, Any]:
    """Return the ids as tokens or, with ``dim``, as standard normal vectors, float64 [N, n, ``dim``]."""
    if dim is None:
        return {"tokens": ids, "vocab": vocab}
    used, places = np.unique(ids, return_inverse=True)
    table = rng.standard_normal((len(used), dim))
    while len(np.unique(table[:, 0])) < len(table):  # floats do collide once in a while, and tokens must not
        table = rng.standard_normal((len(used), dim))
    return {"vectors": table[places.reshape(ids.shape)]}


@dataclass(frozen=True)
class RandomTask:
    """Numbers of a random task. Equal numbers give equal tasks, on every machine."""

    examples: int = 1000
    """N: number of sequences."""
    length: int = 32
    """n: tokens per sequence."""
    vocab: int | None = 200
    """ω: number of different tokens. With --dim, None makes every token a vector of its own."""
    labels: int = 10
    """C: number of different labels."""
    dim: int | None = None
    """d: dimension of the tokens, standard-normal vectors instead of ids."""
    seq_to_seq: bool = False
    """Draw one label per token instead of one per sequence."""
    distribution: bool = False
    """Draw a distribution over the next token instead of a label."""
    query: Literal["none", "own", "shared"] = "none"
    """Draw contexts of vectors with queries (with --dim): a context for each query (own), or one for all (shared)."""
    real: bool = False
    """Draw real numbers as answers instead of labels (with --query)."""
    target_dim: int = 1
    """d_v: real numbers per answer (with --real)."""
    shape: Literal["uniform", "skewed", "neighbours", "constant", "every"] = "uniform"
    """Distribution of the sequences: tokens drawn uniformly, by Zipf's law (skewed), as changes of one or two tokens of
    a base sequence (neighbours), one repeated token per sequence (constant), or every sequence of n tokens (every)."""
    seed: int = 0
    """Seed of the generator."""

    def draw(self) -> Task:
        """Draw the task; raise BadInput if the numbers contradict each other."""
        check_seed(self.seed)
        rng = np.random.default_rng(self.seed)
        if self.target_dim != 1 and not self.real:
            raise BadInput(f"target-dim is {self.target_dim}; it is for real answers: expected --real beside it")
        if self.query != "none":
            return self._queries(rng)
        if self.real:
            raise BadInput("--real is for queries; expected --query own or --query shared beside it")
        sizes = {"examples": self.examples, "length": self.length, "dim": self.dim, "shape": self.shape}
        if self.distribution:
            if self.vocab is None or self.seq_to_seq:
                raise BadInput("--distribution needs a --vocab and excludes --seq-to-seq")
            return random_distribution(vocab=self.vocab, rng=rng, **sizes)  # type: ignore[arg-type]
        make = random_seq_to_seq if self.seq_to_seq else random_next_token
        return make(vocab=self.vocab, labels=self.labels, rng=rng, **sizes)  # type: ignore[arg-type]

    def _queries(self, rng: np.random.Generator) -> Task:
        if self.dim is None or self.seq_to_seq or self.distribution or self.shape != "uniform":
            raise BadInput("--query needs a --dim and excludes --seq-to-seq, --distribution and --shape")
        labels, shared = None if self.real else self.labels, self.query == "shared"
        sizes = {"examples": self.examples, "length": self.length, "dim": self.dim, "target_dim": self.target_dim}
        return random_queries(labels=labels, shared=shared, rng=rng, **sizes)

    @property
    def flags(self) -> str:
        """Options with which ``byheart task random`` draws the same task.

        >>> RandomTask(examples=200, vocab=50, seq_to_seq=True).flags
        '--examples 200 --vocab 50 --seq-to-seq'
        """
        words = []
        for option in fields(self):
            value, flag = getattr(self, option.name), f"--{option.name.replace('_', '-')}"
            if value != option.default:
                words.append(flag if value is True else f"{flag} {value}")
        return " ".join(words)
