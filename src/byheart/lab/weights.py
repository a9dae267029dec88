"""Weights of members: first weights, and the layout of trained weights in a matrix [M, P], tensor after tensor."""

import math
from collections.abc import Collection, Mapping

import torch

from byheart.errors import BadInput
from byheart.lab.member import Member, MemberArchitecture, Tensors


def trained_shapes(architecture: MemberArchitecture, frozen: Collection[str]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of trained tensors, in the order in which a matrix of weights has them."""
    return {name: shape for name, shape in shapes_of(architecture).items() if name not in frozen}


def shapes_of(architecture: MemberArchitecture) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor of an architecture."""
    return {name: tuple(tensor.shape) for name, tensor in architecture.init(torch.Generator()).items()}


def first_weights(member: Member) -> Tensors:
    """Return a member's first weights, float64, drawn with its seed or replaced by ``initial``."""
    first = member.architecture.init(torch.Generator().manual_seed(member.seed))
    for name in member.frozen:
        if name not in first:
            raise BadInput(f"frozen has {name!r}; expected tensors of {', '.join(first)}")
    for name, tensor in (member.initial or {}).items():
        if name not in first or first[name].shape != tensor.shape:
            shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in first.items())
            raise BadInput(f"initial has {name!r} {list(tensor.shape)}; expected tensors of {shapes}")
        first[name] = tensor.to("cpu", torch.float64)
    return first


def padded(tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor of this shape with the given one as its leading corner, and zeros elsewhere."""
    if tuple(tensor.shape) == shape:
        return tensor
    larger = tensor.new_zeros(shape)
    larger[tuple(slice(size) for size in tensor.shape)] = tensor
    return larger


def views(matrix: torch.Tensor, shapes: Mapping[str, tuple[int, ...]]) -> Tensors:
    """Return views of the tensors [M, …] in a matrix [M, P].

    >>> {name: view.shape for name, view in views(torch.zeros(2, 7), {"W": (2, 3), "b": (1,)}).items()}
    {'W': torch.Size([2, 2, 3]), 'b': torch.Size([2, 1])}
    """
    tensors, start = {}, 0
    for name, shape in shapes.items():
        stop = start + math.prod(shape)
        tensors[name] = matrix.detach()[:, start:stop].view(len(matrix), *shape)
        start = stop
    return tensors
