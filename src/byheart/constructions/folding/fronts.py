"""The front of a folding network, before the attention: from tokens to small integer codes.

======================  ============================================================  ==========================
tokens                  code_j                                                        level
======================  ============================================================  ==========================
ids                     W_E[t, j], uniform in [−q, q]                                 q
ids, one integer each   a random piecewise linear function of W_E[t] in [0, 16q + 8)  q
ids with positions      z + relu(−3z), z = W_E[t, j] + W_pos[k, j] from [−q, q] each  q
vectors                 a random piecewise linear function of a hash in [0, Q/2]      Q ≈ 2^level
======================  ============================================================  ==========================

A higher level tells more questions apart and costs bits, hence folds.

In seq-to-seq the tokens of one sequence share the same sum. To make their questions different nevertheless, the
attention leaves the first OWN columns alone: they hold codes of the token itself, as large as the other columns' sums.
"""

import math
from dataclasses import dataclass

import numpy as np

from byheart.constructions.folding.design import WEIGHT
from byheart.constructions.folding.layers import fold_parts, folds
from byheart.constructions.gadgets import modular_hash, vectors
from byheart.constructions.gadgets.hypotheses import check_table
from byheart.constructions.plan import Blocks, Part, TokenwiseShape, plan_of
from byheart.networks.exact import Affine, Block, Embedding, FeedForward, Layer, Positions, Residual, integers
from byheart.sizes import Size
from byheart.tasks import Task
from byheart.tasks.arrays import Floats, Ids

LEVELS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 4096, 16384, 65536, 1 << 20, 1 << 24)
HASH_LEVELS = tuple(range(8, 44, 2))
OWN = 2
"""Number of columns for a token's own code in seq-to-seq."""
KINKS = 8
"""Number of pieces of a random piecewise linear function."""


@dataclass(frozen=True)
class FoldingFront:
    """Sizes of the front: the kind of the task's tokens, and the level of its codes."""

    size: Size
    positions: bool
    every_token: bool
    level: int
    grid_bits: int = 0
    narrow: bool = False
    """True if the table has one integer per token, spread by a small network, instead of one per token and column."""

    @property
    def vectors(self) -> bool:
        """True if tokens are vectors."""
        return self.size.dim is not None

    @property
    def own(self) -> int:
        """Number of columns that the attention leaves alone."""
        return OWN if self.every_token else 0

    @property
    def dims(self) -> range:
        """Candidate numbers of columns, with enough directions for the gates and enough parities for the digits."""
        fewest = (4 if self.size.labels <= 16 else 5) + self.own + (1 if self.vectors else 0)
        return range(fewest, fewest + 6)

    def scales(self, dim: int) -> Ids:
        """Return the scale of each column's codes: columns left alone are as large as the other columns' sums."""
        scale = WEIGHT * math.isqrt(self.size.length) | 1
        return np.where(np.arange(dim) < self.own, scale, 1)

    @property
    def modulus(self) -> int:
        """Smallest Q of the vectors' hash."""
        return 1 << self.level

    @property
    def folds(self) -> int:
        """Number of folds of the vectors' hash."""
        assert self.size.dim is not None
        return modular_hash.folds_needed(vectors.ratio(self.size.dim, self.grid_bits) + self.positions)

    @property
    def tail_modulus(self) -> int:
        """Smallest modulus of the tail, a second fold of the hash: its parity is that of the hash's upper half."""
        return max(modular_hash.SMALLEST, 1 << (self.level // 2 + 1))

    @property
    def tail_folds(self) -> int:
        """Number of folds from the hash to its tail."""
        return modular_hash.folds_needed(-(-modular_hash.largest_key(self.modulus) // self.tail_modulus))

    def reach(self, spread: int) -> int:
        """Return B with |u_j − centre_j| ≤ B for good draws: six standard deviations of the codes, times the norm.

        ``spread`` bounds the squared norm of a question's coefficients.
        """
        q = self.level
        if self.vectors:
            return math.ceil(6 * 0.3 * modular_hash.largest_modulus(self.modulus) * math.sqrt(spread))
        if self.positions:
            return math.ceil(6 * 1.6 * q * math.sqrt(spread))
        if self.narrow:
            return math.ceil(6 * 1.8 * (2 * q + 1) * math.sqrt(spread))
        return math.ceil(6 * math.sqrt(q * (q + 1) / 3 * spread))

    def cost(self, dim: int, *, table: bool) -> int:
        """Count the parameters in front of the attention, with or without those of the embedding table."""
        plan = plan_of(self.parts(dim), input_width=1, extra_depth=0)
        return plan.dense if table else plan.dense - plan.embedding

    def parts(self, dim: int) -> list[Part]:
        """Plan the tensors in front of the attention."""
        size = self.size
        if self.narrow:
            code = TokenwiseShape((("kinks", KINKS, 1), ("code", dim, KINKS)))
            return [("embedding", (("W_E", (size.vocab, 1)),)), ("token_code", code)]
        if not self.vectors:
            table: Part = ("embedding", (("W_E", (size.vocab, dim)),))
            places: Part = ("positions", (("W_pos", (size.length, dim)),))
            return [table, places, ("token_code", TokenwiseShape((("code", dim, dim),)))] if self.positions else [table]
        assert size.dim is not None
        start: list[Part] = [("projection", TokenwiseShape((("hash", 1, size.dim),)))]
        if self.positions:
            start.append(("positions", (("W_pos", (size.length, 1)),)))
        return [
            *start,
            *fold_parts("hash", self.folds),
            ("copy", TokenwiseShape((("copy", 2, 1),))),
            ("tail", Blocks((("fold", 1, 2),) * self.tail_folds)),
            ("token_code", TokenwiseShape((("kinks", 2 * KINKS, 2), ("code", dim, 2 * KINKS)))),
        ]


def _fold_second(at: int) -> Block:
    """Return the block Z ← Z − 2·relu(Z − at) for the second, Z, of two integers."""
    return Block(integers([[0, 1]]), integers([-at]), integers([[0], [-2]]), role="fold")


def draw_codes(
    front: FoldingFront, task: Task, first: Ids, dim: int, rng: np.random.Generator
) -> tuple[Ids, list[Layer]]:
    """Draw codes of all different tokens [K, D] and the layers that compute them.

    ``first`` holds a place in which each token occurs.
    """
    if task.vectors is not None:
        return _vector_codes(front, task.vectors, first, dim, rng)
    assert task.tokens is not None
    check_table(task)
    if front.narrow:
        return _narrow_codes(front, task, first, dim, rng)
    n, limits = task.size.length, front.level * front.scales(dim)
    table = rng.integers(-limits, limits, size=(task.vocab, dim), endpoint=True)
    codes = table[task.tokens.ravel()[first]]
    if not front.positions:
        return codes, [Embedding(integers(table))]
    W_pos = rng.integers(-limits, limits, size=(n, dim), endpoint=True)
    eye = np.eye(dim, dtype=np.int64)
    kink = Affine(integers(-3 * eye), integers([0] * dim), role="code")
    code = FeedForward((kink,), residual=True, name="token_code")
    z = codes + W_pos[first % n]
    return z + np.maximum(-3 * z, 0), [Embedding(integers(table)), Positions(integers(W_pos)), code]


def _narrow_codes(
    front: FoldingFront, task: Task, first: Ids, dim: int, rng: np.random.Generator
) -> tuple[Ids, list[Layer]]:
    """Draw one integer per token, and random piecewise linear functions of it with slopes from −2 to 2."""
    assert task.tokens is not None
    range_ = KINKS * (2 * front.level + 1)
    table = rng.integers(0, range_, size=task.vocab)
    kinks = np.append(0, np.sort(rng.integers(1, range_, size=KINKS - 1)))
    slopes = rng.integers(-2, 2, size=(dim, KINKS), endpoint=True)
    turns = np.diff(slopes, axis=1, prepend=0)
    units = Affine(integers([[1]] * KINKS), integers(-kinks), role="kinks")
    code = Affine(integers(turns), integers([0] * dim), role="code", relu=False)
    codes = np.maximum(table[task.tokens.ravel()[first], None] - kinks, 0) @ turns.T
    return codes, [Embedding(integers(table[:, None])), FeedForward((units, code), name="token_code")]


def _vector_codes(
    front: FoldingFront, tokens: Floats, first: Ids, dim: int, rng: np.random.Generator
) -> tuple[Ids, list[Layer]]:
    """Draw a hash fold_Q(v·X + a), its tail, and random functions of both; the stream holds twice their values."""
    n, d = tokens.shape[1:]
    points = vectors.from_floats(tokens.reshape(-1, d)[first])
    Q = modular_hash.draw_modulus(front.modulus, rng)
    v, a = rng.integers(0, Q, size=int(d)), int(rng.integers(0, Q))
    bias = vectors.offset(int(d), front.grid_bits, Q) + a
    T = Q << front.folds
    weights = [-2 * w for w in points.weights(v)]
    project = Affine(integers([weights]), integers([T - 2 * bias]), role="hash", relu=False)
    layers: list[Layer] = [FeedForward((project,), name="projection")]
    sums = points.hash(v, Q) + a
    if front.positions:
        W_pos = rng.integers(0, Q, size=int(n))
        sums = sums + W_pos[first % n]
        layers.append(Positions(integers(-2 * W_pos[:, None])))
    R = modular_hash.draw_modulus(front.tail_modulus, rng)
    tail = (_fold_second(R << k) for k in reversed(range(front.tail_folds)))
    hashes = modular_hash.fold(sums, Q)
    code, codes = _functions(front, hashes, modular_hash.fold(hashes, R), (Q, R), dim, rng)
    copy = Affine(integers([[-1], [-1]]), integers([T, T]), role="copy")
    layers += [
        *folds("hash", T, T, front.folds),
        FeedForward((copy,), name="copy"),
        Residual(tuple(tail), name="tail"),
        FeedForward(code, name="token_code"),
    ]
    return codes, layers


def _functions(
    front: FoldingFront, hashes: Ids, tails: Ids, moduli: tuple[int, int], dim: int, rng: np.random.Generator
) -> tuple[tuple[Affine, Affine], Ids]:
    """Draw piecewise linear functions of the hash and its tail: two layers on twice their values, and the codes.

    Slopes have both parities: with odd ones alone, all columns would have the same parity. The first columns of
    seq-to-seq are the hash and the tail themselves, the tail enlarged to the hash's size.
    """
    kinks = [np.append(0, np.sort(rng.integers(1, modulus // 2, size=KINKS - 1))) for modulus in moduli]
    slopes = rng.integers(-2, 2, size=(dim, 2, KINKS), endpoint=True)
    slopes[: front.own] = 0
    for column in range(front.own):
        slopes[column, column] = 1
    slopes *= front.scales(dim)[:, None, None]
    slopes[:, 1] *= moduli[0] // moduli[1] | 1
    turns = np.diff(slopes, axis=2, prepend=0).reshape(dim, 2 * KINKS)
    rows = [[1, 0]] * KINKS + [[0, 1]] * KINKS
    halve = Affine(integers(rows), integers(-2 * np.concatenate(kinks)), shift=1, role="kinks")
    code = Affine(integers(turns), integers([0] * dim), role="code", relu=False)
    units = [np.maximum(values[:, None] - k, 0) for values, k in zip((hashes, tails), kinks, strict=True)]
    return (halve, code), np.concatenate(units, axis=1) @ turns.T
