"""The fingerprint of contexts: a SHA-256 of all questions and answers, independent of the order of sequences.

Every sequence, with its questions, is a row of words: the numbers of its tokens, of its questions, and of its prompt's
tokens; then the tokens, the places of the questions, and the answers. The first words determine the length of a row,
so rows one after the other can be told apart.

Rows are sorted by a cheap key, and in lexicographic order if keys agree. Rows whose keys begin with the same byte
are a *part*, and the fingerprint is the SHA-256 of the sizes and of every part's SHA-256. So parts can be hashed
independently. :func:`_few` does it in plain Python, compiled code (:mod:`.fingerprint_kernels`) does the same for
many sequences.

The key affects only the time. The hashed data determines the rows and their multiplicities, so
different contexts have different fingerprints unless SHA-256 is broken.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import cmp_to_key, partial, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from byheart.files.memory import allocate
from byheart.tasks.arrays import chunks, take

if TYPE_CHECKING:
    from byheart.tasks.contexts import Contexts

Sequences = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
"""Source of rows: tokens; increasing indices of questions among them; the answers; and for every sequence, and one
after the last, its start, the number of earlier answers, and the length of its prompt.
"""
Order = npt.NDArray[np.int64]
FACTOR = 0x9E3779B97F4A7C15
"""Base of keys: the golden ratio minus 1, times 2⁶⁴."""
PARTS = 256
FEW = 1 << 18
"""Number of words from which on compiled code is used. It takes a second to compile; without it, they take 0.1 s."""
WORDS = 1 << 16
"""Number of words that are hashed at a time."""
PROMPTS = 1 << 16


def in_any_order(contexts: "Contexts") -> str:
    """Return the fingerprint. Many sequences take 24 bytes each, in memory or on the disk."""
    sequences = _sequences(contexts)
    count, wide = len(contexts.starts) - 1, contexts.label_count > 1 << 32
    hashed = _few if len(contexts.tokens) + 2 * len(sequences[1]) + 3 * count < FEW else _many
    sizes = [count, contexts.window, contexts.vocab, contexts.label_count, contexts.end]
    digest = hashlib.sha256(json.dumps(["contexts in any order", *sizes]).encode())
    for part in hashed(sequences, "<u8" if wide else "<u4"):
        digest.update(part)
    return digest.hexdigest()


def _sequences(contexts: "Contexts") -> Sequences:
    places, answers = contexts.places, contexts.labels
    if contexts.again.size:
        places = contexts.all_places
        answers = take(answers, contexts.questions_at(places))
    table = allocate((len(contexts.starts), 3), np.int32 if len(contexts.tokens) < 1 << 31 else np.int64)
    table[:, 0] = contexts.starts
    first = 0
    for part in chunks(contexts.starts):
        table[first : first + len(part), 1] = np.searchsorted(places, part.astype(places.dtype))
        first += len(part)
    table[:-1, 2], table[-1, 2] = np.asarray(contexts.prompts), 0
    return contexts.tokens, places, answers, table


def _few(sequences: Sequences, word: str) -> list[bytes]:
    """Return the SHA-256 of every part, with words of type ``word``."""
    tokens, places, answers, table = sequences
    rows = []
    for (start, first, prompt), (stop, last, _) in pairwise(table.tolist()):
        questions = [*(places[first:last] - start).tolist(), *answers[first:last].tolist()]
        row = [stop - start, last - first, prompt, *tokens[start:stop].tolist(), *questions]
        rows.append((reduce(lambda key, word: (key + word) * FACTOR % 2**64, row, 0), row))
    parts = [hashlib.sha256() for _ in range(PARTS)]
    for key, row in sorted(rows):
        parts[key >> 56].update(np.array(row, word).data)
    return [part.digest() for part in parts]


def _many(sequences: Sequences, word: str) -> Iterator[bytes]:
    """Yield the same as :func:`_few` with compiled code, one part at a time."""
    from byheart.tasks.fingerprint_kernels import deal, list_keys, write

    keys = allocate(len(sequences[-1]) - 1, np.uint64)
    list_keys(sequences, np.uint64(FACTOR), keys)
    dealt, ends = allocate(len(keys), np.int32 if len(keys) < 1 << 31 else np.int64), np.empty(PARTS, np.int64)
    deal(keys, dealt, ends)
    words = np.empty(WORDS, np.uint64)
    for first, last in pairwise([0, *ends.tolist()]):
        order = _sorted(sequences, keys, dealt[first:last])
        digest, index, at = hashlib.sha256(), 0, 0
        while index < len(order):
            index, at, written = write(sequences, order, index, at, words)
            digest.update(words[:written].astype(word).data)
        yield digest.digest()


def _sorted(sequences: Sequences, keys: npt.NDArray[np.uint64], rows: npt.NDArray[Any]) -> Order:
    """Sort ``rows`` by their keys, and rows with equal keys in lexicographic order."""
    from byheart.tasks.fingerprint_kernels import collide, compare

    order = rows[np.argsort(keys[rows])].astype(np.int64)
    if collide(sequences, keys, order):  # by chance, never: somebody wants it to take long
        lexicographic = cmp_to_key(partial(compare, sequences))
        ends = (np.flatnonzero(np.diff(keys[order])) + 1).tolist()
        for first, last in pairwise([0, *ends, len(order)]):
            order[first:last] = sorted(order[first:last].tolist(), key=lexicographic)
    return order


def in_order(contexts: "Contexts") -> str:
    """Return the fingerprint of version 0.1.0: the SHA-256 of all arrays in order.

    Tokens are 32-bit, all else 64-bit integers.
    """
    kinds = {"tokens": "<i4", "starts": "<i8", "places": "<i8", "labels": "<i8"}
    shapes = {name: getattr(contexts, name).shape for name in kinds}
    numbers = [contexts.window, contexts.vocab, contexts.label_count, [], contexts.end]
    before, prompts, after = json.dumps(["contexts", shapes, numbers]).rpartition("[]")
    digest = hashlib.sha256(f"{before}{prompts[0]}".encode())
    for first in range(0, len(contexts.prompts), PROMPTS):  # as JSON has them, some at a time
        some = ", ".join(map(str, contexts.prompts[first : first + PROMPTS]))
        digest.update(f"{', ' if first else ''}{some}".encode())
    digest.update(f"{prompts[1]}{after}".encode())
    for name, kind in kinds.items():
        for part in chunks(getattr(contexts, name)):
            digest.update(part.astype(kind).data)
    return digest.hexdigest()
