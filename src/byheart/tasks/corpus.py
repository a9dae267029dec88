"""Derive next-token distributions from texts: the empirical setting of Madden, Fox & Thrampoulidis 2024.

Every window of n tokens is counted with the token after it. Equal windows are one context. Its distribution p_t is the
number of times that each token follows it, divided by its number of occurrences. Its weight π_t is its share of all
occurrences. A model with outputs q_t has the training loss Σ_t π_t (H(p_t) + KL(p_t ‖ q_t)), so no model goes below
:func:`entropy_bound`, and one that has memorized the distributions reaches it.

- Exact: counts are integers; probabilities and weights are their ratios, rounded once to float64.
- Not checked here: that the texts differ. A text that is given twice counts twice.
- Most probabilities are 0: few tokens follow a long context. Softmax reaches them only in the limit.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.tasks.arrays import Floats, Ids, as_distribution, as_distributions, check_count
from byheart.tasks.distinct import distinct
from byheart.tasks.task import NextTokenDistribution, SeqToSeq

OTHER = "<other>"
"""Stands for all words outside a vocabulary; :func:`split_words` never returns it."""

_WORD = re.compile(r"\w+|[^\w\s]")


def split_words(text: str) -> list[str]:
    """Return the words and punctuation marks of ``text``: runs of letters, digits and underscores, and other signs.

    >>> split_words("It's 3.5 μm, isn_t it?")
    ['It', "'", 's', '3', '.', '5', 'μm', ',', 'isn_t', 'it', '?']
    """
    return _WORD.findall(text)


@dataclass(frozen=True)
class Vocabulary:
    """The word of each id. The last id stands for all other words.

    >>> Vocabulary(("the", "cat", OTHER)).encode(["the", "dog", "cat"])
    array([0, 2, 1])
    """

    words: tuple[str, ...]
    """The word of each id, :data:`OTHER` last."""

    def __len__(self) -> int:
        return len(self.words)

    @property
    def other(self) -> int:
        """Id of all words outside the vocabulary."""
        return len(self.words) - 1

    def encode(self, tokens: Iterable[str]) -> Ids:
        """Return the ids of ``tokens``: int64 [T]."""
        return np.array([self._ids.get(token, self.other) for token in tokens], np.int64)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words[:-1])}


def vocabulary(tokens: Iterable[str], size: int) -> Vocabulary:
    """Return the ``size`` − 1 most frequent of ``tokens`` and :data:`OTHER`. Ties go to the first token.

    >>> vocabulary(split_words("a rose is a rose is a rose."), 4).words
    ('a', 'rose', 'is', '<other>')
    >>> vocabulary(["a", "b", "a"], 4)
    Traceback (most recent call last):
    byheart.errors.BadInput: vocab is 4; expected at most 3: the texts have 2 different words, and one id is for others
    """
    counts = Counter(token for token in tokens if token != OTHER)
    if check_count("vocab", size) > len(counts) + 1:
        why = f"the texts have {len(counts)} different words, and one id is for others"
        raise BadInput(f"vocab is {size}; expected at most {len(counts) + 1}: {why}")
    return Vocabulary((*(word for word, _ in counts.most_common(size - 1)), OTHER))


@dataclass(frozen=True, eq=False)
class Corpus:
    """N distinct contexts of n tokens, the most frequent first, and the distributions of the next token."""

    tokens: Ids
    """int64 [N, n]: the contexts, ids in [0, ω)."""
    counts: Ids
    """int64 [N, ω]: number of times that each token follows each context."""
    probabilities: Floats
    """float64 [N, ω]: the counts divided by their sums; rows sum to 1."""
    weights: Floats
    """float64 [N]: number of occurrences of each context, divided by that of all N."""
    words: tuple[str, ...]
    """The word of each of the ω ids, :data:`OTHER` last."""

    def __post_init__(self) -> None:
        for array in (self.tokens, self.counts, self.probabilities, self.weights):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.tokens)

    def task(self) -> NextTokenDistribution:
        """Return the contexts with their distributions and weights, as a task."""
        return NextTokenDistribution(tokens=self.tokens, probabilities=self.probabilities, weights=self.weights)


def corpus_distribution(texts: Sequence[str], *, length: int, vocab: int, examples: int | None = None) -> Corpus:
    """Return the distribution after each context of ``length`` words in ``texts``, over a vocabulary of ``vocab`` ids.

    Windows do not cross from one text into the next. ``examples`` is how many of the most frequent contexts are kept
    (``None``: all), of equally frequent ones the first. Two arrays of N × ω entries come back.

    >>> corpus = corpus_distribution(["a rose is a rose is a rose."], length=2, vocab=5, examples=2)
    >>> corpus.tokens.tolist(), corpus.words
    ([[0, 1], [1, 2]], ('a', 'rose', 'is', '.', '<other>'))
    >>> corpus.counts.tolist(), corpus.weights.tolist()
    ([[0, 0, 2, 1, 0], [2, 0, 0, 0, 0]], [0.6, 0.4])
    >>> corpus_distribution(["a rose is a rose."], length=2, vocab=3, examples=9)
    Traceback (most recent call last):
    byheart.errors.BadInput: examples is 9; expected at most 3, the number of contexts of length 2 in the texts
    """
    parts = [split_words(text) for text in texts]
    chosen = vocabulary((word for part in parts for word in part), vocab)
    windows = _windows([chosen.encode(part) for part in parts], check_count("length", length))
    contexts = distinct(windows[:, :-1])
    occurrences = np.bincount(contexts.ids)
    kept = np.argsort(-occurrences, kind="stable")[: _examples(examples, len(occurrences), length)]
    counts = _followers(contexts.ids, windows[:, -1], kept, len(chosen))
    often = occurrences[kept]
    return Corpus(
        tokens=windows[contexts.first[kept], :-1],
        counts=counts,
        probabilities=counts / often[:, None],
        weights=often / often.sum(),
        words=chosen.words,
    )


def language_modelling(texts: Sequence[str], *, length: int, vocab: int, examples: int | None = None) -> SeqToSeq:
    """Return the next word at every position, in windows of ``length`` words, as a seq-to-seq task.

    Every window starts with a token of its own (ids from ω on), so that no two begin alike. A sequence is that token
    and all words of the window but the last, and its labels are the window's words. The tokens up to a position
    determine the label there, for networks that see no further (``causal``).

    >>> task = language_modelling(["a rose is a rose is a rose."], length=3, vocab=5)
    >>> task.tokens.tolist(), task.labels.tolist()
    ([[5, 0, 1], [6, 0, 1], [7, 0, 1]], [[0, 1, 2], [0, 1, 2], [0, 1, 3]])
    """
    parts = [split_words(text) for text in texts]
    chosen = vocabulary((word for part in parts for word in part), vocab)
    encoded = [chosen.encode(part) for part in parts]
    whole = [ids[: len(ids) // check_count("length", length) * length].reshape(-1, length) for ids in encoded]
    windows = np.concatenate(whole)
    if not len(windows):
        raise BadInput(f"the longest text has {max(map(len, parts))} words; expected at least {length}, one window")
    windows = windows[: _examples(examples, len(windows), length)]
    begins = len(chosen) + np.arange(len(windows))
    tokens = np.concatenate([begins[:, None], windows[:, :-1]], axis=1)
    return SeqToSeq(tokens=tokens, labels=windows, label_count=len(chosen), vocab=len(chosen) + len(windows))


def entropy_bound(probabilities: npt.ArrayLike, weights: npt.ArrayLike) -> float:
    """Return Σ_t π_t H(p_t) in nats, the least possible training loss; ``probabilities`` [N, C], ``weights`` [N].

    >>> round(entropy_bound([[0.5, 0.5], [1.0, 0.0]], [0.25, 0.75]), 6)  # ln(2) / 4
    0.173287
    """
    rows = as_distributions("probabilities", probabilities, shape=("N", "C"))
    shares = as_distribution("weights", weights, len(rows))
    logs = np.log(rows, where=rows > 0, out=np.zeros_like(rows))
    return float(0 - shares @ (rows * logs).sum(axis=1))


def _windows(texts: Sequence[Ids], length: int) -> Ids:
    """Return all windows of ``length`` tokens with the token after each, text by text: int64 [M, ``length`` + 1]."""
    longest = max(map(len, texts), default=0)
    if longest <= length:
        expected = f"at least {length + 1}, a context of length {length} and the next word"
        raise BadInput(f"the longest text has {longest} words; expected {expected}")
    views = [np.lib.stride_tricks.sliding_window_view(ids, length + 1) for ids in texts if len(ids) > length]
    return np.concatenate(views)


def _examples(examples: int | None, most: int, length: int) -> int:
    if examples is not None and check_count("examples", examples) > most:
        expected = f"at most {most}, the number of contexts of length {length} in the texts"
        raise BadInput(f"examples is {examples}; expected {expected}")
    return most if examples is None else examples


def _followers(contexts: Ids, following: Ids, kept: Ids, vocab: int) -> Ids:
    """Count how often each token follows each of the ``kept`` contexts [N]: int64 [N, ``vocab``].

    ``contexts`` [M] is the context at each place and ``following`` [M] the token after it.
    """
    rows = np.full(contexts.max() + 1, -1)
    rows[kept] = np.arange(len(kept))
    places = rows[contexts]
    is_kept = places >= 0
    cells = np.bincount(places[is_kept] * vocab + following[is_kept], minlength=len(kept) * vocab)
    return cells.reshape(len(kept), vocab)
