"""The layers of a folding network, from the attention's sums to the label; the docstring of the room has the proof."""

from typing import TypeAlias

from byheart.constructions.folding.design import Sizes
from byheart.constructions.folding.features import Gates, PositionHash
from byheart.networks.exact import Affine, Block, FeedForward, Integers, Layer, Residual, integers
from byheart.tasks.checks import Ids

Frame: TypeAlias = tuple[Ids, Ids]
"""Centre and halvings [D] of every column: the stream is u·2^halvings + centre."""


def label_layers(sizes: Sizes, frame: Frame, gates: Gates, positions: PositionHash, words: Integers) -> list[Layer]:
    """From the stream u·2^halvings + centre behind the attention, (centre, halvings) = frame, to the label."""
    return [
        FeedForward((_words(sizes, frame, gates, positions, words), _sum(sizes)), name="words"),
        Residual(tuple(_shift(sizes, positions)), name="shift"),
        FeedForward((Affine(integers([[1, 0]]), integers([0]), role="drop"),), name="drop"),
        Residual(tuple(fold(1, 1 << k) for k in reversed(range(sizes.bottom, sizes.top))), name="fold"),
        *_decode(sizes),
    ]


def _words(sizes: Sizes, frame: Frame, gates: Gates, positions: PositionHash, words: Integers) -> Affine:
    """n_k = relu(V·(2Γ_k·u − τ_k) + W_k·(u, 1)), and the position hash h = β·u + offset, in the stream's frame."""
    centre, halvings = frame
    shift = int(halvings.max())
    V = 1 << sizes.gate_bits
    rows = [[int(W) for W in words[k, :-1]] for k in range(sizes.rows)]
    for row, gamma in zip(rows, gates.gamma.tolist(), strict=True):
        row[:] = [W + 2 * V * G for W, G in zip(row, gamma, strict=True)]
    biases = [int(words[k, -1]) - V * int(gates.tau[k]) for k in range(sizes.rows)]
    rows.append(positions.beta.tolist())
    biases.append(positions.offset)
    scales = [1 << (shift - h) for h in halvings.tolist()]
    rows = [[w * scale for w, scale in zip(row, scales, strict=True)] for row in rows]
    centred = [sum(w * c for w, c in zip(row, centre.tolist(), strict=True)) for row in rows]
    moved = [(bias << shift) - middle for bias, middle in zip(biases, centred, strict=True)]
    return Affine(integers(rows), integers(moved), shift=shift, role="words")


def _sum(sizes: Sizes) -> Affine:
    """v = 2·Σ n_k + 1, which is odd: no ties later on; h is passed on."""
    rows = [[2] * sizes.rows + [0], [0] * sizes.rows + [1]]
    return Affine(integers(rows), integers([1, 0]), role="sum", relu=False)


def _shift(sizes: Sizes, positions: PositionHash) -> list[Block]:
    """Fold h until it is uniform, then double v conditionally: v ← 2^(cS)·v and h ← 2t − 1 − h wherever h ≥ t."""
    blocks = [fold(2, positions.offset >> k) for k in range(sizes.first_folds)]
    # v is below 2^(largest so far): G exceeds it, so that relu(v + G·(2h − 2t + 1)) is 0 for h < t.
    size = sizes.top - sizes.bits * (sizes.digits - 1)
    for threshold, step in positions.stages():
        G, factor = 1 << size, (1 << sizes.bits * step) - 1
        W_in, W_out = [[1, 2 * G], [0, 2]], [[factor, -factor * G], [0, -1]]
        b_in = [G * (1 - 2 * threshold), 1 - 2 * threshold]
        blocks.append(Block(integers(W_in), integers(b_in), integers(W_out), role="shift"))
        size += sizes.bits * step
    return blocks


def fold(width: int, at: int) -> Block:
    """Z ← Z − 2·relu(Z − at), Z the last of ``width`` integers: for one integer three parameters per bit."""
    row, column = [0] * (width - 1) + [1], [[0]] * (width - 1) + [[-2]]
    return Block(integers([row]), integers([-at]), integers(column), role="fold")


def _decode(sizes: Sizes) -> list[Layer]:
    """⌊Z / 2^(bottom − c)⌋: a step for one bit; for more, t ← t − θ·[t ≥ θ] bit after bit, beside the bits read."""
    unit = sizes.bottom - sizes.bits
    if sizes.bits == 1:
        step = Affine(integers([[1], [1]]), integers([1 - (1 << unit), -(1 << unit)]), role="step")
        return [FeedForward((step, Affine(integers([[1, -1]]), integers([0]), role="answer")), name="label")]
    blocks = []
    for bit in reversed(range(sizes.bits)):
        theta = 1 << (unit + bit)
        W_out = integers([[-theta, theta], [1 << bit, -(1 << bit)]])
        blocks.append(Block(integers([[1, 0], [1, 0]]), integers([1 - theta, -theta]), W_out, role="digit"))
    start = Affine(integers([[1], [0]]), integers([0, 0]), role="start", relu=False)
    end = Affine(integers([[0, 1]]), integers([0]), role="answer")
    digits = Residual(tuple(blocks), name="digits")
    return [FeedForward((start,), name="start"), digits, FeedForward((end,), name="label")]
