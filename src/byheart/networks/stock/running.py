"""Run a stock model on many contexts at once, and generate with it."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.networks.stock.stock_network import StockNetwork
from byheart.networks.transformer.answers import Answers, best, local_work
from byheart.networks.transformer.generate import checked
from byheart.progress import Report

Ids = NDArray[np.int64]
CPU = torch.device("cpu")
PORTION = 1 << 14
"""Largest number of tokens to read at once."""
SCORES, PIECE = 1 << 19, 16
"""Largest number of scores per head at once, which fit the processor's cache; and fewest tokens of a piece."""


def answers(
    network: StockNetwork,
    tokens: NDArray[np.integer],
    starts: Ids,
    places: Ids,
    report: Report | None = None,
    *,
    device: torch.device = CPU,
) -> Answers:
    """Return the answers at ``places``, which increase, of the sequences that begin at ``starts[:-1]``.

    Every sequence is read from its start, as a user's program reads it. Sequences of equal length are read side by
    side; long ones are read piece by piece, with the model's own cache.
    """
    labels, margins = np.empty(len(places), dtype=np.int64), np.empty(len(places))
    model = network.model if device == CPU else deepcopy(network.model).to(device)
    begin = [] if network.first is None else [network.first]
    read, lock = 0, Lock()

    def rows() -> Iterator[tuple[Ids, torch.Tensor]]:
        """Yield places, by their number and by their position in rows of sequences, and the rows."""
        for begins, length in _batches(starts):
            here = np.arange(*np.searchsorted(places, (begins[0], begins[-1] + length)))
            ids = torch.from_numpy(tokens[begins[:, None] + np.arange(length)].astype(np.int64))
            yield np.stack([here, places[here] - begins[0]]), ids.to(device)

    def read_rows(ids: torch.Tensor) -> tuple[NDArray[np.generic], ...]:
        """Return labels and margins at all positions of rows of sequences."""
        nonlocal read
        ids = torch.cat([ids.new_tensor(begin).expand(len(ids), -1), ids], dim=1)
        cache, found, piece = None, [], max(min(PORTION, SCORES // ids.shape[1]) // len(ids), PIECE)
        for left in range(0, ids.shape[1], piece):
            part = ids[:, left : left + piece]
            step = model(part, past_key_values=cache, use_cache=True)
            cache = step.past_key_values
            found.append([torch.from_numpy(each).view(part.shape) for each in best(step.logits.flatten(0, 1))])
            if report is not None:
                with lock:
                    read += part.numel()
                    report(min(read, len(places)), len(places))
        return tuple(torch.cat(each, dim=1)[:, len(begin) :].flatten().numpy() for each in zip(*found, strict=True))

    for (here, position), label, margin in local_work(device, rows(), read_rows):
        labels[here], margins[here] = label[position], margin[position]
    return Answers(labels, margins)


def _batches(starts: Ids) -> Iterator[tuple[Ids, int]]:
    """Yield groups of neighbouring sequences of equal length to read at once: their starts and their length."""
    lengths, first = np.diff(starts), 0
    while first < len(lengths):
        length = int(lengths[first])
        most = max(1, PORTION // (length + 1))
        same = lengths[first : first + most] == length
        last = first + (len(same) if same.all() else int(same.argmin()))
        yield starts[first:last], length
        first = last


def generate(
    network: StockNetwork, prompt: Sequence[int], *, tokens: int | None = None, end: int | None = None, guess: int = 0
) -> Iterator[int]:
    """Yield the tokens after ``prompt``, each with the largest logit; ``guess`` is ignored."""
    ids = checked(prompt, network.config["vocab_size"], tokens)
    return _generate(network, [*([] if network.first is None else [network.first]), *ids], tokens, end)


@torch.inference_mode()
def _generate(network: StockNetwork, unread: list[int], tokens: int | None, end: int | None) -> Iterator[int]:
    past, count = None, 0
    while tokens is None or count < tokens:
        step = network.model(torch.tensor([unread]), past_key_values=past, use_cache=True)
        past = step.past_key_values
        token = int(step.logits[0, -1].argmax())
        yield token
        count += 1
        if token == end:
            return
        unread = [token]


def generate_all(
    network: StockNetwork,
    prompts: Sequence[Sequence[int]],
    *,
    end: int,
    tokens: Sequence[int],
    report: Report | None = None,
) -> list[list[int]]:
    """Return the tokens after each prompt up to ``end``, which is left out; ``report`` counts tokens, text by text."""
    texts: list[list[int]] = []
    for prompt, most in zip(prompts, tokens, strict=True):
        text = list(generate(network, prompt, tokens=most, end=end))
        texts.append(text[:-1] if text and text[-1] == end else text)
        if report is not None:
            report(sum(tokens[: len(texts)]), sum(tokens))
    return texts
