"""One attempt at a stock network: draw a hash, settle it, solve for the words, put the network together."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.layouts import Attempt, Layout, Resources
from byheart.compiler.stock.address import stride_of
from byheart.compiler.stock.architectures import layers_around
from byheart.compiler.stock.dimensions import BITS, PRESET, StockSizes, StreamMap
from byheart.compiler.stock.front import GRAIN, POSITIONS, THETA, Hash, Tokens, distances, hash_layer, look_back
from byheart.compiler.stock.recipe import StockRecipe, first_recipe, next_recipe
from byheart.compiler.stock.settling import settle
from byheart.compiler.stock.solve import solve_tables
from byheart.compiler.stock.spread import TEMPORARY
from byheart.compiler.stock.units import HEAD, HUGE, ROUND, ones, tensors, write_lines
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks.contexts import Contexts


def attempt(recipe: StockRecipe, contexts: Contexts, resources: Resources) -> Attempt:
    """Follow a recipe. Raise Unsolvable if it fails."""
    code, sizes, rng = recipe.code, recipe.sizes, recipe.rng
    hashing, addresses = settle(contexts, code, sizes, rng)
    tables = solve_tables(addresses, code, contexts.labels, sizes, rng, resources.report)
    weights, config, _ = assemble(sizes, code, hashing, contexts, tables)
    about = {"code_lengths": code.lengths.tolist(), **contexts.notes}
    network = StockNetwork(config, weights, about=about, files=resources.files)
    return Attempt(network, choices(contexts, code, sizes, recipe.attempt + 1))


STOCK = Layout(first_recipe, attempt, next_recipe)


def choices(contexts: Contexts, code: Code, sizes: StockSizes, attempts: int) -> dict[str, object]:
    """Return the choices that ``Built`` states, and the planned parameters."""
    planned = sizes.parameters(Tokens(contexts).count)
    return {
        "window": contexts.window,
        "load": code.total / (sum(BITS) * sizes.blocks * sizes.cells),
        "words": len(BITS) * sizes.blocks * sizes.cells,
        "layers": sizes.layers,
        "units": sizes.units,
        **sizes.noted,
        "parameters_planned": planned,
        "bits_per_parameter_planned": contexts.order0_bits / planned,
        "attempts": attempts,
    }


def assemble(
    sizes: StockSizes, code: Code, hashing: Hash, contexts: Contexts, tables: NDArray[np.int64]
) -> tuple[dict[str, NDArray[Any]], dict[str, Any], int]:
    """Return the tensors, the configuration, and the number of the first layer with tables."""
    at, tokens = StreamMap(sizes.width), Tokens(contexts)
    first = None if tokens.first is None else at.first
    looks = zip(distances(contexts.window), hashing.mixes, strict=True)
    chain = [hash_layer(at.codes, distance, mix, first) for distance, mix in looks]
    before, after = layers_around(sizes, at, stride_of(code), code.longest)
    place = len(chain) + len(before)
    for layer in (rest := [*before, *sizes.table_layers(at), *after]):
        look_back(layer, 0)
    chain += rest
    assert len(chain) == sizes.layers
    table = _embedding(sizes, at, code, hashing, contexts.label_count, tokens.first)
    instead = sizes.feed_forward(at, tables, place)
    weights = tensors(chain, table, sizes.units, (at.answer, at.bias), instead)
    return weights, {**sizes.config(place), **_shared_config(sizes, tokens)}, place


def _embedding(
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
