"""The compiled loops of :mod:`.transformer.decoder`, where their exactness is argued.

All numbers of a network lie in one array, ``weights``, all features that its sublayers read and write in another,
``features``; ``layers`` has a row for each sublayer, that says where (see the columns below). Matrices are stored with
one row for each *input*, so that inputs that are 0 cost nothing.
"""

import numpy as np

from byheart.networks.exact.kernels import jit

ATTENTION, FEED_FORWARD = 0, 1
NONE, DENSE, DIAGONAL = 0, 1, 2
"""Kinds of ``up``."""
KIND, GROUPS, UNITS, READS, WIDTH, WRITES, OUT, TARGETS, RELU, BIASED, W_IN, W_OUT = range(12)
"""Of all sublayers: features read (an index into ``features``, and how many a group), written, and where to.

``TARGETS``: an index into ``features``, 0 if all features that are written to are different; else how many there are,
and for each its number, how often it is written to, and which outputs go there."""
UP, UP_READS, UP_WIDTH, W_UP, UP_BIASED = range(12, 17)
"""Of feed-forward sublayers."""
RING, SLOTS, HEADS, MOST_SEEN = range(12, 16)
"""Of attention: where its ring is, how many positions it has, an index into ``features``; the largest input."""
COLUMNS = 17
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
    terms_above = terms_below = 0
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
                    weights, W + o, outs, index, x, count, bias + o if bias >= 0 else -1, limits
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
    part, high, far, found = 4 * (count + 1) / limits[BITS], limits[HIGH], limits[FAR], 0
    for u in range(units):
        error = total[u] * part
        if value[u] + error <= -far and total[u] <= limits[LARGEST]:
            continue
        if value[u] - error < high or total[u] > limits[LARGEST]:
            exactly, exact, rarer = closely(
                weights, W + u, units, index, x, count, bias + u if bias >= 0 else -1, limits
            )
            # A sum may become infinite on the way, and is then beyond the mark; what has the other sign must not, too.
            sure = value[u] - error >= high or value[u] + error <= -far
            if total[u] > limits[LARGEST] and sure and rarer <= limits[LARGEST]:
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
    found = 0
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
        above, below, least, terms_above, terms_below = 0.0, 0.0, np.inf, 0, 0
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
def feed_forward(stream, layer, features, weights, scratch, limits):  # type: ignore[no-untyped-def]
    """One feed-forward sublayer; False if something might be rounded."""
    index, on, x, hidden, up, out, total = scratch
    groups, units, width, outs = layer[GROUPS], layer[UNITS], layer[WIDTH], layer[OUT]
    for g in range(groups):
        count = gather(stream, features, layer[READS] + g * width, width, index, x)
        # Every matrix comes with two rows of units before it, and its bias after it.
        W = layer[W_IN] + g * units * (width + 2 + layer[BIASED]) + 2 * units
        bias = W + width * units if layer[BIASED] else -1
        if layer[RELU]:
            if not affine(weights, W, units, index, x, count, bias, hidden, total, limits):
                return False
            found = 0
            for u in range(units):
                if hidden[u] > 0:
                    on[found], hidden[found] = u, hidden[u]
                    found += 1
        else:
            found = switched(weights, W, units, index, x, count, bias, on, hidden, total, limits)
            if found < 0:
                return False
            hidden[:found] = 1.0
        if layer[UP] == DENSE:
            reads = layer[UP_WIDTH]
            count = gather(stream, features, layer[UP_READS] + g * reads, reads, index, x)
            W = layer[W_UP] + g * units * (reads + 2 + layer[UP_BIASED]) + 2 * units
            bias = W + reads * units if layer[UP_BIASED] else -1
            if not affine(weights, W, units, index, x, count, bias, up, total, limits):
                return False
        elif layer[UP] == DIAGONAL:
            first = layer[UP_READS] + g * units
            for k in range(found):
                up[on[k]], exact = product(stream[features[first + on[k]]], weights[layer[W_UP] + g * units + on[k]], limits)
                if not exact:
                    return False
        if layer[UP] != NONE:
            kept = 0
            for k in range(found):
                value, exact = product(hidden[k], up[on[k]], limits)
                if not exact:
                    return False
                if value != 0:
                    on[kept], hidden[kept] = on[k], value
                    kept += 1
            found = kept
        W = layer[W_OUT] + g * outs * (units + 2) + 2 * outs
        if not affine(weights, W, outs, on, hidden, found, -1, out[g * outs :], total, limits):
            return False
    return add(stream, features, layer[WRITES], groups * outs, layer[TARGETS], out, limits)


@jit
def attention(stream, layer, features, weights, ring, slot, scratch, limits):  # type: ignore[no-untyped-def]
    """One attention sublayer whose weights are constant; False if something might be rounded.

    ``features`` has for every row of the values: how many offsets have a weight, and where W_V's row is, how many of
    its entries are not 0; then the offsets, in slots, and the entries' inputs. ``weights`` has the same, numbers.
    """
    index, _, x, mixed, _, out, total = scratch
    width, slots = layer[WIDTH], layer[SLOTS]
    first = layer[RING]
    for i in range(width):
        value = stream[features[layer[READS] + i]]
        if abs(value) > weights[layer[MOST_SEEN]]:
            return False
        ring[first + slot * width + i] = value
    at, number = layer[HEADS], layer[W_IN]
    found = 0
    for row in range(layer[UNITS]):
        offsets, entries = features[at], features[at + 1]
        above, below, least, terms_above, terms_below = 0.0, 0.0, np.inf, 0, 0
        for k in range(offsets):
            place = slot - features[at + 2 + k]
            place = first + (place + slots if place < 0 else place) * width
            for j in range(entries):
                x[j] = ring[place + features[at + 2 + offsets + j]]
            value, exact = x[0], True
            if entries != 1 or weights[number + offsets] != 1.0:
                for j in range(entries):
                    index[j] = j
                value, exact, _ = closely(weights, number + offsets, 1, index, x, entries, -1, limits)
            if exact and weights[number + k] != 1.0:
                value, exact = product(weights[number + k], value, limits)
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
        at, number = at + 2 + offsets + entries, number + offsets + entries
    for row in range(layer[UNITS]):
        if mixed[row] != 0:
            index[found], mixed[found] = row, mixed[row]
            found += 1
    outs = layer[OUT]
    if not affine(weights, layer[W_OUT] + 2 * outs, outs, index, mixed, found, -1, out, total, limits):
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
            slot = place % layer[SLOTS]
            exact = attention(stream, layer, features, weights, ring, slot, scratch, limits)
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
def read(tokens, place, all_logits, program, ring, stream, scratch):  # type: ignore[no-untyped-def]
    """Read tokens, and work out the logits after the last ``len(all_logits)``; how many tokens were read."""
    for number in range(len(tokens)):
        row = number - len(tokens) + len(all_logits)
        if not step(
            tokens[number], place + number, row >= 0, program, ring, stream, scratch, all_logits[max(row, 0)]
        ):
            return number
    return len(tokens)


@jit
def say(token, place, said, vocab, program, ring, stream, scratch, logits):  # type: ignore[no-untyped-def]
    """What follows a token, which is the ``place``-th, into ``said``; how many tokens.

    Fewer than asked for if the next is not proved, or the last one is a label that is no token.
    """
    for number in range(len(said)):
        if not step(token, place + number, True, program, ring, stream, scratch, logits):
            return number
        token = 0
        for label in range(1, len(logits)):
            if logits[label] > logits[token]:
                token = label
        said[number] = token
        if token >= vocab:
            return number + 1
    return len(said)
