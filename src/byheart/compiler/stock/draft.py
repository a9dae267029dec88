"""A stock model, put together: embedding, layers (hash, digits and columns, tables, reading), configuration."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.stock.address import stride_of
from byheart.compiler.stock.architecture import Architecture
from byheart.compiler.stock.dimensions import StockSizes
from byheart.compiler.stock.front import CARRIED, GRAIN, Hash
from byheart.compiler.stock.looking import POSITIONS, THETA, distances, look_back
from byheart.compiler.stock.read import reading
from byheart.compiler.stock.spread import TEMPORARY, spread
from byheart.compiler.stock.stream_map import PRESET, StreamMap
from byheart.compiler.stock.table import Tables
from byheart.compiler.stock.units import HEAD, HUGE, ROUND, Layer, ones, tensors, write_lines
from byheart.tasks.contexts import Contexts


class Tokens:
    """The tokens of a stock model: those of the questions, and perhaps one more for a token that is missing.

    Before the start of a text tokens are missing. The end token stands for them; if there is none, one more token does.
    """

    def __init__(self, contexts: Contexts) -> None:
        sequence = np.searchsorted(contexts.starts, contexts.places, side="right") - 1
        is_missing = bool((contexts.places - contexts.starts[sequence] + 1 < contexts.window).any())
        self.end = contexts.end
        self.count = max(contexts.vocab, contexts.label_count)
        self.first = contexts.end
        """The token that stands for missing ones; None if none is missing."""
        if is_missing and self.first is None:
            self.first, self.count = self.count, self.count + 1


def assemble(
    architecture: Architecture, sizes: StockSizes, code: Code, hashing: Hash, contexts: Contexts, tables: Tables
) -> tuple[dict[str, NDArray[Any]], dict[str, Any], int]:
    """Return the tensors, the configuration, and the number of the first layer with tables."""
    at, tokens, looks = StreamMap(sizes.width), Tokens(contexts), distances(contexts.window)
    between = architecture.tables(sizes, at)
    chain, place = layers(sizes, at, code, hashing, looks, between, marked=tokens.first is not None)
    assert len(chain) == sizes.layers
    table = embedding(sizes, at, code, hashing, contexts.label_count, tokens.first)
    blocks = architecture.blocks(sizes, at, tables, place)
    weights = tensors(chain, table, sizes.units, (at.answer, at.bias), blocks)
    return weights, {**architecture.config(sizes, place), **_shared_config(sizes, tokens)}, place


def layers(
    sizes: StockSizes,
    at: StreamMap,
    code: Code,
    hashing: Hash,
    distances: list[int],
    tables: list[Layer],
    *,
    marked: bool,
) -> tuple[list[Layer], int]:
    """Return all layers, and the number of the first of ``tables``, which have attention only. Set ``at.columns``.

    ``marked``: a first token stands for missing ones.
    """
    first = at.first if marked else None
    chain = [
        _hash_layer(at.codes, distance, mix, first) for distance, mix in zip(distances, hashing.mixes, strict=True)
    ]
    before, powers = spread(sizes, at, stride_of(code))
    rest = [*before, *tables, *reading(at, sizes.units, powers, code.longest, layered=sizes.layered)]
    for layer in rest:
        look_back(layer, 0)
    return chain + rest, len(chain) + len(before)


def around(sizes: StockSizes, steps: int) -> int:
    """Count the layers besides the tables."""
    at = StreamMap(sizes.width)
    before, powers = spread(sizes, at, 1)
    return steps + len(before) + len(reading(at, sizes.units, powers, 1, layered=sizes.layered))


def _hash_layer(codes: list[int], distance: int, mix: NDArray[np.int64], first: int | None) -> Layer:
    """Return the layer that adds the codes of the token a distance ago, modulo 1."""
    layer = Layer()
    look_back(layer, distance, first)
    for carried in range(CARRIED):
        layer.carry({codes[carried]: 1}, dict(zip(codes, mix[:, carried].tolist(), strict=True)))
    layer.rounded({code: {code: 1} for code in codes}, {code: {code: -1} for code in codes})
    return layer


def embedding(
    sizes: StockSizes, at: StreamMap, code: Code, hashing: Hash, labels: int, first: int | None
) -> NDArray[np.float64]:
    """Return the embedding [vocab, width]: the hash's codes, and the lines of ``codes`` for Y from −2^(L−1) on."""
    table = np.zeros((len(hashing.codes), sizes.width))
    table[:, : ones(sizes.width)] = HUGE
    table[:, at.x[:PRESET]] = -ROUND * TEMPORARY
    table[:, at.codes] = hashing.codes * 2.0**-GRAIN
    write_lines(table, code, labels, at.answer, at.bias)
    if first is not None:
        table[first, at.first] = 1.0
    return table


def _shared_config(sizes: StockSizes, tokens: Tokens) -> dict[str, Any]:
    """Return the configuration's arguments that all architectures share.

    Attention is plain ("eager"): on GPUs, PyTorch's fused kernel for float32 is not exact even if softmax is one-hot.
    """
    return {
        "vocab_size": tokens.count,
        "hidden_size": sizes.width,
        "intermediate_size": sizes.units,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "max_position_embeddings": POSITIONS,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
        "tie_word_embeddings": True,
        "bos_token_id": tokens.first,
        "eos_token_id": tokens.end,
        "dtype": "float32",
        "attn_implementation": "eager",
    }
