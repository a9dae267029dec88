"""Float Transformers with ordinary layers, each sublayer reading and writing a slice of the residual stream.

``spec`` says what a network is made of (no PyTorch needed), ``module`` is the ``torch.nn.Module``, ``network`` the two
together, ``generate`` says one token after the other. Import the last three where they are needed: they import torch.
"""

from byheart.networks.transformer.spec import GatedBlocks, Mixture, Spec, WindowAttention

__all__ = ["GatedBlocks", "Mixture", "Spec", "WindowAttention"]
