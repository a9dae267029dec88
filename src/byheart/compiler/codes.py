"""Labels as bit strings: a prefix code, and the lines of the unembedding that decode it.

A code word of length ℓ is an interval of numbers Y in [0, 2^L): the numbers that begin with these ℓ bits. The
unembedding has one line per label, 2·r·Y + b_r, where r is the label's rank in the order of intervals. The upper
envelope of the lines switches from r − 1 to r exactly at the start of interval r. All values are integers below 2²⁴ if
2·ranks·2^L is.

If there are too many labels for that, code words have a fixed length and two digits, Y = (Y₁, Y₀), and the lines become
planes 2·h·Y₁ − h² + 2·l·Y₀ − l². The largest of them is the one with (h, l) = Y.

The right logit therefore exceeds every other logit by at least 1, which is enough to take the largest. Sampling and
beam search need a probability of 1: networks multiply the logits by 2^``LOUDNESS``, which rounds nothing, and e^−1024
is 0 in float32 and in float64.

In a network that refuses, the last label is *unknown* and has no code word. Its line is the largest where Y₁, or Y, is
−1. A print of ``refuse`` bits may stand before every code word (:mod:`.refusing`).
"""

import heapq
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.tasks.arrays import count_ids

EXACT = 24
"""Bound on logits: they are integers below 2^EXACT, even if the format could hold larger ones."""
LOUDNESS = 10
"""Logits are multiplied by 2^LOUDNESS."""


@dataclass(frozen=True, eq=False)
class Code:
    """A code word for every label that occurs."""

    lengths: NDArray[np.int64]
    """[C]: bits of each label's code word; −1 for a label that never occurs."""
    words: NDArray[np.int64]
    """[C]: the code word as an integer, its first bit highest."""
    longest: int
    """L, the bits of the longest code word."""
    fixed: bool
    """True if all code words have the same length."""
    low: int
    """Bits of the low digit Y₀; 0 if there is only one digit."""
    histogram: tuple[int, ...]
    """Number of questions with code words of length 0, 1, …, L."""
    refuse: int = 0
    """Bits of the print before every code word."""

    @property
    def total(self) -> int:
        """Bits of all questions' code words, and of their prints."""
        return sum((self.refuse + length) * count for length, count in enumerate(self.histogram))

    @property
    def bits(self) -> int:
        """Largest number of bits that a question reads: its print and L bits."""
        return self.refuse + self.longest

    @property
    def questions(self) -> int:
        """Number of questions."""
        return sum(self.histogram)

    def repeated(self, times: float) -> "Code":
        """Return the same code with all counts multiplied by ``times``.

        >>> make_code(np.array([0, 0, 1, 2]), 3).repeated(2.5).histogram
        (0, 5, 5)
        """
        return replace(self, histogram=tuple(round(times * count) for count in self.histogram))

    def exponent_share(self, exponent: int, word: int) -> float:
        """Return the share ρ of questions that read the exponent first, so that all bit planes are equally full.

        All these questions read the exponent's top plane. The bits that remain are spread evenly over the T planes of
        the words: ρ·N = (Σ ℓ − ρ Σ min(ℓ, e)) / T.
        """
        first = sum(min(length, exponent) * count for length, count in enumerate(self.histogram))
        return self.total / (word * self.questions + first)

    def read(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return Y for the labels [N] as it is read: [N, 1 or 2]. Short code words are padded with zeros.

        >>> make_code(np.array([0, 0, 0, 0, 1, 1, 2, 3]), 4).read(np.array([0, 1, 3])).tolist()
        [[0], [4], [7]]
        """
        if self.low:
            words = self.words[labels]
            return np.stack([words >> self.low, words & ((1 << self.low) - 1)], axis=1)
        return (self.words[labels] << (self.longest - self.lengths[labels]))[:, None]

    def lines(self, *, unknown: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return W_U [C, digits] and b_U [C]. With ``unknown``, the last label is *unknown* and has no code word."""
        used = np.flatnonzero(self.lengths >= 0)
        b = np.full(len(self.lengths), -float(1 << (EXACT - 1)))
        if self.low:
            high, low = self.words >> self.low, self.words & ((1 << self.low) - 1)
            W = np.stack([2.0 * high, 2.0 * low], axis=1)
            b[used] = -(high[used] ** 2 + low[used] ** 2)
            W[self.lengths < 0] = 0
            return _with_unknown(W, b) if unknown else (W, b)
        starts = self.words[used] << (self.longest - self.lengths[used])
        order = np.argsort(starts, kind="stable")
        W = np.zeros((len(self.lengths), 1))
        W[used[order], 0] = 2.0 * np.arange(len(used))
        b[used[order]] = np.cumsum(np.where(np.arange(len(used)) > 0, 1.0 - 2.0 * starts[order], 0.0))
        return _with_unknown(W, b) if unknown else (W, b)


def _with_unknown(W: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    W[-1, 0], b[-1] = -2.0, -1.0
    return W, b


def label_bits(labels: NDArray[np.int64]) -> int:
    """Return the bits of each label's code word if all code words are equally long."""
    return bits_for(int(np.count_nonzero(count_ids(labels))))


def bits_for(count: int) -> int:
    """Return the bits of each code word if ``count`` labels have one and all are equally long."""
    return max(1, math.ceil(math.log2(count)))


def make_code(labels: NDArray[np.int64], count: int, word: int = EXACT, refuse: int = 0) -> Code:
    """Make a code for the labels [N] out of ``count``: fixed length, or Huffman if that saves more than 1 %.

    A code word and the ``refuse`` bits before it have at most ``word`` bits, those of a word of the table.

    >>> code = make_code(np.array([0, 0, 0, 0, 1, 1, 2, 3]), 4)
    >>> code.lengths.tolist(), code.total
    ([1, 2, 3, 3], 14)
    >>> make_code(np.array([0, 1, 2, 3]), 4).fixed
    True
    """
    times = count_ids(labels, count)
    used = np.flatnonzero(times)
    bits, word = label_bits(labels), word - refuse
    lengths = np.full(count, -1)
    lengths[used] = bits
    if bits > word:
        raise BadInput(f"{len(used):,} labels need {bits} bits each; words have {word}: choose a wider --precision")
    if len(used) > 1 and _limit(len(used)) >= bits:
        huffman = _limited(times[used], max(bits, min(_limit(len(used)), word, 15)))
        if (huffman * times[used]).sum() < 0.99 * bits * len(labels):
            lengths[used] = huffman
    return code_of_lengths(lengths, labels, refuse)


def code_of_lengths(lengths: NDArray[np.int64], labels: NDArray[np.int64], refuse: int = 0) -> Code:
    """Make the canonical code of the lengths [C] (−1: no code word) for the labels [N].

    Code words are ordered by (length, label). Each is the previous code word plus one, shifted to its own length.
    """
    used = np.flatnonzero(lengths >= 0)
    order = used[np.argsort(lengths[used], kind="stable")]
    longest = int(lengths.max())
    words = np.zeros(len(lengths), dtype=np.int64)
    steps = np.left_shift(1, longest - lengths[order])
    words[order] = (np.cumsum(steps) - steps) >> (longest - lengths[order])
    fixed = bool((lengths[used] == longest).all())
    low = longest // 2 if fixed and longest > _limit(len(used)) else 0
    histogram = np.zeros(longest + 1, np.int64)
    np.add.at(histogram, lengths[used], count_ids(labels, len(lengths))[used])
    return Code(lengths, words, longest, fixed, low, tuple(histogram.tolist()), refuse)


def is_code(lengths: tuple[object, ...], longest: int) -> bool:
    """Return True if a prefix code has these lengths (Kraft's inequality), none above ``longest``; −1: no code word.

    If lengths differ, they must also keep the lines of the unembedding exact.

    >>> is_code((1, 2, 2), 8), is_code((1, 1, 2), 8), is_code((1, 2, 9), 8), is_code((1, 23), 24), is_code((1, 22), 24)
    (True, False, False, False, True)
    """
    if longest < 0:
        return False
    whole = [length for length in lengths if type(length) is int and -1 <= length <= longest]
    used = [length for length in whole if length >= 0]
    if len(whole) < len(lengths) or not used or sum(1 << (longest - length) for length in used) > 1 << longest:
        return False
    return len(set(used)) == 1 or max(used) <= _limit(len(used))


def _limit(used: int) -> int:
    """Return the largest length of code words for which the lines of ``used`` labels are exact."""
    return EXACT - 1 - max(1, math.ceil(math.log2(used)))


def _limited(weights: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Return the lengths of the best prefix code of at most ``limit`` bits (package–merge, Larmore & Hirschberg).

    >>> _limited(np.array([1, 1, 1, 1, 100]), 3).tolist()
    [3, 3, 3, 3, 1]
    """
    order = np.argsort(weights, kind="stable")
    single = [(int(weights[i]), np.eye(1, len(weights), i, dtype=np.int64)[0]) for i in order]
    row = single
    for _ in range(limit - 1):
        packages = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(row[0::2], row[1::2], strict=False)]
        row = list(heapq.merge(single, packages, key=lambda item: item[0]))
    lengths: NDArray[np.int64] = np.sum([item[1] for item in row[: 2 * len(weights) - 2]], axis=0)
    return lengths
