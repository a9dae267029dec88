"""Random integers, layers, networks and inputs for the property tests."""

from dataclasses import replace

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from byheart.networks.exact import (
    Affine,
    Block,
    Embedding,
    ExactNetwork,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Positions,
    Residual,
    SoftmaxAttention,
    TokenSum,
    UniformAttention,
    integers,
)


def tries(count):
    """So many examples, none of them timed: the first call compiles."""
    return settings(max_examples=count, deadline=None)


around_limbs = st.sampled_from(
    [s * (2**k + e) for k in (23, 24, 25, 47, 48, 49, 72, 300) for e in (-1, 0, 1) for s in (-1, 1)]
)
small = st.integers(-3, 3)
entries = st.one_of(st.just(0), small, st.integers(-(2**30), 2**30), st.integers(-(2**300), 2**300), around_limbs)
machine = st.one_of(small, st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1, 2**24, -(2**48)]))
subnormal = st.sampled_from([5e-324, -5e-324, 2.0**-1060, -1e-310])
coarse = st.sampled_from([0.0, -0.0, 0.5, -0.75, 1.0, -2.0, 3.0, 2.0**40, -(2.0**60)])
floats = st.one_of(coarse, coarse, st.floats(allow_nan=False, allow_infinity=False), subnormal, st.just(1e300))
few_shifts = st.integers(0, 5)
shifts = st.one_of(st.just(0), few_shifts, st.integers(0, 100))


@st.composite
def matrices(draw, rows, columns, of=entries):
    flat = draw(st.lists(of, min_size=rows * columns, max_size=rows * columns))
    return integers(flat, (rows, columns))


@st.composite
def chains(draw, width, last=None, of=entries, shifts=shifts, most=3):
    """One to ``most`` affine maps that follow each other, from ``width`` values to ``last`` (or any number)."""
    layers = []
    for index in range(count := draw(st.integers(1, most))):
        outs = last if last is not None and index == count - 1 else draw(st.integers(1, 4))
        W, b = draw(matrices(outs, width, of)), draw(matrices(1, outs, of))[0]
        layers.append(Affine(W, b, shift=draw(shifts), relu=draw(st.booleans()), role=draw(st.sampled_from("uv"))))
        width = outs
    return tuple(layers)


@st.composite
def blocks(draw, width, of=entries):
    """One or two residual blocks on a stream of ``width``."""
    result = []
    for hidden in draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)):
        W_in, W_out = draw(matrices(hidden, width, of)), draw(matrices(width, hidden, of))
        result.append(Block(W_in, draw(matrices(1, hidden, of))[0], W_out, role=draw(st.sampled_from("uv"))))
    return Residual(tuple(result))


@st.composite
def mixing(draw, width, length, of=entries):
    """An attention layer that leaves rational numbers, of either kind, or a sum."""
    if draw(st.integers(0, 4)) == 0:
        return TokenSum()
    head, value = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    W_V, W_O = draw(matrices(value, width, of)), draw(matrices(width, value, of))
    if draw(st.booleans()):
        return UniformAttention(W_V, W_O)
    W_Q, W_K = draw(matrices(head, width, of)), draw(matrices(head, width, of))
    return HardmaxAttention(W_Q, W_K, W_V, W_O, causal=draw(st.booleans()))


@st.composite
def softmaxes(draw, width, scores=small, of=small, shifts=few_shifts):
    """Softmax attention: ``scores`` are the entries of W_Q and W_K, ``of`` those of W_V and W_O."""
    head, value = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    W_Q, W_K = draw(matrices(head, width, scores)), draw(matrices(head, width, scores))
    W_V, W_O = draw(matrices(value, width, of)), draw(matrices(width, value, of))
    return SoftmaxAttention(W_Q, W_K, W_V, W_O, score_shift=draw(shifts), shift=draw(shifts))


@st.composite
def readings(draw, of, vocab):
    """How a network begins: what it reads, its dimension, the layers for that, and the width of the stream."""
    reads = draw(st.sampled_from(["tokens", "embedding", "vectors"]))
    if reads == "vectors":
        dim = draw(st.integers(1, 3))
        return "vectors", dim, [], dim
    if reads == "tokens":
        return "tokens", 1, [], 1
    width = draw(st.integers(1, 3))
    return "tokens", 1, [Embedding(draw(matrices(vocab, width, of)))], width


@st.composite
def real_networks(draw, of=small, scores=small, shifts=few_shifts, vocab=4, most=3):
    """Softmax attention, once to ``most`` times, with all that may stand in front of it, between and behind it."""
    length, outputs = draw(st.integers(1, 5)), draw(st.sampled_from(["last", "every"]))
    inputs, dim, layers, width = draw(readings(of, vocab))
    if draw(st.booleans()):
        layers.append(Positions(draw(matrices(length, width, of))))
    for step in range(draw(st.integers(1, most))):
        match draw(st.sampled_from(["nothing", "residual", "blocks", "chain", "uniform"])):
            case "residual":
                layers.append(FeedForward(draw(chains(width, width, of, shifts, most=2)), residual=True))
            case "blocks":
                layers.append(draw(blocks(width, of)))
            case "chain":
                layers.append(FeedForward(draw(chains(width, None, of, shifts, most=2))))
                width = len(layers[-1].layers[-1].W)
            case "uniform":
                layers.append(UniformAttention(draw(matrices(2, width, of)), draw(matrices(width, 2, of))))
        layers.append(replace(draw(softmaxes(width, scores, of, shifts)), name=f"softmax_{step}"))
    if width > 1 or draw(st.booleans()):
        layers.append(FeedForward(draw(chains(width, 1, of, shifts, most=2)), name="end"))
    return ExactNetwork(tuple(layers), inputs=inputs, outputs=outputs, length=length, dim=dim)


@st.composite
def networks(draw, of=entries, shifts=shifts, mixing=mixing, vocab=4):
    """All kinds of layers in any order in which they fit, ending with one coordinate."""
    length, outputs = draw(st.integers(1, 4)), draw(st.sampled_from(["last", "every"]))
    inputs, dim, layers, width = draw(readings(of, vocab))
    for kind in draw(
        st.lists(st.sampled_from(["positions", "chain", "residual", "blocks", "mixing", "mixing"]), max_size=4)
    ):
        match kind:
            case "positions":
                layers.append(Positions(draw(matrices(length, width, of))))
            case "residual":
                layers.append(FeedForward(draw(chains(width, width, of, shifts)), residual=True))
            case "blocks":
                layers.append(draw(blocks(width, of)))
            case "chain":
                layers.append(FeedForward(draw(chains(width, None, of, shifts)), name=draw(st.sampled_from("ab"))))
                width = len(layers[-1].layers[-1].W)
            case "mixing":
                layers.append(draw(mixing(width, length, of)))
    if outputs == "last" and draw(st.booleans()):
        layers.append(Flatten())
        width *= length
    if width > 1 or draw(st.booleans()):
        layers.append(FeedForward(draw(chains(width, 1, of, shifts, most=2)), name="end"))
    return ExactNetwork(tuple(layers), inputs=inputs, outputs=outputs, length=length, dim=dim)


@st.composite
def inputs_of(draw, network, numbers=machine, floats=floats, vocab=4, most=5):
    """One to ``most`` sequences made of few different tokens, so that tokens repeat and scores tie."""
    N, n = draw(st.integers(1, most)), network.length
    which = draw(st.lists(st.integers(0, 2), min_size=N * n, max_size=N * n))
    if network.inputs == "vectors":
        pool = draw(st.lists(floats, min_size=3 * network.dim, max_size=3 * network.dim))
        return np.array(pool).reshape(3, -1)[which].reshape(N, n, network.dim)
    embedded = bool(network.layers) and isinstance(network.layers[0], Embedding)
    pool = draw(st.lists(st.integers(0, vocab - 1) if embedded else numbers, min_size=3, max_size=3))
    return np.array(pool, dtype=np.int64)[which].reshape(N, n)
