"""Float Transformers: stretches of the texts, asked wherever there is room.

Answers that are proved to be exact are the same as if all were read from the start, by one process; and what is not
proved is not taken for right either way.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.executors import Job, Workplace, run_jobs
from byheart.networks.transformer.answers import Answers, Ids, answers
from byheart.networks.transformer.forced import FEW, SEEN, TOKENS, Stretch, forced_answers, stretches
from byheart.networks.transformer.proved import proved_answers
from byheart.networks.transformer.transformer_network import TransformerNetwork
from byheart.progress import Report

ON_GPU = 1 << 22
"""Tokens of a stretch on a GPU, which has to be kept busy."""
Doubtful = NDArray[np.bool_]
Part = tuple[int, Answers, Doubtful]
"""From which index on places were asked, the answers there, and which of them are not proved."""


def asked(
    network: TransformerNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    workplace: Workplace,
    report: Report | None,
) -> Iterator[Part]:
    """The answers at ``places``, a stretch at a time, in the order in which they come."""
    compiled = len(places) >= FEW  # of all, so that it does not matter who asks them
    size, sees, here = max(TOKENS, SEEN * network.spec.sees), network.spec.sees, workplace.name == "local"
    if here:
        size *= torch.get_num_threads()  # each of which proves a part of it
    shared = network if here else replace(network)  # as it is on the disk, without what was made of it to run it
    cut = _numbered(stretches(tokens, starts, places, sees, size))
    done = 0

    def within(part: int, _: int, note: str = "", /) -> None:
        if report is not None:
            report(done + part, len(places))

    with workplace.open(shared) as executor:
        tasks = (Job(first, answered, (one, compiled)) for first, one in cut)
        for first, part in run_jobs(executor, tasks, report=within if here else None, peaks=workplace.peaks):
            yield first, *part
            done += len(part[1])
            if report is not None:
                report(done, len(places))


def asked_on(
    device: torch.device,
    network: TransformerNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    report: Report | None,
) -> Iterator[Part]:
    """The same, asked and proved on a GPU: the proof needs no more of it than IEEE 754's float64."""
    module = replace(network).module.to(device)  # a copy of its own
    size, sees = max(ON_GPU, SEEN * network.spec.sees), network.spec.sees
    for first, one in _numbered(stretches(tokens, starts, places, sees, size)):
        here = one.tokens, one.starts, one.places
        once = answers(module, *here)
        yield first, once, _doubtful(once, proved_answers(module, *here))
        if report is not None:
            report(first + len(one.places), len(places))


def _numbered(parts: Iterator[Stretch]) -> Iterator[tuple[int, Stretch]]:
    """Stretches, each with the index of its first place."""
    first = 0
    for one in parts:
        yield first, one
        first += len(one.places)


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
