"""What tests of both stock models ask, and what is to be exact inside of them."""

from typing import Any

import numpy as np
import torch
from torch.nn.functional import silu

from byheart.constructions.reciting.stock.table import ALPHA, FOUND, POISON, TAU
from byheart.tasks import random_next_token
from byheart.tasks.contexts import Contexts, task_contexts


def random_contexts(examples: int, length: int = 8, vocab: int = 64, labels: int = 64) -> Contexts:
    """Random questions, always the same ones."""
    rng = np.random.default_rng(3)
    task = random_next_token(examples=examples, length=length, vocab=vocab, labels=labels, rng=rng)
    return task_contexts(task, window=length)


def tokens_of(contexts: Contexts) -> torch.Tensor:
    """[N, window]."""
    return torch.tensor(contexts.windows(slice(None)).astype(np.int64))


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
