"""From tokens to integers, in front of the attention: the embedding table, or hash and token stage.

A front has ``ids`` [N, n] (which of the K different tokens stands where), asks for ``codes`` random numbers, turns them
into the integer u of every token, and into layers once they are known to be good.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from byheart.constructions.gadgets import grid
from byheart.constructions.gadgets.demand import positioned_ids
from byheart.constructions.gadgets.distinguish import distinguishing_tokens
from byheart.constructions.gadgets.lookup_sizes import LookupSizes
from byheart.constructions.gadgets.modular_hash import draw_modulus, fold, fold_layers, multiply
from byheart.constructions.gadgets.vectors import Reader
from byheart.constructions.plan import BYTES_PER_PARAMETER
from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.networks.exact import Affine, Embedding, FeedForward, Layer, Positions, integers
from byheart.tasks import NextToken, SeqToSeq, Task, token_ids
from byheart.tasks.arrays import Ids
from byheart.tasks.distinct import TokenCounts, count_tokens

LARGEST_TABLE = 10**8
TRIES = 20_000


def check_table(task: Task) -> None:
    """Refuse vocabularies that are too large for an embedding table."""
    if task.vocab > LARGEST_TABLE:
        raise BadInput(f"vocab is {task.vocab}; an embedding table can have {LARGEST_TABLE} rows at most")
    check_memory(BYTES_PER_PARAMETER * task.vocab, f"an embedding table of {task.vocab:,} rows")


class EmbeddedTokens:
    """Token ids: the code of a token is its row of the embedding table."""

    def __init__(self, task: NextToken | SeqToSeq) -> None:
        check_table(task)
        assert task.tokens is not None
        self.ids: Ids = task.tokens
        self.codes = task.vocab
        self.chosen: dict[str, object] = {}

    def values(self, codes: Ids, modulus: int | None) -> Ids:
        """Return u for every token; codes are below the modulus already."""
        return codes

    def layers(self, codes: Ids) -> list[Layer]:
        """The embedding."""
        return [Embedding(integers(codes[:, None]))]


@dataclass(frozen=True, eq=False)
class CodedTokens:
    """Vectors, or tokens with positions: ``front`` computes ``hashes`` [K], the token stage codes for ``marked``."""

    ids: Ids
    hashes: Ids
    marked: Ids
    front: list[Layer]
    folding: list[Affine]
    sizes: LookupSizes
    chosen: dict[str, object] = field(default_factory=dict)

    @property
    def codes(self) -> int:
        """Random numbers needed."""
        return len(self.marked)

    def values(self, codes: Ids, modulus: int | None) -> Ids:
        """Return u = code·2^B + hash (modulo ``modulus`` if there is one), or just the code where B = 0."""
        u = np.zeros(len(self.hashes), dtype=np.int64)
        u[self.marked] = codes
        B = self.sizes.own_bits
        if B == 0:
            return u
        if modulus is None:
            return (u << B) + self.hashes
        return (multiply(u, np.array([pow(2, B, modulus)]), modulus) + self.hashes) % modulus

    def layers(self, codes: Ids) -> list[Layer]:
        """Embedding or projection, positional codes, and the token stage."""
        stage = self.sizes.token_stage.layers(self.hashes[self.marked], integers(codes))
        return [*self.front, FeedForward((*self.folding, *stage), name="token_code")]


@dataclass(frozen=True, eq=False)
class Different:
    """The K different tokens of a task, and which of them must not be taken for each other."""

    ids: Ids
    """int64 [N, n]: which token stands where."""
    first: Ids
    """int64 [K]: where each of them stands first, counted through all sequences."""
    marked: Ids
    """Those that need a code of their own."""
    pairs: TokenCounts | None
    """Seq-to-seq: the different (sequence, token) pairs, which must stay different."""

    def apart(self, hashes: Ids) -> bool:
        """Whether no other token has a marked token's of ``hashes`` [K] and, with ``pairs``, no sequence one twice."""
        _, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        if (counts[inverse[self.marked]] > 1).any():
            return False
        return self.pairs is None or len(count_tokens(hashes[self.pairs.arranged])) == len(self.pairs)


def different_tokens(task: NextToken | SeqToSeq, *, positions: bool) -> Different:
    """The tokens of ``task``, with ``positions`` the pairs of token and position."""
    ids = positioned_ids(task, positions)
    pairs = count_tokens(ids) if isinstance(task, SeqToSeq) else None
    return Different(ids, np.unique(ids, return_index=True)[1], distinguishing_tokens(ids), pairs)


def coded_tokens(
    task: NextToken | SeqToSeq, sizes: LookupSizes, rng: np.random.Generator, reader: Reader | None = None
) -> CodedTokens:
    """Draw hashes until no marked token meets another, and, in seq-to-seq, no two tokens of a sequence meet."""
    tokens = different_tokens(task, positions=sizes.demand.positions)
    marked, first = tokens.marked, tokens.first
    draw = _vector_hash(task, sizes, first, reader) if task.vectors is not None else _pair_hash(task, first)
    for draws in range(1, TRIES):
        Q = draw_modulus(sizes.token_modulus, rng)
        sums, front = draw(Q, rng)
        hashes = fold(sums, Q)
        if tokens.apart(hashes):
            chosen: dict[str, object] = {"token_modulus": Q, "token_draws": draws, "marked_tokens": len(marked)}
            folding = fold_layers([1], 0, Q, sizes.token_folds)
            chosen |= {} if reader is None else reader.chosen
            return CodedTokens(tokens.ids, hashes, marked, front, folding, sizes, chosen)
    raise RuntimeError(f"{TRIES} draws did not tell {len(hashes)} tokens apart; please report this task")


_Draw = Callable[[int, np.random.Generator], tuple[Ids, list[Layer]]]


def _pair_hash(task: NextToken | SeqToSeq, first: Ids) -> _Draw:
    """(token id, position) ↦ W_E[t] + W_pos[k], both uniform below Q."""
    check_table(task)
    assert task.tokens is not None
    tokens, places = task.tokens.ravel()[first], first % task.size.length

    def draw(Q: int, rng: np.random.Generator) -> tuple[Ids, list[Layer]]:
        W_E, W_pos = rng.integers(0, Q, size=task.vocab), rng.integers(0, Q, size=task.size.length)
        return W_E[tokens] + W_pos[places], [Embedding(integers(W_E[:, None])), Positions(integers(W_pos[:, None]))]

    return draw


def _vector_hash(task: NextToken | SeqToSeq, sizes: LookupSizes, first: Ids, reader: Reader | None) -> _Draw:
    """Return the hash x ↦ v·X + offset + a, or what ``reader`` makes of x (+ W_pos[k]).

    v, a and W_pos are uniform below Q.
    """
    assert task.vectors is not None
    n, d = task.vectors.shape[1:]
    points = grid.from_floats(task.vectors.reshape(-1, d)[first])
    places, vectors = first % n, token_ids(task).ravel()[first]

    def read(Q: int, rng: np.random.Generator) -> tuple[Ids, list[Affine]]:
        if reader is None:
            sums, project = grid.draw_hash(points, sizes.demand.grid_bits, Q, rng)
            return sums, [project]
        sums, layers = reader.draw(Q, rng)
        return sums[vectors], layers

    def draw(Q: int, rng: np.random.Generator) -> tuple[Ids, list[Layer]]:
        sums, layers = read(Q, rng)
        front: list[Layer] = [FeedForward(tuple(layers), name="projection")]
        if not sizes.demand.positions:
            return sums, front
        W_pos = rng.integers(0, Q, size=int(n))
        return sums + W_pos[places], [*front, Positions(integers(W_pos[:, None]))]

    return draw
