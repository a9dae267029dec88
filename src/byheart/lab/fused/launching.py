"""How kernels are launched: everything that one reads or writes has a name, the same in all of them."""

from collections.abc import Mapping
from typing import Any

import triton

LEAST = 16
"""Of a side of a tile."""
FOUR, EIGHT = {"num_warps": 4}, {"num_warps": 8}


def side(size: int) -> int:
    """Of a tile that holds this many."""
    found: int = max(LEAST, triton.next_power_of_2(size))
    return found


def launch(
    kernel: Any, grid: tuple[int, ...], known: Mapping[str, Any], more: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Run it with the arguments that its names ask for; ``more`` comes before what is ``known``."""
    kernel[grid](**{name: more[name] if name in more else known[name] for name in kernel.arg_names}, **options)
