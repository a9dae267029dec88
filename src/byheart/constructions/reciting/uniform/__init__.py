"""Reciting in the shape of a stock Llama: one width, equal layers, RMSNorm, RoPE, SwiGLU, and no code of our own.

``compile_uniform`` makes what ``transformers.LlamaForCausalLM`` loads as it is, ``save`` writes it to a folder.
"""

from byheart.constructions.reciting.uniform.compile import Uniform, compile_uniform
from byheart.constructions.reciting.uniform.saving import save

__all__ = ["Uniform", "compile_uniform", "save"]
