"""How many bits answers hold: by how often each occurs, given the tokens before it, and as compressors write them.

- *Order 0* is N times the empirical entropy of the answers: what they take if the contexts tell nothing about them.
- *Given the last k tokens* it is their empirical conditional entropy, also in bits of all N. It falls as k grows, to 0
  at the window, in which no context has two answers: not because there is nothing to hold, but because what is counted
  leaves out the table of contexts that one would have to know. With contexts that occur once it is far too low.
- *Compressors* write texts as they are, or a task's answers in the order of its examples: a description of all there
  is, contexts included, and so an upper bound of what has to be known, by a program that Python brings along.

Exact: counts are integers; logarithms and sums are floats. Sizes of compressed data depend on the libraries' versions.
"""

import bz2
import lzma
import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.tasks.arrays import Ids
from byheart.tasks.contexts import Contexts

LONGEST = 3
"""Tokens before the answer, at most: with more, most contexts of a text occur once."""
LOGARITHM_MARGIN = 2.0**-44
"""More than log N! in floats can be wrong, as a part of itself, and sums of what is smaller."""
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "zlib": lambda data: zlib.compress(data, 9),
    "bz2": bz2.compress,
    "lzma": lzma.compress,
}
"""Those of the standard library, as strong as zlib and bz2 get, and lzma as it is by default."""


@dataclass(frozen=True)
class Entropy:
    """What all answers hold, by one way of counting."""

    name: str
    bits: float
    compressor: bool = False
    """Whether it is the size of something that a program can be given to get the answers back."""


def log2_arrangements(occurrences: Iterable[int]) -> float:
    """log₂ of the number of orders in which answers that occur so many times each can stand: N! / ∏ n_c!.

    Lowered by more than floats can be wrong, so that it never claims too much.

    >>> round(2 ** log2_arrangements([2, 1, 1]))
    12
    """
    counts = [count for count in occurrences if count]
    all_orders = math.lgamma(sum(counts) + 1)
    equal_ones = math.fsum(math.lgamma(count + 1) for count in counts)
    return max(0.0, all_orders - equal_ones - LOGARITHM_MARGIN * all_orders) / math.log(2)


def conditional_entropies(contexts: Contexts) -> list[Entropy]:
    """The answers given one token before them, two, …: as many as the window has, up to :data:`LONGEST`.

    >>> from byheart.tasks import NextToken
    >>> from byheart.tasks.windows import task_contexts
    >>> task = NextToken(tokens=[[0, 0], [1, 0], [0, 1], [1, 1]], labels=[0, 1, 2, 2])
    >>> [(entropy.name, entropy.bits) for entropy in conditional_entropies(task_contexts(task))]
    [('given the last token', 2.0), ('given the last 2 tokens', 0.0)]
    """
    starts = contexts.starts[np.searchsorted(contexts.starts, contexts.places, side="right") - 1]
    seen = np.zeros(len(contexts), np.int64)
    found = []
    for back in range(min(LONGEST, contexts.window)):
        places = contexts.places - back
        tokens = np.where(places >= starts, contexts.tokens[np.maximum(places, 0)].astype(np.int64), contexts.vocab)
        seen = _numbered(seen * (contexts.vocab + 1) + tokens)
        name = "given the last token" if back == 0 else f"given the last {back + 1} tokens"
        both = _counts(seen * contexts.label_count + contexts.labels)
        found.append(Entropy(name, max(0.0, _spread(_counts(seen)) - _spread(both))))
    return found


def _numbered(keys: Ids) -> Ids:
    """Small numbers in place of ``keys``, equal where they are."""
    numbers: Ids = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return numbers


def _counts(keys: Ids) -> Ids:
    times: Ids = np.unique(keys, return_counts=True)[1]
    return times


def _spread(times: Ids) -> float:
    """Σ n log₂ n, which the bits of a distribution are less of: N log₂ N − Σ n log₂ n."""
    return float((times * np.log2(times)).sum())


def compressed_sizes(data: bytes) -> list[Entropy]:
    """What the compressors make of ``data``.

    >>> [entropy.name for entropy in compressed_sizes(b"a" * 1000) if entropy.bits < 1000]
    ['zlib', 'bz2', 'lzma']
    """
    return [Entropy(name, 8.0 * len(compress(data)), compressor=True) for name, compress in COMPRESSORS.items()]


def as_bytes(labels: NDArray[np.int64]) -> bytes:
    """Answers one after the other, in as few bytes each as all of them fit into, for compressors.

    >>> as_bytes(np.array([1, 2, 300]))
    b'\\x01\\x00\\x02\\x00,\\x01'
    """
    most = int(labels.max(initial=0))
    kind = next(kind for kind in ("<u1", "<u2", "<u4", "<u8") if most <= np.iinfo(kind).max)
    return labels.astype(kind).tobytes()
