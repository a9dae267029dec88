"""How many questions each bit plane is asked: the inner loop of settling. This module imports numba."""

from byheart.networks.exact.kernels import jit


@jit
def ask(asked, block, kind, offset, lengths, bits, sign):  # type: ignore[no-untyped-def]
    """Add ``sign`` to ``asked`` [blocks, tables, planes] wherever a question reads; words have ``bits``."""
    for question in range(len(block)):
        for place in range(lengths[question]):
            plane = (offset[question] - 1 - place) % bits[kind[question]]
            asked[block[question], kind[question], plane] += sign
