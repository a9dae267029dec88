"""Float Transformers: stretches of the texts, asked wherever there is room.

A stretch is read from as far before its first place as the network sees: what came earlier cannot change its answers.
Where stretches begin and end follows from the questions and the network alone, not from who asks them. So answers that
are proved to be exact are the same as if all were read from the start, by one process; and what is not proved is not
taken for right either way.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from byheart.executors import Task, Workplace, each
from byheart.networks.transformer.evaluate import Answers, Ids, answers
from byheart.networks.transformer.network import TransformerNetwork
from byheart.networks.transformer.proved import proved_answers
from byheart.progress import Report

TOKENS, SEEN = 1 << 17, 8
"""Tokens of a stretch; at least so many times as the network sees, so that little is read twice."""
Doubtful = NDArray[np.bool_]


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
        a, b = np.searchsorted(places, (left, right))
        if a == b:
            continue
        begin = int(starts[np.searchsorted(starts, left, side="right") - 1])
        begin = max(begin, left + 1 - sees)
        inside = starts[np.searchsorted(starts, begin, side="right") : np.searchsorted(starts, right)]
        yield Stretch(tokens[begin:right], np.array([begin, *inside, right]) - begin, places[a:b] - begin)


def asked(
    network: TransformerNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    workplace: Workplace,
    report: Report | None,
) -> tuple[Answers, Doubtful]:
    """The answers at ``places``, and which of them are not proved: in one piece here, in stretches elsewhere."""
    if workplace.name == "local":
        return answered(network, Stretch(tokens, starts, places), report=report)
    size, sees = max(TOKENS, SEEN * network.spec.sees), network.spec.sees
    found: dict[int, tuple[Answers, Doubtful]] = {}
    done = 0
    with workplace.open(replace(network)) as executor:  # as it is on the disk, without what was made of it to run it
        cut = enumerate(stretches(tokens, starts, places, sees, size))
        for number, part in each(executor, (Task(n, answered, (one,)) for n, one in cut), peaks=workplace.peaks):
            found[number] = part
            done += len(part[1])
            if report is not None:
                report(done, len(places))
    parts = [found[number] for number in sorted(found)]
    labels, margins, doubtful = zip(*((once.labels, once.margins, doubt) for once, doubt in parts), strict=True)
    return Answers(np.concatenate(labels), np.concatenate(margins)), np.concatenate(doubtful)


def answered(network: TransformerNetwork, one: Stretch, *, report: Report | None) -> tuple[Answers, Doubtful]:
    """Ask every place of a stretch, and once more with a proof; which answers the proof does not give."""
    once = answers(network.module, one.tokens, one.starts, one.places, report=_half(report, 0))
    proved = proved_answers(network.module, one.tokens, one.starts, one.places, report=_half(report, 1))
    return once, (proved.labels != once.labels) | (proved.margins != once.margins)


def _half(report: Report | None, number: int) -> Callable[..., object] | None:
    """The first or the second half of the work, for whoever waits for both."""
    if report is None:
        return None
    return lambda done, total: report((done + number * total) // 2, total)
