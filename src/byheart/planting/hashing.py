"""The hash of a memory: numbers drawn from a seed by SHAKE-256, the same on every machine and in every version.

So whoever has the facts can plant them again, and compare the memory bit for bit.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from byheart.networks.planted.modeling_plant import PRIME


def drawn(seed: int, draw: int, name: str, *shape: int) -> NDArray[np.int64]:
    """Numbers from 0 to 2³¹ − 2, as good as uniform: 64 bits modulo that prime.

    >>> drawn(0, 0, "factors", 2).tolist() == drawn(0, 0, "factors", 3)[:2].tolist()
    True
    """
    count = int(np.prod(shape))
    words = np.frombuffer(stream(seed, draw, name, 8 * count), "<u8")
    return (words % np.uint64(PRIME)).astype(np.int64).reshape(shape)


def stream(seed: int, draw: int, name: str, size: int) -> bytes:
    """So many bytes that look random."""
    return hashlib.shake_256(f"byheart-plant-1 {seed} {draw} {name}".encode()).digest(size)
