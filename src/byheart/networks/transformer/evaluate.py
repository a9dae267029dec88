"""A float Transformer on many contexts at once: sequences are read from their starts, answers taken where asked for.

Short sequences are batched (padded on the right, which nothing before can see); long ones are read in portions, with
the cache carrying over. The answers do not depend on how: the networks are exact.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.networks.transformer.module import Cache, Transformer, exact_products
from byheart.progress import Report

Ids = NDArray[np.int64]
PORTION = 1 << 14
"""Tokens that are read at once."""


@dataclass(frozen=True, eq=False)
class Answers:
    """For every place: the label with the largest logit (the first of equals), and by how much it exceeds the next.

    Where there is one label only, the margin is infinite; where a logit is not finite, it is nan.
    """

    labels: Ids
    margins: NDArray[np.float64]
    prints: NDArray[np.int64]
    """A fingerprint of all logits of a place, by their values: the same in float32 and float64 if they are."""


def answers(
    module: Transformer,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    *,
    portion: int = PORTION,
    report: Report | None = None,
) -> Answers:
    """What the network answers at ``places`` of the sequences that begin at ``starts[:-1]`` of ``tokens``."""
    found = np.empty(len(places), dtype=np.int64)
    margins, marks = np.empty(len(places)), np.empty(len(places), dtype=np.int64)
    done = 0
    portions = streams(module, tokens, starts, places, portion=portion)
    work = local_work(module, portions, lambda module, stream: best(module.answer(stream)))
    for index, labels, margin, values in work:
        found[index], margins[index], marks[index] = labels, margin, values
        done += len(index)
        if report is not None:
            report(done, len(places))
    return Answers(found, margins, marks)


def best(logits: torch.Tensor) -> tuple[Ids, NDArray[np.float64], NDArray[np.int64]]:
    """Labels, margins and fingerprints of logits [M, C], as :class:`Answers` has them; the logits are overwritten.

    Where a logit is not finite, the margin is nan: what is compared with infinity, or with nothing, is not known.
    """
    values = prints(logits)
    finite = logits.isfinite().all(dim=1)
    # Twice the largest: quicker than the two largest at once.
    largest, label = logits.max(dim=1)
    margin = largest - logits.scatter_(1, label[:, None], -torch.inf).amax(dim=1)
    margin[~finite] = torch.nan
    return label.cpu().numpy(), margin.cpu().numpy(), values.cpu().numpy()


def prints(logits: torch.Tensor) -> torch.Tensor:
    """int64 [M]: the bits of each row of logits [M, C], as float64, mixed, times odd numbers, added up modulo 2⁶⁴.

    They are mixed, each before and after its product, because products alone are linear in the bits: two flipped signs
    would cancel. Labels are compared besides, so that a collision cannot hide another answer.

    >>> one, other = torch.tensor([[1.0, 2.0]]), torch.tensor([[2.0, 1.0]])
    >>> bool(prints(one) == prints(one.double())), bool(prints(one) == prints(other))
    (True, False)
    """
    generator = torch.Generator().manual_seed(0)
    odd = torch.randint(-(2**62), 2**62, (logits.shape[1],), generator=generator).to(logits.device) * 2 + 1
    # Adding 0 makes one zero of the two.
    bits = (logits.double() + 0.0).view(torch.int64)
    mixed = (bits ^ (bits >> 31)) * odd
    return ((mixed ^ (mixed >> 29)) * odd).sum(dim=1)


def local_work(
    module: Transformer,
    portions: Iterator[tuple[Ids, torch.Tensor]],
    work: Callable[[Transformer, torch.Tensor], tuple[Any, ...]],
) -> Iterator[tuple[Any, ...]]:
    """(indices, *work(module, stream)) for every portion.

    On a CPU by as many workers as PyTorch has threads, each of them single-threaded: threads that share one operation
    wait for each other at every step, and crawl when the machine has other work to do.
    """

    @torch.no_grad()
    def one(stream: torch.Tensor) -> tuple[Any, ...]:
        return work(module, stream)

    if module.device.type != "cpu":
        yield from ((index, *one(stream)) for index, stream in portions)
        return
    threads = torch.get_num_threads()
    waiting: deque[tuple[Ids, Future[tuple[Any, ...]]]] = deque()
    workers = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    # The settings are entered once, around all workers: what one restored, another would still need.
    with exact_products(module.device, places=1), workers as pool:
        for index, stream in portions:
            waiting.append((index, pool.submit(one, stream)))
            if len(waiting) > threads:
                first, future = waiting.popleft()
                yield first, *future.result()
        while waiting:
            first, future = waiting.popleft()
            yield first, *future.result()


@torch.no_grad()
def streams(
    module: Transformer, tokens: NDArray[np.integer], starts: Ids, places: Ids, *, portion: int = PORTION
) -> Iterator[tuple[Ids, torch.Tensor]]:
    """Indices into ``places``, and the stream after the last attention at these; in portions."""
    data = torch.as_tensor(np.ascontiguousarray(tokens, dtype=np.int64), device=module.device)
    lengths = np.diff(starts)
    by_length = np.argsort(lengths, kind="stable")
    rank = np.empty_like(by_length)
    rank[by_length] = np.arange(len(by_length))
    sequence = np.searchsorted(starts, places, side="right") - 1
    order = np.argsort(rank[sequence], kind="stable")
    ranks = rank[sequence[order]]
    first = 0
    while first < len(by_length):
        longest = int(lengths[by_length[first]])
        batch = max(1, portion // max(1, longest))
        last = min(first + batch, len(by_length))
        while last > first + 1 and lengths[by_length[last - 1]] * (last - first) > 2 * portion:
            last -= 1
        members = by_length[first:last]
        index = order[np.searchsorted(ranks, first) : np.searchsorted(ranks, last)]
        row = rank[sequence[index]] - first
        column = places[index] - starts[sequence[index]]
        yield from _batch(module, data, starts[members], int(lengths[members].max()), index, row, column, portion)
        first = last


def _batch(
    module: Transformer,
    data: torch.Tensor,
    starts: Ids,
    length: int,
    index: Ids,
    row: Ids,
    column: Ids,
    portion: int,
) -> Iterator[tuple[Ids, torch.Tensor]]:
    """One batch of sequences, portion by portion."""
    cache: Cache | None = None
    width = max(1, portion // len(starts))
    by_column = np.argsort(column, kind="stable")
    index, row, column = index[by_column], row[by_column], column[by_column]
    begin = torch.as_tensor(starts, device=data.device)[:, None]
    for left in range(0, length, width):
        right = min(left + width, length)
        positions = begin + torch.arange(left, right, device=data.device)
        stream, cache = module.mix(data[positions.clamp_(max=len(data) - 1)], cache)
        a, b = np.searchsorted(column, (left, right))
        if a < b:
            rows = torch.as_tensor(row[a:b], device=data.device)
            columns = torch.as_tensor(column[a:b] - left, device=data.device)
            yield index[a:b], stream[rows, columns]
