"""Measure the information in answers, in bits: by frequency, given the tokens before them, and as compressed files.

- *Order 0* is N times the empirical entropy of the answers: their size if the contexts tell nothing about them.
- *Given the last k tokens* it is their empirical conditional entropy, also in bits of all N. It falls as k grows, to 0
  at the window, in which no context has two answers. That does not mean that there is nothing to store: the count
  leaves out the table of contexts, which must be known too. For contexts that occur once it is far too low.
- *Compressors* write texts as they are, or a task's answers in the order of its examples. Together with Python's
  decompressor, the file describes everything, contexts included, so its size is an upper bound.

Counts are exact integers; logarithms and sums are floats. Compressed sizes depend on the libraries' versions.
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
"""Largest number of tokens before the answer. With more, most contexts of a text occur once."""
LOGARITHM_MARGIN = 2.0**-44
"""Bound on the relative error of log N! in floats, and of sums of smaller terms."""
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "zlib": lambda data: zlib.compress(data, 9),
    "bz2": bz2.compress,
    "lzma": lzma.compress,
}
"""Compressors of the standard library: zlib and bz2 at their strongest, lzma with its defaults."""


@dataclass(frozen=True)
class Entropy:
    """Information in all answers, by one way of counting."""

    name: str
    bits: float
    compressor: bool = False
    """True for the size of a file from which a program can restore the answers."""


def log2_arrangements(occurrences: Iterable[int]) -> float:
    """Return log₂ of N! / ∏ n_c!, the number of orders of N answers that occur n_c times each.

    The result is lowered by a bound on its rounding error, so it never claims too much.

    >>> round(2 ** log2_arrangements([2, 1, 1]))
    12
    """
    counts = [count for count in occurrences if count]
    all_orders = math.lgamma(sum(counts) + 1)
    equal_ones = math.fsum(math.lgamma(count + 1) for count in counts)
    return max(0.0, all_orders - equal_ones - LOGARITHM_MARGIN * all_orders) / math.log(2)


def conditional_entropies(contexts: Contexts) -> list[Entropy]:
    """Return the entropy of the answers given the last 1, 2, … tokens, up to the window and :data:`LONGEST`.

    >>> from byheart.tasks import NextToken
    >>> from byheart.tasks.windows import task_contexts
    >>> task = NextToken(tokens=[[0, 0], [1, 0], [0, 1], [1, 1]], labels=[0, 1, 2, 2])
    >>> [(entropy.name, entropy.bits) for entropy in conditional_entropies(task_contexts(task))]
    [('given the last token', 2.0), ('given the last 2 tokens', 0.0)]
    """
    starts = contexts.starts[np.searchsorted(contexts.starts, contexts.places, side="right") - 1]
    context_numbers = np.zeros(len(contexts), np.int64)
    entropies = []
    for back in range(min(LONGEST, contexts.window)):
        places = contexts.places - back
        tokens = np.where(places >= starts, contexts.tokens[np.maximum(places, 0)].astype(np.int64), contexts.vocab)
        context_numbers = _numbered(context_numbers * (contexts.vocab + 1) + tokens)
        name = "given the last token" if back == 0 else f"given the last {back + 1} tokens"
        both = _counts(context_numbers * contexts.label_count + contexts.labels)
        entropies.append(Entropy(name, max(0.0, _spread(_counts(context_numbers)) - _spread(both))))
    return entropies


def _numbered(keys: Ids) -> Ids:
    """Replace ``keys`` by small numbers that are equal where the keys are."""
    numbers: Ids = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return numbers


def _counts(keys: Ids) -> Ids:
    times: Ids = np.unique(keys, return_counts=True)[1]
    return times


def _spread(times: Ids) -> float:
    """Return Σ n log₂ n. The bits of a distribution are N log₂ N − Σ n log₂ n."""
    return float((times * np.log2(times)).sum())


def compressed_sizes(data: bytes) -> list[Entropy]:
    """Return the size of ``data`` after each compressor.

    >>> [entropy.name for entropy in compressed_sizes(b"a" * 1000) if entropy.bits < 1000]
    ['zlib', 'bz2', 'lzma']
    """
    return [Entropy(name, 8.0 * len(compress(data)), compressor=True) for name, compress in COMPRESSORS.items()]


def as_bytes(labels: NDArray[np.int64]) -> bytes:
    r"""Return the answers as bytes for compressors, in the narrowest type that holds all of them.

    >>> as_bytes(np.array([1, 2, 300]))
    b'\x01\x00\x02\x00,\x01'
    """
    most = int(labels.max(initial=0))
    kind = next(kind for kind in ("<u1", "<u2", "<u4", "<u8") if most <= np.iinfo(kind).max)
    return labels.astype(kind).tobytes()
