"""Random token-id sequences of several shapes, no two of them permutations of each other."""

from collections.abc import Callable
from itertools import chain, combinations_with_replacement, product
from math import comb
from typing import Literal, get_args

import numpy as np

from byheart.errors import BadInput
from byheart.tasks.checks import Ids
from byheart.tasks.distinct import distinct

Shape = Literal["uniform", "skewed", "neighbours", "constant", "every"]
"""How tokens are drawn: alike, by Zipf's law, as small changes of a base sequence (the hard case), one for a whole
sequence, or not at all: every sequence there is, in every order."""

ROUNDS_IN_SHAPE = 6


def distinct_sequences(*, examples: int, length: int, vocab: int, shape: Shape, rng: np.random.Generator) -> Ids:
    """Token ids int64 [``examples``, ``length``] below ``vocab``, distinct as multisets.

    Twins are drawn again in the same shape a few times. Where that shape has run out of sequences, and where more than
    half of all multisets are wanted, the rest is drawn uniformly from all multisets.

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
    """All ω^n sequences, in lexical order: they differ as sequences, not as multisets."""
    if examples != vocab**length:
        raise BadInput(f"examples is {examples}; expected {vocab}^{length} = {vocab**length}, every sequence there is")
    return np.array(list(product(range(vocab), repeat=length)), dtype=np.int64)


def _constant_sequences(examples: int, length: int, vocab: int, rng: np.random.Generator) -> Ids:
    """A token of its own for every sequence, n times: what attention of any kind sees as one token."""
    if examples > vocab:
        raise BadInput(f"examples is {examples}; expected at most {vocab}, one constant sequence for every token")
    return np.repeat(rng.choice(vocab, size=(examples, 1), replace=False), length, axis=1)


def later_twins(sequences: Ids) -> Ids:
    """The rows of ``sequences`` [N, n] that are permutations of an earlier row.

    >>> later_twins(np.array([[0, 1], [1, 1], [1, 0]]))
    array([2])
    """
    rows = np.arange(len(sequences))
    return np.flatnonzero(distinct(np.sort(sequences, axis=1)).representatives != rows)


def _drawer(examples: int, length: int, vocab: int, shape: Shape, rng: np.random.Generator) -> Callable[[Ids], Ids]:
    """A function that draws sequences for the given rows."""
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
    """Ids with P(id < k) = log(1 + k) / log(1 + ω): Zipf's law in closed form, whatever the size of the vocabulary."""
    ids: Ids = np.expm1(rng.random(size) * np.log1p(vocab)).astype(np.int64)
    ids[ids >= vocab] = vocab - 1  # where the logarithm was rounded up
    return ids


def _neighbours(bases: Ids, vocab: int, rng: np.random.Generator) -> Ids:
    """Each row of ``bases`` with one or two tokens drawn anew."""
    sequences = bases.copy()
    rows = np.arange(len(bases))
    for _ in range(2):
        sequences[rows, rng.integers(bases.shape[1], size=len(rows))] = rng.integers(vocab, size=len(rows))
    return sequences


def _chosen_from_all(available: int, examples: int, length: int, vocab: int, rng: np.random.Generator) -> Ids:
    """A random choice among all multisets, by listing them."""
    listed = chain.from_iterable(combinations_with_replacement(range(vocab), length))
    everything = np.fromiter(listed, np.int64, available * length).reshape(available, length)
    return rng.permuted(rng.permutation(everything)[:examples], axis=1)


def _uniform_multisets(count: int, length: int, vocab: int, rng: np.random.Generator) -> Ids:
    """Multisets drawn uniformly: subsets of ω + n - 1 numbers by Floyd's algorithm, then stars and bars."""
    subsets = np.empty((count, length), np.int64)
    for column in range(length):
        newest = vocab - 1 + column
        drawn = rng.integers(newest + 1, size=count)
        taken = (subsets[:, :column] == drawn[:, None]).any(axis=1)
        subsets[:, column] = np.where(taken, newest, drawn)
    return rng.permuted(np.sort(subsets, axis=1) - np.arange(length), axis=1)
