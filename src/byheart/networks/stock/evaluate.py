"""A stock model on many contexts at once: sequences are read from their starts, answers taken where asked for."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.networks.stock.network import StockNetwork
from byheart.networks.transformer.evaluate import Answers, best
from byheart.progress import Report

Ids = NDArray[np.int64]
PORTION = 1 << 14
"""Tokens that are read at once."""
SCORES, PIECE = 1 << 19, 16
"""Scores of a head that are held at once, so many that they stay in the cache; and the fewest tokens of a piece."""


@torch.inference_mode()
def answers(
    network: StockNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    report: Report | None = None,
) -> Answers:
    """What the model answers at ``places`` of the sequences that begin at ``starts[:-1]`` of ``tokens``.

    Every sequence is read from its start, as a user's program reads it: sequences of one length side by side, long ones
    piece by piece, with the model's own cache.
    """
    found, margins = np.empty(len(places), dtype=np.int64), np.empty(len(places))
    done = 0
    for begins, length in _batches(starts):
        cache, before = None, int(network.first is not None)
        first = np.full((len(begins), before), network.first or 0)
        rows = np.concatenate([first, tokens[begins[:, None] + np.arange(length)].astype(np.int64)], axis=1)
        piece = max(min(PORTION, SCORES // rows.shape[1]) // len(begins), PIECE)
        for left in range(0, rows.shape[1], piece):
            right = min(left + piece, rows.shape[1])
            step = network.model(torch.from_numpy(rows[:, left:right]), past_key_values=cache, use_cache=True)
            cache = step.past_key_values
            for row, begin in enumerate(begins.tolist()):
                a, b = np.searchsorted(places, (begin + max(0, left - before), begin + max(0, right - before)))
                column = torch.from_numpy(places[a:b] - begin + before - left)
                found[a:b], margins[a:b] = best(step.logits[row, column])
                done += int(b - a)
            if report is not None:
                report(done, len(places))
    return Answers(found, margins)


def _batches(starts: Ids) -> Iterator[tuple[Ids, int]]:
    """Where sequences begin, and their length: neighbours of one length, as many as can be read at once."""
    lengths, first = np.diff(starts), 0
    while first < len(lengths):
        length = int(lengths[first])
        most = max(1, PORTION // (length + 1))
        same = lengths[first : first + most] == length
        last = first + (len(same) if same.all() else int(same.argmin()))
        yield starts[first:last], length
        first = last
