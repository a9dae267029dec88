"""Small float Transformers with whole numbers as weights, for the tests of this folder."""

import numpy as np

from byheart.networks.transformer import GatedBlocks, Spec, WindowAttention


def proved_logits(program, tokens, lanes):
    """The logits [T, C] after each of ``tokens`` by compiled code with so many lanes; nan where they are not proved."""
    logits = np.full((len(tokens), program.spec.labels), np.nan)
    sequence, places = np.array([0, len(tokens)]), np.arange(len(tokens))
    _, margins, _ = program.read(np.array(tokens), 0, sequence, places, 0, program.workspace(lanes), logits)
    logits[np.isnan(margins)] = np.nan
    return logits


def hand_built(precision="float32"):
    """ω = 3, C = 2: adds ten times the last token's code to this one's, takes 10 off, and compares.

    Codes are 1, 2, 4. The logits are (y, 5 − y) with y = max(0, x_t + 10·x_{t−1} − 10).
    """
    attention = WindowAttention("previous", reads=(0,), writes=(1,), window=2, dilation=1, heads=2, d_head=1)
    ffn = GatedBlocks("less", "relu", reads=(1,), writes=(2,), units=1)
    spec = Spec(3, 2, 2, 3, precision, embeds=(0,), unembeds=(2,), sublayers=(attention, ffn))
    tensors = {
        "embedding.W_E": [[1], [2], [4]],
        "previous.W_Q": [[0], [0]],
        "previous.W_K": [[0], [0]],
        "previous.W_V": [[1], [1]],
        "previous.W_O": [[1, 10]],
        "previous.bias": [[0, -1e4], [-1e4, 0]],
        "less.W_in": [[[1]]],
        "less.b_in": [[-10]],
        "less.W_out": [[[1]]],
        "unembedding.W_U": [[1], [-1]],
        "unembedding.b_U": [0, 5],
    }
    return spec, {name: np.array(tensor, precision) for name, tensor in tensors.items()}


def drawn(rng, precision="float64"):
    """Two attention sublayers, and feed-forward ones of all kinds; all values stay whole numbers below 2^53."""
    layers = (
        WindowAttention("near", reads=(0, 1), writes=(2, 4, 3), window=3, dilation=1, heads=3, d_head=2),
        GatedBlocks("alone", "relu", reads=(2, 3), writes=(3, 2), units=2, groups=2),
        WindowAttention("far", reads=(2, 3, 4), writes=(5, 6), window=2, dilation=3, heads=2, d_head=3),
        GatedBlocks("wide", "relu", reads=(5, 2, 6, 0), writes=(7, 8, 8, 9), units=3, groups=2),
        GatedBlocks("dense", "relu", (7,), (10, 11), units=2, bias=False, up="dense", up_reads=(8, 9, 5), up_bias=True),
        GatedBlocks("diagonal", "sigmoid", (7, 8), (12, 12), units=2, groups=2, up="diagonal", up_reads=(8, 9, 10, 11)),
    )
    spec = Spec(11, 5, 6, 13, precision, embeds=(0, 1), unembeds=(12, 10, 3), sublayers=layers)
    tensors = {name: rng.integers(-3, 4, shape).astype(precision) for name, shape in spec.shapes().items()}
    for layer in layers[0], layers[2]:
        heads = np.arange(layer.heads)[:, None] % layer.window
        tensors[f"{layer.name}.bias"] = np.where(heads == np.arange(layer.window), 0.0, -1e4).astype(precision)
        tensors[f"{layer.name}.W_Q"] *= 0
    for name in "diagonal.W_gate", "diagonal.b_gate":  # a whole number and a half times 2^12: σ is 0 or 1
        tensors[name] = ((2 * tensors[name] + (name[-6:] == "b_gate")) * 2.0**11).astype(precision)
    return spec, tensors


def evaluated(spec, tensors, tokens):
    """Logits [T, C] after each of ``tokens``, in loops over positions, offsets, heads, groups and units."""
    t = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    streams = np.zeros((len(tokens), spec.stream))
    streams[:, spec.embeds] = t["embedding.W_E"][tokens]
    for layer in spec.sublayers:
        one = _attention if isinstance(layer, WindowAttention) else _feed_forward
        parts = {name: t[f"{layer.name}.{name}"] for name in layer.shapes()}
        streams = streams + np.array([one(layer, parts, streams, place) for place in range(len(tokens))])
    return streams[:, spec.unembeds] @ t["unembedding.W_U"].T + t["unembedding.b_U"]


def _attention(layer, t, streams, place):
    offsets = range(0, layer.window * layer.dilation, layer.dilation)
    seen = [streams[place - k][list(layer.reads)] if k <= place else np.zeros(len(layer.reads)) for k in offsets]
    mixed = []
    for head in range(layer.heads):
        rows = slice(head * layer.d_head, (head + 1) * layer.d_head)
        scores = [t["W_Q"][rows] @ seen[0] @ (t["W_K"][rows] @ x) / layer.d_head**0.5 for x in seen] + t["bias"][head]
        weights = np.exp(scores - scores.max())
        mixed.extend(sum(w * (t["W_V"][rows] @ x) for w, x in zip(weights / weights.sum(), seen, strict=True)))
    return _placed(layer, t["W_O"] @ mixed, streams)


def _feed_forward(layer, t, streams, place):
    reads, ups = (np.reshape(f, (layer.groups, -1)).astype(int) for f in (layer.reads, layer.up_reads))
    first = "in" if layer.up == "none" else "gate"
    out = []
    for g in range(layer.groups):
        hidden = t[f"W_{first}"][g] @ streams[place][reads[g]] + (t[f"b_{first}"][g] if layer.bias else 0)
        with np.errstate(over="ignore"):
            hidden = 1 / (1 + np.exp(-hidden)) if layer.act == "sigmoid" else np.maximum(hidden, 0)
        if layer.up == "dense":
            hidden = hidden * (t["W_up"][g] @ streams[place][ups[g]] + (t["b_up"][g] if layer.up_bias else 0))
        elif layer.up == "diagonal":
            hidden = hidden * t["W_up"][g] * streams[place][ups[g]]
        out.extend(t["W_out"][g] @ hidden)
    return _placed(layer, out, streams)


def _placed(layer, values, streams):
    added = np.zeros(streams.shape[1])
    np.add.at(added, list(layer.writes), values)
    return added
