"""The judge of float Transformers: it asks every question, and proves that every step of the answer is exact.

A label is right if its logit is the largest, strictly. The network is run as it is. It is then run again with a proof
that no product and no sum, in any order, is rounded in its format (:mod:`byheart.networks.transformer.forced`). So
every machine that follows IEEE 754 gives the same logits. Answers without that proof are *undecided*: they may differ
on another machine, or in another batch.

The questions are asked stretch by stretch of the texts, on any executor or a GPU. An answer that is proved to be exact
is the same as if one process read the texts from the start. An answer that is not proved does not count as right.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.certificates.claim import JudgeOptions
from byheart.certificates.judges import contexts as judging
from byheart.certificates.judges.tally import Tally
from byheart.certificates.verdict import Verdict
from byheart.devices import PROOF_DEVICES, device_suffix, find_device
from byheart.errors import BadInput
from byheart.executors import Job, Workplace, run_jobs
from byheart.networks.transformer.answers import Answers, Ids, answers
from byheart.networks.transformer.forced import FEW, SEEN, TOKENS, Stretch, forced_answers, stretches
from byheart.networks.transformer.proved import proved_answers
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays
from byheart.progress import Report
from byheart.tasks.contexts import Contexts
from byheart.tasks.questions import QuestionsLike

LIBRARIES = ("numba", "numpy", "torch")
ON_GPU = 1 << 22
"""Smallest number of tokens in a stretch on a GPU, which has to be kept busy."""
Doubtful = NDArray[np.bool_]
Part = tuple[int, Answers, Doubtful]
"""Index of the first place, the answers from there on, and which of them are not proved."""


def asked(network: TransformerNetwork, source: QuestionsLike) -> Contexts:
    """Return the contexts of texts or of a next-token task, as long as the network looks back."""
    return judging.asked(network, source, network.spec.vocab, max(network.window, network.spec.sees))


def judge(network: TransformerNetwork, contexts: Contexts, options: JudgeOptions) -> Verdict:
    """Ask every question, and again with a proof: on the executor, or here on the chosen device."""
    executor, device, report = options.executor, options.device or "cpu", options.report
    if executor is not None and device != "cpu":
        raise BadInput(f"device is {device!r}, and an executor is given; expected one of them: a device works here")
    began, precision, where = time.perf_counter(), network.spec.precision, find_device(device, PROOF_DEVICES)
    places = judging.places(contexts, network.spec.sees)
    asking, tally = (contexts.tokens, contexts.starts, places), Tally(contexts, places)
    if where.type == "cpu":
        parts = answer_in_parts(network, *asking, executor or Workplace(), report)
    else:
        parts = answer_on_gpu(where, network, *asking, report)
    for part in parts:
        tally.add(*part)
    exact = f"{tally.doubtful:,} not proved to be exact" if tally.doubtful else "every step proved to be exact"
    within = f"whatever the order in which {precision} adds"
    method = f"{precision}, exhaustive{device_suffix(where)}; {exact}"
    return judging.verdict(network, tally, contexts, within, method, began)


def perturbed(network: TransformerNetwork, rng: np.random.Generator, attempt: int) -> tuple[TransformerNetwork, str]:
    """Return the network with one bit flipped in each of 2^``attempt`` weights, and their place."""
    tensors, place = judging.flipped(network, rng, 2**attempt)
    return from_arrays(network.spec, tensors), place


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
