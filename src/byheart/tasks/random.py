"""Random tasks: those on which worst-case capacity is measured.

Every generated task can be memorized by a permutation-equivariant network: no two sequences are permutations of each
other, and equal tokens of one sequence ask for equal labels. The shape "every" is the exception: all ω^n sequences, for
networks that know positions.
"""

from typing import Any

import numpy as np

from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.tasks.checks import Ids, count
from byheart.tasks.distinct import first_positions
from byheart.tasks.query import QueryLabels, QueryTargets
from byheart.tasks.sequences import Shape, distinct_sequences
from byheart.tasks.task import NextToken, NextTokenDistribution, SeqToSeq


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
    """A random task of ``examples`` sequences of ``length`` tokens, each with one of ``labels`` labels.

    Tokens are ids below ``vocab``; with ``dim`` they are standard normal vectors out of a vocabulary of ``vocab``, or,
    if ``vocab`` is ``None``, all drawn afresh.

    >>> rng = np.random.default_rng(0)
    >>> random_next_token(examples=100, length=4, vocab=50, labels=10, rng=rng)
    NextToken(Size(examples=100, length=4, labels=10, vocab=50, dim=None))
    >>> random_next_token(examples=100, length=4, vocab=None, labels=10, dim=3, rng=rng)
    NextToken(Size(examples=100, length=4, labels=10, vocab=400, dim=3))
    """
    ids = _sequences(examples=examples, length=length, vocab=vocab, dim=dim, shape=shape, rng=rng)
    answers = rng.integers(count("labels", labels), size=examples)
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
    """As :func:`random_next_token`, with one label per token; equal tokens of one sequence get equal labels.

    >>> rng = np.random.default_rng(0)
    >>> random_seq_to_seq(examples=100, length=4, vocab=50, labels=10, shape="neighbours", rng=rng)
    SeqToSeq(Size(examples=100, length=4, labels=10, vocab=50, dim=None))
    """
    ids = _sequences(examples=examples, length=length, vocab=vocab, dim=dim, shape=shape, rng=rng)
    drawn = rng.integers(count("labels", labels), size=ids.shape)
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
    """As :func:`random_next_token`, with a distribution over ``vocab`` tokens for each, uniform on the simplex.

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
    """Contexts and queries as in the experiments of Mahdavi et al. 2024: all entries uniform on [0, 1].

    With ``labels`` None the answers are real numbers, ``target_dim`` (d_v) of them for an example, uniform on [0, 1].
    ``shared``: one context for all examples.

    >>> rng = np.random.default_rng(0)
    >>> random_queries(examples=10, length=4, dim=8, labels=100, rng=rng)
    QueryLabels(Size(examples=10, length=4, labels=100, vocab=40, dim=8))
    >>> random_queries(examples=10, length=4, dim=8, labels=None, shared=True, rng=rng)
    QueryTargets(Size(examples=10, length=4, labels=1, vocab=4, dim=8))
    """
    for name, size in (("examples", examples), ("length", length), ("dim", dim), ("target_dim", target_dim)):
        count(name, size)
    vectors = examples + length * (1 if shared else examples)
    check_memory(16 * (vectors * dim + examples * target_dim), f"{examples:,} random examples")
    contexts = rng.random((length, dim) if shared else (examples, length, dim))
    queries = rng.random((examples, dim))
    if labels is None:
        return QueryTargets(contexts=contexts, queries=queries, targets=rng.random((examples, target_dim)))
    answers = rng.integers(count("labels", labels), size=examples)
    return QueryLabels(contexts=contexts, queries=queries, labels=answers, label_count=labels)


def _sequences(
    *, examples: int, length: int, vocab: int | None, dim: int | None, shape: Shape, rng: np.random.Generator
) -> Ids:
    entries = count("examples", examples) * count("length", length)
    if dim is not None:
        entries *= count("dim", dim)
    check_memory(16 * entries, f"{examples:,} random examples")
    if vocab is not None:
        count("vocab", vocab)
        return distinct_sequences(examples=examples, length=length, vocab=vocab, shape=shape, rng=rng)
    if dim is None:
        raise BadInput("vocab is None; expected a number, or a dim to draw every token afresh as a vector")
    return _fresh_sequences(examples, length, shape, rng)


def _fresh_sequences(examples: int, length: int, shape: Shape, rng: np.random.Generator) -> Ids:
    """Ids that occur once each, except the tokens that neighbours share with their base, the first sequence."""
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
    """The ids as tokens or, with ``dim``, a standard normal vector in place of each id: float64 [N, n, ``dim``]."""
    if dim is None:
        return {"tokens": ids, "vocab": vocab}
    used, places = np.unique(ids, return_inverse=True)
    table = rng.standard_normal((len(used), dim))
    while len(np.unique(table[:, 0])) < len(table):  # floats do collide once in a while, and tokens must not
        table = rng.standard_normal((len(used), dim))
    return {"vectors": table[places.reshape(ids.shape)]}
