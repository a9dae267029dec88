"""What tests of both stock models ask, and what is to be exact inside of them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.nn.functional import silu

from byheart.compiler import CompilerSettings, compile
from byheart.compiler.stock.table import ALPHA, FOUND, POISON, TAU
from byheart.constructions.built import Built
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks import random_next_token
from byheart.tasks.contexts import Contexts
from byheart.tasks.tokenizers import Bytes
from byheart.tasks.windows import task_contexts

DRAWN: dict[str, object] = {"do_sample": True, "temperature": 1.0, "top_k": None}
"""How Hugging Face's ``generate`` draws at temperature 1, out of all tokens."""


def random_contexts(examples: int, length: int = 8, vocab: int = 64, labels: int = 64) -> Contexts:
    """Random questions, always the same ones."""
    rng = np.random.default_rng(3)
    task = random_next_token(examples=examples, length=length, vocab=vocab, labels=labels, rng=rng)
    return task_contexts(task, window=length)


def three_texts() -> dict[str, bytes]:
    """A short text, a longer one that begins with the same letters, and one that begins with its own."""
    rng = np.random.default_rng(5)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz \n", np.uint8)
    weights = 1 / np.arange(1, len(letters) + 1)
    bodies = [bytes(rng.choice(letters, size=size, p=weights / weights.sum())) for size in (1, 30, 90)]
    return {"0": b"ab" + bodies[0] + b"!", "1": b"ab" + bodies[1] + b"?", "2": b"c" + bodies[2]}


def network_of(contexts: Contexts, settings: CompilerSettings) -> StockNetwork:
    network = compile(contexts, settings=settings).network
    assert isinstance(network, StockNetwork)
    return network


def tokens_of(contexts: Contexts) -> torch.Tensor:
    """[N, window]."""
    return torch.tensor(contexts.windows(slice(None)).astype(np.int64))


def two_swapped(tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Those that it changes, with two of their tokens swapped; and which these are."""
    differ = tokens[:, 2] != tokens[:, 5]
    swapped = tokens.clone()
    swapped[:, [2, 5]] = tokens[:, [5, 2]]
    return swapped[differ], differ


@torch.no_grad()
def last_logits(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """What follows the last of ``tokens``."""
    found: torch.Tensor = model(tokens, logits_to_keep=1).logits[:, 0]
    return found


def check_answers(logits: torch.Tensor, contexts: Contexts) -> None:
    """All are right, exact, and certain enough to be drawn at temperature 1."""
    assert np.array_equal(logits.argmax(-1).numpy(), contexts.labels)
    two = logits.topk(2, dim=-1).values
    assert (two[:, 0] - two[:, 1]).min() >= 1024
    assert torch.equal(logits, (logits / 1024).round() * 1024)
    assert (logits.softmax(-1).amax(-1) == 1).all()


def check_same_bits(
    model: Any, tokens: torch.Tensor, reference: torch.Tensor, *, batches: Iterable[tuple[int, int]]
) -> None:
    """In any order, in batches of so many up to so many, and with one thread or two."""
    order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    assert torch.equal(last_logits(model, tokens[order]), reference[order])
    for size, asked in batches:
        parts = [last_logits(model, part) for part in tokens[:asked].split(size)]
        assert torch.equal(torch.cat(parts), reference[:asked])
    for count in (1, 2):
        torch.set_num_threads(count)
        assert torch.equal(last_logits(model, tokens[:300]), reference[:300])


def check_generated(model: Any, encode: Any, built: Built, ways: Iterable[dict[str, object]]) -> None:
    """:func:`three_texts` follow their prompts: one alone, with a cache; and all, padded on the left, in these ways."""
    texts, end = list(three_texts().values()), Bytes.end
    prompts = [text[:prompt].decode() for text, prompt in zip(texts, built.questions.prompts, strict=True)]
    said = model.generate(**encode(prompts[1], return_tensors="pt"), max_length=140)[0].tolist()
    assert said == [end, *texts[1], end]
    given = encode(prompts, return_tensors="pt", padding=True)
    for way in ways:
        rows = model.generate(**given, max_length=140, **way)
        for row, mask, text in zip(rows.tolist(), given.attention_mask.tolist(), texts, strict=True):
            assert row[mask.index(1) :][: len(text) + 2] == [end, *text, end]


def check_inside(read: torch.Tensor, gates: torch.Tensor, ups: torch.Tensor, *, columns: int) -> None:
    """Gates and ups [questions, units, 2], of float32 and float64, of each question's own block, which it has ``read``.

    They are those of float64, or α, 2α, ±τ; at most two units are on, and others are off altogether. Features are
    columns from ``columns`` on.
    """
    (gate, gate64), (up, up64) = gates.unbind(-1), ups.unbind(-1)
    on = silu(gate.float()) != 0
    assert on.sum(dim=1).max() == 2
    q = (up64 / TAU).round()
    of_up, of_down, of_gate = ((q == kind) & on for kind in (0, -1, 1))
    assert of_up.any()
    assert of_down.any()
    assert of_gate.any()
    assert (gate[of_up] == ALPHA).all()
    assert (gate[of_down] == 2 * ALPHA).all()
    assert torch.equal(gate[of_gate], gate64[of_gate])
    assert torch.equal(up[of_up], up64[of_up])
    assert (up[of_down] == -TAU).all()
    assert (up[of_gate] == TAU).all()
    assert ((gate[~on] == 0) | (gate[~on] < -128)).all()
    assert set(read[:, columns:].unique().tolist()) <= {*FOUND, POISON}
