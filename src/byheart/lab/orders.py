"""Orders of examples: one shuffle per member and epoch, the same on every device.

The order of an epoch is that of N keys, each a hash (the finalizer of splitmix64) of seed, epoch and example. So no
state is kept between epochs, and a resumed run draws the same orders. The low bits of a key are the example's own
number, so sorting the keys is enough, and no two keys are equal.
"""

from collections.abc import Sequence

import torch

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def shuffles(seeds: list[int], epochs: Sequence[int], examples: int, device: torch.device) -> torch.Tensor:
    """Return a permutation of 0 … N − 1 for every seed and epoch, epoch after epoch: int64 [M, E · N].

    >>> shuffles([0, 1], epochs=[0], examples=6, device=torch.device("cpu"))
    tensor([[1, 4, 2, 5, 0, 3],
            [0, 2, 5, 1, 3, 4]])
    """
    low = (1 << max(1, (examples - 1).bit_length())) - 1
    starts = [[_signed(_mixed(_mixed(seed & _WORD) + (epoch + 1) * _GOLDEN)) for epoch in epochs] for seed in seeds]
    numbers = torch.arange(examples, device=device)
    keys = torch.tensor(starts, device=device)[:, :, None] + numbers * _signed(_GOLDEN)
    for shift, factor in ((30, _FIRST), (27, _SECOND), (31, 1)):
        keys.bitwise_xor_((keys >> shift).bitwise_and_((1 << 64 - shift) - 1)).mul_(_signed(factor))
    keys.bitwise_and_(~low).bitwise_or_(numbers)
    if device.type == "cpu":
        keys.numpy().sort(axis=2)  # several times as fast as torch's, which sorts indices too
        return keys.bitwise_and_(low).flatten(1)
    return keys.sort(dim=2).values.bitwise_and_(low).flatten(1)


def _mixed(value: int) -> int:
    value &= _WORD
    value = (value ^ value >> 30) * _FIRST & _WORD
    value = (value ^ value >> 27) * _SECOND & _WORD
    return value ^ value >> 31


def _signed(value: int) -> int:
    value &= _WORD
    return value - (1 << 64) if value >> 63 else value
