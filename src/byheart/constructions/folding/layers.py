"""The layers of a folding network, from the attention's sums to the label; the package's docstring has the proof."""

from typing import TypeAlias

from byheart.constructions.folding.design import FoldingSizes
from byheart.constructions.folding.features import Gates, ShiftDigits
from byheart.constructions.plan import Part, TokenwiseShape
from byheart.networks.exact import Affine, Block, FeedForward, Integers, Layer, Residual, integers
from byheart.tasks.arrays import Ids

Frame: TypeAlias = tuple[Ids, Ids]
"""Centre and halvings [D] of every column: the stream is u·2^halvings + centre."""


def label_layers(
    sizes: FoldingSizes, frame: Frame, gates: Gates, positions: ShiftDigits, words: Integers
) -> list[Layer]:
    """Return the layers from the stream u·2^halvings + centre behind the attention to the label.

    ``frame`` is (centre, halvings). Folds work on the stream T − Z with Z in [0, T].
    """
    V, M = sizes.modulus << sizes.carry_bits, sizes.modulus
    T = 2 * V << sizes.level_bits
    layers: list[Layer] = [FeedForward((_words(V, frame, gates, words), _sum(V, T, gates, positions)), name="words")]
    layers += folds("level", T, T, sizes.first_folds)
    if sizes.stages:
        layers += _shift(sizes, T, positions)
        T = M << sizes.last_folds
        layers.append(FeedForward((Affine(integers([[-1, 0]]), integers([T]), role="drop", relu=False),), name="drop"))
    layers += folds("fold", T, M << sizes.last_folds, sizes.last_folds)
    return [*layers, *_decode(sizes, T)]


def _words(V: int, frame: Frame, gates: Gates, words: Integers) -> Affine:
    """Return the layer n_k = relu(V·φ_k·(2Γ_k·u − τ_k) + W_k·(u, 1)) in the stream's frame."""
    centre, halvings = frame
    shift = int(halvings.max())
    rows, biases = [], []
    for W, gamma, tau, factor in zip(
        words.tolist(), gates.gamma.tolist(), gates.tau.tolist(), gates.factor.tolist(), strict=True
    ):
        row = [int(w) + 2 * V * factor * G for w, G in zip(W[:-1], gamma, strict=True)]
        row = [w << shift - h for w, h in zip(row, halvings.tolist(), strict=True)]
        rows.append(row)
        middle = sum(w * c for w, c in zip(row, centre.tolist(), strict=True))
        biases.append((int(W[-1]) - V * factor * tau << shift) - middle)
    return Affine(integers(rows), integers(biases), shift=shift, role="words")


def _sum(V: int, T: int, gates: Gates, positions: ShiftDigits) -> Affine:
    """Return the layer T − Z with Z = 2·Σ n_k + 2V·offset + V + 1. Z is odd, so no ties occur later."""
    bias = T - (2 * V * positions.offset + V + 1)
    return Affine(integers([[-2] * len(gates.tau)]), integers([bias]), role="sum", relu=False)


def _shift(sizes: FoldingSizes, T: int, positions: ShiftDigits) -> list[Layer]:
    """Return the stages v ← R^S·v and H ← 2θ − H wherever H ≥ θ, starting from v = H = Z.

    In the first stage relu(Z − θ) serves both: it adds (R^S − 1)·Z up to a multiple of 2V.
    """
    V = sizes.modulus << sizes.carry_bits
    (threshold, step), *stages = positions.stages()
    theta, factor = 2 * V * threshold, sizes.radix**step - 1
    copy = Affine(integers([[-1], [-1]]), integers([T, T - theta]), role="copy")
    first = Affine(integers([[1, factor], [1, -2]]), integers([0, 0]), role="shift", relu=False)
    layers: list[Layer] = [FeedForward((copy, first), name="first_shift")]
    # v is at most G, and H − θ is odd: relu(v + G·(H − θ)) is 0 for H < θ.
    G, blocks = (T >> sizes.first_folds) * (factor + 1), []
    for threshold, step in stages:
        theta, factor = 2 * V * threshold, sizes.radix**step - 1
        W_in, W_out = [[1, G], [0, 1]], [[factor, -factor * G], [0, -2]]
        blocks.append(Block(integers(W_in), integers([-G * theta, -theta]), integers(W_out), role="shift"))
        G *= factor + 1
    return [*layers, Residual(tuple(blocks), name="shift")] if blocks else layers


def folds(name: str, T: int, start: int, count: int) -> list[Layer]:
    """Return the folds Z ← Z − 2·relu(Z − start/2^k), k = 1, …, count, on the stream T − Z: two parameters each.

    On Y = T − Z a fold at t is Y ← Y + relu(2(T − t) − 2Y): a layer of one ReLU with a skip connection.
    """
    return [
        FeedForward(
            (Affine(integers([[-2]]), integers([2 * (T - (start >> k))]), role="fold"),),
            residual=True,
            name=f"{name}.{k}",
        )
        for k in range(1, count + 1)
    ]


def fold_parts(name: str, count: int) -> list[Part]:
    """Return the shapes of :func:`folds`."""
    shape = TokenwiseShape((("fold", 1, 1),))
    return [(f"{name}.{k}", shape) for k in range(1, count + 1)]


def _decode(sizes: FoldingSizes, T: int) -> list[Layer]:
    """Return layers from T − Z to ⌊Z / unit⌋: a staircase for a few labels, else z ← z − θ·[z ≥ θ] bit by bit."""
    unit = sizes.unit
    if not sizes.label_bits:
        steps = [T - y * unit + above for y in range(1, max(2, sizes.labels)) for above in (1, 0)]
        step = Affine(integers([[-1]] * len(steps)), integers(steps), role="step")
        answer = Affine(integers([[1, -1] * (len(steps) // 2)]), integers([0]), role="answer")
        return [FeedForward((step, answer), name="label")]
    blocks = []
    for bit in reversed(range(sizes.label_bits)):
        theta = unit << bit
        W_out = integers([[-theta, theta], [1 << bit, -(1 << bit)]])
        blocks.append(Block(integers([[1, 0], [1, 0]]), integers([1 - theta, -theta]), W_out, role="digit"))
    start = Affine(integers([[-1], [0]]), integers([T, 0]), role="start", relu=False)
    end = Affine(integers([[0, 1]]), integers([0]), role="answer")
    digits = Residual(tuple(blocks), name="digits")
    return [FeedForward((start,), name="start"), digits, FeedForward((end,), name="label")]
