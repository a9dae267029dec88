"""Triangle waves: what is left of an integer when its upper bits are taken off by ReLUs.

The triangle wave of period 2h rises from 0 at 0 to h at h and falls to 0 at 2h. On 0 ≤ x ≤ h·2^f it is
x − 2·relu(x − h) + 2·relu(x − 2h) − …, 2^f units in one layer; and it is f waves one inside the other, of periods
h·2^f, …, 4h, 2h (Telgarsky's composition): x ← x − 2·relu(x − h·2^k), k = f − 1, …, 0, two units each. Anything between
the two is possible: 2^b units in a layer take b bits off.
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
    """Layers that fold x ∈ [0, h·2^bits], a row over the units in front with a bias, and the row that reads the wave.

    At most ``at_once`` bits a layer. ``carry``, another row with a bias that is never negative, is passed on in the
    last unit of every layer. With no bits there are no layers: then the row is that of x, and the bias is to be added.
    """  # fmt: skip
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
    """The shapes of :func:`wave`'s layers: (role, outputs, inputs).

    >>> wave_shapes(4, 3, carry=True, at_once=2)
    [('fold', 5, 4), ('fold', 3, 5)]
    """
    shapes = []
    while bits:
        taken = min(at_once, bits)
        shapes.append((role, (1 << taken) + carry, inputs))
        bits, inputs = bits - taken, (1 << taken) + carry
    return shapes
