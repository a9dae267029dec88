"""A stock Llama on many contexts at once: sequences are read from their starts, answers taken where asked for."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.networks.stock.network import StockNetwork
from byheart.networks.transformer.evaluate import Answers, best
from byheart.progress import Report

Ids = NDArray[np.int64]
PORTION, PIECE = 1 << 14, 1 << 10
"""Tokens that are read at once: of several sequences, and of one."""


@torch.inference_mode()
def answers(
    network: StockNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    window: int,
    report: Report | None = None,
) -> Answers:
    """What the model answers at ``places`` of the sequences that begin at ``starts[:-1]`` of ``tokens``.

    Sequences of one length are batched. Long ones are read piece by piece, each with the ``window`` tokens before it:
    nothing farther back can change an answer.
    """
    found, margins = np.empty(len(places), dtype=np.int64), np.empty(len(places))
    marks = np.empty(len(places), dtype=np.int64)
    lengths, done = np.diff(starts), 0
    whole = len(starts) > 2 and int(lengths.min()) == int(lengths.max()) <= PIECE
    parts = _batches(lengths, starts) if whole else _pieces(starts, window)
    for begins, length, before in parts:
        rows = tokens[begins[:, None] + np.arange(-before, length)].astype(np.int64)
        first = network.first is not None and (whole or int(begins[0]) in starts)
        given = np.pad(rows, ((0, 0), (int(first), 0)), constant_values=network.first or 0)
        a, b = np.searchsorted(places, (begins[0], begins[-1] + length))
        row = np.searchsorted(begins, places[a:b], side="right") - 1
        column = places[a:b] - begins[row] + before + first
        logits = network.model(torch.from_numpy(given)).logits[torch.from_numpy(row), torch.from_numpy(column)]
        found[a:b], margins[a:b], marks[a:b] = best(logits)
        done += int(b - a)
        if report is not None:
            report(done, len(places))
    return Answers(found, margins, marks)


Part = tuple[Ids, int, int]
"""Where rows of tokens begin, how many follow, and how many before them are read as well."""


def _batches(lengths: Ids, starts: Ids) -> Iterator[Part]:
    length = int(lengths[0])
    size = max(1, PORTION // length)
    for first in range(0, len(lengths), size):
        yield starts[first : min(first + size, len(lengths))], length, 0


def _pieces(starts: Ids, window: int) -> Iterator[Part]:
    for start, stop in pairwise(starts.tolist()):
        for begin in range(start, stop, PIECE):
            yield np.array([begin]), min(PIECE, stop - begin), min(window, begin - start)
