"""The settings, and the shape of the network that follows from them and a task's sizes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from byheart.constructions.plan import Part, Plan
from byheart.errors import BadInput
from byheart.sizes import Size
from byheart.tasks import NextTokenDistribution, Task
from byheart.tasks.arrays import Ids

NAME = "dana-2025"


@dataclass(frozen=True)
class DanaSettings:
    """Settings for the sizes of the network."""

    model_dim: int | None = None
    """d: dimension of the stream (default: 2 for labels, which takes the fewest parameters; ω − 1 for distributions,
    all of which are then within reach)."""
    head_dim: int | None = None
    """d_h: dimension of a head, at most d (default: d)."""
    heads: int | None = None
    """H: number of heads (default: the fewest that hold all contexts, or 1 − epsilon of them)."""
    epsilon: float = 0.0
    """ε: probability of the contexts that may be omitted (distributions only)."""
    restarts: int = 8
    """Number of random starts of the search for the best encoder, which has local minima (distributions only)."""
    query_dim: int | None = None
    """Width of queries and keys, at most d (default: d_h). 1 is enough (Remark 2)."""
    hold: int | None = None
    """Number of contexts to hold; the others are guessed (labels only, Corollary 2; default: all are held)."""
    solve_by: Literal["near", "svd"] = "near"
    """Choice of W_O if contexts are omitted: the paper's (svd), or ours (near) if heads are left and it is better."""
    smooth: float = 0.0
    """δ: encode (1 − δ)p + δ/ω in place of p, with logits of order log(1/δ) (distributions only, Theorem 3)."""


@dataclass(frozen=True)
class DanaShape:
    """The dimensions of a network."""

    d: int
    d_h: int
    H: int
    query: int
    """Width of queries and keys."""


@dataclass(frozen=True)
class DanaDemand:
    """The numbers that determine the size of the network."""

    size: Size
    held: int
    """Number of held contexts: all different ones, the likeliest, or those that are not guessed."""
    last_tokens: int
    """Number of different last tokens of held contexts."""
    distributions: bool = False
    """True if the task's answers are distributions."""


def demand(task: Task, kept: Ids) -> DanaDemand:
    """Count the demands of ``task`` if the answers of the examples ``kept`` are to be exact."""
    assert task.tokens is not None
    last_tokens = len(np.unique(task.tokens[kept, -1]))
    return DanaDemand(task.size, len(kept), last_tokens, isinstance(task, NextTokenDistribution))


def worst_demand(size: Size, settings: DanaSettings) -> DanaDemand:
    """Return the demand of the hardest labelled task of ``size``: all contexts differ, and all end in one token."""
    if size.dim is not None:
        raise BadInput(f"{NAME} reads token ids; the tokens are vectors of dimension {size.dim}")
    return DanaDemand(size, size.examples if settings.hold is None else min(settings.hold, size.examples), 1)


def plan(demand: DanaDemand, settings: DanaSettings) -> Plan:
    """Plan every tensor: d(n + ω + C + 4 d_h H) entries, or d(n + ω + C + 2(d_h + 1)H) if queries have width 1."""
    size, shape = demand.size, shape_of(demand, settings)
    d, ask, read, write = shape.d, *((shape.H, *sizes) for sizes in _heads(shape))
    parts: tuple[Part, ...] = (
        ("embedding", (("W_E", (size.vocab, d)),)),
        ("positions", (("W_pos", (size.length, d)),)),
        ("attention", (("W_Q", ask), ("W_K", ask), ("W_V", read), ("W_O", write))),
        ("unembedding", (("W_U", (d, size.labels)),)),
    )
    return Plan(parts, depth=3, width=max(d, size.labels))


def _heads(shape: DanaShape) -> tuple[tuple[int, int], ...]:
    """Return the shapes of W_Q and W_K, of W_V, and of W_O in a head."""
    return (shape.d, shape.query), (shape.d, shape.d_h), (shape.d_h, shape.d)


def shape_of(demand: DanaDemand, settings: DanaSettings) -> DanaShape:
    """Return the network's dimensions; BadInput for settings that no network can have."""
    d = settings.model_dim
    if d is None:
        d = max(1, demand.size.labels - 1) if demand.distributions else 2
    if d < 1 or (d < 2 and demand.size.labels > 2 and not demand.distributions):
        raise BadInput(f"model_dim is {d}; expected at least 2: on a line argmax tells only two tokens apart")
    d_h = d if settings.head_dim is None else settings.head_dim
    if not 1 <= d_h <= d:
        raise BadInput(f"head_dim is {d_h}; expected 1 ≤ d_h ≤ d = {d}: more than d gains nothing")
    query = d_h if settings.query_dim is None else settings.query_dim
    if not 1 <= query <= d:
        raise BadInput(f"query_dim is {query}; expected from 1, which is enough, to d = {d}")
    H = settings.heads
    if H is None:
        # A head's average is a mixture of token and one of position vectors: ω + n − 2 free coordinates, whatever d is.
        free = max(1, min(d_h, demand.size.vocab + demand.size.length - 2))
        H = max(1, -(-(demand.held - min(d, demand.last_tokens)) // free))
    if H < 1:
        raise BadInput(f"heads is {H}; expected at least 1: without attention only the last token is seen")
    return DanaShape(d, d_h, H, query)
