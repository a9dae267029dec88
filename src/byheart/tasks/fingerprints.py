"""The fingerprint of contexts: a SHA-256 of all that is asked, in whatever order sequences are given.

Every sequence, with what is asked in it, is a row of words: how many tokens it has, in how many places something is
asked, and how many tokens are its prompt; then the tokens, those places, and the answers. What comes first says how
long a row is, so of several one after the other it is clear where each begins.

Rows are sorted by a cheap key, and in lexicographic order where keys agree. Those whose keys begin with the same byte
are a *part*, and the fingerprint is the SHA-256 of the sizes and of every part's SHA-256: so parts can be hashed apart
from each other, by whoever has their rows. :func:`_few` does it in plain Python, compiled code
(:mod:`.fingerprint_kernels`) the same for many.

The key decides how long it takes, and nothing else. What is hashed tells the rows, each as often as it is there, so
different ones have different fingerprints as long as nobody breaks SHA-256.
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
"""What rows are made of: tokens; where among them something is asked, increasing, and the answers there; and of every
sequence, and of one that would come next, where it begins, how many answers come before, and how long its prompt is."""
Order = npt.NDArray[np.int64]
FACTOR = 0x9E3779B97F4A7C15
"""The base of keys: the golden ratio, less 1, in 64 bits behind the point."""
PARTS = 256
FEW = 1 << 18
"""So many words take a tenth of a second without compiled code, which has to be compiled for ten times as long."""
WORDS = 1 << 16
"""Words that are written, and hashed, at a time."""
PROMPTS = 1 << 16


def in_any_order(contexts: "Contexts") -> str:
    """The fingerprint; of many sequences, each takes 24 bytes on the way, which lie where there is room for them."""
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
    """The SHA-256 of every part, in words of this type."""
    tokens, places, answers, table = sequences
    rows = []
    for (start, first, prompt), (stop, last, _) in pairwise(table.tolist()):
        asked = [*(places[first:last] - start).tolist(), *answers[first:last].tolist()]
        row = [stop - start, last - first, prompt, *tokens[start:stop].tolist(), *asked]
        rows.append((reduce(lambda key, word: (key + word) * FACTOR % 2**64, row, 0), row))
    parts = [hashlib.sha256() for _ in range(PARTS)]
    for key, row in sorted(rows):
        parts[key >> 56].update(np.array(row, word).data)
    return [part.digest() for part in parts]


def _many(sequences: Sequences, word: str) -> Iterator[bytes]:
    """The same; a part is sorted at a time."""
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
    """These rows by their keys, or where these agree, in lexicographic order."""
    from byheart.tasks.fingerprint_kernels import collide, compare

    order = rows[np.argsort(keys[rows])].astype(np.int64)
    if collide(sequences, keys, order):  # by chance, never: somebody wants it to take long
        lexicographic = cmp_to_key(partial(compare, sequences))
        ends = (np.flatnonzero(np.diff(keys[order])) + 1).tolist()
        for first, last in pairwise([0, *ends, len(order)]):
            order[first:last] = sorted(order[first:last].tolist(), key=lexicographic)
    return order


def in_order(contexts: "Contexts") -> str:
    """What 0.1.0 took for the fingerprint: the SHA-256 of everything as it lies there.

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
