"""Examples of the members of a stack: their rows, one below the other, and the orders in which batches take them.

Examples that several members share are stored once. An order is one shuffle per member and epoch, the same on every
device: the order of N keys, each a hash (the finalizer of splitmix64) of seed, epoch and example. So no state is kept
between epochs, and a resumed run draws the same orders. The low bits of a key are the example's own number, so sorting
the keys is enough, and no two keys are equal.
"""

from collections.abc import Sequence

import numpy as np
import torch

from byheart.lab.member import ANSWERS, Tensors


class StackedExamples:
    """Examples of M members one below the other; examples that several members share are stored once."""

    def __init__(self, data: Sequence[Tensors], device: torch.device, dtype: torch.dtype) -> None:
        keys = [tuple(sorted((name, id(tensor)) for name, tensor in tensors.items())) for tensors in data]
        distinct = dict(zip(keys, data, strict=True))
        counts = [len(tensors[ANSWERS]) for tensors in distinct.values()]
        starts = dict(zip(distinct, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
        self.starts = torch.tensor([starts[key] for key in keys], device=device)
        self.counts = torch.tensor([len(tensors[ANSWERS]) for tensors in data], device=device)
        self.tensors = {
            name: torch.cat([placed(tensors[name], device, dtype) for tensors in distinct.values()]) for name in data[0]
        }

    def keep(self, index: torch.Tensor) -> None:
        """Keep only the members at ``index``. The rows of others stay, because moving all rows would take longer."""
        self.starts, self.counts = self.starts[index], self.counts[index]

    def cut(self, places: torch.Tensor) -> Tensors:
        """Return tensors [M, B, …] of the rows at places [M, B], which count from the first row of all members."""
        flat = places.flatten()
        return {
            name: rows.index_select(0, flat).view(*places.shape, *rows.shape[1:]) for name, rows in self.tensors.items()
        }

    def whole(self, count: int) -> Tensors:
        """Return tensors [M, N, …] of all examples, ``count`` per member, stored once if all members share them.

        >>> shared = {"answers": torch.tensor([1, 2])}
        >>> StackedExamples([shared, shared], torch.device("cpu"), torch.float32).whole(2)["answers"].stride()
        (0, 1)
        """
        members = len(self.starts)
        starts = self.starts[:1] if bool((self.starts == self.starts[0]).all()) else self.starts
        cut = self.cut(starts[:, None] + torch.arange(count, device=starts.device))
        return {name: tensor.expand(members, *tensor.shape[1:]) for name, tensor in cut.items()}


def placed(tensor: torch.Tensor, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor on the device: floats in this precision, integers as they are."""
    return tensor.to(device, dtype) if tensor.is_floating_point() else tensor.to(device)


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
