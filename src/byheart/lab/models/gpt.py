"""Many small GPTs at once: :class:`byheart.lab.gpt.GPT` with a leading model axis, for capacity in bits.

The module's own forward pass, mapped over stacked weights (``torch.func``): there is one definition of the network.
Only the last position is computed in the last layer, as the loss reads no other.
"""

from dataclasses import dataclass
from functools import cache

import torch
from torch.func import functional_call, vmap

from byheart.lab.gpt import GPT, Shape
from byheart.lab.member import Tensors


@dataclass(frozen=True)
class SmallGPT:
    """A GPT of this shape; a batch has ``tokens`` [M, B, n]."""

    shape: Shape

    @property
    def parameters(self) -> int:
        """Number of trained numbers, everything counted."""
        return self.shape.parameters

    def init(self, generator: torch.Generator) -> Tensors:
        """As the module initialises itself, from a seed that the generator gives."""
        seed = int(torch.randint(2**62, (), generator=generator))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = GPT(self.shape)
        return {name: tensor.detach().double() for name, tensor in model.named_parameters()}

    def outputs(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Logits [M, B, C] at the last position."""
        model = _without_weights(self.shape)

        def one(own: Tensors, tokens: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = functional_call(model, own, (tokens,), {"last": True})
            return logits

        found: torch.Tensor = vmap(one)(weights, batch["tokens"])
        return found


@cache
def _without_weights(shape: Shape) -> GPT:
    with torch.device("meta"):
        return GPT(shape)
