"""The compiled loops of :mod:`.transformer.decoder`, where their exactness is argued.

All numbers of a network lie in one array, ``weights``, all features that its sublayers read and write in another,
``features``; ``layers`` has a row for each sublayer, that says where (see the columns below). Matrices are stored with
one row for each *input*, so that inputs that are 0 cost nothing.
"""

import numpy as np

from byheart.compiled import jit

ATTENTION, FEED_FORWARD = 0, 1
NONE, DENSE, DIAGONAL = 0, 1, 2
"""Kinds of ``up``."""
KIND, GROUPS, UNITS, READS, WIDTH, WRITES, OUT, TARGETS, RELU, BIASED, W_IN, W_OUT = range(12)
"""Of all sublayers: features read (an index into ``features``, and how many a group), written, and where to.

``TARGETS``: an index into ``features``, 0 if all features that are written to are different; else how many there are,
and for each its number, how often it is written to, and which outputs go there."""
UP, UP_READS, UP_WIDTH, W_UP, UP_BIASED, MOST_UP = range(12, 18)
"""Of feed-forward sublayers; ``MOST_UP``: where the largest input of a diagonal W_up is, −1 if all are fine."""
ROUTES, ROUTE_WIDTH, W_ROUTE, EXPERTS = range(18, 22)
"""Of mixtures: what the router reads, where it is, and how many matrices lie behind each other from ``W_OUT`` on; of
other sublayers all are 0."""
RING, SLOTS, HEADS, MOST_SEEN, REACH = range(12, 17)
"""Of attention: where its ring is, how many positions it has, an index into ``features``; the largest input; how many
positions it looks back."""
BOUNDS, PLAN = range(22, 24)
"""What ``blocks`` wants to know."""
COLUMNS = 24
NO, ONE, MISSING, NEVER = np.int64(0), np.int64(1), np.int64(-1), np.int64(-(2**62))
"""Numbers whose type is that of all others: each other type that a loop is called with is compiled anew."""
BELOW = 1 - 2.0**-53
"""Makes a bound strict, as in ``proved``."""
BITS, FAR, HIGH, SMALLEST, LARGEST = range(5)
"""What is known of the format: entries of ``limits``, named as in ``proved``."""


@jit
def unit(x):  # type: ignore[no-untyped-def]
    """The value of the last bit of x that is set; infinite for 0."""
    if x == 0:
        return np.inf
    bits = np.float64(abs(x)).view(np.int64)
    if bits & ((1 << 52) - 1) == 0:
        return abs(x)
    return abs(x) - np.int64(bits & (bits - 1)).view(np.float64)


@jit
def fits(total, least, limits):  # type: ignore[no-untyped-def]
    """Whether sums of multiples of ``least``, all of them below ``total`` or equal to it, are never rounded."""
    small = total <= limits[BITS] * least and total <= limits[LARGEST] and least >= limits[SMALLEST]
    return small or total == 0


@jit
def product(one, other, limits):  # type: ignore[no-untyped-def]
    """one · other, and whether it is exact."""
    value = one * other
    return value, fits(abs(value), unit(one) * unit(other) * BELOW, limits)


@jit
def one_sided(above, terms_above, below, terms_below):  # type: ignore[no-untyped-def]
    """The larger of what the terms above 0 and those below add up to; a little more where there are several."""
    return max(above / BELOW if terms_above > 1 else above, below / BELOW if terms_below > 1 else below)


@jit
def closely(weights, first, stride, index, x, count, bias, limits):  # type: ignore[no-untyped-def]
    """Whether b + Σ w x is exact, by all its terms; first what it is, last what its terms of the rarer sign add up to.

    Term k is ``weights[first + index[k]·stride]·x[k]``, and b, if there is one, ``weights[bias]``.
    """
    above, below, least, exact = 0.0, 0.0, np.inf, True
    terms_above, terms_below = NO, NO
    for k in range(count + 1):
        if k == count and bias < 0:
            break
        w, factor = (weights[bias], 1.0) if k == count else (weights[first + index[k] * stride], x[k])
        term = w * factor
        if term == 0:
            exact &= w == 0 or factor == 0
            continue
        its = unit(w) * unit(factor)
        exact &= fits(abs(term), its * BELOW, limits)
        least = min(least, its)
        if term > 0:
            above, terms_above = above + term, terms_above + 1
        else:
            below, terms_below = below - term, terms_below + 1
    value, partial = above - below, one_sided(above, terms_above, below, terms_below)
    if terms_above + terms_below <= 2:  # there is no partial sum but the sum
        partial = abs(value) / BELOW
    return value, exact and fits(partial, least, limits), min(above, below) / BELOW


@jit
def affine(weights, W, outs, index, x, count, bias, out, total, limits):  # type: ignore[no-untyped-def]
    """out ← W x + b for the inputs ``index[:count]``, whose values x are not 0; False if something might be rounded.

    ``W``: where the matrix [inputs, outs] begins; right before it, the least unit of each output's weights, and of its
    bias. ``bias``: where b is, −1 for none.
    """
    if count == 1 and x[0] == 1.0 and bias < 0:
        row = W + index[0] * outs
        for o in range(outs):
            out[o] = weights[row + o]
        return True
    least = np.inf
    for o in range(outs):
        out[o] = weights[bias + o] if bias >= 0 else 0.0
        total[o] = abs(out[o])
    for k in range(count):
        row, value, size = W + index[k] * outs, x[k], abs(x[k])
        least = min(least, unit(value))
        for o in range(outs):
            out[o] += weights[row + o] * value
            total[o] += abs(weights[row + o]) * size
    units, bias_units = W - 2 * outs, W - outs
    rounded = 0
    for o in range(outs):
        its = min(weights[units + o] * least, weights[bias_units + o]) * BELOW
        rounded += not (
            (total[o] <= limits[BITS] * its and total[o] <= limits[LARGEST] and its >= limits[SMALLEST])
            or total[o] == 0
        )
    if rounded:
        for o in range(outs):
            its = min(weights[units + o] * least, weights[bias_units + o]) * BELOW
            if not fits(total[o], its, limits):
                out[o], exact, _ = closely(
                    weights, W + o, outs, index, x, count, bias + o if bias >= 0 else MISSING, limits
                )
                if not exact:
                    return False
    return True


@jit
def switched(weights, W, units, index, x, count, bias, on, value, total, limits):  # type: ignore[no-untyped-def]
    """Which of the units σ(W x + b) are 1, listed in ``on``: how many, the others being 0; −1 if that is not proved."""
    for u in range(units):
        value[u] = weights[bias + u] if bias >= 0 else 0.0
        total[u] = abs(value[u])
    for k in range(count):
        row, factor, size = W + index[k] * units, x[k], abs(x[k])
        for u in range(units):
            value[u] += weights[row + u] * factor
            total[u] += abs(weights[row + u]) * size
    part, high, far, found = 4 * (count + 1) / limits[BITS], limits[HIGH], limits[FAR], NO
    for u in range(units):
        error = total[u] * part
        if value[u] + error <= -far and total[u] <= limits[LARGEST]:
            continue
        if value[u] - error < high or total[u] > limits[LARGEST]:
            exactly, exact, rarer = closely(
                weights, W + u, units, index, x, count, bias + u if bias >= 0 else MISSING, limits
            )
            # A sum may become infinite on the way, and is then beyond the mark; what has the other sign must not, too,
            # however it is rounded.
            sure = value[u] - error >= high or value[u] + error <= -far
            if total[u] > limits[LARGEST] and sure and rarer <= limits[LARGEST] / 2:
                exactly, exact = value[u], True
            if not exact or -far < exactly < high:
                return -1
            if exactly < 0:
                continue
        on[found] = u
        found += 1
    return found


@jit
def gather(stream, features, first, count, index, x):  # type: ignore[no-untyped-def]
    """The features that are not 0: which of these, and their values; how many."""
    found = NO
    for i in range(count):
        value = stream[features[first + i]]
        if value != 0:
            index[found], x[found] = i, value
            found += 1
    return found


@jit
def add(stream, features, writes, count, targets, out, limits):  # type: ignore[no-untyped-def]
    """Add outputs to the stream; False if something might be rounded."""
    if targets == 0:
        for o in range(count):
            if out[o] == 0:
                continue
            before = stream[features[writes + o]]
            after = before + out[o]
            if before != 0 and not fits(abs(after), min(unit(before), unit(out[o])) * BELOW, limits):
                return False
            stream[features[writes + o]] = after
        return True
    at = targets + 1
    for _ in range(features[targets]):
        feature, times = features[at], features[at + 1]
        above, below, least, terms_above, terms_below = 0.0, 0.0, np.inf, NO, NO
        for k in range(times + 1):
            value = stream[feature] if k == times else out[features[at + 2 + k]]
            least = min(least, unit(value))
            if value > 0:
                above, terms_above = above + value, terms_above + 1
            elif value < 0:
                below, terms_below = below - value, terms_below + 1
        if not fits(one_sided(above, terms_above, below, terms_below), least, limits):
            return False
        stream[feature] = above - below
        at += 2 + times
    return True


@jit
def units_of(stream, layer, g, features, weights, scratch, limits):  # type: ignore[no-untyped-def]
    """The units of a group that are not 0, and what they are: how many; −1 if that is not proved."""
    index, on, x, hidden, _, _, total = scratch
    units, width = layer[UNITS], layer[WIDTH]
    count = gather(stream, features, layer[READS] + g * width, width, index, x)
    W = layer[W_IN] + g * units * (width + 2 + layer[BIASED]) + 2 * units
    bias = W + width * units if layer[BIASED] else MISSING
    if not layer[RELU]:
        found = switched(weights, W, units, index, x, count, bias, on, hidden, total, limits)
        hidden[: max(found, 0)] = 1.0
        return found
    if not affine(weights, W, units, index, x, count, bias, hidden, total, limits):
        return MISSING
    found = NO
    for u in range(units):
        if hidden[u] > 0:
            on[found], hidden[found] = u, hidden[u]
            found += 1
    return found


@jit
def gated(stream, layer, g, found, features, weights, scratch, limits):  # type: ignore[no-untyped-def]
    """Units times what goes up; how many are not 0 then, −1 if that is not proved."""
    index, on, x, hidden, up, _, total = scratch
    units, width, first = layer[UNITS], layer[UP_WIDTH], layer[UP_READS] + g * layer[UP_WIDTH]
    if layer[UP] == DENSE:
        count = gather(stream, features, first, width, index, x)
        W = layer[W_UP] + g * units * (width + 2 + layer[UP_BIASED]) + 2 * units
        bias = W + width * units if layer[UP_BIASED] else MISSING
        if not affine(weights, W, units, index, x, count, bias, up, total, limits):
            return MISSING
    elif layer[MOST_UP] >= 0:
        for i in range(width):
            if abs(stream[features[first + i]]) > weights[layer[MOST_UP]]:
                return MISSING
    kept = NO
    for k in range(found):
        u, factor = on[k], up[on[k]]
        exact = True
        if layer[UP] == DIAGONAL:
            factor, exact = product(stream[features[first + u]], weights[layer[W_UP] + g * units + u], limits)
        value, fine = product(hidden[k], factor, limits)
        if not (exact and fine):
            return MISSING
        if value != 0:
            on[kept], hidden[kept] = u, value
            kept += 1
    return kept


@jit
def routed(stream, layer, features, weights, scratch, limits):  # type: ignore[no-untyped-def]
    """Which expert of a mixture is taken; −1 if that is not proved, or two have the same score."""
    index, _, x, _, _, out, total = scratch
    width, experts = layer[ROUTE_WIDTH], layer[EXPERTS]
    count = gather(stream, features, layer[ROUTES], width, index, x)
    W = layer[W_ROUTE] + 2 * experts
    if not affine(weights, W, experts, index, x, count, W + width * experts, out, total, limits):
        return MISSING
    best, again = NO, False
    for expert in range(1, experts):
        if out[expert] > out[best]:
            best, again = np.int64(expert), False
        else:
            again |= out[expert] == out[best]
    return MISSING if again else best


@jit
def feed_forward(stream, layer, features, weights, scratch, limits):  # type: ignore[no-untyped-def]
    """One feed-forward sublayer, or mixture; False if something might be rounded.

    Every matrix of a group has two rows of units before it, and its bias after it.
    """
    _, on, _, hidden, _, out, total = scratch
    outs, second = layer[OUT], layer[W_OUT]
    if layer[EXPERTS]:
        expert = routed(stream, layer, features, weights, scratch, limits)
        if expert < 0:
            return False
        second += expert * layer[GROUPS] * outs * (layer[UNITS] + 2)
    for g in range(layer[GROUPS]):
        found = units_of(stream, layer, g, features, weights, scratch, limits)
        if found >= 0 and layer[UP] != NONE:
            found = gated(stream, layer, g, found, features, weights, scratch, limits)
        W = second + g * outs * (layer[UNITS] + 2) + 2 * outs
        if found < 0 or not affine(weights, W, outs, on, hidden, found, MISSING, out[g * outs :], total, limits):
            return False
    return add(stream, features, layer[WRITES], layer[GROUPS] * outs, layer[TARGETS], out, limits)


@jit
def value_at(at, number, k, place, ring, features, weights, scratch, limits):  # type: ignore[no-untyped-def]
    """A row of W_V times what was read in the slot at ``place``, times the weight of the k-th offset; is it exact?"""
    index, _, x, _, _, _, _ = scratch
    offsets, entries = features[at], features[at + 1]
    for j in range(entries):
        index[j], x[j] = j, ring[place + features[at + 2 + offsets + j]]
    value, exact = x[0], True
    if entries != 1 or weights[number + offsets] != 1.0:
        value, exact, _ = closely(weights, number + offsets, ONE, index, x, entries, MISSING, limits)
    if weights[number + k] != 1.0:
        value, fine = product(weights[number + k], value, limits)
        exact = exact and fine
    return value, exact


@jit
def remember(stream, layer, features, weights, ring, at):  # type: ignore[no-untyped-def]
    """Put what an attention sublayer reads at the ``at``-th token into its ring; False if that is too large for it."""
    width = layer[WIDTH]
    first = layer[RING] + at % layer[SLOTS] * width
    for i in range(width):
        value = stream[features[layer[READS] + i]]
        if abs(value) > weights[layer[MOST_SEEN]]:
            return False
        ring[first + i] = value
    return True


@jit
def attention(stream, layer, features, weights, ring, at, place, scratch, limits):  # type: ignore[no-untyped-def]
    """One attention sublayer whose weights are constant, at the ``at``-th token, the ``place``-th of its sequence.

    False if something might be rounded.

    From ``HEADS`` on, ``features`` has for every row of W_V: how many offsets have a weight, and how many entries of
    the row are not 0; the offsets, in slots; which inputs the entries belong to. From ``W_IN`` on, ``weights`` has the
    weights and the entries.
    """
    index, _, _, mixed, _, out, total = scratch
    width, slots, first = layer[WIDTH], layer[SLOTS], layer[RING]
    slot = at % slots
    at, number, found = layer[HEADS], layer[W_IN], NO
    for row in range(layer[UNITS]):
        above, below, least, terms_above, terms_below = 0.0, 0.0, np.inf, NO, NO
        for k in range(features[at]):
            offset = features[at + 2 + k]
            if offset > place:  # before the first token all is 0
                continue
            seen = first + (slot - offset + (slots if slot < offset else NO)) * width
            value, exact = value_at(at, number, k, seen, ring, features, weights, scratch, limits)
            if not exact:
                return False
            least = min(least, unit(value))
            if value > 0:
                above, terms_above = above + value, terms_above + 1
            elif value < 0:
                below, terms_below = below - value, terms_below + 1
        if not fits(one_sided(above, terms_above, below, terms_below), least, limits):
            return False
        mixed[row] = above - below
        passed = features[at] + features[at + 1]
        at, number = at + 2 + passed, number + passed
    for row in range(layer[UNITS]):
        if mixed[row] != 0:
            index[found], mixed[found] = row, mixed[row]
            found += 1
    outs = layer[OUT]
    if not affine(weights, layer[W_OUT] + 2 * outs, outs, index, mixed, found, MISSING, out, total, limits):
        return False
    return add(stream, features, layer[WRITES], outs, layer[TARGETS], out, limits)


@jit
def step(token, place, answer, program, ring, stream, scratch, logits):  # type: ignore[no-untyped-def]
    """Read a token, the ``place``-th; if an ``answer`` is wanted, work out the logits. False if that is not proved."""
    layers, features, weights, limits, embedding, unembedding, mixing = program
    index, _, x, _, _, out, total = scratch
    stream[:] = 0
    embeds = embedding[2]
    for i in range(embeds):
        out[i] = weights[embedding[0] + token * embeds + i]
    if not add(stream, features, embedding[1], embeds, embedding[3], out, limits):
        return False
    for number in range(len(layers) if answer else mixing):
        layer = layers[number]
        if layer[KIND] == ATTENTION:
            exact = remember(stream, layer, features, weights, ring, place)
            exact = exact and attention(stream, layer, features, weights, ring, place, place, scratch, limits)
        else:
            exact = feed_forward(stream, layer, features, weights, scratch, limits)
        if not exact:
            return False
    if not answer:
        return True
    W, outs, width = unembedding[0], unembedding[3], unembedding[2]
    count = gather(stream, features, unembedding[1], width, index, x)
    W += 2 * outs
    return affine(weights, W, outs, index, x, count, W + width * outs, logits, total, limits)


@jit
def run(given, said, place, vocab, program, ring, stream, scratch, logits):  # type: ignore[no-untyped-def]
    """Read tokens, the first of which is the ``place``-th, then say ``len(said)`` more; how many of both are proved.

    ``logits``: rows for those after the last tokens that are given, as many as there are; what is said goes on in the
    last one. It ends early where the next token is not proved, and after a label that is no token.
    """
    rows, known = len(logits), len(given)
    for number in range(known + max(len(said) - 1, 0)):
        token = given[number] if number < known else said[number - known]
        row = min(number - known + rows, rows - 1)
        answer = row >= 0
        if not step(token, place + number, answer, program, ring, stream, scratch, logits[max(row, 0)]):
            return number
        if number + 1 < known or len(said) == 0:
            continue
        best = 0
        for label in range(1, logits.shape[1]):
            if logits[row, label] > logits[row, best]:
                best = label
        said[number + 1 - known] = best
        if best >= vocab:
            return number + 1
    return known + max(len(said) - 1, 0)


@jit
def best(logits):  # type: ignore[no-untyped-def]
    """The label with the largest logit, the first of equals, and by how much it exceeds the next: infinite if none."""
    label, largest, second = NO, logits[0], -np.inf
    for other in range(1, len(logits)):
        if logits[other] > largest:
            label, largest, second = np.int64(other), logits[other], largest
        elif logits[other] > second:
            second = logits[other]
    return label, largest - second
