"""Triangle waves: ReLU layers that remove the upper bits of an integer.

The triangle wave of period 2h rises from 0 at 0 to h at h and falls to 0 at 2h. On 0 ≤ x ≤ h·2^f it can be written in
two ways:

* as x − 2·relu(x − h) + 2·relu(x − 2h) − …, with 2^f units in one layer;
* as a composition of f waves of periods h·2^f, …, 4h, 2h (Telgarsky): x ← x − 2·relu(x − h·2^k), k = f − 1, …, 0, with
  two units each.

Anything between the two is possible: 2^b units in a layer remove b bits.
"""

from collections.abc import Sequence

from byheart.networks.exact import Affine, integers


def wave(
    x: Sequence[int],
    bias: int,
    *,
    h: int,
    bits: int,
    carry: tuple[Sequence[int], int] | None = None,
    at_once: int = 1,
    role: str = "fold",
) -> tuple[list[Affine], list[int]]:
    """Build layers that fold ``x`` + ``bias`` ∈ [0, h·2^bits], and the row over the last units that reads the wave.

    ``x`` is a row over the units in front. A layer folds at most ``at_once`` bits. ``carry`` is another row with a
    bias; its value must never be negative, and the last unit of every layer passes it on. If ``bits`` is 0, there are
    no layers: the returned row is ``x``, and the caller has to add the bias.
    """
    layers, row, offset = [], list(x), bias
    while bits:
        count = 1 << min(at_once, bits)
        bits -= min(at_once, bits)
        W, b = [row] * count, [offset - j * (h << bits) for j in range(count)]
        row, offset = [1, *([-2, 2] * count)[: count - 1]], 0
        if carry is not None:
            W, b = [*W, list(carry[0])], [*b, carry[1]]
            row, carry = [*row, 0], ([0] * count + [1], 0)
        layers.append(Affine(integers(W), integers(b), role=role))
    return layers, row


def wave_shapes(
    inputs: int, bits: int, *, carry: bool = False, at_once: int = 1, role: str = "fold"
) -> list[tuple[str, int, int]]:
    """Return the shapes of :func:`wave`'s layers: (role, outputs, inputs).

    >>> wave_shapes(4, 3, carry=True, at_once=2)
    [('fold', 5, 4), ('fold', 3, 5)]
    """
    shapes = []
    while bits:
        folded = min(at_once, bits)
        shapes.append((role, (1 << folded) + carry, inputs))
        bits, inputs = bits - folded, (1 << folded) + carry
    return shapes
