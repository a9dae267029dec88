"""The compiled loops of :mod:`.transformer.forced`: ``LANES`` places of the tokens side by side, sublayer by sublayer.

Token by token (:mod:`.kernels`, whose arrays these are) more time goes into calls than into numbers. Here every number
is a row of lanes, one for each place. A sublayer has a ``PLAN`` for that, if it is one of the kinds that compiled
networks are made of; its checks are those of ``kernels``, or stricter ones that are the same for all lanes. Wherever a
plan does not prove that nothing is rounded, or there is none, that place goes through that sublayer alone, by
``kernels``; and only if that does not prove it either, the place is lost. What lanes hold that are lost, or that no
place has, means nothing.
"""

import numpy as np

from byheart.compiled import jit
from byheart.networks.transformer import kernels
from byheart.networks.transformer.kernels import (
    ATTENTION,
    BELOW,
    BIASED,
    BITS,
    BOUNDS,
    EXPERTS,
    FAR,
    GROUPS,
    HEADS,
    HIGH,
    KIND,
    LARGEST,
    MISSING,
    NEVER,
    NO,
    NONE,
    OUT,
    PLAN,
    REACH,
    READS,
    RING,
    ROUTE_WIDTH,
    ROUTES,
    SLOTS,
    SMALLEST,
    TARGETS,
    UNITS,
    UP,
    UP_BIASED,
    UP_READS,
    UP_WIDTH,
    W_IN,
    W_OUT,
    W_ROUTE,
    W_UP,
    WIDTH,
    WRITES,
)

LANES = 32
ALONE, SUMS, ROWS, PICKS, PRODUCTS, COPIES = range(6)
"""Plans. Of sigmoid units: sums of what some of them write, which no choice of units can round; the row that the only
one which is 1 writes, to features that nothing was written to; the feature that it picks. ReLU units, and products of
them. Attention where every row of W_V copies one feature from one place."""
MANY = 1 << 32
"""What a unit that is 1 counts, beside its number: sums of both tell how many there are, and if one, which."""


@jit
def spread(streams, features, first, count, x):  # type: ignore[no-untyped-def]
    """Some features of all lanes, as rows of x."""
    for i in range(count):
        feature = features[first + i]
        for j in range(LANES):
            x[i, j] = streams[j, feature]


@jit
def unit(x):  # type: ignore[no-untyped-def]
    """As in ``kernels``, without branches."""
    size = abs(x)
    bits = np.float64(size).view(np.int64)
    rest = np.int64(bits & (bits - 1)).view(np.float64)
    its = size if bits & ((1 << 52) - 1) == 0 else size - rest
    return np.inf if size == 0 else its


@jit
def affine(weights, W, outs, x, width, bias, out, lanes, fine, limits):  # type: ignore[no-untyped-def]
    """out ← W x + b, row by row; not ``fine`` where something might be rounded. As in ``kernels``, but all terms."""
    least, total = lanes[0], lanes[1]
    for j in range(LANES):
        least[j] = np.inf
    for i in range(width):
        for j in range(LANES):
            its = unit(x[i, j])
            least[j] = its if its < least[j] else least[j]
    bits, largest, smallest = limits[BITS], limits[LARGEST], limits[SMALLEST]
    for o in range(outs):
        b = weights[bias + o] if bias >= 0 else 0.0
        units, bias_unit = weights[W - 2 * outs + o], weights[W - outs + o]
        for j in range(LANES):
            out[o, j], total[j] = b, abs(b)
        for i in range(width):
            w = weights[W + i * outs + o]
            for j in range(LANES):
                out[o, j] += w * x[i, j]
                total[j] += abs(w * x[i, j])
        for j in range(LANES):
            its = units * least[j]
            its = (its if its < bias_unit else bias_unit) * BELOW
            small = (total[j] <= bits * its) & (total[j] <= largest) & (its >= smallest)
            fine[j] &= small | (total[j] == 0)


@jit
def marks(weights, x, width, bounds, lanes, limits):  # type: ignore[no-untyped-def]
    """How much of Σ|t| a sum of ``width`` terms and a bias may be off by, and the least unit of x, lane by lane.

    ``bounds``: where the largest |b| and the largest Σ|w| are. Where a sum might become infinite, it is nan.
    """
    most, part, least = lanes[1], lanes[2], lanes[3]
    for j in range(LANES):
        most[j], least[j] = 0.0, np.inf
    for i in range(width):
        for j in range(LANES):
            its, size = unit(x[i, j]), abs(x[i, j])
            least[j] = its if its < least[j] else least[j]
            most[j] = size if size > most[j] else most[j]
    for j in range(LANES):
        small = weights[bounds] + most[j] * weights[bounds + 1] <= limits[LARGEST]
        part[j] = 4 * (width + 1) / limits[BITS] if small else np.nan


@jit
def switched(weights, W, units, x, width, bias, second, outs, out, lanes, state, exactly, fine, limits):  # type: ignore[no-untyped-def]
    """Which of the units σ(W x + b) are 1, as ``state`` (see ``MANY``); not ``fine`` where some are neither 1 nor 0.

    The rows from ``second`` on are added up where a unit is 1, if ``outs`` are wanted. ``exactly``: near the marks,
    sums that are not rounded are taken for what they are.
    """
    value, total, part, least = lanes[0], lanes[1], lanes[2], lanes[3]
    state[:] = 0
    out[:outs] = 0
    high, far, one, other = limits[HIGH], limits[FAR], x[0], x[width - 1]
    bits, smallest = limits[BITS], limits[SMALLEST]
    for u in range(units):
        b, w, v = weights[bias + u], weights[W + u], weights[W + (width - 1) * units + u] if width > 1 else 0.0
        for j in range(LANES):
            value[j] = b + w * one[j] + v * other[j]
            total[j] = abs(b) + abs(w * one[j]) + abs(v * other[j])
        for i in range(1, width - 1):
            w = weights[W + i * units + u]
            for j in range(LANES):
                value[j] += w * x[i, j]
                total[j] += abs(w * x[i, j])
        if exactly:
            of_weights, of_bias = weights[W - 2 * units + u], weights[W - units + u]
            for j in range(LANES):
                its = of_weights * least[j]
                its = (its if its < of_bias else of_bias) * BELOW
                total[j] = 0.0 if (total[j] <= bits * its) & (its >= smallest) else total[j]
        for j in range(LANES):
            error = total[j] * part[j]
            on = value[j] - error >= high
            state[j] += MANY + u if on else NO
            fine[j] &= on | (value[j] + error <= -far)
        for o in range(outs):
            w = weights[second + u * outs + o]
            for j in range(LANES):
                out[o, j] += w if value[j] > 0 else 0.0


@jit
def add(streams, features, writes, count, targets, out, lanes, fine, limits):  # type: ignore[no-untyped-def]
    """Add outputs to the streams of all lanes that stay ``fine``: where none of the sums might be rounded."""
    bits, largest, smallest = limits[BITS], limits[LARGEST], limits[SMALLEST]
    for o in range(NO if targets else count):
        feature = features[writes + o]
        for j in range(LANES):
            before, more = streams[j, feature], out[o, j]
            after, its, other = abs(before + more), unit(before), unit(more)
            its = (its if its < other else other) * BELOW
            small = (after <= bits * its) & (after <= largest) & (its >= smallest)
            fine[j] &= small | (after == 0) | (before == 0) | (more == 0)
    if targets:
        check_targets(streams, features, targets, out, lanes, fine, limits)
    for o in range(count):
        feature = features[writes + o]
        for j in range(LANES):
            streams[j, feature] += out[o, j] if fine[j] else 0.0


@jit
def check_targets(streams, features, targets, out, lanes, fine, limits):  # type: ignore[no-untyped-def]
    """Not ``fine`` where the sum of all that goes to one feature, and what it is, might be rounded."""
    above, below, least = lanes[0], lanes[1], lanes[2]
    at = targets + 1
    for _ in range(features[targets]):
        feature, times = features[at], features[at + 1]
        for j in range(LANES):
            value = streams[j, feature]
            above[j], below[j], least[j] = value if value > 0 else 0.0, value if value < 0 else 0.0, unit(value)
        for k in range(times):
            row = out[features[at + 2 + k]]
            for j in range(LANES):
                its = unit(row[j])
                above[j] += row[j] if row[j] > 0 else 0.0
                below[j] += row[j] if row[j] < 0 else 0.0
                least[j] = its if its < least[j] else least[j]
        for j in range(LANES):
            total = (above[j] if above[j] > -below[j] else -below[j]) / BELOW
            small = (total <= limits[BITS] * least[j]) & (total <= limits[LARGEST]) & (least[j] >= limits[SMALLEST])
            fine[j] &= small | (total == 0)
        at += 2 + times


@jit
def hidden_of(streams, layer, g, features, weights, work, fine, limits):  # type: ignore[no-untyped-def]
    """The units of a group, ReLUs, times what goes up if something does: rows of ``hidden``."""
    x, hidden, up, _, lanes, _ = work
    units, width = layer[UNITS], layer[WIDTH]
    spread(streams, features, layer[READS] + g * width, width, x)
    W = layer[W_IN] + g * units * (width + 2 + layer[BIASED]) + 2 * units
    bias = W + width * units if layer[BIASED] else MISSING
    affine(weights, W, units, x, width, bias, hidden, lanes, fine, limits)
    for u in range(units):
        for j in range(LANES):
            hidden[u, j] = hidden[u, j] if hidden[u, j] > 0 else 0.0
    if layer[UP] == NONE:
        return
    width = layer[UP_WIDTH]
    spread(streams, features, layer[UP_READS] + g * width, width, x)
    W = layer[W_UP] + g * units * (width + 2 + layer[UP_BIASED]) + 2 * units
    bias = W + width * units if layer[UP_BIASED] else MISSING
    affine(weights, W, units, x, width, bias, up, lanes, fine, limits)
    for u in range(units):
        for j in range(LANES):
            value, its = hidden[u, j] * up[u, j], unit(hidden[u, j]) * unit(up[u, j]) * BELOW
            small = (abs(value) <= limits[BITS] * its) & (abs(value) <= limits[LARGEST]) & (its >= limits[SMALLEST])
            fine[j] &= small | (hidden[u, j] == 0) | (up[u, j] == 0)
            hidden[u, j] = value


@jit
def picked(streams, layer, g, features, weights, out, state, fine, limits):  # type: ignore[no-untyped-def]
    """What the only unit of a group that is 1 lets through, times what it writes, if there is one."""
    units, outs = layer[UNITS], layer[OUT]
    second, first = layer[W_OUT] + g * outs * (units + 2) + 2 * outs, layer[UP_READS] + g * units
    for j in range(LANES):
        if not fine[j]:
            continue
        for o in range(outs):
            out[g * outs + o, j] = 0.0
        if state[j] == 0:
            continue
        u = state[j] - MANY
        value, exact = kernels.product(streams[j, features[first + u]], weights[layer[W_UP] + g * units + u], limits)
        fine[j] = exact
        for o in range(outs):
            out[g * outs + o, j], exact = kernels.product(value, weights[second + u * outs + o], limits)
            fine[j] &= exact


@jit
def routed(streams, layer, features, weights, work, expert, fine, limits):  # type: ignore[no-untyped-def]
    """Which expert of a mixture is taken; not ``fine`` where two have the same score."""
    x, scores, _, _, lanes, _ = work
    width, experts = layer[ROUTE_WIDTH], layer[EXPERTS]
    spread(streams, features, layer[ROUTES], width, x)
    W = layer[W_ROUTE] + 2 * experts
    affine(weights, W, experts, x, width, W + width * experts, scores, lanes, fine, limits)
    for j in range(LANES):
        expert[j], most, again = 0, scores[0, j], False
        for k in range(1, experts):
            again = (again & (scores[k, j] <= most)) | (scores[k, j] == most)
            expert[j] = k if scores[k, j] > most else expert[j]
            most = scores[k, j] if scores[k, j] > most else most
        fine[j] &= not again


@jit
def planned(streams, layer, features, weights, work, fine, limits):  # type: ignore[no-untyped-def]
    """One feed-forward sublayer, or mixture, by its plan: for the lanes that stay ``fine``, others are left as is."""
    x, hidden, _, out, lanes, states = work
    before = states[0]
    plan, groups, units, width, outs = layer[PLAN], layer[GROUPS], layer[UNITS], layer[WIDTH], layer[OUT]
    for g in range(groups):
        second = layer[W_OUT] + g * outs * (units + 2) + 2 * outs
        if plan == PRODUCTS:
            hidden_of(streams, layer, g, features, weights, work, fine, limits)
            affine(weights, second, outs, hidden, units, MISSING, out[g * outs :], lanes, fine, limits)
            continue
        spread(streams, features, layer[READS] + g * width, width, x)
        W, added = layer[W_IN] + g * units * (width + 3) + 2 * units, outs if plan == SUMS else NO
        bias, to, state = W + width * units, out[g * outs :], states[1 + g]
        before[:] = fine
        marks(weights, x, width, layer[BOUNDS] + 2 * g, lanes, limits)
        switched(weights, W, units, x, width, bias, second, added, to, lanes, state, False, fine, limits)
        if before.sum() > fine.sum():
            fine[:] = before != 0
            switched(weights, W, units, x, width, bias, second, added, to, lanes, state, True, fine, limits)
        if plan != SUMS:
            for j in range(LANES):
                fine[j] &= state[j] < 2 * MANY
        if plan == PICKS:
            picked(streams, layer, g, features, weights, out, state, fine, limits)
    if plan != ROWS:
        add(streams, features, layer[WRITES], groups * outs, layer[TARGETS], out, lanes, fine, limits)
        return
    expert = states[0]
    expert[:] = 0
    if layer[EXPERTS]:
        routed(streams, layer, features, weights, work, expert, fine, limits)
    for g in range(groups):
        first, state = features[layer[WRITES] + g * outs], states[1 + g]
        for j in range(LANES):
            if fine[j] and state[j] > 0:
                group = layer[W_OUT] + (expert[j] * groups + g) * outs * (units + 2)
                row = group + (2 + state[j] - MANY) * outs
                streams[j, first : first + outs] = weights[row : row + outs]


@jit
def remembered(streams, count, layer, number, features, weights, ring, at, position, spoilt, lost, fine):  # type: ignore[no-untyped-def]
    """Put what attention reads at all places into its ring; ``fine`` where all that it looks at is proved.

    ``spoilt``: for every sublayer, the last place of which its ring does not hold what is proved. Attention that
    reaches as far back is not proved either, though its weight there may be 0.
    """
    for j in range(count):
        if lost[j] or not kernels.remember(streams[j], layer, features, weights, ring, at + j):
            lost[j], spoilt[number] = True, at + j
        fine[j] = at + j - spoilt[number] > min(layer[REACH], position[j])


@jit
def copied(streams, layer, features, weights, ring, at, position, work, fine, limits):  # type: ignore[no-untyped-def]
    """Attention where every row of W_V copies one feature from one place, for the lanes that stay ``fine``."""
    x, _, _, out, lanes, _ = work
    width, slots, first, head = layer[WIDTH], layer[SLOTS], layer[RING], layer[HEADS]
    for row in range(layer[UNITS]):
        offset, feature = features[head + 2], features[head + 3]
        slot = (at + slots - offset) % slots
        for j in range(LANES):
            x[row, j] = ring[first + slot * width + feature] if offset <= position[j] else 0.0
            slot = slot + 1 if slot + 1 < slots else NO
        head += 4
    outs = layer[OUT]
    W = layer[W_OUT] + 2 * outs
    affine(weights, W, outs, x, layer[UNITS], MISSING, out, lanes, fine, limits)
    add(streams, features, layer[WRITES], outs, layer[TARGETS], out, lanes, fine, limits)


@jit
def attention(streams, count, layer, number, program, ring, at, position, asked, state, scratch):  # type: ignore[no-untyped-def]
    """One attention sublayer; the last one only looks at what it has read where something is ``asked``."""
    _, features, weights, limits, _, _, mixing = program
    work, fine, lost, spoilt = state
    remembered(streams, count, layer, number, features, weights, ring, at, position, spoilt, lost, fine)
    for j in range(count):
        lost[j] |= not fine[j]
    last = number + 1 == mixing
    if last and not asked[:count].any():
        return
    if layer[PLAN] == COPIES:
        copied(streams, layer, features, weights, ring, at, position, work, fine, limits)
    else:
        fine[:] = False
    for j in range(count):
        if not (fine[j] or lost[j] or (last and not asked[j])):
            how = (features, weights, ring, at + j, position[j], scratch, limits)
            lost[j] = not kernels.attention(streams[j], layer, *how)


@jit
def feed_forward(streams, count, layer, program, state, scratch):  # type: ignore[no-untyped-def]
    """One feed-forward sublayer, or mixture: side by side, and what is not proved so, alone."""
    _, features, weights, limits, _, _, _ = program
    work, fine, lost, _ = state
    fine[:] = layer[PLAN] != ALONE
    if layer[PLAN] != ALONE:
        planned(streams, layer, features, weights, work, fine, limits)
    for j in range(count):
        if not (fine[j] or lost[j]):
            lost[j] = not kernels.feed_forward(streams[j], layer, features, weights, scratch, limits)


@jit
def mix(tokens, count, program, ring, streams, mixed, at, position, asked, state, scratch):  # type: ignore[no-untyped-def]
    """Read tokens, the first of which is the ``at``-th: all sublayers up to the last attention."""
    layers, features, weights, limits, embedding, _, mixing = program
    _, _, lost, _ = state
    out, embeds = scratch[5], embedding[2]
    streams[:, :mixed] = 0
    for j in range(count):
        for i in range(embeds):
            out[i] = weights[embedding[0] + tokens[at + j] * embeds + i]
        lost[j] = not kernels.add(streams[j], features, embedding[1], embeds, embedding[3], out, limits)
    for number in range(mixing):
        layer = layers[number]
        if layer[KIND] == ATTENTION:
            attention(streams, count, layer, number, program, ring, at, position, asked, state, scratch)
        else:
            feed_forward(streams, count, layer, program, state, scratch)


@jit
def settle(streams, count, program, state, scratch, labels, margins):  # type: ignore[no-untyped-def]
    """All sublayers after the last attention: labels, and margins, nan where they are not proved."""
    layers, features, weights, limits, _, unembedding, mixing = program
    work, fine, lost, _ = state
    x, _, _, out, lanes, _ = work
    lost[:] = False
    for number in range(mixing, len(layers)):
        feed_forward(streams, count, layers[number], program, state, scratch)
    W, width, outs = unembedding[0] + 2 * unembedding[3], unembedding[2], unembedding[3]
    bias, few = W + width * outs, len(x) >= width and len(out) >= outs
    fine[:] = few
    if few:
        spread(streams, features, unembedding[1], width, x)
        affine(weights, W, outs, x, width, bias, out, lanes, fine, limits)
        best(out, outs, lanes, labels, margins)
    for j in range(count):
        if fine[j] and not lost[j]:
            continue
        margins[j], index, logits, total = np.nan, scratch[0], scratch[5], scratch[6]
        found = kernels.gather(streams[j], features, unembedding[1], width, index, scratch[2])
        how = (index, scratch[2], found, bias, logits, total, limits)
        if not lost[j] and kernels.affine(weights, W, outs, *how):
            labels[j], margins[j] = kernels.best(logits[:outs])


@jit
def best(logits, count, lanes, labels, margins):  # type: ignore[no-untyped-def]
    """The label with the largest logit, the first of equals, and by how much it exceeds the next: infinite if none."""
    largest, second = lanes[0], lanes[1]
    for j in range(LANES):
        labels[j], largest[j], second[j] = 0, logits[0, j], -np.inf
    for label in range(1, count):
        for j in range(LANES):
            value, most = logits[label, j], largest[j]
            less = second[j] if second[j] > value else value
            labels[j] = label if value > most else labels[j]
            second[j] = most if value > most else less
            largest[j] = value if value > most else most
    for j in range(LANES):
        margins[j] = largest[j] - second[j]


@jit
def ask(tokens, starts, places, mixed, program, ring, streams, held, state, after, scratch, lane, labels, margins):  # type: ignore[no-untyped-def]
    """Labels and margins at ``places``, which increase, of the sequences that begin at ``starts[:-1]`` of ``tokens``.

    A margin is nan where the answer is not proved, and stays as it is where that is known before the last attention.
    ``mixed``: how many features there are up to that; ``streams`` are those of tokens that are being read, ``held``
    those of places that wait to be answered.
    """
    position, asked, whose, label, margin = lane
    _, _, lost, spoilt = state
    spoilt[:] = NEVER
    sequence, done, waiting, end = NO, NO, NO, len(tokens)
    for at in range(0, end, LANES):
        count, first = min(LANES, end - at), done
        for j in range(count):
            while starts[sequence + 1] <= at + j:
                sequence += 1
            position[j] = at + j - starts[sequence]
            asked[j] = done < len(places) and places[done] == at + j
            done += asked[j]
        mix(tokens, count, program, ring, streams, mixed, at, position, asked, state, scratch)
        for j in range(count):
            if asked[j] and not lost[j]:
                held[waiting, :mixed], held[waiting, mixed:] = streams[j, :mixed], 0
                whose[waiting] = first
                waiting += 1
            first += asked[j]
            if waiting == LANES or (waiting > 0 and at + j + 1 == end):
                settle(held, waiting, program, after, scratch, label, margin)
                for k in range(waiting):
                    labels[whose[k]], margins[whose[k]] = label[k], margin[k]
                waiting = NO
