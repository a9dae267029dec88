"""Examples of the members of a stack, one below the other; examples that members share are stored once."""

from collections.abc import Sequence

import numpy as np
import torch

from byheart.lab.member import ANSWERS, Tensors


class StackedExamples:
    """Examples of M members one below the other; examples that several members share are stored once."""

    def __init__(self, data: Sequence[Tensors], device: torch.device, dtype: torch.dtype) -> None:
        keys = [tuple(sorted((name, id(tensor)) for name, tensor in own.items())) for own in data]
        distinct = dict(zip(keys, data, strict=True))
        counts = [len(own[ANSWERS]) for own in distinct.values()]
        starts = dict(zip(distinct, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
        self.starts = torch.tensor([starts[key] for key in keys], device=device)
        self.counts = torch.tensor([len(own[ANSWERS]) for own in data], device=device)
        self.tensors = {
            name: torch.cat([placed(own[name], device, dtype) for own in distinct.values()]) for name in data[0]
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
