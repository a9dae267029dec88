"""A float Transformer on many contexts at once: sequences are read from their starts, and answered at given places.

Short sequences are batched: they are padded on the right, where no earlier token can see. Long ones are read in
portions, with a cache. None of this changes an answer, because the networks are exact.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.networks.transformer.module import Cache, exact_products
from byheart.networks.transformer.spec import Spec
from byheart.progress import Report

T = TypeVar("T")
R = TypeVar("R")
Ids = NDArray[np.int64]
PORTION, ON_GPU = 1 << 14, 1 << 18
"""Number of tokens to read at once on a CPU, and on a GPU, which needs more of them to be busy."""
BEFORE = 16
"""Largest number of positions before the starts of sequences to hold per token that is read at once."""
MOST_NUMBERS = 1 << 27
"""Largest number of numbers that a step may make at once: fewer tokens are read if layers are very wide."""
TAKES = 256
"""Bytes of a GPU's memory per number that a step makes at once, including those of a proof."""


class Runs(Protocol):
    """A Transformer, or an object that runs like one."""

    @property
    def spec(self) -> Spec:
        """Description of its layers."""

    @property
    def device(self) -> torch.device:
        """Device that holds the weights."""

    def mix(self, tokens: torch.Tensor, cache: Cache | None) -> tuple[torch.Tensor, Cache]:
        """Return the stream [B, T, …] after the last attention sublayer, and the cache."""

    def answer(self, stream: torch.Tensor) -> torch.Tensor:
        """Return logits [M, C] from the stream [M, …] after the last attention sublayer."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Labels with the largest logit, the first of equals, and their margins: the distance to the next logit.

    A margin is infinite if there is only one label, and nan if a logit is not finite.
    """

    labels: Ids
    margins: NDArray[np.float64]


def at_once(spec: Spec, portion: int = PORTION, free: int | None = None) -> int:
    """Return the number of tokens to read at once: ``portion``, or fewer if a step would make over ``MOST_NUMBERS``.

    On a GPU with ``free`` bytes of memory it is ``ON_GPU``, or fewer if these do not fit.
    """
    if free is not None:
        return max(1, min(ON_GPU, free // (TAKES * spec.widest)))
    return max(1, min(portion, MOST_NUMBERS // spec.widest))


def _free(device: torch.device) -> int | None:
    """Return the number of free bytes of a GPU's memory; None for the CPU."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


def answers(
    module: Runs,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    *,
    portion: int = PORTION,
    report: Report | None = None,
) -> Answers:
    """Return the answers at ``places`` of the sequences that begin at ``starts[:-1]`` of ``tokens``."""
    labels, margins, done = np.empty(len(places), dtype=np.int64), np.empty(len(places)), 0
    portions = streams(module, tokens, starts, places, portion=at_once(module.spec, portion, _free(module.device)))
    for index, label, margin in local_work(module.device, portions, lambda stream: best(module.answer(stream))):
        labels[index], margins[index] = label, margin
        done += len(index)
        if report is not None:
            report(done, len(places))
    return Answers(labels, margins)


def best(logits: torch.Tensor) -> tuple[Ids, NDArray[np.float64]]:
    """Return the labels and margins of :class:`Answers` for logits [M, C], which are overwritten."""
    finite = logits.isfinite().all(dim=1)
    # Finding the largest twice is quicker than finding the two largest at once.
    largest, label = logits.max(dim=1)
    margin = largest.double() - logits.scatter_(1, label[:, None], -torch.inf).amax(dim=1)
    margin[~finite] = torch.nan
    return label.cpu().numpy(), margin.cpu().numpy()


def local_work(
    device: torch.device,
    portions: Iterator[tuple[Ids, torch.Tensor]],
    work: Callable[[torch.Tensor], tuple[Any, ...]],
) -> Iterator[tuple[Any, ...]]:
    """Yield, for every portion, its indices and the results of ``work`` on its stream.

    On a CPU there are as many workers as PyTorch has threads, each of them single-threaded: threads that share one
    operation wait for each other at every step, and crawl when the machine has other work to do.
    """

    @torch.no_grad()
    def work_on(portion: tuple[Ids, torch.Tensor]) -> tuple[Any, ...]:
        index, stream = portion
        return index, *work(stream)

    if device.type != "cpu":
        yield from map(work_on, portions)
        return
    threads = torch.get_num_threads()
    workers = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    # The settings are entered once, around all workers: a worker must not restore what another still needs.
    with exact_products(device, places=1), workers as pool:
        yield from in_order(pool, work_on, portions, threads)


def in_order(pool: Executor, work: Callable[[T], R], items: Iterable[T], ahead: int) -> Iterator[R]:
    """Yield the result of ``work`` for each item, in order; at most ``ahead`` + 1 results wait at a time."""
    waiting: deque[Future[R]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@torch.no_grad()
def streams(
    module: Runs, tokens: NDArray[np.integer], starts: Ids, places: Ids, *, portion: int = PORTION
) -> Iterator[tuple[Ids, torch.Tensor]]:
    """Yield indices into ``places``, and the stream after the last attention at these places, in portions."""
    data = torch.as_tensor(np.ascontiguousarray(tokens, dtype=np.int64), device=module.device)
    lengths, reach = np.diff(starts), module.spec.reach
    by_length = np.argsort(lengths, kind="stable")
    rank = np.empty_like(by_length)
    rank[by_length] = np.arange(len(by_length))
    sequence = np.searchsorted(starts, places, side="right") - 1
    order = np.argsort(rank[sequence], kind="stable")
    ranks = rank[sequence[order]]
    first = 0
    while first < len(by_length):
        longest = int(lengths[by_length[first]])
        batch = max(1, min(portion // max(1, longest), BEFORE * portion // (longest + reach)))
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
    module: Runs,
    data: torch.Tensor,
    starts: Ids,
    length: int,
    index: Ids,
    row: Ids,
    column: Ids,
    portion: int,
) -> Iterator[tuple[Ids, torch.Tensor]]:
    """Read one batch of sequences, portion by portion."""
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
