"""Proofs of all answers of a float Transformer where all tokens are known, by compiled code if possible.

:mod:`.proved` makes the proof in PyTorch; compiled code (:mod:`.interpreter`) makes it in a fraction of the time.
Answers that it does not prove, and networks that it cannot read, are left to ``proved``: one proof of the two suffices.

Stretches of the tokens are read by as many threads as PyTorch has. The number of threads changes no answer: proved
answers are exact, and a failed proof affects only the places that depend on it.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.networks.transformer.answers import Answers, Ids, in_order
from byheart.networks.transformer.proved import proved_answers
from byheart.networks.transformer.transformer_network import TransformerNetwork
from byheart.progress import Report

if TYPE_CHECKING:
    from byheart.networks.transformer.program import CompiledProgram

Array = NDArray[np.float64]
TOKENS, SEEN = 1 << 17, 8
"""Fewest tokens in a stretch, in all and per token that the network sees, so that few tokens are read twice."""


@dataclass(frozen=True)
class Stretch:
    """A run of tokens, the starts of the sequences in it, and the places whose answers are wanted."""

    tokens: NDArray[np.integer]
    starts: Ids
    places: Ids


def stretches(tokens: NDArray[np.integer], starts: Ids, places: Ids, sees: int, size: int) -> Iterator[Stretch]:
    """Cut the tokens into stretches of ``size``, each with its part of ``places``, which increase.

    A stretch begins early enough to hold all tokens that the network sees from its first place.

    >>> tokens, starts, places = np.arange(10), np.array([0, 4, 10]), np.array([1, 5, 9])
    >>> for part in stretches(tokens, starts, places, sees=2, size=8):
    ...     print(part.tokens, part.starts, part.places)
    [0 1 2 3 4 5 6 7] [0 4 8] [1 5]
    [7 8 9] [0 3] [2]
    """
    for left in range(0, len(tokens), size):
        right = min(left + size, len(tokens))
        a, b = np.searchsorted(places, np.array((left, right), places.dtype))  # other types make numpy copy places
        if a == b:
            continue
        begin = int(starts[np.searchsorted(starts, left, side="right") - 1])
        begin = max(begin, left + 1 - sees)
        inside = starts[np.searchsorted(starts, begin, side="right") : np.searchsorted(starts, right)]
        yield Stretch(tokens[begin:right], np.concatenate([[begin], inside, [right]]) - begin, places[a:b] - begin)


FEW = 1 << 17
"""Fewest answers for which compiled code is used: PyTorch proves fewer in less time than compiling takes."""


def forced_answers(
    network: TransformerNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    *,
    compiled: bool,
    report: Report | None = None,
) -> Answers:
    """Prove the answers at ``places``, which increase, by ``compiled`` code if wanted, or else in PyTorch."""
    if (np.diff(places) < 0).any():
        raise ValueError("places are out of order; expected them to increase")
    if not compiled or network.program is None:
        return proved_answers(network.module, tokens, starts, places, report=report)
    labels, margins, done = np.full(len(places), -1), np.full(len(places), np.nan), 0
    size = max(TOKENS, SEEN * network.spec.sees)
    for label, margin in _read_all(network.program, stretches(tokens, starts, places, network.spec.sees, size)):
        part = slice(done, done + len(label))
        labels[part], margins[part] = label, margin
        done += len(label)
        if report is not None:
            report(done, len(places))
    unproved = np.flatnonzero(np.isnan(margins))
    if len(unproved):
        rest = proved_answers(network.module, tokens, starts, places[unproved])
        labels[unproved], margins[unproved] = rest.labels, rest.margins
    return Answers(labels, margins)


def _read_all(program: "CompiledProgram", parts: Iterator[Stretch]) -> Iterator[tuple[Ids, Array]]:
    """Yield the labels and margins of every stretch, in order, by several threads."""
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(threads) as pool:
        yield from in_order(pool, lambda part: program.answers(part.tokens, part.starts, part.places), parts, threads)
