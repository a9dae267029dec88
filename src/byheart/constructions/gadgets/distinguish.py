"""Few tokens tell all sequences apart (Bondy's theorem): which ones?

N different multisets of tokens, as count vectors over K tokens, stay different on some ≤ N − 1 coordinates. Proof as a
program: start with all sequences in one class and take the tokens one after the other; keep a token iff its counts
differ within some class, and split the classes by them. Every kept token makes at least one more class, and there are
at most N; a token that was constant on the classes when it was looked at is constant on all finer ones. Tokens that
occur in about half of the sequences are looked at first: on random data a few dozen suffice.
"""

import numpy as np

from byheart.tasks.arrays import Ids
from byheart.tasks.distinct import count_tokens


def distinguishing_tokens(ids: Ids) -> Ids:
    """Tokens whose counts tell apart all rows of ``ids`` [N, n] that differ as multisets; at most N − 1, at least one.

    >>> distinguishing_tokens(np.array([[0, 0, 1], [0, 1, 1], [2, 0, 1]])).tolist()
    [0, 2]
    """
    N, n = ids.shape
    pairs = count_tokens(ids)
    token, sequence, count = pairs.token, pairs.sequence, pairs.count
    # Occurrences token by token, the tokens that split best in front.
    frequency = np.bincount(token)
    rank = np.lexsort((np.arange(len(frequency)), -np.minimum(frequency, N - frequency)))
    place = np.empty_like(rank)
    place[rank] = np.arange(len(rank))
    order = np.lexsort((sequence, place[token]))
    bounds = np.concatenate([[0], np.cumsum(frequency[rank])])
    kept = _refine(sequence[order], count[order], bounds, N, n)
    return np.sort(rank[kept]) if len(kept) else rank[:1]


def _refine(sequence: Ids, multiplicity: Ids, bounds: Ids, N: int, n: int) -> Ids:
    """Indices of the kept tokens; token i owns the occurrences bounds[i] to bounds[i + 1]."""
    label = np.zeros(N, dtype=np.int64)
    size = np.zeros(N, dtype=np.int64)
    size[0], classes = N, 1
    kept = []
    for i in range(len(bounds) - 1):
        if classes == N:
            break
        rows = sequence[bounds[i] : bounds[i + 1]]
        group = label[rows] * (n + 1) + multiplicity[bounds[i] : bounds[i + 1]]
        parts, inverse, counts = np.unique(group, return_inverse=True, return_counts=True)
        parent = parts // (n + 1)
        # A part that is its whole class splits nothing; of a class that is used up, one part keeps the old label.
        covered = np.bincount(parent, weights=counts, minlength=1)[parent].astype(np.int64)
        last = np.append(parent[1:] != parent[:-1], True)
        fresh = ~(last & (covered == size[parent]))
        if not fresh.any():
            continue
        kept.append(i)
        names = np.where(fresh, classes + np.cumsum(fresh) - 1, parent)
        np.subtract.at(size, parent[fresh], counts[fresh])
        size[names[fresh]] = counts[fresh]
        classes += int(fresh.sum())
        label[rows] = names[inverse]
    return np.array(kept, dtype=np.int64)
