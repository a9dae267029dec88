"""Weights of members: how they begin, and how a matrix [M, P] has those that are trained, tensor after tensor."""

import math
from collections.abc import Collection, Mapping

import torch

from byheart.errors import BadInput
from byheart.lab.member import Member, MemberArchitecture, Tensors


def trained_shapes(architecture: MemberArchitecture, frozen: Collection[str]) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors that are trained, in the order in which a matrix of weights has them."""
    return {name: shape for name, shape in shapes_of(architecture).items() if name not in frozen}


def shapes_of(architecture: MemberArchitecture) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor."""
    return {name: tuple(tensor.shape) for name, tensor in architecture.init(torch.Generator()).items()}


def first_weights(member: Member) -> Tensors:
    """First weights, float64: the architecture's, drawn with the member's seed, or what the member starts from."""
    first = member.architecture.init(torch.Generator().manual_seed(member.seed))
    for name in member.frozen:
        if name not in first:
            raise BadInput(f"frozen has {name!r}; expected tensors of {', '.join(first)}")
    for name, tensor in (member.initial or {}).items():
        if name not in first or first[name].shape != tensor.shape:
            shapes = ", ".join(f"{known} {list(value.shape)}" for known, value in first.items())
            raise BadInput(f"initial has {name!r} {list(tensor.shape)}; expected tensors of {shapes}")
        first[name] = tensor.to("cpu", torch.float64)
    return first


def padded(tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """The leading corner of a tensor of this shape, which is zero elsewhere."""
    if tuple(tensor.shape) == shape:
        return tensor
    larger = tensor.new_zeros(shape)
    larger[tuple(slice(size) for size in tensor.shape)] = tensor
    return larger


def views(matrix: torch.Tensor, shapes: Mapping[str, tuple[int, ...]]) -> Tensors:
    """The tensors [M, …] in a matrix [M, P].

    >>> {name: view.shape for name, view in views(torch.zeros(2, 7), {"W": (2, 3), "b": (1,)}).items()}
    {'W': torch.Size([2, 2, 3]), 'b': torch.Size([2, 1])}
    """
    found, start = {}, 0
    for name, shape in shapes.items():
        stop = start + math.prod(shape)
        found[name] = matrix.detach()[:, start:stop].view(len(matrix), *shape)
        start = stop
    return found
