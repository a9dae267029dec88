"""The compiled interpreter of float Transformers: any number of tokens side by side, or one after the other.

Every number that a step computes is a row of *lanes*, one lane for each token that is read at once; the number of lanes
is the length of these rows. Certifying reads :data:`LANES` tokens at once, since all of them are known; reciting has
one lane, since each token follows from those before it.

Nothing is taken on trust. As in :mod:`.proved`, all sums are computed in float64, and each has a check that no rounding
can happen in the network's own format, whatever the order (:mod:`.exact_sums`). The input of a sigmoid may be rounded
if it is far beyond the marks. A check first bounds all terms at once; where that fails, it looks at every term.
``fine[j]`` tells whether all that lane j holds is proved; if it is False, the numbers in that lane mean nothing.

All numbers of a network lie in one array, ``weights``, all features that its sublayers read and write in another,
``features``. ``layers`` has a row for each sublayer, whose columns, named below, are mostly indices into these two.
Matrices are stored with one row for each *input*, after two rows of units: the least unit of each output's weights, and
the unit of its bias. The bias follows the matrix.
"""

import numpy as np

from byheart.compiled import jit
from byheart.networks.transformer.exact_sums import (
    BELOW,
    BITS,
    FAR,
    HIGH,
    LARGEST,
    MISSING,
    NO,
    ONE,
    SMALLEST,
    closely,
    fits,
    one_sided,
    product,
    unit,
)

LANES = 32
"""Number of tokens that are read at once where all of them are known."""
ATTENTION, FEED_FORWARD = 0, 1
NONE, DENSE, DIAGONAL = 0, 1, 2
"""Kinds of ``W_up``."""
GENERAL, SUMS, ROWS, PICKS = range(4)
"""Plans for feed-forward sublayers.

``GENERAL`` serves all of them: the hidden units are computed, then the second matrix is applied. The others are for
sigmoid units. ``SUMS``: what the open units write is added up, which no choice of units can round. ``ROWS``: at most
one unit per group is open, and the row that it writes is copied to features that nothing was written to before.
``PICKS``: at most one unit per group is open, and lets one feature through."""
KIND, GROUPS, UNITS, READS, WIDTH, WRITES, OUT, TARGETS, RELU, BIASED, W_IN, W_OUT = range(12)
"""Columns of all sublayers. ``WIDTH`` and ``OUT`` count features per group.

``TARGETS`` is 0 if all features that are written to are different. Else it is an index into ``features``, where there
are the number of different features, and for each of these the feature, the number of outputs that go there, and the
outputs."""
UP, UP_READS, UP_WIDTH, W_UP, UP_BIASED, MOST_UP = range(12, 18)
"""Columns of feed-forward sublayers. ``MOST_UP`` is the index of the largest input that a diagonal W_up may have; −1 if
it may have any."""
ROUTES, ROUTE_WIDTH, W_ROUTE, EXPERTS = range(18, 22)
"""Columns of mixtures: what the router reads, its matrix, and the number of second matrices, which follow each other.
In the rows of other sublayers all four are 0."""
RING, SLOTS, HEADS, MOST_SEEN, REACH = range(12, 17)
"""Columns of attention.

``RING`` is where its ring begins, ``SLOTS`` the number of tokens that this holds, ``MOST_SEEN`` the index of the
largest input allowed, ``REACH`` the number of positions it looks back.

From ``HEADS`` on, ``features`` has for every row of W_V: the number of offsets with a weight; the number of entries of
the row that are not 0; the offsets, in tokens; the inputs that the entries belong to. From ``W_IN`` on, ``weights`` has
the weights and the entries of these."""
BOUNDS, PLAN = range(22, 24)
"""Columns of feed-forward sublayers: index of the largest |b| and the largest Σ|w| of each group, and the plan."""
COLUMNS = 24
NEVER = np.int64(-(2**62))
"""A place before all others."""
OPEN = 1 << 32
"""Number that an open unit adds, with its index, to the state of its group. The sum tells how many units are open; if
there is one, it tells which."""


@jit
def spread(streams, features, first, count, x):  # type: ignore[no-untyped-def]
    """Copy some features of all lanes into the rows of x."""
    for i in range(count):
        feature = features[first + i]
        for j in range(len(streams)):
            x[i, j] = streams[j, feature]


@jit
def affine(weights, W, outs, x, width, bias, out, sums, fine, limits):  # type: ignore[no-untyped-def]
    """Set out ← W x + b; ``fine`` becomes False where a sum might be rounded. There is no b if ``bias`` is negative."""
    least, total, lanes = sums[0], sums[1], len(fine)
    for j in range(lanes):
        least[j] = unit(x[0, j])
    for i in range(1, width):
        for j in range(lanes):
            its = unit(x[i, j])
            least[j] = its if its < least[j] else least[j]
    bits, largest, smallest = limits[BITS], limits[LARGEST], limits[SMALLEST]
    for o in range(outs):
        b = weights[bias + o] if bias >= 0 else 0.0
        units, bias_unit, w = weights[W - 2 * outs + o], weights[W - outs + o], weights[W + o]
        for j in range(lanes):
            out[o, j], total[j] = b + w * x[0, j], abs(b) + abs(w * x[0, j])
        for i in range(1, width):
            w = weights[W + i * outs + o]
            for j in range(lanes):
                out[o, j] += w * x[i, j]
                total[j] += abs(w * x[i, j])
        doubtful = NO
        for j in range(lanes):
            its = units * least[j]
            its = (its if its < bias_unit else bias_unit) * BELOW
            small = (total[j] <= bits * its) & (total[j] <= largest) & (its >= smallest)
            total[j] = 0.0 if small else total[j]
            doubtful += NO if total[j] == 0 else ONE
        if doubtful:
            own = bias + o if bias >= 0 else MISSING
            for j in range(lanes):
                if fine[j] and total[j] != 0:
                    out[o, j], fine[j], _ = closely(weights, W + o, outs, x, j, width, own, limits)


@jit
def bound_errors(weights, x, width, bounds, sums, limits):  # type: ignore[no-untyped-def]
    """Set ``sums[2]`` to the share of Σ|t| that a sum of ``width`` terms and a bias may be off by.

    It is nan in lanes where a sum might become infinite. ``sums[3]`` becomes the least unit of x.
    """
    most, part, least = sums[1], sums[2], sums[3]
    lanes = len(most)
    for j in range(lanes):
        most[j], least[j] = abs(x[0, j]), unit(x[0, j])
    for i in range(1, width):
        for j in range(lanes):
            its, size = unit(x[i, j]), abs(x[i, j])
            least[j] = its if its < least[j] else least[j]
            most[j] = size if size > most[j] else most[j]
    for j in range(lanes):
        small = weights[bounds] + most[j] * weights[bounds + 1] <= limits[LARGEST]
        part[j] = 4 * (width + 1) / limits[BITS] if small else np.nan


@jit
def switch(weights, W, units, x, width, bias, second, outs, out, hidden, keep, sums, state, exactly, fine, limits):  # type: ignore[no-untyped-def]  # noqa: PLR0912
    """Find the open units of σ(W x + b); ``fine`` becomes False where a unit is neither open nor shut for certain.

    ``state`` tells which are open (see ``OPEN``). If ``outs`` are wanted, the rows from ``second`` on are added up for
    the open units. If ``keep``, ``hidden`` becomes 1 for open units, 0 for others. If ``exactly``, sums that cannot be
    rounded are taken for what they are, which decides more of those near the marks. Returns the number of lanes lost.
    """
    value, total, part, least, lanes = sums[0], sums[1], sums[2], sums[3], len(fine)
    already = NO
    for j in range(lanes):
        state[j] = 0
        already += fine[j]
    for o in range(outs):
        for j in range(lanes):
            out[o, j] = 0.0
    high, far, last = limits[HIGH], limits[FAR], width - 1
    bits, smallest = limits[BITS], limits[SMALLEST]
    for u in range(units):
        b = weights[bias + u] if bias >= 0 else 0.0
        w, v = weights[W + u], weights[W + (width - 1) * units + u] if width > 1 else 0.0
        for j in range(lanes):
            value[j] = b + w * x[0, j] + v * x[last, j]
            total[j] = abs(b) + abs(w * x[0, j]) + abs(v * x[last, j])
        for i in range(1, width - 1):
            w = weights[W + i * units + u]
            for j in range(lanes):
                value[j] += w * x[i, j]
                total[j] += abs(w * x[i, j])
        if exactly:
            of_weights, of_bias = weights[W - 2 * units + u], weights[W - units + u]
            for j in range(lanes):
                its = of_weights * least[j]
                its = (its if its < of_bias else of_bias) * BELOW
                total[j] = 0.0 if (total[j] <= bits * its) & (its >= smallest) else total[j]
        for j in range(lanes):
            error = total[j] * part[j]
            on = value[j] - error >= high
            state[j] += OPEN + u if on else NO
            fine[j] &= on | (value[j] + error <= -far)
        for o in range(outs):
            w = weights[second + u * outs + o]
            for j in range(lanes):
                out[o, j] += w if value[j] > 0 else 0.0
        if keep:
            for j in range(lanes):
                hidden[u, j] = 1.0 if value[j] > 0 else 0.0
    for j in range(lanes):
        already -= fine[j]
    return already


@jit
def is_open(weights, first, stride, x, lane, width, bias, limits):  # type: ignore[no-untyped-def]
    """Return 1 if a sigmoid unit is 1 in a lane, 0 if it is 0, and −1 if neither is proved; looks at every term."""
    exactly, exact, rarer = closely(weights, first, stride, x, lane, width, bias, limits)
    value, total = (weights[bias], abs(weights[bias])) if bias >= 0 else (0.0, 0.0)
    for i in range(width):
        term = weights[first + i * stride] * x[i, lane]
        value, total = value + term, total + abs(term)
    error = total * (4 * (width + 1) / limits[BITS])
    # A sum may become infinite on the way, and is then beyond the mark; but the terms of the other sign must not add up
    # to infinity, too, however they are rounded.
    bounded = total <= limits[LARGEST] or rarer <= limits[LARGEST] / 2
    if bounded and value - error >= limits[HIGH]:
        return ONE
    if bounded and value + error <= -limits[FAR]:
        return NO
    if exact and exactly >= limits[HIGH]:
        return ONE
    return NO if exact and exactly <= -limits[FAR] else MISSING


@jit
def open_units(weights, W, units, x, width, bias, bounds, rows, out, hidden, keep, sums, before, state, fine, limits):  # type: ignore[no-untyped-def]
    """Find the open units as :func:`switch` does: for all lanes at once, and unit by unit in lanes where that fails."""
    second, outs = rows
    for j in range(len(fine)):
        before[j] = fine[j]
    bound_errors(weights, x, width, bounds, sums, limits)
    lost = switch(weights, W, units, x, width, bias, second, outs, out, hidden, keep, sums, state, NO, fine, limits)
    if not lost:
        return
    for j in range(len(fine)):
        fine[j] = before[j] != 0
    lost = switch(weights, W, units, x, width, bias, second, outs, out, hidden, keep, sums, state, ONE, fine, limits)
    for j in range(len(fine) if lost else NO):
        if fine[j] or not before[j]:
            continue
        fine[j], state[j], out[:outs, j] = True, 0, 0.0
        for u in range(units):
            own = bias + u if bias >= 0 else MISSING
            on = is_open(weights, W + u, units, x, j, width, own, limits)
            fine[j] &= on >= 0
            if keep:
                hidden[u, j] = max(on, NO)
            if on > 0:
                state[j] += OPEN + u
                for o in range(outs):
                    out[o, j] += weights[second + u * outs + o]


@jit
def add(streams, features, writes, count, targets, out, fine, limits):  # type: ignore[no-untyped-def]
    """Add outputs to the streams; ``fine`` becomes False where a sum might be rounded."""
    bits, largest, smallest, checked = limits[BITS], limits[LARGEST], limits[SMALLEST], targets != 0
    if checked:
        check_targets(streams, features, targets, out, fine, limits)
    for o in range(count):
        feature = features[writes + o]
        for j in range(len(fine)):
            before, more = streams[j, feature], out[o, j]
            after, its, other = before + more, unit(before), unit(more)
            its = (its if its < other else other) * BELOW
            small = (abs(after) <= bits * its) & (abs(after) <= largest) & (its >= smallest)
            fine[j] &= checked | small | (after == 0) | (before == 0) | (more == 0)
            streams[j, feature] = after


@jit
def check_targets(streams, features, targets, out, fine, limits):  # type: ignore[no-untyped-def]
    """Set ``fine`` to False where a feature plus all outputs that go to it might be rounded."""
    at = targets + 1
    for _ in range(features[targets]):
        feature, times = features[at], features[at + 1]
        for j in range(len(fine)):
            above, below, least, terms_above, terms_below = 0.0, 0.0, np.inf, NO, NO
            for k in range(times + 1):
                value = streams[j, feature] if k == times else out[features[at + 2 + k], j]
                least = min(least, unit(value))
                if value > 0:
                    above, terms_above = above + value, terms_above + 1
                elif value < 0:
                    below, terms_below = below - value, terms_below + 1
            fine[j] &= fits(one_sided(above, terms_above, below, terms_below), least, limits)
        at += 2 + times


@jit
def multiply(streams, layer, g, features, weights, x, hidden, up, sums, fine, limits):  # type: ignore[no-untyped-def]
    """Multiply the hidden units of a group by W_up x + b_up."""
    units, width = layer[UNITS], layer[UP_WIDTH]
    spread(streams, features, layer[UP_READS] + g * width, width, x)
    if layer[UP] == DENSE:
        W = layer[W_UP] + g * units * (width + 2 + layer[UP_BIASED]) + 2 * units
        bias = W + width * units if layer[UP_BIASED] else MISSING
        affine(weights, W, units, x, width, bias, up, sums, fine, limits)
    for u in range(units):
        for j in range(len(fine)):
            factor, exact = up[u, j], True
            if layer[UP] == DIAGONAL:
                factor, exact = product(x[u, j], weights[layer[W_UP] + g * units + u], limits)
                if layer[MOST_UP] >= 0:
                    fine[j] &= abs(x[u, j]) <= weights[layer[MOST_UP]]
            value, fine_too = product(hidden[u, j], factor, limits)
            is_zero = hidden[u, j] == 0
            fine[j] &= is_zero | (exact & fine_too)
            hidden[u, j] = 0.0 if is_zero else value


@jit
def pick(streams, layer, g, features, weights, out, state, fine, limits):  # type: ignore[no-untyped-def]
    """Set the outputs of a group to its open unit's feature times the unit's weights; 0 if no unit is open."""
    units, outs = layer[UNITS], layer[OUT]
    second, first = layer[W_OUT] + g * outs * (units + 2) + 2 * outs, layer[UP_READS] + g * units
    for j in range(len(fine)):
        if not fine[j]:
            continue
        for o in range(outs):
            out[g * outs + o, j] = 0.0
        if state[j] == 0:
            continue
        u = state[j] - OPEN
        value, exact = product(streams[j, features[first + u]], weights[layer[W_UP] + g * units + u], limits)
        fine[j] = exact
        for o in range(outs):
            out[g * outs + o, j], exact = product(value, weights[second + u * outs + o], limits)
            fine[j] &= exact


@jit
def copy_rows(streams, layer, features, weights, states, fine):  # type: ignore[no-untyped-def]
    """Copy the row that the open unit of each group writes, if one is open, to the streams."""
    groups, units, outs, expert = layer[GROUPS], layer[UNITS], layer[OUT], states[0]
    for g in range(groups):
        first, state = features[layer[WRITES] + g * outs], states[2 + g]
        for j in range(len(fine)):
            if fine[j] and state[j] > 0:
                group = layer[W_OUT] + (expert[j] * groups + g) * outs * (units + 2)
                row = group + (2 + state[j] - OPEN) * outs
                streams[j, first : first + outs] = weights[row : row + outs]


@jit
def route(streams, layer, features, weights, work, expert, fine, limits):  # type: ignore[no-untyped-def]
    """Find the expert with the largest score; ``fine`` becomes False where two have the same."""
    x, scores, _, _, sums, _ = work
    width, experts = layer[ROUTE_WIDTH], layer[EXPERTS]
    spread(streams, features, layer[ROUTES], width, x)
    W = layer[W_ROUTE] + 2 * experts
    affine(weights, W, experts, x, width, W + width * experts, scores, sums, fine, limits)
    for j in range(len(fine)):
        expert[j], most, again = 0, scores[0, j], False
        for k in range(1, experts):
            again = (again & (scores[k, j] <= most)) | (scores[k, j] == most)
            expert[j] = k if scores[k, j] > most else expert[j]
            most = scores[k, j] if scores[k, j] > most else most
        fine[j] &= not again


@jit
def second_matrix(weights, layer, g, expert, hidden, out, sums, fine, limits):  # type: ignore[no-untyped-def]
    """Apply the second matrix of a group to its hidden units; in a mixture, that of the expert of each lane."""
    units, outs, groups = layer[UNITS], layer[OUT], layer[GROUPS]
    W = layer[W_OUT] + g * outs * (units + 2) + 2 * outs
    if not layer[EXPERTS]:
        affine(weights, W, outs, hidden, units, MISSING, out, sums, fine, limits)
        return
    for j in range(len(fine)):
        own = W + expert[j] * groups * outs * (units + 2)
        for o in range(outs):
            out[o, j], exact, _ = closely(weights, own + o, outs, hidden, j, units, MISSING, limits)
            fine[j] &= exact


@jit
def follow_plan(streams, layer, plan, features, weights, work, fine, limits):  # type: ignore[no-untyped-def]  # noqa: PLR0912
    """Apply a feed-forward sublayer by ``plan``; return False, and change no stream, if too many units are open."""
    x, hidden, up, out, sums, states = work
    expert, before = states[0], states[1]
    groups, units, width, outs, several = layer[GROUPS], layer[UNITS], layer[WIDTH], layer[OUT], False
    for j in range(len(expert)):
        expert[j] = 0
    if layer[EXPERTS]:
        route(streams, layer, features, weights, work, expert, fine, limits)
    for g in range(groups):
        second = layer[W_OUT] + g * outs * (units + 2) + 2 * outs
        W = layer[W_IN] + g * units * (width + 2 + layer[BIASED]) + 2 * units
        bias, to, state = W + width * units if layer[BIASED] else MISSING, out[g * outs :], states[2 + g]
        spread(streams, features, layer[READS] + g * width, width, x)
        if layer[RELU]:
            affine(weights, W, units, x, width, bias, hidden, sums, fine, limits)
            for u in range(units):
                for j in range(len(fine)):
                    hidden[u, j] = hidden[u, j] if hidden[u, j] > 0 else 0.0
        else:
            bounds, added, keep = layer[BOUNDS] + 2 * g, outs if plan == SUMS else NO, ONE if plan == GENERAL else NO
            first = (second, added)
            open_units(
                weights, W, units, x, width, bias, bounds, first, to, hidden, keep, sums, before, state, fine, limits
            )
        if plan == GENERAL:
            if layer[UP] != NONE:
                multiply(streams, layer, g, features, weights, x, hidden, up, sums, fine, limits)
            second_matrix(weights, layer, g, expert, hidden, to, sums, fine, limits)
        elif plan != SUMS:
            for j in range(len(fine)):
                several |= fine[j] & (state[j] >= 2 * OPEN)
        if plan == PICKS and not several:
            pick(streams, layer, g, features, weights, out, state, fine, limits)
    if several:
        return False
    if plan == ROWS:
        copy_rows(streams, layer, features, weights, states, fine)
    else:
        add(streams, features, layer[WRITES], groups * outs, layer[TARGETS], out, fine, limits)
    return True


@jit
def remember(streams, count, layer, number, features, weights, ring, at, position, spoilt, fine):  # type: ignore[no-untyped-def]
    """Put what attention reads into its ring; ``fine`` becomes False where it looks at what is not proved.

    ``spoilt`` has for every sublayer the last place whose entry in the ring is not proved. Attention that reaches back
    to it is not proved either, though its weight there may be 0.
    """
    width = layer[WIDTH]
    for j in range(count):
        first = layer[RING] + (at + j) % layer[SLOTS] * width
        for i in range(width):
            value = streams[j, features[layer[READS] + i]]
            fine[j] &= abs(value) <= weights[layer[MOST_SEEN]]
            ring[first + i] = value
        if not fine[j]:
            spoilt[number] = at + j
        fine[j] = at + j - spoilt[number] > min(layer[REACH], position[j])


@jit
def look(layer, head, number, features, weights, ring, at, place, x, lane, limits):  # type: ignore[no-untyped-def]
    """Compute a row of W_V times what attention looks at, weighted; return the sum, and whether it is exact.

    ``head`` and ``number`` are where the row is described in ``features`` and ``weights`` (see ``HEADS``).
    """
    above, below, least, terms_above, terms_below, exact = 0.0, 0.0, np.inf, NO, NO, True
    offsets, entries = features[head], features[head + 1]
    for k in range(offsets):
        offset = features[head + 2 + k]
        if offset > place:  # before the first token all is 0
            continue
        seen = layer[RING] + (at - offset) % layer[SLOTS] * layer[WIDTH]
        for e in range(entries):
            x[e, lane] = ring[seen + features[head + 2 + offsets + e]]
        value, fine, _ = closely(weights, number + offsets, ONE, x, lane, entries, MISSING, limits)
        value, fine_too = product(weights[number + k], value, limits)
        exact &= fine & fine_too
        least = min(least, unit(value))
        if value > 0:
            above, terms_above = above + value, terms_above + 1
        elif value < 0:
            below, terms_below = below - value, terms_below + 1
    return above - below, exact & fits(one_sided(above, terms_above, below, terms_below), least, limits)


@jit
def attention(streams, count, layer, features, weights, ring, at, position, work, fine, limits):  # type: ignore[no-untyped-def]
    """Apply one attention sublayer, whose weights are constant, to what its ring holds."""
    x, hidden, _, out, sums, _ = work
    width, slots, first, head, number = layer[WIDTH], layer[SLOTS], layer[RING], layer[HEADS], layer[W_IN]
    for row in range(layer[UNITS]):
        offsets, entries = features[head], features[head + 1]
        if offsets == 1 and entries == 1 and weights[number] == 1.0 and weights[number + 1] == 1.0:
            offset, feature = features[head + 2], features[head + 3]
            slot = (at + slots - offset) % slots
            for j in range(count):
                x[row, j] = ring[first + slot * width + feature] if offset <= position[j] else 0.0
                slot = slot + 1 if slot + 1 < slots else NO
        else:
            for j in range(count):
                if fine[j]:
                    place = position[j]
                    x[row, j], fine[j] = look(
                        layer, head, number, features, weights, ring, at + j, place, hidden, j, limits
                    )
        head, number = head + 2 + offsets + entries, number + offsets + entries
    outs = layer[OUT]
    W = layer[W_OUT] + 2 * outs
    affine(weights, W, outs, x, layer[UNITS], MISSING, out, sums, fine, limits)
    add(streams, features, layer[WRITES], outs, layer[TARGETS], out, fine, limits)


@jit
def run_layers(begin, end, streams, count, program, ring, at, position, asked, state):  # type: ignore[no-untyped-def]
    """Apply the sublayers from ``begin`` to ``end``; the last attention only if one of the tokens is ``asked`` about.

    ``at`` is the place of the first token since the rings were empty, ``position`` the place of each in its sequence.
    """
    layers, features, weights, limits, _, _, mixing = program
    work, fine, spoilt = state
    for number in range(begin, end):
        layer = layers[number]
        if layer[KIND] == FEED_FORWARD:
            if not follow_plan(streams, layer, layer[PLAN], features, weights, work, fine, limits):
                follow_plan(streams, layer, NO, features, weights, work, fine, limits)  # GENERAL
            continue
        remember(streams, count, layer, number, features, weights, ring, at, position, spoilt, fine)
        if number + 1 < mixing or asked[:count].any():
            attention(streams, count, layer, features, weights, ring, at, position, work, fine, limits)


@jit
def embed(tokens, first, count, mixed, program, streams, state):  # type: ignore[no-untyped-def]
    """Begin the streams of ``count`` tokens from the ``first`` on."""
    _, features, weights, limits, embedding, _, _ = program
    work, fine, _ = state
    out, width = work[3], embedding[2]
    streams[:, :mixed] = 0
    for j in range(len(fine)):
        fine[j] = j < count
    for i in range(width):
        for j in range(count):
            out[i, j] = weights[embedding[0] + tokens[first + j] * width + i]
    add(streams, features, embedding[1], width, embedding[3], out, fine, limits)


@jit
def unembed(streams, count, program, state, labels, margins):  # type: ignore[no-untyped-def]
    """Compute logits, and find labels and margins: the first of the largest logits, and the distance to the next one.

    A margin is infinite if there is one label only, and nan if it is not proved.
    """
    _, features, weights, limits, _, unembedding, _ = program
    work, fine, _ = state
    x, _, _, logits, sums, _ = work
    W, width, outs = unembedding[0] + 2 * unembedding[3], unembedding[2], unembedding[3]
    spread(streams, features, unembedding[1], width, x)
    affine(weights, W, outs, x, width, W + width * outs, logits, sums, fine, limits)
    largest, second, lanes = sums[0], sums[1], len(labels)
    for j in range(lanes):
        labels[j], largest[j], second[j] = 0, logits[0, j], -np.inf
    for label in range(1, outs):
        for j in range(lanes):
            value, most = logits[label, j], largest[j]
            less = second[j] if second[j] > value else value
            labels[j] = label if value > most else labels[j]
            second[j] = most if value > most else less
            largest[j] = value if value > most else most
    for j in range(count):
        margins[j] = largest[j] - second[j] if fine[j] else np.nan


@jit
def read(  # type: ignore[no-untyped-def]  # noqa: PLR0912 - one loop, which is not to call another for every token
    tokens, begin, starts, places, goes_on, mixed, program, ring, streams, held, states, lane, labels, margins, logits
):
    """Read ``tokens``, of which the first is at place ``begin``; find labels and margins at ``places``, which increase.

    Sequences begin at ``starts[:-1]``. A margin is nan where the answer is not proved; it keeps its value where that is
    known before the last attention. ``mixed`` is the number of features that the sublayers up to this use. ``streams``
    are those of tokens that are being read, ``held`` those of places that wait for their answers. If ``logits`` has
    rows, these become the logits at the places, or nan.

    If it ``goes_on``, with one lane, each label becomes the next token, until one is not proved or is no token: not
    below ``goes_on``. Returns the number of tokens up to there, or of all.
    """
    position, asked, whose, label, margin = lane
    state, after = states
    work, fine, spoilt = state
    _, kept, _ = after
    layers, mixing = program[0], program[6]
    spoilt[:] = NEVER
    sequence, done, waiting, end, lanes = NO, NO, NO, len(tokens), len(position)
    for at in range(0, end, lanes):
        count, first = min(lanes, end - at), done
        for j in range(count):
            place = begin + at + j
            while starts[sequence + 1] <= place:
                sequence += 1
            position[j] = place - starts[sequence]
            asked[j] = done < len(places) and places[done] == place
            done += asked[j]
        embed(tokens, at, count, mixed, program, streams, state)
        run_layers(NO, mixing, streams, count, program, ring, begin + at, position, asked, state)
        if goes_on and not fine[0]:
            return at
        for j in range(count):
            if asked[j] and fine[j]:
                held[waiting, :mixed], held[waiting, mixed:] = streams[j, :mixed], 0
                whose[waiting] = first
                waiting += 1
            first += asked[j]
            if waiting == lanes or (waiting > 0 and at + j + 1 == end):
                for k in range(lanes):
                    kept[k] = k < waiting
                run_layers(mixing, len(layers), held, waiting, program, ring, NO, position, asked, after)
                unembed(held, waiting, program, after, label, margin)
                for k in range(waiting):
                    labels[whose[k]], margins[whose[k]] = label[k], margin[k]
                    if len(logits):
                        logits[whose[k]] = work[3][: logits.shape[1], k]
                waiting = NO
        if goes_on and asked[0]:
            if np.isnan(margin[0]):
                return at
            if label[0] >= goes_on:
                return at + 1
            if at + 1 < end:
                tokens[at + 1] = label[0]
    return end
