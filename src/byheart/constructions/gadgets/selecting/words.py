"""κ and q of a group in one word, and how they are taken apart again.

The word of group i is w_i = 2^(top+1)·(C(P + 1) − κ_i) + q_i ≥ 0. With X = w_i + 2^(top+1)·C(z + 1) (+ z where the key
is passed on) the part above bit top + 1 is U = C(P + 1) + C·z + C − κ_i ∈ [1, 2C(P + 1)] and the part below is
q ≤ 2^top. The triangle wave of period 2^(top+1) (:mod:`.gadgets.waves`) does not see 2^(top+1)·U: it leaves q. One unit
carries X beside it, and then e = relu((X − q)/2^(top+1) − C(P + 1)). Folded bit by bit that takes 12 parameters for
each bit of 2C(P + 1), once for all groups.

Where there is nothing to unpack (no slots, the key not passed on) q is 0, and e is read off X without folds.
"""

from byheart.constructions.gadgets.selecting.groups import READ, Groups, SelectionSizes, Shapes
from byheart.constructions.gadgets.waves import wave, wave_shapes
from byheart.networks.exact import Affine, integers


def scale(sizes: SelectionSizes) -> int:
    """What one step of κ is worth in a word."""
    return 2 << sizes.top


def span(sizes: SelectionSizes) -> int:
    """C(P + 1), which is larger than any κ."""
    return sizes.labels * (sizes.largest + 1)


def words(sizes: SelectionSizes, groups: Groups) -> list[int]:
    """2^(top+1)·(C(P + 1) − κ) + q, group by group."""
    return [scale(sizes) * (span(sizes) - kappa) + q for kappa, q in zip(groups.first, groups.packed, strict=True)]


def of_key(sizes: SelectionSizes) -> tuple[int, int]:
    """Factor and bias of 2^(top+1)·C(z + 1) (+ z), which makes X of a word."""
    unit = scale(sizes) * sizes.labels
    return unit + bool(sizes.own_bits), unit


def spare_bits(sizes: SelectionSizes) -> int:
    """X, and any weight that makes it or takes it apart, has at most these bits beyond ``top``, sign included."""
    return _upper_bits(sizes) + 1


def _upper_bits(sizes: SelectionSizes) -> int:
    """Bits above a word's q: those of 2C(P + 1), and the one that keeps the wave upright."""
    return (2 * span(sizes)).bit_length() + 1


def _folded_bits(sizes: SelectionSizes) -> int:
    return _upper_bits(sizes) if sizes.slots or sizes.own_bits else 0


def unpacking(sizes: SelectionSizes) -> int:
    """Layers that unpack words."""
    return -(-_folded_bits(sizes) // sizes.fold_bits)


def unpack_shapes(sizes: SelectionSizes, inputs: int) -> Shapes:
    """The shapes of :func:`unpack`."""
    folds = wave_shapes(inputs, _folded_bits(sizes), carry=True, at_once=sizes.fold_bits, role="unpack")
    return [*folds, ("read", READ, folds[-1][1] if folds else inputs)]


def unpack(sizes: SelectionSizes, X: list[int], bias: int) -> list[Affine]:
    """From X, as a row over the units and a bias, to e, relu(e − 1), relu(e − C) and q."""
    unit, bits = scale(sizes), _folded_bits(sizes)
    layers, rest = wave(X, bias, h=1 << sizes.top, bits=bits, carry=(X, bias), at_once=sizes.fold_bits, role="unpack")
    if bits:
        e, q, bias = [*(-entry for entry in rest[:-1]), 1], [unit * entry for entry in rest], 0
    else:
        e, q = X, [0] * len(X)
    start = bias - unit * span(sizes)
    biases = [start, start - unit, start - sizes.labels * unit, 0]
    return [*layers, Affine(integers([e, e, e, q]), integers(biases), shift=sizes.top + 1, role="read")]
