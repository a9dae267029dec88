"""Questions in, a stock Llama that answers them all out."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.built import Built
from byheart.constructions.reciting.codes import Code, make_code
from byheart.constructions.reciting.rectangular import NAME, Settings
from byheart.constructions.reciting.sizes import Unsolvable
from byheart.constructions.reciting.uniform import network, stock
from byheart.constructions.reciting.uniform.address import Addresses, addresses, counts, draw, placed
from byheart.constructions.reciting.uniform.config import shared
from byheart.constructions.reciting.uniform.looking import POSITIONS, REACH, distances
from byheart.constructions.reciting.uniform.sizes import LANES, WORD, Sizes, plan
from byheart.constructions.reciting.uniform.tokens import Tokens
from byheart.errors import BadInput
from byheart.networks.stock.network import StockNetwork
from byheart.progress import Report
from byheart.tasks.contexts import Contexts

DRAWS = 12
"""Hashes that are tried for one size, cheaply: only loads are looked at."""
ATTEMPTS = 12
DEVIATIONS = 2.2
"""Standard deviations above the mean that a bit plane has room for, at first."""
THREADS = 2


def compile_uniform(
    contexts: Contexts,
    settings: Settings,
    *,
    seed: int = 0,
    files: Mapping[str, bytes] | None = None,
    report: Report | None = None,
) -> Built:
    """A stock Llama that gives every question of ``contexts`` its answer; ``files`` are a tokenizer's."""
    began = time.perf_counter()
    if settings.precision != "float32" or settings.words not in (None, WORD):
        raise BadInput(f"the layout uniform is for float32 and {WORD}-bit words; omit precision and words")
    code, tokens, looks = _code(contexts), Tokens(contexts), distances(contexts.window)
    attempts = 0
    for round_ in range(ATTEMPTS):
        sizes = plan(code.total, len(contexts), tokens.count, len(looks), DEVIATIONS + 0.3 * round_)
        for number in range(DRAWS):
            attempts += 1
            rng = np.random.default_rng([seed, round_, number])
            hashing = draw(tokens.count, len(looks), rng)
            found = addresses(contexts, hashing, looks, tokens.first or 0, sizes)
            try:
                tables = _tables(found, code, contexts.labels, sizes, rng, report)
            except Unsolvable:
                continue
            layers = network.layers(sizes, code, hashing, looks, marked=tokens.first is not None, tables=tables)
            embedding = network.embedding(sizes, code, hashing, contexts.label_count, tokens.first)
            at = network.Features(sizes)
            kept = stock.tensors(layers, embedding, sizes.units, (at.answer, at.bias))
            made = StockNetwork(_config(sizes, tokens), kept, about=contexts.notes, files=files or {})
            load = code.total / (2 * sizes.blocks * sizes.cells * WORD)
            chosen = {"window": contexts.window, "load": load, "layers": sizes.layers, "attempts": attempts}
            return Built(NAME, settings, made, time.perf_counter() - began, seed, contexts, chosen)
    raise BadInput(f"no table was found in {attempts} attempts; another --seed may do")


def _code(contexts: Contexts) -> Code:
    """That of the labels; BadInput if a uniform network cannot have the contexts."""
    code = make_code(contexts.labels, contexts.label_count)
    if contexts.window > 2 * REACH:
        raise BadInput(f"the window is {contexts.window}; expected at most {2 * REACH} in a uniform network")
    if code.low or code.longest > WORD - 6:
        raise BadInput(f"{contexts.label_count} labels are too many for a uniform network; expected at most 2048")
    if np.diff(contexts.starts).max() >= POSITIONS:
        raise BadInput(f"a text has {np.diff(contexts.starts).max()} tokens; expected less than {POSITIONS}")
    return code


def planned_parameters(contexts: Contexts, *, times: float = 1.0) -> int:
    """Parameters of the network that :func:`compile_uniform` tries first; nothing is solved.

    For so many ``times`` as many questions as there are: of a sample, say. They are the network's own if one of the
    first ``DRAWS`` hashes leaves every question with an answer.
    """
    code, tokens = _code(contexts).repeated(times), Tokens(contexts)
    questions, looks = round(times * len(contexts)), len(distances(contexts.window))
    return plan(code.total, questions, tokens.count, looks, DEVIATIONS).parameters(tokens.count)


def _config(sizes: Sizes, tokens: Tokens) -> dict[str, Any]:
    """LlamaConfig's arguments."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "mlp_bias": False,
        **shared(width=sizes.width, units=sizes.units, layers=sizes.layers, tokens=tokens),
    }


def _tables(
    found: Addresses,
    code: Code,
    labels: NDArray[np.int64],
    sizes: Sizes,
    rng: np.random.Generator,
    report: Report | None,
) -> network.Tables:
    """Solve every table of every block; raises Unsolvable, at once where some plane has more questions than words."""
    from byheart.constructions.reciting.uniform.solving import Questions, solve

    shelf = 2 * found.block + found.down
    _refuse_crowds(shelf, found.offset, code.lengths[labels], sizes)
    cells, active = _cells(found, sizes)
    _refuse_twins(shelf, cells)
    order = np.argsort(shelf, kind="stable")
    ends = np.searchsorted(shelf[order], np.arange(2 * sizes.blocks + 1))
    parts = []
    for number in range(2 * sizes.blocks):
        index = order[ends[number] : ends[number + 1]]
        questions = Questions(
            cells=cells[index],
            before=(1 + active[index]) * (number % 2),
            offset=found.offset[index],
            word=code.words[labels[index]],
            length=code.lengths[labels[index]],
        )
        parts.append(questions)
    streams = rng.spawn(len(parts))
    words = np.zeros((len(parts), sizes.cells), dtype=np.int64)
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for number, found_words in enumerate(pool.map(solve, parts, [sizes.cells] * len(parts), streams)):
                words[number] = found_words
                if report is not None:
                    report(number + 1, len(parts))
        except Unsolvable:
            pool.shutdown(cancel_futures=True)
            raise
    lanes = np.repeat(np.arange(LANES), counts(sizes.columns))
    signed = words.reshape(sizes.blocks, 2, sizes.rows_in_all, sizes.words) - (lanes % 2 << WORD)
    return network.Tables(signed[:, 0], signed[:, 1])


def _cells(found: Addresses, sizes: Sizes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cells [N, 16] of each question's table, −1 for none; and how many of its rows there are."""
    row, there = placed(found.rows, sizes.rows)
    column, chosen = placed(found.columns, sizes.columns)
    cells = row[:, :, None] * sizes.words + column[:, None, :]
    cells[~(there[:, :, None] & chosen[:, None, :])] = -1
    return cells.reshape(len(cells), -1), there.sum(axis=1)


def _refuse_crowds(
    shelf: NDArray[np.int64], offset: NDArray[np.int64], lengths: NDArray[np.int64], sizes: Sizes
) -> None:
    """A bit plane cannot answer more questions than it has bits."""
    kinds = np.zeros((2 * sizes.blocks, WORD, WORD + 1), dtype=np.int64)
    np.add.at(kinds, (shelf, offset, lengths), 1)
    asked = np.zeros((2 * sizes.blocks, WORD), dtype=np.int64)
    for begin in range(WORD):
        for bit in range(WORD):
            asked[:, (begin - 1 - bit) % WORD] += kinds[:, begin, bit + 1 :].sum(axis=1)
    if asked.max() > sizes.cells:
        raise Unsolvable("a bit plane has more questions than words")


def _refuse_twins(shelf: NDArray[np.int64], cells: NDArray[np.int64]) -> None:
    """Two questions that read the same words ask for different sums of them, most likely."""
    keys = np.random.default_rng(0).integers(1, 1 << 62, size=cells.shape[1] + 1)
    key = cells @ keys[:-1] + shelf * keys[-1]
    if len(np.unique(key)) < len(key):
        raise Unsolvable("two questions read the same words")
