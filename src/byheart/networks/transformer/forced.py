"""Every answer of a float Transformer, proved, where all tokens are given: by compiled code if there is any for it.

:mod:`.proved` makes the proof in PyTorch. Compiled code (:mod:`.blocks`) makes the same in a fraction of the time, as
it leaves out most of what is 0. What it does not prove, and networks that it cannot read, are left to ``proved``: an
answer is proved here if one of the two does it, and each of them suffices.

Stretches of the tokens are read by as many threads as PyTorch has. Proved answers are exact, and what is not proved at
one place has no effect on places that do not depend on it; so the answers are the same, however many read them.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from numpy.typing import NDArray

from byheart.networks.transformer.answers import Answers, Ids
from byheart.networks.transformer.proved import proved_answers
from byheart.networks.transformer.transformer_network import TransformerNetwork
from byheart.progress import Report

TOKENS, SEEN = 1 << 17, 8
"""Tokens of a stretch; at least so many times as the network sees, so that little is read twice."""


@dataclass(frozen=True)
class Stretch:
    """Some tokens, where sequences begin in them, and where to ask."""

    tokens: NDArray[np.integer]
    starts: Ids
    places: Ids


def stretches(tokens: NDArray[np.integer], starts: Ids, places: Ids, sees: int, size: int) -> Iterator[Stretch]:
    """All ``places``, which increase, in stretches of ``size`` tokens; each begins as early as the network sees.

    >>> tokens, starts, places = np.arange(10), np.array([0, 4, 10]), np.array([1, 5, 9])
    >>> for one in stretches(tokens, starts, places, sees=2, size=8):
    ...     print(one.tokens, one.starts, one.places)
    [0 1 2 3 4 5 6 7] [0 4 8] [1 5]
    [7 8 9] [0 3] [2]
    """
    for left in range(0, len(tokens), size):
        right = min(left + size, len(tokens))
        a, b = np.searchsorted(places, np.array((left, right), places.dtype))  # of its type: all would be copied
        if a == b:
            continue
        begin = int(starts[np.searchsorted(starts, left, side="right") - 1])
        begin = max(begin, left + 1 - sees)
        inside = starts[np.searchsorted(starts, begin, side="right") : np.searchsorted(starts, right)]
        yield Stretch(tokens[begin:right], np.concatenate([[begin], inside, [right]]) - begin, places[a:b] - begin)


if TYPE_CHECKING:
    from byheart.networks.transformer.program import CompiledProgram

Array = npt.NDArray[np.float64]
FEW = 1 << 17
"""Fewer answers are proved in PyTorch: the first time, the loops take some 20 s to be compiled, as long as that."""


def forced_answers(
    network: TransformerNetwork,
    tokens: npt.NDArray[np.integer],
    starts: Ids,
    places: Ids,
    *,
    compiled: bool,
    report: Report | None = None,
) -> Answers:
    """As :func:`.proved.proved_answers`, by ``compiled`` code if that is wanted; the ``places`` increase."""
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
    left = np.flatnonzero(np.isnan(margins))
    if len(left):
        rest = proved_answers(network.module, tokens, starts, places[left])
        labels[left], margins[left] = rest.labels, rest.margins
    return Answers(labels, margins)


def _read_all(program: "CompiledProgram", parts: Iterator[Stretch]) -> Iterator[tuple[Ids, Array]]:
    """The same of every stretch, in order, by several threads."""
    threads = torch.get_num_threads()
    waiting: deque[Future[tuple[Ids, Array]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for part in parts:
            waiting.append(pool.submit(program.answers, part.tokens, part.starts, part.places))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
