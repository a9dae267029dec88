"""From tokens to small integer codes: the part of a folding network in front of the attention.

======================  ============================================================  ==========================
tokens                  code_j                                                        level
======================  ============================================================  ==========================
ids                     W_E[t, j], uniform in [−q, q]                                 q
ids with positions      relu(W_E[t, j] + W_pos[k, j]), both uniform in [−q, q]        q
vectors                 relu(±Z − t_j), Z a hash of the vector (and position) ≤ Q     Q ≈ 2^level
======================  ============================================================  ==========================

A higher level tells more questions apart and costs bits, hence folds.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.constructions import grid
from byheart.constructions.folding.design import WEIGHT
from byheart.constructions.hashing import draw_modulus, folds_needed, largest_modulus
from byheart.constructions.plan import Blocks, Part, Shape
from byheart.constructions.tokens import check_table
from byheart.networks import Affine, Block, Embedding, FeedForward, Layer, Positions, Residual, integers
from byheart.size import Size
from byheart.tasks import Task

LEVELS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 4096, 16384, 65536, 1 << 20, 1 << 24)
HASH_LEVELS = tuple(range(8, 44, 2))


@dataclass(frozen=True)
class Front:
    """The front's sizes: what the task's tokens are, and the level of its codes."""

    size: Size
    positions: bool
    level: int
    grid_bits: int = 0

    @property
    def vectors(self) -> bool:
        """Whether tokens are vectors."""
        return self.size.dim is not None

    @property
    def modulus(self) -> int:
        """The smallest Q of the vectors' hash."""
        return 1 << self.level

    @property
    def folds(self) -> int:
        """Folds of the vectors' hash."""
        assert self.size.dim is not None
        return folds_needed(grid.ratio(self.size.dim, self.grid_bits) + self.positions)

    def reach(self, spread: int) -> int:
        """B with |u_j| ≤ B for good draws, where ``spread`` bounds the squared norm of a question's coefficients.

        Mean and deviation of the codes enter through their largest possible values; six deviations are allowed for.
        """
        q, total = self.level, WEIGHT * self.size.length + 1
        if self.vectors:
            largest = largest_modulus(self.modulus)
            return math.ceil(0.5 * largest * total + 6 * 0.4 * largest * math.sqrt(spread))
        if self.positions:
            return math.ceil(0.6 * q * total + 6 * 0.7 * q * math.sqrt(spread))
        return math.ceil(6 * math.sqrt(q * (q + 1) / 3 * spread))

    def parts(self, dim: int) -> list[Part]:
        """The tensors in front of the attention."""
        size = self.size
        if not self.vectors:
            parts: list[Part] = [("embedding", (("W_E", (size.vocab, dim)),))]
            if self.positions:
                parts += [("positions", (("W_pos", (size.length, dim)),)), ("token_code", Shape((("code", dim, dim),)))]
            return parts
        assert size.dim is not None
        places: list[Part] = [("positions", (("W_pos", (size.length, 1)),))] if self.positions else []
        blocks = Blocks((("fold", 1, 1),) * self.folds)
        codes = Shape((("code", dim, 1),))
        return [("projection", Shape((("hash", 1, size.dim),))), *places, ("hash", blocks), ("token_code", codes)]


def draw_codes(
    front: Front, task: Task, first: NDArray[np.int64], dim: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], list[Layer]]:
    """Codes of all different tokens [K, D], and the layers that compute them; ``first`` says where each occurs."""
    if task.vectors is not None:
        return _vector_codes(front, task.vectors, first, dim, rng)
    assert task.tokens is not None
    check_table(task)
    q, n = front.level, task.size.length
    table = rng.integers(-q, q, size=(task.vocab, dim), endpoint=True)
    codes = table[task.tokens.ravel()[first]]
    if not front.positions:
        return codes, [Embedding(integers(table))]
    W_pos = rng.integers(-q, q, size=(n, dim), endpoint=True)
    plain = Affine(integers(np.eye(dim, dtype=np.int64)), integers([0] * dim), role="code")
    layers: list[Layer] = [
        Embedding(integers(table)),
        Positions(integers(W_pos)),
        FeedForward((plain,), name="token_code"),
    ]
    return np.maximum(codes + W_pos[first % n], 0), layers


def _vector_codes(
    front: Front, vectors: NDArray[np.float64], first: NDArray[np.int64], dim: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], list[Layer]]:
    """Z = 2·fold_Q(v·X), by residual folds, and dim kinks of it."""
    n, d = vectors.shape[1:]
    points = grid.from_floats(vectors.reshape(-1, d)[first])
    Q = draw_modulus(max(128, front.modulus), rng)
    v = rng.integers(0, Q, size=int(d))
    a = int(rng.integers(0, Q))
    bias = grid.offset(int(d), front.grid_bits, Q) + a
    project = Affine(integers([[2 * w for w in points.weights(v)]]), integers([2 * bias]), role="hash", relu=False)
    layers: list[Layer] = [FeedForward((project,), name="projection")]
    sums = points.hash(v, Q) + a
    if front.positions:
        W_pos = rng.integers(0, Q, size=int(n))
        sums = sums + W_pos[first % n]
        layers.append(Positions(integers(2 * W_pos[:, None])))
    blocks = (Block(integers([[1]]), integers([-(Q << k)]), integers([[-2]]), role="fold") for k in _down(front.folds))
    rest = sums % Q
    Z = 2 * np.minimum(rest, Q - rest)
    signs = np.where(np.arange(dim) % 2 == 0, 1, -1)
    kinks = rng.integers(0, Q // 2, size=dim)
    biases = np.where(signs > 0, -kinks, Q - kinks)
    code = Affine(integers(signs[:, None]), integers(biases), role="code")
    layers += [Residual(tuple(blocks), name="hash"), FeedForward((code,), name="token_code")]
    return np.maximum(signs * Z[:, None] + biases, 0), layers


def _down(count: int) -> range:
    return range(count - 1, -1, -1)
