"""Answers of float Transformers, stretch by stretch of the texts, on any executor or a GPU.

An answer that is proved to be exact is the same as if one process read the texts from the start. An answer that is not
proved does not count as right.
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
"""Smallest number of tokens in a stretch on a GPU, which has to be kept busy."""
Doubtful = NDArray[np.bool_]
Part = tuple[int, Answers, Doubtful]
"""Index of the first place, the answers from there on, and which of them are not proved."""


def answer_in_parts(
    network: TransformerNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    workplace: Workplace,
    report: Report | None,
) -> Iterator[Part]:
    """Yield the answers at ``places``, one stretch at a time, in the order in which stretches are finished."""
    compiled = len(places) >= FEW  # depends on all places, so that every executor gives the same answers
    size, sees, here = max(TOKENS, SEEN * network.spec.sees), network.spec.sees, workplace.name == "local"
    if here:
        size *= torch.get_num_threads()  # each thread proves a part of the stretch
    shared = network if here else replace(network)  # a copy without the module that runs it
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


def answer_on_gpu(
    device: torch.device,
    network: TransformerNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    report: Report | None,
) -> Iterator[Part]:
    """Yield the answers at ``places`` from a GPU, which proves them, too: the proof only needs IEEE 754's float64."""
    module = replace(network).module.to(device)  # a copy: ``network`` stays on the CPU
    size, sees = max(ON_GPU, SEEN * network.spec.sees), network.spec.sees
    for first, one in _numbered(stretches(tokens, starts, places, sees, size)):
        here = one.tokens, one.starts, one.places
        once = answers(module, *here)
        yield first, once, _doubtful(once, proved_answers(module, *here))
        if report is not None:
            report(first + len(one.places), len(places))


def _numbered(parts: Iterator[Stretch]) -> Iterator[tuple[int, Stretch]]:
    """Yield stretches, each with the index of its first place."""
    first = 0
    for one in parts:
        yield first, one
        first += len(one.places)


def answered(
    network: TransformerNetwork, one: Stretch, compiled: bool, *, report: Report | None
) -> tuple[Answers, Doubtful]:
    """Return the answers at every place of a stretch, and which of them a second run does not prove."""
    asking = one.tokens, one.starts, one.places
    once = answers(network.module, *asking, report=_half(report, 0))
    proved = forced_answers(network, *asking, compiled=compiled, report=_half(report, 1))
    return once, _doubtful(once, proved)


def _doubtful(once: Answers, proved: Answers) -> Doubtful:
    """Return which answers differ from the proof's, or have none."""
    return np.asarray((proved.labels != once.labels) | (proved.margins != once.margins))


def _half(report: Report | None, number: int) -> Callable[..., object] | None:
    """Return a report on the first or the second half of the work (``number`` 0 or 1) for one on all of it."""
    if report is None:
        return None
    return lambda done, total: report((done + number * total) // 2, total)
