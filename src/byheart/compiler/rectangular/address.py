"""Compute where every question reads, by one compiled loop, without the network's front.

The front takes sums modulo m and splits them into digits by comparisons, sublayer after sublayer (``front``). Here
these are divisions of integers, with the weights as they are stored. Solving needs no more. A certificate checks that
the network itself reads there, by running the network.

This module imports numba; import it where it is needed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit
from byheart.compiler.rectangular.dimensions import TableSizes
from byheart.compiler.rectangular.front import state_moduli
from byheart.compiler.rectangular.lots import lot_tensors, lots_of
from byheart.compiler.rectangular.wiring import Wiring
from byheart.networks.transformer import WindowAttention

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TableAddresses:
    """Rows [N, 2], columns [N, 6], offsets [N], and kinds [N] if there are two."""

    rows: Integers
    columns: Integers
    offset: Integers
    kind: Integers | None


def find_addresses(
    wiring: Wiring, sizes: TableSizes, tokens: NDArray[np.integer], starts: Integers, ends: Integers
) -> TableAddresses:
    """Return where all questions read, in a network with one table.

    Lots, if there are any, are cut by these questions, and their limits are written into the front's tensors.
    """
    sums = hash_sums(wiring, sizes, tokens, starts, ends)
    if sizes.stretches:
        counts, cuts = np.bincount(sums[:, -1], minlength=sizes.routes), np.array([0, sizes.routes])
        wiring.tensors |= lot_tensors(wiring.tensors, sizes, counts, cuts, turns=[0])
    return addresses_of(sums, sizes)


def hash_sums(
    wiring: Wiring, sizes: TableSizes, tokens: NDArray[np.integer], starts: Integers, ends: Integers
) -> Integers:
    """Return the sums of the last layer [N, moduli], each modulo its modulus.

    Codes and weights are those of the front in ``wiring``. Questions end at ``ends`` of ``tokens``, and sequences begin
    at ``starts[:-1]``. Layers before the last are computed at every token, the last one at ``ends``.
    """
    layers = [layer for layer in wiring.sublayers if isinstance(layer, WindowAttention)]
    *before, last = [layer for layer in layers if layer.name.startswith("hash_")]
    values, coded = wiring.tensors["embedding.W_E"].astype(np.int32), True
    for layer in before:
        weights = _weights(wiring, layer)
        values = _states(values, coded, tokens, starts, weights, layer.dilation, state_moduli(sizes))
        coded = False
    begins = starts[np.searchsorted(starts, ends, side="right") - 1]
    weights, moduli = _weights(wiring, last), np.array(sizes.moduli)
    sums: Integers = _sums(values, coded, tokens, ends, begins, weights, last.dilation, moduli)
    return sums


def addresses_of(sums: Integers, sizes: TableSizes, turn: int = 0) -> TableAddresses:
    """Return the digits of the sums. If there are lots, the questions are those of one shard, turned ``turn`` times."""
    if sizes.stretches:
        lots, numbers = lots_of(sums[:, -1], sizes, turn), np.arange(sizes.lots)
        sums = sums.copy()
        sums[:, 0] += (numbers % sizes.stretches * sizes.stretch)[lots]
        sums[:, -1] = (numbers // sizes.stretches)[lots]
    coarse, fine = (np.array(exponents) for exponents in sizes.exponents)
    rows, columns, offset = _digits(sums, sizes.starts, sizes.margin, np.array(sizes.bases), coarse, fine, sizes.grain)
    return TableAddresses(rows, columns, offset, sums[:, 6] if sizes.exponent else None)


def _weights(wiring: Wiring, layer: WindowAttention) -> NDArray[np.int32]:
    """Return the weights of an attention layer, [window, reads, writes]."""
    W_O = wiring.tensors[f"{layer.name}.W_O"].reshape(len(layer.writes), layer.window, len(layer.reads))
    return np.ascontiguousarray(W_O.transpose(1, 2, 0).astype(np.int32))


@jit
def _add_up(total, values, coded, tokens, place, begin, weights, dilation):  # type: ignore[no-untyped-def]
    """Compute the sums of one layer at one place. Tokens before the beginning of the sequence count as 0."""
    total[:] = 0
    for k in range(weights.shape[0]):
        at = place - k * dilation
        if at < begin:
            break
        row = tokens[at] if coded else at
        for i in range(weights.shape[1]):
            value = values[row, i]
            for o in range(len(total)):
                total[o] += value * weights[k, i, o]


@jit
def _states(values, coded, tokens, starts, weights, dilation, moduli):  # type: ignore[no-untyped-def]
    """Return the sums of one layer at all tokens, each modulo its modulus."""
    states = np.empty((len(tokens), weights.shape[2]), np.int32)
    total = np.empty(weights.shape[2], np.int32)
    for sequence in range(len(starts) - 1):
        begin = starts[sequence]
        for place in range(begin, starts[sequence + 1]):
            _add_up(total, values, coded, tokens, place, begin, weights, dilation)
            for o in range(len(total)):
                states[place, o] = total[o] % moduli[o]
    return states


@jit
def _sums(values, coded, tokens, ends, begins, weights, dilation, moduli):  # type: ignore[no-untyped-def]
    """Return the sums of the last layer at some places, each modulo its modulus."""
    sums = np.empty((len(ends), weights.shape[2]), np.int64)
    total = np.empty(weights.shape[2], np.int32)
    for question in range(len(ends)):
        _add_up(total, values, coded, tokens, ends[question], begins[question], weights, dilation)
        for o in range(len(total)):
            sums[question, o] = total[o] % moduli[o]
    return sums


@jit
def _digits(sums, starts, margin, bases, coarse, fine, grain):  # type: ignore[no-untyped-def]
    """Return rows, columns and offsets: both digits of each pair. The start is added to the rows."""
    rows = np.empty((len(sums), 2), np.int64)
    columns = np.empty((len(sums), 6), np.int64)
    offset = np.empty(len(sums), np.int64)
    for question in range(len(sums)):
        start = min(max(sums[question, 0] - margin, 0), starts - 1)
        rows[question, 0] = start + sums[question, 1] // bases[0]
        rows[question, 1] = start + sums[question, 1] % bases[0]
        for pair in range(3):
            columns[question, 2 * pair] = sums[question, 2 + pair] // bases[1 + pair]
            columns[question, 2 * pair + 1] = sums[question, 2 + pair] % bases[1 + pair]
        offset[question] = coarse[sums[question, 5] // bases[4]] + fine[sums[question, 5] % bases[4] // grain]
    return rows, columns, offset
