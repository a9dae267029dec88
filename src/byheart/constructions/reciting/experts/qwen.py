"""Questions in, a stock Qwen2-MoE that answers them all out."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.built import Built
from byheart.constructions.reciting.codes import Code, make_code
from byheart.constructions.reciting.experts import network
from byheart.constructions.reciting.experts.address import Addresses
from byheart.constructions.reciting.experts.features import Features
from byheart.constructions.reciting.experts.planning import plan
from byheart.constructions.reciting.experts.settling import settled
from byheart.constructions.reciting.experts.sizes import BITS, GATE, UP, Sizes
from byheart.constructions.reciting.experts.table import Tables, experts, negative
from byheart.constructions.reciting.rectangular import NAME, Settings
from byheart.constructions.reciting.sizes import Unsolvable
from byheart.constructions.reciting.uniform import stock
from byheart.constructions.reciting.uniform.address import Hash
from byheart.constructions.reciting.uniform.config import shared
from byheart.constructions.reciting.uniform.looking import POSITIONS, REACH, distances
from byheart.constructions.reciting.uniform.tokens import Tokens
from byheart.errors import BadInput
from byheart.networks.stock.network import StockNetwork
from byheart.progress import Report
from byheart.tasks.contexts import Contexts

if TYPE_CHECKING:
    from byheart.constructions.reciting.uniform.solving import Questions

ROUNDS = 20
DRAWS = 2
THREADS = 2


def compile_experts(
    contexts: Contexts,
    settings: Settings,
    *,
    seed: int = 0,
    files: Mapping[str, bytes] | None = None,
    report: Report | None = None,
) -> Built:
    """A stock Qwen2-MoE that gives every question of ``contexts`` its answer; ``files`` are a tokenizer's."""
    began = time.perf_counter()
    if not len(contexts):
        raise BadInput("there is no question to answer; expected at least one")
    code = make_code(contexts.labels, contexts.label_count)
    _check(contexts, settings, code)
    tokens, looks = Tokens(contexts), distances(contexts.window)
    attempts = 0
    for round_ in range(ROUNDS):
        sizes = plan(code.total, len(contexts), tokens.count, len(looks), deviations=0.9 + 0.2 * round_)
        for number in range(DRAWS):
            attempts += 1
            rng = np.random.default_rng([seed, round_, number])
            try:
                hashing, found = settled(contexts, code, sizes, tokens.count, tokens.first or 0, rng)
                tables = _tables(found, code, contexts.labels, sizes, rng, report)
            except Unsolvable:
                continue
            weights, config = assembled(sizes, code, hashing, looks, tokens, tables, contexts.label_count)
            about = {"code_lengths": code.lengths.tolist(), **contexts.notes}
            made = StockNetwork(config, weights, about=about, files=files or {})
            noted = chosen(contexts, code, sizes, tokens.count, attempts)
            return Built(NAME, settings, made, time.perf_counter() - began, seed, contexts, noted)
    raise BadInput(f"no table was found in {attempts} attempts; another --seed may do")


def _check(contexts: Contexts, settings: Settings, code: Code) -> None:
    """BadInput if the questions do not fit into such a network, whatever its size."""
    if settings.precision != "float32" or settings.words is not None:
        raise BadInput("the layout experts is for float32 and words of its own sizes; omit precision and words")
    if contexts.window > 2 * REACH:
        raise BadInput(f"the window is {contexts.window}; expected at most {2 * REACH} in a network of experts")
    if code.low or code.longest > BITS[GATE] - 1:
        raise BadInput(f"{contexts.label_count} labels are too many for a network of experts; expected at most 2048")
    if np.diff(contexts.starts).max() >= POSITIONS:
        raise BadInput(f"a text has {np.diff(contexts.starts).max()} tokens; expected less than {POSITIONS}")


def chosen(contexts: Contexts, code: Code, sizes: Sizes, vocab: int, attempts: int) -> dict[str, object]:
    """What is worth knowing of a network, and what was planned."""
    planned = sizes.parameters(vocab)
    return {
        "window": contexts.window,
        "load": code.total / (sum(BITS) * sizes.experts * sizes.cells),
        "words": len(BITS) * sizes.experts * sizes.cells,
        "layers": sizes.layers,
        "units": sizes.units,
        "experts": sizes.experts,
        "expert_units": sizes.rows,
        "parameters_planned": planned,
        "bits_per_parameter_planned": contexts.order0_bits / planned,
        "attempts": attempts,
    }


def assembled(
    sizes: Sizes,
    code: Code,
    hashing: Hash,
    looks: list[int],
    tokens: Tokens,
    tables: Tables,
    labels: int,
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The tensors and the configuration."""
    at = Features(sizes.width)
    marked = tokens.first is not None
    layers, place = network.layers(sizes, at, code, hashing, looks, marked=marked)
    assert len(layers) == sizes.layers
    weights = stock.tensors(
        layers,
        network.embedding(sizes, at, code, hashing, labels, tokens.first),
        sizes.units,
        (at.answer, at.bias),
        huge=network.HUGE,
        instead={place: experts(sizes, at, tables)},
    )
    return weights, _config(sizes, tokens, place)


def _config(sizes: Sizes, tokens: Tokens, place: int) -> dict[str, Any]:
    """Qwen2MoeConfig's arguments; ``place`` is the layer of experts."""
    return {
        "architectures": ["Qwen2MoeForCausalLM"],
        "model_type": "qwen2_moe",
        "qkv_bias": False,
        "use_sliding_window": False,
        "mlp_only_layers": [number for number in range(sizes.layers) if number != place],
        "decoder_sparse_step": 1,
        "num_experts": sizes.experts,
        "num_experts_per_tok": 1,
        "norm_topk_prob": True,
        "moe_intermediate_size": sizes.rows,
        "shared_expert_intermediate_size": 0,
        **shared(width=sizes.width, units=sizes.units, layers=sizes.layers, tokens=tokens),
    }


def _tables(
    found: Addresses,
    code: Code,
    labels: NDArray[np.int64],
    sizes: Sizes,
    rng: np.random.Generator,
    report: Report | None,
) -> Tables:
    """Solve every table of every expert; raises Unsolvable."""
    from byheart.constructions.reciting.experts.solving import solve

    count = len(BITS) * sizes.experts
    shelf = len(BITS) * found.expert + found.kind
    order = np.argsort(shelf, kind="stable")
    ends = np.searchsorted(shelf[order], np.arange(count + 1))
    less = negative(sizes).ravel()

    def solved(number: int, stream: np.random.Generator) -> NDArray[np.int64]:
        index = order[ends[number] : ends[number + 1]]
        expert, kind = divmod(number, len(BITS))
        questions = questions_of(found, index, code, labels, sizes, expert, kind)
        return solve(questions, kind, less, stream)

    words = np.zeros((count, sizes.cells), dtype=np.int64)
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for number, table in enumerate(pool.map(solved, range(count), rng.spawn(count))):
                words[number] = table
                if report is not None:
                    report(number + 1, count)
        except Unsolvable:
            pool.shutdown(cancel_futures=True)
            raise
    up, down, gate = words.reshape(sizes.experts, len(BITS), sizes.rows, sizes.words).transpose(1, 0, 2, 3)
    return Tables(up, down, gate)


def questions_of(
    found: Addresses,
    index: NDArray[np.int64],
    code: Code,
    labels: NDArray[np.int64],
    sizes: Sizes,
    expert: int,
    kind: int,
) -> "Questions":
    """What the questions ``index``, all those of one table, ask of it."""
    from byheart.constructions.reciting.uniform.solving import Questions

    return Questions(
        cells=found.cells(sizes, index),
        before=np.full(len(index), (expert - sizes.experts // 2) * (kind == UP)),
        offset=found.offset[index],
        word=code.words[labels[index]],
        length=code.lengths[labels[index]],
        bits=BITS[kind],
    )
