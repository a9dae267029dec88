"""Float Transformers: stretches of the texts, asked wherever there is room.

Answers that are proved to be exact are the same as if all were read from the start, by one process; and what is not
proved is not taken for right either way.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.executors import Task, Workplace, each
from byheart.networks.transformer.evaluate import Answers, Ids, answers
from byheart.networks.transformer.forced import FEW, forced_answers
from byheart.networks.transformer.network import TransformerNetwork
from byheart.networks.transformer.proved import proved_answers
from byheart.networks.transformer.stretches import SEEN, TOKENS, Stretch, stretches
from byheart.progress import Report

Doubtful = NDArray[np.bool_]


def asked(
    network: TransformerNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    workplace: Workplace,
    report: Report | None,
) -> tuple[Answers, Doubtful]:
    """The answers at ``places``, and which of them are not proved: in one piece here, in stretches elsewhere."""
    compiled = len(places) >= FEW  # of all, so that it does not matter who asks them
    if workplace.name == "local":
        return answered(network, Stretch(tokens, starts, places), compiled, report=report)
    size, sees = max(TOKENS, SEEN * network.spec.sees), network.spec.sees
    found: dict[int, tuple[Answers, Doubtful]] = {}
    done = 0
    with workplace.open(replace(network)) as executor:  # as it is on the disk, without what was made of it to run it
        cut = enumerate(stretches(tokens, starts, places, sees, size))
        for number, part in each(
            executor, (Task(n, answered, (one, compiled)) for n, one in cut), peaks=workplace.peaks
        ):
            found[number] = part
            done += len(part[1])
            if report is not None:
                report(done, len(places))
    parts = [found[number] for number in sorted(found)]
    labels, margins, doubtful = zip(*((once.labels, once.margins, doubt) for once, doubt in parts), strict=True)
    return Answers(np.concatenate(labels), np.concatenate(margins)), np.concatenate(doubtful)


def asked_on(
    device: torch.device,
    network: TransformerNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    report: Report | None,
) -> tuple[Answers, Doubtful]:
    """The same, asked and proved on a GPU: the proof needs no more of it than IEEE 754's float64."""
    module = replace(network).module.to(device)  # a copy of its own
    once = answers(module, tokens, starts, places, report=_half(report, 0))
    return once, _doubtful(once, proved_answers(module, tokens, starts, places, report=_half(report, 1)))


def answered(
    network: TransformerNetwork, one: Stretch, compiled: bool, *, report: Report | None
) -> tuple[Answers, Doubtful]:
    """Ask every place of a stretch, and once more with a proof; which answers the proof does not give."""
    asked = one.tokens, one.starts, one.places
    once = answers(network.module, *asked, report=_half(report, 0))
    proved = forced_answers(network, *asked, compiled=compiled, report=_half(report, 1))
    return once, _doubtful(once, proved)


def _doubtful(once: Answers, proved: Answers) -> Doubtful:
    """Which answers are not those of the proof, or nothing is proved of."""
    return np.asarray((proved.labels != once.labels) | (proved.margins != once.margins))


def _half(report: Report | None, number: int) -> Callable[..., object] | None:
    """The first or the second half of the work, for whoever waits for both."""
    if report is None:
        return None
    return lambda done, total: report((done + number * total) // 2, total)
