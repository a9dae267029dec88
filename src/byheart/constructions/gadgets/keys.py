"""Questions that were hashed to keys: is there one answer to each, and are there as many as were planned for?"""

import numpy as np

from byheart.tasks.arrays import Ids


def one_answer_each(keys: Ids, labels: Ids) -> Ids | None:
    """Indices of the different keys, or None if one key asks for two labels."""
    order = np.lexsort((labels, keys))
    same = keys[order][1:] == keys[order][:-1]
    if (same & (labels[order][1:] != labels[order][:-1])).any():
        return None
    return np.asarray(order[np.append(True, ~same)], np.int64)


def filled_up(keys: Ids, labels: Ids, count: int) -> tuple[Ids, Ids]:
    """As many keys as were planned for: where questions with one label share a key, unused keys get label 0."""
    missing = count - len(keys)
    spare = np.setdiff1d(np.arange(count + 1), keys)[:missing]
    return np.concatenate([keys, spare]), np.concatenate([labels, np.zeros(missing, dtype=np.int64)])
