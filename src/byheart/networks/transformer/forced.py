"""Every answer of a float Transformer, proved, where all tokens are given: by compiled code if there is any for it.

:mod:`.proved` makes the proof in PyTorch. Compiled code (:mod:`.decoder`) makes the same in a fraction of the time, as
it leaves out what is 0. What it does not prove, and networks that it cannot read, are left to ``proved``: an answer is
proved here if one of the two does it, and each of them suffices.

Stretches of the tokens are read by as many threads as PyTorch has. Proved answers are exact, and what is not proved at
one place has no effect on places that do not depend on it; so the answers are the same, however many read them.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.networks.transformer.evaluate import Answers, Ids
from byheart.networks.transformer.network import TransformerNetwork
from byheart.networks.transformer.proved import proved_answers
from byheart.networks.transformer.stretches import SEEN, TOKENS, Stretch, stretches
from byheart.progress import Report

FEW = 1 << 14
"""So few answers are proved in PyTorch: compiled code takes as long to load (and the first time, to be compiled)."""

if TYPE_CHECKING:
    from byheart.networks.transformer.decoder import Decoder


def forced_answers(
    network: TransformerNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    report: Report | None = None,
) -> Answers:
    """As :func:`.proved.proved_answers`; the ``places`` increase."""
    if (np.diff(places) < 0).any():
        raise ValueError("places are out of order; expected them to increase")
    if len(places) < FEW or network.decoder is None:
        return proved_answers(network.module, tokens, starts, places, report=report)
    labels, margins, done = np.full(len(places), -1), np.full(len(places), np.nan), 0
    size = max(TOKENS, SEEN * network.spec.sees)
    for label, margin in _read(network.decoder, stretches(tokens, starts, places, network.spec.sees, size)):
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


def _read(decoder: "Decoder", parts: Iterator[Stretch]) -> Iterator[tuple[Ids, NDArray[np.float64]]]:
    """The labels and margins of every stretch, in order."""

    def one(part: Stretch) -> tuple[Ids, NDArray[np.float64]]:
        return decoder.again().answers(part.tokens, part.starts, part.places)

    threads = torch.get_num_threads()
    waiting: deque[Future[tuple[Ids, NDArray[np.float64]]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for part in parts:
            waiting.append(pool.submit(one, part))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
